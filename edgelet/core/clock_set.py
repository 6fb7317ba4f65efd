"""Tells that somebody set the wall clock: it and the monotonic clock have parted. Pure."""

from __future__ import annotations

JUMP = 2.0
"""Seconds by which they must part to count."""


def offset(wall: float, monotonic: float) -> float:
    """What to remember, and to compare later: how far the clocks are apart."""
    return wall - monotonic


def was_set(before: float, now: float) -> bool:
    """Between these two offsets."""
    return abs(now - before) > JUMP
