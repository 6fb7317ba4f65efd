"""Which of the wanted pods this node takes (semantics 1.7): kernel settings, resources, number, host ports. Pure.

Pods that run keep what they have; the others are judged in order, each beside those before it.  A refusal is
judged anew whenever anything changes (design section 4), so it needs no memory.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from ..model.gate import Gate
from ..model.pod import Pod, PodKey, Resources
from . import preemption, sysctls

STORAGE = "ephemeral-storage"
ANY = frozenset({"", "0.0.0.0", "::"})
"""Host addresses that mean all of them."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the node has: milli-CPU, bytes, pods, bytes on the disk (0 = not looked at); kernel settings it allows."""

    cpu: int
    memory: int
    pods: int
    storage: int = 0
    sysctls: tuple[str, ...] = ()


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
    """The gates by key; a pod without one is taken.

    `running` = taken already, in this generation; `done` = run to their end: they hold nothing any more (1.7.1).
    One that has to make room is told to end, and whom it makes room for waits until it is not `running` any more.
    """
    counted = [key for key in pods if key not in done]
    taken = [pods[key] for key in counted if key in running]
    gates: dict[PodKey, Gate] = {}
    asking = sorted((key for key in counted if key not in running), key=lambda key: -pods[key].priority)
    for key in asking:
        pod = pods[key]
        gate = _refusal(pod, taken, node)
        leaving = () if gate is None else _make_room(pod, taken, node)
        for victim in leaving:
            taken.remove(victim)
            gates[victim.key] = Gate("Preempting", preemption.MESSAGE, ends=True)
        if leaving:
            gate = Gate("WaitingForRoom", f"waits for {_names(leaving)} to end", refused=False)
        if gate is not None:
            gates[key] = gate
        if gate is None or leaving:
            taken.append(pod)
    return gates


def _names(pods: Collection[Pod]) -> str:
    return ", ".join(f"pod {pod.key}" for pod in pods)


def _refusal(pod: Pod, taken: list[Pod], node: Capacity) -> Gate | None:
    """The first reason against it, in the kubelet's order: kernel settings, number, cpu, memory, disk, ports."""
    return next(_reasons(pod, taken, node), None)


def _reasons(pod: Pod, taken: list[Pod], node: Capacity) -> Iterator[Gate]:
    if why := sysctls.forbidden(pod, node.sysctls):
        yield _rejected("SysctlForbidden", why)
    for name, (wanted, held, capacity) in _amounts(pod, taken, node).items():
        if wanted and held + wanted > capacity:
            yield _rejected(
                f"OutOf{name}",
                f"Node didn't have enough resource: {name}, requested: {wanted}, used: {held}, capacity: {capacity}",
            )
    yield from _clashes(pod, taken)


def _clashes(pod: Pod, taken: list[Pod]) -> Iterator[Gate]:
    for holder in taken:
        for port in host_ports(pod):
            if any(port.clashes(other) for other in host_ports(holder)):
                yield _rejected(
                    "NodePorts",
                    "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports:"
                    f" pod {holder.key} holds host port {port}",
                )


def _amounts(pod: Pod, taken: list[Pod], node: Capacity) -> dict[str, tuple[int, int, int]]:
    """By resource: what it wants, what is held, what the node has."""
    wants, used = held(pod), [held(p) for p in taken]
    has = {"pods": node.pods, "cpu": node.cpu, "memory": node.memory, STORAGE: node.storage or sys.maxsize}
    return {name: (wants[name], sum(u[name] for u in used), has[name]) for name in has}


def _make_room(pod: Pod, taken: list[Pod], node: Capacity) -> tuple[Pod, ...]:
    """The pods that end for it, () = none do: it lacks something else as well, or nobody matters less (1.7.4)."""
    if any(not gate.reason.startswith("OutOf") for gate in _reasons(pod, taken, node)):
        return ()
    rows = _amounts(pod, taken, node).items()
    short = {name: used + wanted - capacity for name, (wanted, used, capacity) in rows if wanted}
    return preemption.victims(pod, taken, {name: n for name, n in short.items() if n > 0}, held)


def _rejected(reason: str, message: str) -> Gate:
    return Gate(reason, f"Pod was rejected: {message}")


def held(pod: Pod) -> dict[str, int]:
    """What a pod asks for, by resource: the larger of what it needs while it starts and while it runs."""
    return {"pods": 1, "cpu": _most(pod, "cpu"), "memory": _most(pod, "memory"), STORAGE: _most(pod, STORAGE)}


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
    request, limit = {
        "cpu": (r.cpu_request, r.cpu_limit),
        "memory": (r.memory_request, r.memory_limit),
        STORAGE: (r.storage_request, r.storage_limit),
    }[name]
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
