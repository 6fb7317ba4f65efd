"""Decides when a URL is asked again: jitter, back-off, and the server's own wishes. Pure.

Every function takes `draw`, a random number in [0, 1), so that a simulation of a fleet runs the
same code (docs/fleet.md shows why the constants are what they are).
"""

from __future__ import annotations

BACKOFF_CAP = 120.0
"""Longest seconds between two tries while a server fails, where the frequency is not longer itself."""

RETRY_AFTER_CAP = 3600.0
"""Longest Retry-After that is believed: a typing error on a server must not silence a box for a year."""

JITTER = 0.1
"""Part of the frequency by which a poll comes earlier or later."""


def first_delay(frequency: float, last_good: bool, draw: float) -> float:
    """Seconds from start to the first request.

    At once where there is nothing to run yet.  A box that runs its last good pods can wait for its
    turn, so that a region that gets its power back does not ask in the same second.
    """
    return frequency / 2 * draw if last_good else 0.0


def after_success(frequency: float, first: bool, draw: float) -> float:
    """Seconds after a good reply; the first time anything up to the frequency, to leave the crowd."""
    if first:
        return frequency * (0.25 + 0.75 * draw)
    return frequency * (1 - JITTER + 2 * JITTER * draw)


def after_failure(
    frequency: float, failures: int, retry_after: float | None, draw: float, cap: float | None = None
) -> float:
    """Seconds after the `failures`-th failure in a row (1, 2, ...), never less than half the frequency.

    The ceiling doubles from the frequency to `cap` (else BACKOFF_CAP) and the wait is drawn from its upper half.
    `retry_after` (seconds, from a 429 or 503) is respected, and exceeded by up to a quarter, as
    all who were told the same must not come back together.
    """
    ceiling = min(frequency * 2.0 ** min(failures - 1, 16), max(cap or BACKOFF_CAP, frequency))
    wait = ceiling * (0.5 + 0.5 * draw)
    if retry_after is None:
        return wait
    return max(wait, min(retry_after, RETRY_AFTER_CAP) * (1 + 0.25 * draw))


def complaint(failures: int) -> str:
    """How loudly the `failures`-th failure in a row is logged: "warning", "last" warning, or "debug" (1.2.6)."""
    if failures <= 3:
        return "warning"
    return "last" if failures == 4 else "debug"
