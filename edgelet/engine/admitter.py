"""Says which pods may begin: on this node at all (core.admission), and yet (core.order); remembers what has begun.

Used by the director under its lock; what it asks (node, statuses) answers at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .. import ports
from ..core import admission, order
from ..model.gate import Gate
from ..model.observed import ObservedPod
from ..model.pod import Pod, PodKey
from ..model.status import PodStatus


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What admission looks at: the node's capacity, the newest status of a pod, the time, this boot's id."""

    capacity: Callable[[], admission.Capacity]
    status: Callable[[PodKey], PodStatus | None]
    clock: ports.Clock
    boot_id: str


class Admitter:
    """See the module."""

    def __init__(self, around: Surroundings, recorder: ports.Recorder) -> None:
        self._around = around
        self._recorder = recorder
        self._taken: dict[PodKey, str] = {}
        self._since: dict[PodKey, float] = {}
        self._gates: dict[PodKey, Gate] = {}
        self._leaving: frozenset[PodKey] = frozenset()

    @property
    def closed(self) -> bool:
        """Whether any pod may not begin now: then a change of any status is news."""
        return bool(self._gates)

    def judge(self, pods: Mapping[PodKey, Pod], running: Mapping[PodKey, ObservedPod]) -> Mapping[PodKey, Gate]:
        """The gates by key; a pod without one may begin, and is counted as begun from now on."""
        now = self._around.clock.monotonic()
        for key, seen in running.items():
            if seen.boot_id == self._around.boot_id:
                self._taken.setdefault(key, seen.config_hash)
        gone = self._leaving - running.keys()
        self._taken = {k: h for k, h in self._taken.items() if k in pods and k not in gone}
        self._since = {k: self._since.get(k, now) for k in pods}
        statuses = {k: s for k in pods if (s := self._around.status(k)) is not None}
        ready = {k for k, s in statuses.items() if any(c.type == "Ready" and c.status == "True" for c in s.conditions)}
        gates = order.gates(pods, ready, self._taken.keys(), self._since)
        gates = {k: g for k, g in gates.items() if g.closed(now)}
        same = {k for k, h in self._taken.items() if pods[k].config_hash == h}
        done = {k for k in same - self._leaving if k in statuses and statuses[k].phase in ("Succeeded", "Failed")}
        waiting = {k for k, g in gates.items() if not g.refused}
        asking = {k: p for k, p in pods.items() if k not in gates or k in waiting}
        gates |= admission.judge(asking, same, done, self._around.capacity())
        self._leaving = frozenset(k for k, g in gates.items() if g.ends)
        self._taken |= {k: p.config_hash for k, p in pods.items() if k not in gates}
        self._tell(pods, gates)
        return gates

    def _tell(self, pods: Mapping[PodKey, Pod], gates: dict[PodKey, Gate]) -> None:
        for key, gate in gates.items():
            if self._gates.get(key) != gate:
                ref = ports.EventRef(key, pods[key].uid)
                kind = "Warning" if gate.refused else "Normal"
                self._recorder.event(ref, kind, gate.reason, gate.message.removeprefix("Pod was rejected: "))
        self._gates = gates
