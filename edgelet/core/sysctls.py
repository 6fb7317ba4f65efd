"""Which kernel settings a pod may have (semantics 5.6.5): those that stay inside it, and are safe or allowed. Pure."""

from __future__ import annotations

from collections.abc import Collection

from ..model.pod import Pod

SAFE = frozenset(
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    ]
)
"""They have no effect on other pods."""
_IPC = ("kernel.shm", "kernel.msg", "fs.mqueue.")


def namespace(name: str) -> str:
    """The kind of namespace that it belongs to: net or ipc, "" for one of the whole machine."""
    if name.startswith("net."):
        return "net"
    return "ipc" if name == "kernel.sem" or name.startswith(_IPC) else ""


def forbidden(pod: Pod, allowed: Collection[str]) -> str:
    """Why the node does not take the pod ("" = it does); `allowed` are further names, a `*` at the end = all such."""
    for name, _ in pod.sysctls:
        if not any(_matches(pattern, name) for pattern in (*SAFE, *allowed)):
            return f'forbidden sysctl: "{name}" not allowlisted'
        kind = namespace(name)
        if (pod.host_network and kind == "net") or (pod.host_ipc and kind == "ipc"):
            return f'forbidden sysctl: "{name}" not allowed with host {kind} enabled'
    return ""


def _matches(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
