"""What one pod's worker holds: wish, observation and memory, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..core import memory as memories
from ..core.plan import Scene
from ..model.gate import Gate
from ..model.observed import ObservedPod
from ..model.pod import Pod, PodKey
from ..model.status import PodStatus, Waiting
from ..ports import EventRef, Verdict


@dataclass(frozen=True, slots=True)
class Local:
    """State of one pod between two steps; `spec` is the running generation's Pod, where known.

    `stale` = something failed, so the runtime is asked about this pod before the next plan.  `grace` =
    the seconds allowed by whoever deleted the pod (None = its own).  `down` = the machine is going down and
    leaves so many seconds (None = it stays up).  `told` is what the newest status
    was made of, `saved` the memory that is on disk: a step that changes neither makes neither anew.
    """

    key: PodKey
    desired: Pod | None = None
    held: bool = False
    spec: Pod | None = None
    observed: ObservedPod | None = None
    memory: memories.PodMemory = field(default_factory=memories.PodMemory)
    incoming: memories.PodMemory = field(default_factory=memories.PodMemory)
    status: PodStatus | None = None
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    stale: bool = False
    grace: int | None = None
    down: int | None = None
    gate: Gate | None = None
    told: tuple[object, ...] = ()
    saved: memories.PodMemory | None = None

    @property
    def current(self) -> Pod | None:
        """The spec of the generation that `memory` belongs to."""
        if self.desired is not None and self.desired.config_hash == self.memory.config_hash:
            return self.desired
        if self.spec is not None and self.spec.config_hash == self.memory.config_hash:
            return self.spec
        return None

    def scene(self, verdicts: Mapping[str, Verdict], now: float) -> Scene:
        """The planner's view."""
        return Scene(
            pod=self.desired,
            observed=self.observed,
            memory=self.memory,
            now=now,
            verdicts=verdicts,
            old=self.current,
            incoming=self.incoming,
            held=self.held,
            grace=self.grace,
            down=self.down,
            gate=self.gate,
        )

    def ref(self, container: str = "") -> EventRef:
        """The object of an event about this pod or one of its containers (7.6)."""
        pod = self.current or self.desired
        path = ""
        if container and (pod is None or pod.container(container) is not None):
            init = pod.is_init(container) if pod else False
            path = f"spec.{'initContainers' if init else 'containers'}{{{container}}}"
        return EventRef(self.key, self.memory.uid or (pod.uid if pod else ""), path)

    def with_memory(self, memory: memories.PodMemory) -> Local:
        """A copy with another memory."""
        return self if memory is self.memory else replace(self, memory=memory)

    def with_pull(self, config_hash: str, container: str, pull: memories.Pull) -> Local:
        """A copy that knows where an image stands; results for generations long gone are dropped."""
        if config_hash == self.memory.config_hash:
            return replace(self, memory=self.memory.update(container, pull=pull))
        if config_hash == self.incoming.config_hash:
            return replace(self, incoming=self.incoming.update(container, pull=pull))
        return self
