"""Ending containers and pods: signal now, SIGKILL at a deadline, then remove (semantics 3.4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..model.actions import Action, Plan, Verb
from ..model.hooks import HookKind, HookState
from ..model.observed import ObservedContainer, ObservedPod
from ..model.pod import HookHandler, Sleep
from . import repair, text
from .memory import PodMemory, Stopping

MINIMUM = 2.0
"""Seconds between the stop signal and SIGKILL, at the least (3.4.1)."""
KILL_AGAIN = 5.0
"""A SIGKILL that did not end the container is repeated after this many seconds."""


def begun(container_id: str, grace: int, reason: str, now: float) -> Stopping:
    """The record of a stop whose signal was sent at `now`."""
    return Stopping(container_id, now, now + max(float(grace), MINIMUM), reason)


def hooked(container_id: str, grace: int, reason: str, now: float) -> Stopping:
    """The record of a stop whose preStop hook, or whose wait for its turn, was begun at `now`."""
    return Stopping(container_id, now, now + grace, reason, hooking=True)


def signalled(stop: Stopping, grace: int, now: float) -> Stopping:
    """The record after the hook, when the signal was sent at `now` with `grace` seconds left."""
    return replace(stop, deadline=now + max(float(grace), MINIMUM), hooking=False, late=now - stop.since)


def killed(stop: Stopping, now: float) -> Stopping:
    """The record after one more SIGKILL."""
    return replace(stop, deadline=now + KILL_AGAIN, kills=stop.kills + 1)


@dataclass(frozen=True, slots=True)
class Mark:
    """A running container that must end: its preStop hook, and whether others have to end before it (3.4.4)."""

    name: str
    id: str
    hook: HookHandler | None = None
    waits: bool = False


def step(mark: Mark, memory: PodMemory, grace: int, reason: str, now: float) -> tuple[Action | None, float | None]:
    """What to do now about one running container that must end, and when to look again.

    A grace shorter than the one under way moves the deadline nearer, never further (3.1.1).  A preStop hook
    comes first, and then its turn, unless there is no grace at all (3.4.1).
    """
    stop = memory.of(mark.name).stopping
    if stop is None or stop.container_id != mark.id:
        verb = Verb.RUN_PRE_STOP if mark.hook else Verb.ANNOUNCE_STOP if mark.waits else Verb.STOP_CONTAINER
        return Action(verb if grace > 0 else Verb.STOP_CONTAINER, reason, mark.name, mark.id, grace), None
    if stop.hooking:
        return _after_hook(stop, mark, memory, grace, now)
    deadline = stop.deadline
    if not stop.kills:
        deadline = min(deadline, stop.since + max(float(grace), stop.late + MINIMUM))
    if now >= deadline:
        return repair.unkillable(mark.name, mark.id, stop.kills), None
    return None, deadline


def _after_hook(
    stop: Stopping, mark: Mark, memory: PodMemory, grace: int, now: float
) -> tuple[Action | None, float | None]:
    """The signal follows the hook's end and those before it; at the latest it comes with the end of the grace.

    Whole seconds of the grace are used up (3.4.2).
    """
    until = min(stop.deadline, stop.since + grace)
    wake = until if mark.waits else _hook_ends(stop, mark, memory, until)
    if now < wake:
        return None, wake
    left = max(int(until - stop.since) - int(now - stop.since), 0)
    return Action(Verb.STOP_CONTAINER, stop.reason, mark.name, mark.id, left), None


def _hook_ends(stop: Stopping, mark: Mark, memory: PodMemory, until: float) -> float:
    """When its hook has ended at the latest; one that an earlier agent began is over, except that sleep goes on."""
    state = memory.hook(stop.container_id, HookKind.PRE_STOP)
    if state is HookState.RUNNING:
        return until
    if state is None and isinstance(mark.hook, Sleep):
        return min(until, stop.since + mark.hook.seconds)
    return stop.since


def _goes_before(one: ObservedContainer, sidecar: ObservedContainer) -> bool:
    """A sidecar is told to end after all regular containers and all sidecars later in the list (3.4.4)."""
    return sidecar.sidecar is not None and (one.sidecar is None or one.sidecar > sidecar.sidecar)


def stop_all(
    containers: Iterable[ObservedContainer],
    memory: PodMemory,
    grace: int | None,
    now: float,
    limit: int | None = None,
) -> tuple[list[Action], list[float]]:
    """Stop every running container of the list, sidecars in turn; empty answers = none runs any more.

    `grace` None = each container's own (from its label), 30 s if it carries none.  `limit` = no more
    than so many seconds whoever gave the grace.
    """
    actions: list[Action] = []
    wakes: list[float] = []
    running = [c for c in containers if c.running]
    for c in running:
        own = c.grace if c.grace is not None else 30
        allowed = own if grace is None else grace
        allowed = allowed if limit is None else min(allowed, limit)
        mark = Mark(c.name, c.id, c.pre_stop, any(_goes_before(other, c) for other in running))
        action, wake = step(mark, memory, allowed, text.stopping(c.name), now)
        if action:
            actions.append(action)
        if wake is not None:
            wakes.append(wake)
    return actions, wakes


def end_pod(
    observed: ObservedPod,
    memory: PodMemory,
    reason: str,
    keep_data: bool,
    now: float,
    anew: bool = False,
    grace: int | None = None,
    limit: int | None = None,
) -> Plan:
    """Stop all containers of a pod, then remove it; `grace` and `limit` as in `stop_all`."""
    actions, wakes = stop_all(observed.containers, memory, grace, now, limit)
    if not actions and not wakes:
        actions = [Action(Verb.REMOVE_POD, reason, target=observed.id)]
    return Plan(tuple(actions), min(wakes, default=None), ending=reason, keep_data=keep_data, anew=anew)
