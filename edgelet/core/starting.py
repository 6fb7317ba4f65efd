"""Starting one container: its image, the back-off, create, start (semantics 3.6-3.8)."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.actions import Action, Verb
from ..model.observed import ObservedContainer, ObservedPod
from ..model.pod import Container, Pod
from ..model.status import Waiting
from . import backoff, image_name, restart, text
from .memory import ContainerMemory, PodMemory, PullState
from .view import Look


@dataclass(frozen=True, slots=True)
class Step:
    """What comes next for one container.

    `action` = do this now; else `waiting` says why not, and `until` when to try again (None: an
    event will tell).  `blocks` = containers later in the list must wait for it (3.2.4).
    """

    action: Action | None = None
    waiting: Waiting | None = None
    until: float | None = None
    blocks: bool = False


def next_step(pod: Pod, look: Look, observed: ObservedPod, memory: PodMemory, now: float) -> Step:
    """The next step towards a running container that is not running now."""
    name = look.container.name
    known = memory.of(name)
    if look.startable and look.instance is not None:
        return Step(Action(Verb.START_CONTAINER, "created", name, look.instance.id), blocks=True)
    if now < known.retry_at:
        return Step(waiting=known.waiting, until=known.retry_at)
    crashed = crash_wait(pod, look, observed, known, now)
    if crashed:
        return crashed
    for needed in _images(pod, look.container):
        image = image_step(needed, memory.of(needed.name), pod.config_hash, now)
        if image:
            return image
    return Step(_create(look, known), blocks=True)


def _images(pod: Pod, container: Container) -> tuple[Container, ...]:
    """What must be here before it is made: its image, and those of the volumes that it mounts."""
    mounted = {f"volumes[{m.volume}]" for m in container.mounts}
    return (container, *(v for v in pod.image_volumes if v.name in mounted))


def _create(look: Look, known: ContainerMemory) -> Action:
    number = max(known.next_count, look.instance.restart_count + 1 if look.instance else 0)
    reason = "not running yet"
    if look.end is not None:
        reason = f"ended with exit code {look.end.exit_code} ({look.end.reason})"
    return Action(Verb.CREATE_CONTAINER, reason, look.container.name, number=number)


def crash_wait(pod: Pod, look: Look, observed: ObservedPod, known: ContainerMemory, now: float) -> Step | None:
    """The wait of its back-off, None = there is none or it is over."""
    finished = basis(look.instance, observed, known)
    if finished is None:
        return None
    until = backoff.wait_until(known.backoff, finished)
    if until is None or now >= until or known.backoff is None:
        return None
    name = look.container.name
    waiting = Waiting("CrashLoopBackOff", text.crash_loop(pod, name, known.backoff.delay))
    return Step(waiting=waiting, until=until)


def basis(instance: ObservedContainer | None, observed: ObservedPod, known: ContainerMemory) -> float | None:
    """The monotonic end from which the back-off counts; None = no earlier instance to count from.

    An instance that edgelet itself killed counts by the one before it (3.6.5).
    """
    if instance is None:
        return None
    if restart.stopped(instance, known):
        before = observed.before(instance)
        return before.finished_mono if before else None
    if known.start_error is not None and known.start_error.container_id == instance.id:
        return known.start_error.at
    return instance.finished_mono if instance.finished_mono else instance.started_mono or None


def image_step(container: Container, known: ContainerMemory, config_hash: str, now: float) -> Step | None:
    """What the image of `container` needs before a create; None = nothing.

    With policy IfNotPresent and Never the create itself finds out whether the image is there, so a
    present image costs no call; for a name that is none there is nothing to create from (3.7.5).
    """
    pull = known.pull
    why = f"policy {container.pull_policy}"
    request = Action(Verb.PULL_IMAGE, why, container.name, container.image, config_hash=config_hash)
    if pull is None:
        asks = container.pull_policy == "Always" or image_name.fault(container.image)
        return Step(request, blocks=True) if asks else None
    if pull.state is PullState.READY:
        return None
    if pull.state is PullState.PULLING:
        return Step(waiting=Waiting("ContainerCreating", f"pulling image {container.image}"), blocks=True)
    if now < pull.retry_at:
        return Step(waiting=Waiting(pull.reason, pull.message), until=pull.retry_at)
    return Step(request, blocks=True)


def prefetch(pod: Pod, memory: PodMemory, now: float) -> tuple[list[Action], list[float], bool]:
    """Get the images of a new generation while the old one runs: (actions, wake times, all there)."""
    actions: list[Action] = []
    wakes: list[float] = []
    ready = True
    for c in (*pod.all_containers, *pod.image_volumes):
        pull = memory.of(c.name).pull
        if pull is not None and pull.state is PullState.READY:
            continue
        ready = False
        if pull is not None and pull.state is PullState.PULLING:
            continue
        if pull is not None and now < pull.retry_at:
            wakes.append(pull.retry_at)
            continue
        why = "a new version of the pod needs it"
        actions.append(Action(Verb.PULL_IMAGE, why, c.name, c.image, config_hash=pod.config_hash))
    return actions, wakes, ready
