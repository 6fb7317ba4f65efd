"""What follows from a pod's priority: who makes room for one that matters more (semantics 1.7.4), who ends last. Pure.

The fewest pods whose requests cover what is missing: none that matters as much, Guaranteed ones last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from ..model.pod import Pod
from . import qos

CRITICAL = 2_000_000_000
"""Priority from which on a pod is critical wherever it comes from."""
SUBMITTED = "api"
MESSAGE = "Preempted in order to admit critical pod"

Amounts = Mapping[str, int]
"""Of each resource: what is missing, or what a pod holds."""


def critical(pod: Pod) -> bool:
    """A static pod, or one of a critical priority."""
    return pod.source != SUBMITTED or pod.priority >= CRITICAL


def shutdown_groups(seconds: float, critical: float) -> tuple[tuple[float, int | None], ...]:
    """Who ends when the machine goes down, in turn: the seconds of each group, and below which priority (9.3.2).

    Without time of their own (0) critical pods end with the others.

    >>> shutdown_groups(30, 10), shutdown_groups(30, 0)
    (((20, 2000000000), (10, None)), ((30, None),))
    """
    return ((seconds - critical, CRITICAL), (critical, None)) if critical else ((seconds, None),)


def victims(pod: Pod, taken: Collection[Pod], short: Amounts, held: Callable[[Pod], Amounts]) -> tuple[Pod, ...]:
    """Those of `taken` that must end so that `pod` fits, () = that cannot be; `held` tells a pod's requests."""
    if not critical(pod):
        return ()
    lower = [p for p in taken if p.priority < pod.priority]
    classes = {
        name: [p for p in lower if qos.qos_class(p) == name] for name in ("BestEffort", "Burstable", "Guaranteed")
    }
    if _less(short, lower, held):
        return ()
    guaranteed = _fewest(classes["Guaranteed"], _less(short, classes["BestEffort"] + classes["Burstable"], held), held)
    burstable = _fewest(classes["Burstable"], _less(short, classes["BestEffort"] + guaranteed, held), held)
    rest = _fewest(classes["BestEffort"], _less(short, burstable + guaranteed, held), held)
    return (*rest, *burstable, *guaranteed)


def _less(short: Amounts, pods: Collection[Pod], held: Callable[[Pod], Amounts]) -> Amounts:
    """What is still missing once these have ended."""
    freed = [held(p) for p in pods]
    left = {name: amount - sum(f.get(name, 0) for f in freed) for name, amount in short.items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def _fewest(pods: list[Pod], short: Amounts, held: Callable[[Pod], Amounts]) -> list[Pod]:
    """Always the one that leaves the least missing, of equals the smallest, until nothing is."""
    left, chosen = list(pods), []

    def rank(pod: Pod) -> tuple[float, int, int]:
        has = held(pod)
        missing = sum((max(amount - has.get(name, 0), 0) / amount) ** 2 for name, amount in short.items())
        return missing, has.get("memory", 0), has.get("cpu", 0)

    while short and left:
        best = min(left, key=rank)
        left.remove(best)
        chosen.append(best)
        short = _less(short, [best], held)
    return chosen
