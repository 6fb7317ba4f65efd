"""Podman: the service, the transport, the bodies sent and the answers read; `Podman` is ports.Runtime."""

from .host import Host, read
from .networks import Network
from .runtime import Podman
from .service import Service, Storage
from .spec import HostFacts

__all__ = ["Host", "HostFacts", "Network", "Podman", "Service", "Storage", "facts", "read"]


def facts(host: Host) -> HostFacts:
    """What `spec` has to know of this host."""
    return HostFacts(
        memory=host.memory,
        memory_cgroup="memory" in host.controllers,
        swap_cgroup=host.swap_limit,
        cpu_cgroup="cpu" in host.controllers,
        pids_cgroup="pids" in host.controllers,
        oom_min=-1000 if host.can_raise_limits else host.oom_score_adj,
    )
