"""Pure: the containers.conf that an embedded Podman service needs on this host, if any.

Podman 4.3 reads nothing else once CONTAINERS_CONF is set, so ours carries the user's own settings
on; a key that the user has set is never changed.  The user's file is never written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .host import Host

# Podman 4.3 gives containers these where nothing is configured, and fails where it may not
PODMAN_NOFILE = 1_048_576
PODMAN_NPROC = 4_194_304

Tables = dict[str, dict[str, Any]]


def needed(host: Host) -> Tables:
    """Settings without which Podman's own defaults fail on this host; {} on an ordinary machine."""
    tables: Tables = {}
    engine: dict[str, Any] = {}
    if not host.cgroup_v2 and "runc" in host.runtimes:
        engine["runtime"] = "runc"  # Debian's crun refuses cgroup v1 and hybrid
    if not host.systemd:
        engine["cgroup_manager"] = "cgroupfs"
        engine["events_logger"] = "file"
    if engine:
        tables["engine"] = engine
    limits = _limits(host)
    if limits:
        tables["containers"] = {"default_ulimits": limits}
    return tables


def _limits(host: Host) -> list[str]:
    if host.can_raise_limits:
        return []
    low = [
        (name, hard)
        for name, hard, default in (("nofile", host.nofile, PODMAN_NOFILE), ("nproc", host.nproc, PODMAN_NPROC))
        if 0 <= hard < default
    ]
    return [f"{name}={hard}:{hard}" for name, hard in low]


def merged(user: Mapping[str, Any], ours: Tables) -> Tables:
    """The user's settings with ours where the user has set nothing."""
    tables: Tables = {name: dict(table) for name, table in user.items() if isinstance(table, Mapping)}
    for name, table in ours.items():
        for key, value in table.items():
            tables.setdefault(name, {}).setdefault(key, value)
    return tables


def text(tables: Tables) -> str:
    """TOML of two levels and deeper tables, strings, booleans, numbers and lists."""
    return "".join(_table((name,), table) for name, table in tables.items())


def _table(path: tuple[str, ...], table: Mapping[str, Any]) -> str:
    lines = [f"[{'.'.join(_key(p) for p in path)}]"]
    deeper = ""
    for key, value in table.items():
        if isinstance(value, Mapping):
            deeper += _table((*path, key), value)
        else:
            lines.append(f"{_key(key)} = {_value(value)}")
    return "\n".join(lines) + "\n" + deeper


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _string(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(v) for v in value)}]"
    return _string(value) if isinstance(value, str) else str(value)


def _string(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'
