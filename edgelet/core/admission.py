"""Which of the wanted pods this node takes (semantics 1.7): resources, number of pods, host ports. Pure.

Pods that run keep what they have; the others are judged in order, each beside those before it.  A refusal is
judged anew whenever anything changes (design section 4), so it needs no memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from ..model.gate import Gate
from ..model.pod import Pod, PodKey, Resources

ANY = frozenset({"", "0.0.0.0", "::"})
"""Host addresses that mean all of them."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the node has: milli-CPU, bytes, pods."""

    cpu: int
    memory: int
    pods: int


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the host; `ip` "" = on all addresses."""

    protocol: str
    port: int
    ip: str = ""

    def clashes(self, other: HostPort) -> bool:
        """Whether both cannot be had at once."""
        same = (self.protocol, self.port) == (other.protocol, other.port)
        return same and (self.ip == other.ip or self.ip in ANY or other.ip in ANY)

    def __str__(self) -> str:
        return f"{self.protocol} {self.ip + ':' if self.ip else ''}{self.port}"


def judge(
    pods: Mapping[PodKey, Pod], running: Collection[PodKey], done: Collection[PodKey], node: Capacity
) -> dict[PodKey, Gate]:
    """The refusals by key; a pod without one is taken.

    `running` = taken already, in this generation; `done` = run to their end: they hold nothing any more (1.7.1).
    """
    counted = [key for key in pods if key not in done]
    taken = [pods[key] for key in counted if key in running]
    refused: dict[PodKey, Gate] = {}
    for key in counted:
        if key in running:
            continue
        gate = _refusal(pods[key], taken, node)
        if gate is None:
            taken.append(pods[key])
        else:
            refused[key] = gate
    return refused


def _refusal(pod: Pod, taken: list[Pod], node: Capacity) -> Gate | None:
    """The first reason against it, in the kubelet's order: number, cpu, memory, ports."""
    return next(_reasons(pod, taken, node), None)


def _reasons(pod: Pod, taken: list[Pod], node: Capacity) -> Iterator[Gate]:
    wants, used = requests(pod), [requests(p) for p in taken]
    rows = (
        ("pods", 1, len(taken), node.pods),
        ("cpu", wants[0], sum(u[0] for u in used), node.cpu),
        ("memory", wants[1], sum(u[1] for u in used), node.memory),
    )
    for name, wanted, held, capacity in rows:
        if wanted and held + wanted > capacity:
            yield _rejected(
                f"OutOf{name}",
                f"Node didn't have enough resource: {name}, requested: {wanted}, used: {held}, capacity: {capacity}",
            )
    for holder in taken:
        for port in host_ports(pod):
            if any(port.clashes(other) for other in host_ports(holder)):
                yield _rejected(
                    "NodePorts",
                    "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports:"
                    f" pod {holder.key} holds host port {port}",
                )


def _rejected(reason: str, message: str) -> Gate:
    return Gate(reason, f"Pod was rejected: {message}")


def requests(pod: Pod) -> tuple[int, int]:
    """Milli-CPU and bytes that a pod asks for: the larger of what it needs while it starts and while it runs."""
    return _most(pod, "cpu"), _most(pod, "memory")


def _most(pod: Pod, name: str) -> int:
    """Init containers run one by one, each beside the sidecars before it (2.1; KEP-753)."""
    beside, most = 0, 0
    for init in pod.init_containers:
        asked = _asked(init.resources, name)
        if pod.is_sidecar(init):
            beside += asked
            most = max(most, beside)
        else:
            most = max(most, beside + asked)
    return max(most, beside + sum(_asked(c.resources, name) for c in pod.containers))


def _asked(resources: Resources, name: str) -> int:
    """A request, or the limit where there is none (2.1)."""
    r = resources
    request, limit = (r.cpu_request, r.cpu_limit) if name == "cpu" else (r.memory_request, r.memory_limit)
    return (request if request is not None else limit) or 0


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The ports of the host that its regular containers and sidecars take; in the host's network that is each one."""
    sidecars = tuple(c for c in pod.init_containers if pod.is_sidecar(c))
    rows = [
        (p, p.host_port or (p.container_port if pod.host_network else 0))
        for c in pod.containers + sidecars
        for p in c.ports
    ]
    return tuple(HostPort(port.protocol, number, port.host_ip) for port, number in rows if number)
