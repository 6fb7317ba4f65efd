"""Which leftovers on the disk may go: pure sets of pod uids."""

from __future__ import annotations

from collections.abc import Iterable

from ..model.observed import ObservedPod
from .desired import Desired


def orphans(
    on_disk: Iterable[str], wanted: Desired, running: Iterable[ObservedPod], working: Iterable[str]
) -> frozenset[str]:
    """Uids that have data on disk though no pod of theirs is wanted, running or being worked on.

    Nothing is an orphan before every source has spoken (semantics 1.6).
    """
    if wanted.unseen:
        return frozenset()
    known = {p.uid for p in wanted.pods.values()} | {p.uid for p in running} | set(working)
    return frozenset(on_disk) - known
