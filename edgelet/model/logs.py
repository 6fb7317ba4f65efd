"""What a reader of a container's log may ask for (semantics 8.3)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogOptions:
    """`tail_lines` None = all lines; `since` in epoch seconds, 0 = from the start.

    `limit_bytes` None = no limit.  `timestamps` prefixes each line with its RFC 3339 time stamp.
    """

    follow: bool = False
    tail_lines: int | None = None
    since: float = 0.0
    timestamps: bool = False
    limit_bytes: int | None = None
