"""Quality-of-service class of a pod (semantics 6.1)."""

from __future__ import annotations

from ..model.pod import Container, Pod


def qos_class(pod: Pod) -> str:
    """Guaranteed, Burstable or BestEffort, from cpu and memory of all containers."""
    if not any(_values(c) for c in pod.all_containers):
        return "BestEffort"
    return "Guaranteed" if all(_guaranteed(c) for c in pod.all_containers) else "Burstable"


def _values(container: Container) -> bool:
    r = container.resources
    return any(v for v in (r.cpu_limit, r.memory_limit, r.cpu_request, r.memory_request))


def _guaranteed(container: Container) -> bool:
    r = container.resources
    both = ((r.cpu_limit, r.cpu_request), (r.memory_limit, r.memory_request))
    return all(limit and request in (None, limit) for limit, request in both)
