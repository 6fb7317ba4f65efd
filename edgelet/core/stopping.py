"""Ending containers and pods: signal now, SIGKILL at a deadline, then remove (semantics 3.4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..model.actions import Action, Plan, Verb
from ..model.hooks import HookKind, HookState
from ..model.observed import ObservedContainer, ObservedPod
from . import text
from .memory import PodMemory, Stopping

MINIMUM = 2.0
"""Seconds between the stop signal and SIGKILL, at the least (3.4.1)."""
KILL_AGAIN = 5.0
"""A SIGKILL that did not end the container is repeated after this many seconds."""


def begun(container_id: str, grace: int, reason: str, now: float) -> Stopping:
    """The record of a stop whose signal was sent at `now`."""
    return Stopping(container_id, now, now + max(float(grace), MINIMUM), reason)


def hooked(container_id: str, grace: int, reason: str, now: float) -> Stopping:
    """The record of a stop whose preStop hook was begun at `now`."""
    return Stopping(container_id, now, now + grace, reason, hooking=True)


def signalled(stop: Stopping, grace: int, now: float) -> Stopping:
    """The record after the hook, when the signal was sent at `now` with `grace` seconds left."""
    return replace(stop, deadline=now + max(float(grace), MINIMUM), hooking=False, late=now - stop.since)


def killed(stop: Stopping, now: float) -> Stopping:
    """The record after one more SIGKILL."""
    return replace(stop, deadline=now + KILL_AGAIN, kills=stop.kills + 1)


def step(
    name: str, container_id: str, memory: PodMemory, grace: int, reason: str, now: float, hook: bool = False
) -> tuple[Action | None, float | None]:
    """What to do now about one running container that must end, and when to look again.

    A grace shorter than the one under way moves the deadline nearer, never further (3.1.1).  `hook` = it has
    a preStop hook: that comes first, unless there is no grace at all (3.4.1).
    """
    stop = memory.of(name).stopping
    if stop is None or stop.container_id != container_id:
        if hook and grace > 0:
            return Action(Verb.RUN_PRE_STOP, reason, name, container_id, grace), None
        return Action(Verb.STOP_CONTAINER, reason, name, container_id, grace), None
    if stop.hooking:
        return _after_hook(stop, name, memory, grace, now)
    deadline = stop.deadline
    if not stop.kills:
        deadline = min(deadline, stop.since + max(float(grace), stop.late + MINIMUM))
    if now >= deadline:
        return Action(Verb.KILL_CONTAINER, "grace period is over", name, container_id), None
    return None, deadline


def _after_hook(
    stop: Stopping, name: str, memory: PodMemory, grace: int, now: float
) -> tuple[Action | None, float | None]:
    """The signal follows the hook's end, or the end of the grace; whole seconds of it are used up (3.4.2)."""
    until = min(stop.deadline, stop.since + grace)
    if memory.hook(stop.container_id, HookKind.PRE_STOP) is HookState.RUNNING and now < until:
        return None, until
    left = max(int(until - stop.since) - int(now - stop.since), 0)
    return Action(Verb.STOP_CONTAINER, stop.reason, name, stop.container_id, left), None


def stop_all(
    containers: Iterable[ObservedContainer],
    memory: PodMemory,
    grace: int | None,
    now: float,
    limit: int | None = None,
) -> tuple[list[Action], list[float]]:
    """Stop every running container of the list in parallel; empty answers = none runs any more.

    `grace` None = each container's own (from its label), 30 s if it carries none.  `limit` = no more
    than so many seconds whoever gave the grace.
    """
    actions: list[Action] = []
    wakes: list[float] = []
    for c in containers:
        if not c.running:
            continue
        own = c.grace if c.grace is not None else 30
        allowed = own if grace is None else grace
        allowed = allowed if limit is None else min(allowed, limit)
        action, wake = step(c.name, c.id, memory, allowed, text.stopping(c.name), now, c.pre_stop is not None)
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
