"""Status of a pod from what is wanted, observed and remembered (semantics 3.11-3.13). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..model.gate import Gate
from ..model.observed import ObservedPod
from ..model.pod import Pod
from ..model.status import (
    ContainerState,
    ContainerStatus,
    PodStatus,
    Running,
    Terminated,
    Waiting,
)
from ..ports import Verdict
from . import conditions, qos, restart, summary, text
from .memory import PodMemory
from .view import Look, View, abandoned, finished, over, view

MESSAGES = 12_288
"""Bytes of all termination messages of a pod, shared evenly among its containers (3.14.4)."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a status is made of; `waiting` comes from the newest plan, `wall` is epoch seconds."""

    pod: Pod
    observed: ObservedPod | None
    memory: PodMemory
    wall: float
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    previous: PodStatus | None = None
    held: bool = False
    host_ip: str = ""
    note: str = ""
    grace: int | None = None
    gate: Gate | None = None


def status(facts: Facts) -> PodStatus:
    """The status now. Transition times are kept from `previous` where nothing changed."""
    seen = view(facts.pod, facts.observed, facts.memory)
    regular = tuple(_container(facts, seen, look) for look in seen.regulars)
    inits = tuple(_container(facts, seen, look) for look in seen.inits)
    phase = _phase(facts, seen)
    before = facts.previous.conditions if facts.previous else ()
    made = PodStatus(
        phase=phase,
        conditions=conditions.conditions(facts, seen, phase, regular, inits, before),
        containers=tuple(sorted(regular, key=lambda c: c.name)),
        init_containers=inits,
        reason=facts.memory.failed.reason if facts.memory.failed else "",
        message=facts.memory.failed.message if facts.memory.failed else "",
        start_time=facts.memory.start_time,
        ips=_ips(facts),
        host_ip=facts.host_ip,
        qos=qos.qos_class(facts.pod),
        deleting=facts.memory.ending.since if facts.memory.ending else 0.0,
        deletion_grace=facts.grace,
        held=facts.held,
    )
    made = replace(made, summary=summary.summary(facts, made))
    return _at_the_gate(facts.gate, made) if facts.gate is not None and facts.observed is None else made


def _at_the_gate(gate: Gate, made: PodStatus) -> PodStatus:
    """A pod that may not begin: refused is Failed (1.7.3), though not for ever; one that has run to its end has."""
    if made.phase in ("Succeeded", "Failed") or made.held or made.deleting:
        return made
    if not gate.refused:
        return replace(made, summary=gate.message)
    return replace(made, phase="Failed", reason=gate.reason, message=gate.message, summary=gate.message)


def _ips(facts: Facts) -> tuple[str, ...]:
    if facts.observed is None or facts.observed.infra_dead:
        return ()
    if facts.pod.host_network:
        return (facts.host_ip,) if facts.host_ip else ()
    return facts.observed.ips


def _container(facts: Facts, seen: View, look: Look) -> ContainerStatus:
    known = facts.memory.of(look.container.name)
    look = _treated_as_done(seen, look)
    state = _state(facts, seen, look)
    last = _last(facts, look, state)
    started = _started(facts, look)
    return ContainerStatus(
        name=look.container.name,
        image=look.container.image,
        state=_cut(facts.pod, state) if isinstance(state, Terminated) else state,
        last_state=_cut(facts.pod, last) if last is not None else None,
        ready=_ready(facts, look, started),
        started=started,
        restart_count=max(known.restart_count, known.base, 0),
        image_id=look.instance.image_id if look.instance else "",
        container_id=f"podman://{look.instance.id}" if look.instance else "",
        log_path=look.instance.log_path if look.instance else "",
    )


def _cut(pod: Pod, end: Terminated) -> Terminated:
    """With no more of its message than its share of what a pod may say (3.14.4)."""
    share = MESSAGES // len(pod.all_containers)
    data = end.message.encode()
    return end if len(data) <= share else replace(end, message=data[:share].decode(errors="ignore"))


def _treated_as_done(seen: View, look: Look) -> Look:
    """A regular init container whose instance was removed after it had done its work (3.13.4)."""
    if not look.init or look.sidecar or look.instance is not None or not seen.initialised:
        return look
    return replace(look, end=Terminated(0, "Completed", message=text.INIT_STATUS_LOST))


def _state(facts: Facts, seen: View, look: Look) -> ContainerState:
    name = look.container.name
    if look.alive and look.instance is not None:
        return Running(look.instance.started_at)
    if name in facts.waiting:
        return facts.waiting[name]
    known = facts.memory.of(name)
    if look.end is not None and not _ran_before_only(facts, look) and not _not_started(facts, look):
        return look.end
    if known.waiting is not None:
        return known.waiting
    pending_init = look.init or not _inits_done(facts, seen)
    return Waiting("PodInitializing" if seen.inits and pending_init else "ContainerCreating")


def _ran_before_only(facts: Facts, look: Look) -> bool:
    """The end belongs to an earlier sandbox, and the container will run again in this one."""
    if look.instance is not None or look.end is None:
        return False
    return facts.observed is not None and not over(facts.pod, look)


def _not_started(facts: Facts, look: Look) -> bool:
    """Its newest instance could not be started, and another one will be: it waits, and says why (3.13.1)."""
    known = facts.memory.of(look.container.name)
    failed = known.start_error.container_id if known.start_error is not None and known.waiting is not None else ""
    return look.instance is not None and failed == look.instance.id and not over(facts.pod, look)


def _last(facts: Facts, look: Look, state: ContainerState) -> Terminated | None:
    known = facts.memory.of(look.container.name)
    if not isinstance(state, Terminated):
        return look.end if look.instance is None and look.end is not None else known.last
    if facts.observed is None or look.instance is None:
        return None
    before = facts.observed.before(look.instance)
    return restart.ended(before, known) if before else None


def _verdict(facts: Facts, look: Look) -> Verdict | None:
    verdict = facts.verdicts.get(look.container.name)
    if verdict is None or look.instance is None or verdict.container_id != look.instance.id:
        return None
    return verdict


def _started(facts: Facts, look: Look) -> bool:
    """`started` (3.13.5): running, and past the startup probe if there is one."""
    if not look.alive:
        return False
    verdict = _verdict(facts, look)
    return look.container.startup is None or (verdict is not None and verdict.started)


def _ready(facts: Facts, look: Look, started: bool) -> bool:
    """`ready` (4.5, 4.6): regular init containers are ready once they have exited 0."""
    if look.init and not look.sidecar:
        return look.end is not None and restart.succeeded(facts.pod, look.container, look.end)
    if not started:
        return False
    verdict = _verdict(facts, look)
    return look.container.readiness is None or (verdict is not None and verdict.ready)


def _inits_done(facts: Facts, seen: View) -> bool:
    return conditions.initialised(facts, seen)


def _phase(facts: Facts, seen: View) -> str:
    """Phase (3.11), top-down."""
    pod = facts.pod
    if facts.memory.failed or _init_failed(facts, seen):
        return "Failed"
    if finished(pod, seen) or (facts.observed is None and abandoned(pod, facts.memory)):
        return "Succeeded" if all(_succeeded(pod, r) for r in seen.regulars) else "Failed"
    if not _inits_done(facts, seen) or any(_never_ran(facts, r) for r in seen.regulars):
        return "Pending"
    return "Running"


def _succeeded(pod: Pod, look: Look) -> bool:
    return look.end is not None and restart.succeeded(pod, look.container, look.end)


def _init_failed(facts: Facts, seen: View) -> bool:
    if seen.initialised:
        return False
    return any(
        i.end is not None
        and not i.sidecar
        and not restart.succeeded(facts.pod, i.container, i.end)
        and over(facts.pod, i)
        for i in seen.inits
    )


def _never_ran(facts: Facts, look: Look) -> bool:
    """Waiting, and it has never run: not even in an earlier sandbox, or as an instance before this one."""
    known = facts.memory.of(look.container.name)
    return not look.alive and look.end is None and (known.restart_count < 0 or known.last is None)
