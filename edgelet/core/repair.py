"""The repair ladder: what is done, from gentle to rough, when Podman fails the same step of a pod again and again.

A rung is taken after `PATIENCE` failures in a row, each waited for as any trouble is; then the failed step has
its turns again.  No rung touches another pod, and none ends a container that runs and is wanted: a good pod
keeps running while the rest of it is repaired.  The last rung only reports.  Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from .. import errors
from ..model.actions import Action, Verb
from ..model.observed import ObservedPod
from ..model.pod import Pod
from .memory import Kind, PodMemory, Trouble
from .view import abandoned

PATIENCE = 3
"""Failures of a step before the next rung."""


_Rung = Callable[[Pod | None, ObservedPod | None, PodMemory, Trouble], tuple[Action, ...]]


def rung(pod: Pod | None, observed: ObservedPod | None, memory: PodMemory) -> tuple[Action, ...]:
    """The next step up, () = it is not yet time, or all has been tried: then the failed step goes on alone."""
    trouble = memory.trouble
    if trouble is None or trouble.verb is None or trouble.tries < _patience(trouble):
        return ()
    ladder = LADDERS.get(trouble.verb, ())
    first = memory.climb.rung if memory.climb is not None and memory.climb.verb is trouble.verb else 0
    for number in range(first, len(ladder)):
        actions = ladder[number](pod, observed, memory, trouble)
        if actions:
            return tuple(replace(action, rung=number + 1) for action in actions)
    return ()


def _patience(trouble: Trouble) -> int:
    """A damaged image does not mend by itself."""
    return 1 if trouble.kind is Kind.DAMAGED else PATIENCE


def troubled(before: Trouble | None, action: Action | None, error: Exception, now: Trouble) -> Trouble:
    """`now` with what failed: one more try of the same step, or another step.

    A rung that failed leaves the step that it was for; so does a call that was only a question, or one that
    Podman was not there to hear.
    """
    unheard = action is None or isinstance(error, errors.Unreachable) or not isinstance(error, errors.RuntimeFailure)
    if before is not None and (unheard or (action is not None and action.rung)):
        tries = before.tries if unheard else PATIENCE
        return replace(
            now, verb=before.verb, target=before.target, container=before.container, tries=tries, kind=before.kind
        )
    if action is None or unheard or action.rung:
        return now
    again = before is not None and (before.verb, before.container) == (action.verb, action.container)
    tries = before.tries + 1 if before is not None and again else 1
    return replace(
        now, verb=action.verb, target=action.target, container=action.container, tries=tries, kind=_kind(error)
    )


def _kind(error: Exception) -> Kind:
    if isinstance(error, errors.Damaged):
        return Kind.DAMAGED
    if isinstance(error, errors.Permanent):
        return Kind.REFUSED
    return Kind.TAKEN if isinstance(error, errors.Conflict) else Kind.OTHER


def unkillable(name: str, container_id: str, kills: int) -> Action:
    """What follows the `kills`-th SIGKILL that has ended nothing."""
    action = _AFTER_KILLS.get(kills)
    if action is None:
        return Action(Verb.KILL_CONTAINER, "grace period is over", name, container_id)
    return Action(action[0], action[1], name, container_id, rung=kills)


_AFTER_KILLS: Mapping[int, tuple[Verb, str]] = {
    2: (Verb.SETTLE_CONTAINER, "two SIGKILLs through Podman have not ended it"),
    3: (Verb.REMOVE_CONTAINER, "it does not end"),
    4: (Verb.RENEW_SERVICE, "a container does not end, and cannot be removed"),
    5: (Verb.REPORT, "it does not end, whatever is tried"),
}


# ---- rungs --------------------------------------------------------------------------------------------


def _renew_image(
    pod: Pod | None, observed: ObservedPod | None, memory: PodMemory, trouble: Trouble
) -> tuple[Action, ...]:
    container = pod.container(trouble.container) if pod is not None else None
    if trouble.kind is not Kind.DAMAGED or container is None or container.pull_policy == "Never":
        return ()
    made = _remove_container(pod, observed, memory, trouble)
    return (
        *made,
        Action(Verb.RENEW_IMAGE, "its layers are damaged", container.name, container.image),
    )


def _remove_container(
    pod: Pod | None, observed: ObservedPod | None, memory: PodMemory, trouble: Trouble
) -> tuple[Action, ...]:
    """Made, but it cannot be started: another one may."""
    seen = observed.by_id(trouble.target) if observed is not None else None
    if seen is None or seen.running:
        return ()
    return (Action(Verb.REMOVE_CONTAINER, "it cannot be started", seen.name, seen.id),)


def _remove_pod(
    pod: Pod | None, observed: ObservedPod | None, memory: PodMemory, trouble: Trouble
) -> tuple[Action, ...]:
    """Nothing runs in this sandbox, and nothing can be started in it."""
    if pod is None or observed is None or any(c.running for c in observed.containers) or abandoned(pod, memory):
        return ()
    return (Action(Verb.REMOVE_POD, "nothing can be started in it", target=observed.id),)


def _settle(pod: Pod | None, observed: ObservedPod | None, memory: PodMemory, trouble: Trouble) -> tuple[Action, ...]:
    """End what is to end without Podman, and tell Podman so in conmon's place."""
    if observed is None:
        return ()
    why = "Podman cannot end it"
    if trouble.verb is not Verb.REMOVE_POD:
        return (Action(Verb.SETTLE_CONTAINER, why, trouble.container, trouble.target),)
    ids = [(c.name, c.id) for c in observed.containers] + [("", observed.infra_id)] * bool(observed.infra_id)
    return tuple(Action(Verb.SETTLE_CONTAINER, why, name, i) for name, i in ids)


def _renew_service(
    pod: Pod | None, observed: ObservedPod | None, memory: PodMemory, trouble: Trouble
) -> tuple[Action, ...]:
    if trouble.kind is Kind.TAKEN or (trouble.kind is Kind.REFUSED and trouble.verb not in ENDING):
        return ()
    return (Action(Verb.RENEW_SERVICE, f"{PATIENCE} times in a row it could not {_step(trouble)}"),)


def _report(pod: Pod | None, observed: ObservedPod | None, memory: PodMemory, trouble: Trouble) -> tuple[Action, ...]:
    return (Action(Verb.REPORT, f"{trouble.message}; {advice(trouble)}", trouble.container, trouble.target),)


def _step(trouble: Trouble) -> str:
    return f"{trouble.verb.value if trouble.verb else 'act'} {trouble.container}".rstrip()


def advice(trouble: Trouble) -> str:
    """What a person can do when nothing here has helped."""
    if trouble.kind is Kind.TAKEN:
        return "a pod or container of that name is there that edgelet did not make: rename or remove one of them"
    if trouble.verb in ENDING:
        return HUNG
    if trouble.kind is Kind.REFUSED:
        return "the pod asks for what Podman or its runtime refuses: change its manifest"
    return (
        "look for a disk that is full (df -h) or read-only (findmnt -O ro) and at what `podman info` says;"
        " `edgelet restart` tries everything again, a restart of the machine clears what Podman keeps in memory"
    )


HUNG = (
    "look for processes in state D (ps axo pid,stat,cmd) and for a mount that hangs;"
    " a restart of the machine ends what nothing else ends"
)
ENDING = frozenset({Verb.STOP_CONTAINER, Verb.KILL_CONTAINER, Verb.REMOVE_CONTAINER, Verb.REMOVE_POD})

LADDERS: Mapping[Verb, tuple[_Rung, ...]] = {
    Verb.CREATE_POD: (_renew_service, _report),
    Verb.START_POD: (_remove_pod, _renew_service, _report),
    Verb.CREATE_CONTAINER: (_renew_image, _remove_pod, _renew_service, _report),
    Verb.START_CONTAINER: (_renew_image, _remove_container, _remove_pod, _renew_service, _report),
    Verb.STOP_CONTAINER: (_settle, _renew_service, _report),
    Verb.KILL_CONTAINER: (_settle, _renew_service, _report),
    Verb.REMOVE_CONTAINER: (_settle, _renew_service, _report),
    Verb.REMOVE_POD: (_settle, _renew_service, _report),
}
