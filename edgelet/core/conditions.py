"""The conditions of a pod, in the kubelet's order and words (semantics 3.12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model.status import Condition, ContainerStatus, Running
from . import restart, restart_all
from .view import Look, View

if TYPE_CHECKING:
    from .phase import Facts


_ALL = "AllContainersRestarting"
"""Only pods that have a rule for it have this condition."""


def initialised(facts: Facts, seen: View) -> bool:
    """All regular inits exited 0 and all sidecars started, or a regular container has ever started."""
    if seen.initialised:
        return True
    return all(_init_done(facts, i) for i in seen.inits)


def _init_done(facts: Facts, look: Look) -> bool:
    if look.sidecar:
        return look.alive and (look.container.startup is None or _started(facts, look))
    return look.instance is not None and look.end is not None and restart.succeeded(facts.pod, look.container, look.end)


def _started(facts: Facts, look: Look) -> bool:
    verdict = facts.verdicts.get(look.container.name)
    return bool(verdict and look.instance and verdict.container_id == look.instance.id and verdict.started)


def conditions(
    facts: Facts,
    seen: View,
    phase: str,
    regular: tuple[ContainerStatus, ...],
    inits: tuple[ContainerStatus, ...],
    before: tuple[Condition, ...],
) -> tuple[Condition, ...]:
    """All conditions; `before` gives the transition times of those that did not change."""
    sidecars = tuple(s for s, look in zip(inits, seen.inits, strict=True) if look.sidecar)
    ready = _ready(phase, sidecars + regular)
    made = (
        ("PodReadyToStartContainers", _sandbox(facts, phase), "", ""),
        ("Initialized", *_initialised(facts, seen, phase)),
        ("Ready", *ready),
        ("ContainersReady", *ready),
        ("PodScheduled", True, "", ""),
        *((_ALL, facts.memory.restarting is not None, "", "") for _ in range(restart_all.uses(facts.pod))),
    )
    return tuple(_stamp(facts.wall, before, *m) for m in made)


def _stamp(wall: float, before: tuple[Condition, ...], kind: str, true: bool, reason: str, message: str) -> Condition:
    value = "True" if true else "False"
    old = next((c for c in before if c.type == kind), None)
    since = old.last_transition if old is not None and old.status == value else wall
    made = Condition(kind, value, since, reason, message)
    return old if old == made else made  # one and the same in all statuses that are kept for watchers


def _sandbox(facts: Facts, phase: str) -> bool:
    observed = facts.observed
    if observed is None or observed.infra_dead or observed.boot_id != facts.memory.boot_id:
        return False
    if phase in ("Succeeded", "Failed"):
        return False
    return facts.pod.host_network or bool(observed.ips)


def _initialised(facts: Facts, seen: View, phase: str) -> tuple[bool, str, str]:
    if phase == "Succeeded":
        return True, "PodCompleted", ""
    if initialised(facts, seen):
        return True, "", ""
    names = " ".join(i.container.name for i in seen.inits if not _init_done(facts, i))
    return False, "ContainersNotInitialized", f"containers with incomplete status: [{names}]"


def _ready(phase: str, statuses: tuple[ContainerStatus, ...]) -> tuple[bool, str, str]:
    if phase == "Succeeded":
        return False, "PodCompleted", ""
    if phase == "Failed":
        return False, "PodFailed", ""
    unready = [s.name for s in statuses if not (s.ready and isinstance(s.state, Running))]
    if not unready:
        return True, "", ""
    return False, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
