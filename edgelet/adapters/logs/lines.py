"""Lines of the CRI (k8s-file) log format (semantics 6.4.3), pure: ``<RFC3339Nano> <stream> <P|F> <text>``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple


class Line(NamedTuple):
    """One entry of a log; `partial`: the line goes on with the next entry of that stream."""

    stamp: bytes
    stream: bytes
    partial: bool
    text: bytes


def parse(raw: bytes) -> Line | None:
    """One line, without or with its newline; None for what is not an entry (torn by a crash)."""
    parts = raw.rstrip(b"\n").split(b" ", 3)
    if len(parts) < 3 or parts[1] not in (b"stdout", b"stderr"):
        return None
    tag = parts[2].split(b":", 1)[0]
    return Line(parts[0], parts[1], tag == b"P", parts[3] if len(parts) == 4 else b"")


def moment(stamp: bytes) -> float | None:
    """Epoch seconds of a time stamp; None when it is not one."""
    try:
        when = datetime.fromisoformat(stamp.decode("ascii"))
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
