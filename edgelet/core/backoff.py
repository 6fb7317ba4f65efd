"""Back-off of restarts and pulls: 10 s doubling to 300 s, forgotten after a good run (semantics 3.6, 3.7.3)."""

from __future__ import annotations

from dataclasses import dataclass

INITIAL = 10.0
CAP = 300.0
FORGET = 2 * CAP
"""A run this much longer than its start attempt wipes the slate (3.6.3)."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """The delay in force (seconds) and the monotonic time of the attempt that set it."""

    delay: float
    updated: float


def wait_until(entry: Backoff | None, finished: float) -> float | None:
    """The earliest time of the next attempt, counted from the end of the last one; None = at once.

    The first restart has no entry and so no delay (3.6.2).
    """
    if entry is None or finished - entry.updated > FORGET:
        return None
    return finished + entry.delay


def attempt(entry: Backoff | None, finished: float, now: float) -> Backoff:
    """The entry after an attempt made at `now`, the last run having ended at `finished`."""
    if entry is None or finished - entry.updated > FORGET:
        return Backoff(INITIAL, now)
    return Backoff(min(entry.delay * 2, CAP), now)


def steps(failures: int, first: float, cap: float) -> float:
    """Delay before try number `failures` + 1 of a call that keeps failing: first, doubling, capped."""
    return float(min(first * 2 ** min(failures - 1, 30), cap)) if failures > 0 else 0.0
