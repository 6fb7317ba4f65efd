"""activeDeadlineSeconds: when a pod has been active for too long (semantics 3.10). Pure.

It counts on the monotonic clock, so that a wall clock that is set fails no pod; only the time before a reboot is
told by the wall clock.
"""

from __future__ import annotations

from dataclasses import replace

from ..model.actions import Action, Verb
from ..model.pod import Pod
from .memory import Failure, PodMemory
from .text import DEADLINE

FAILURE = Failure("DeadlineExceeded", DEADLINE)


def begin(memory: PodMemory, now: float, wall: float) -> PodMemory:
    """Memory that knows from when on the deadline counts; `now` monotonic, `wall` epoch seconds."""
    if not memory.uid or memory.active_from:
        return memory
    return replace(memory, active_from=now - max(0.0, wall - memory.start_time))


def due(pod: Pod, memory: PodMemory) -> float | None:
    """The monotonic second at which the pod has been active for too long; None = never."""
    if pod.active_deadline is None or memory.failed is not None or not memory.active_from:
        return None
    return memory.active_from + pod.active_deadline


def exceeded(pod: Pod, memory: PodMemory, now: float) -> Action | None:
    """What fails the pod, if its time is over."""
    until = due(pod, memory)
    if until is None or now < until:
        return None
    return Action(Verb.FAIL_POD, f"it was active for more than {pod.active_deadline} s")
