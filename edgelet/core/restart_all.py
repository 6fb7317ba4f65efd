"""RestartAllContainers: one container's exit code has all of the pod run again, in the same sandbox (semantics 3.5).

While it is under way all containers end without a grace period and are removed, the one that asked for it last;
`absorb` then has every container count as one that has never run.  The kubelet keeps no back-off for it; here
that of the container that asked for it holds, so that a container which always fails so does not spin.
"""

from __future__ import annotations

from ..model.actions import Action, Plan, Verb
from ..model.observed import ObservedPod
from ..model.pod import Container, Pod
from . import restart, starting, stopping, text
from .memory import PodMemory, RestartingAll
from .view import Look, View


def uses(pod: Pod) -> bool:
    """Whether any container of the pod has such a rule."""
    return any(rule.all for c in pod.all_containers for rule in c.restart_rules)


def asked(pod: Pod, observed: ObservedPod, seen: View, memory: PodMemory, now: float) -> Action | None:
    """What begins it, if a container has ended so and its back-off is over."""
    for look in seen.all:
        if look.instance is None or look.end is None or not _by_rule(look.container, look):
            continue
        known = memory.of(look.container.name)
        if starting.crash_wait(pod, look, observed, known, now) is None:
            why = f"it ended with exit code {look.end.exit_code}"
            return Action(Verb.RESTART_ALL, why, look.container.name, look.instance.id)
    return None


def _by_rule(container: Container, look: Look) -> bool:
    """It ended by itself, with a code that a rule says this of; for an end that we brought about no rule counts."""
    rule = restart.rule(container, look.end) if look.end is not None and not look.stopped else None
    return rule is not None and rule.all


def go_on(observed: ObservedPod, why: RestartingAll, memory: PodMemory, now: float) -> Plan:
    """End what runs, then remove all, the container that asked for it last."""
    actions: list[Action] = []
    wakes: list[float] = []
    for c in observed.containers:
        if not c.running:
            continue
        action, wake = stopping.step(stopping.Mark(c.name, c.id), memory, 0, text.stopping(c.name), now)
        actions += [action] if action else []
        wakes += [wake] if wake is not None else []
    if not actions and not wakes:
        last = [c for c in observed.containers if c.id == why.id]
        gone = [c for c in observed.containers if c.id != why.id] or last
        reason = f"all containers run again after the end of {why.container}"
        actions = [Action(Verb.REMOVE_CONTAINER, reason, c.name, c.id) for c in gone]
    return Plan(tuple(actions), min(wakes, default=None))
