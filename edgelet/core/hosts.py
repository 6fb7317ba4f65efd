"""The text of a pod's /etc/hosts, and its host name (semantics 5.2, 5.3.1). Pure."""

from __future__ import annotations

from ..model.pod import Pod

HOSTNAME_MAX = 63

_HEAD = """# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""
_HOST_HEAD = "# Kubernetes-managed hosts file (host network).\n"


def hostname(pod: Pod) -> str:
    """spec.hostname, else the pod's name, cut to 63 characters without trailing '-' or '.'."""
    return pod.hostname or pod.name[:HOSTNAME_MAX].rstrip("-.")


def text(pod: Pod, ips: tuple[str, ...], own: str) -> str:
    """The file; `own` is that of the node, for pods on its network."""
    if pod.host_network:
        return f"{_HOST_HEAD}{own}{_aliases(pod)}"
    return _HEAD + "".join(f"{ip}\t{hostname(pod)}\n" for ip in ips) + _aliases(pod)


def _aliases(pod: Pod) -> str:
    if not pod.host_aliases:
        return ""
    lines = ["\t".join((alias.ip, *alias.hostnames)) for alias in pod.host_aliases]
    return "\n# Entries added by HostAliases.\n" + "".join(f"{line}\n" for line in lines)
