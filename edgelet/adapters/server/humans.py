"""Times as kubectl prints them (k8s.io/apimachinery duration.HumanDuration), pure."""

from __future__ import annotations

from datetime import UTC, datetime


def duration(seconds: float) -> str:
    """A duration with the precision that a reader wants: 78s, 4m7s, 51m, 5h2m, 3d4h, 2y40d."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 120:
        return f"{max(whole, 0)}s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    return _days(hours)


def since(text: str | None, now: float) -> str:
    """The age of an RFC 3339 time stamp at `now` (epoch seconds)."""
    if not text:
        return "<unknown>"
    return duration(now - parse(text))


def parse(text: str) -> float:
    """Epoch seconds of an RFC 3339 time stamp. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _days(hours: int) -> str:
    days = hours // 24
    if hours < 24 * 8:
        return _two(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    if hours < 24 * 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(much: int, unit: str, rest: int, small: str) -> str:
    return f"{much}{unit}{rest}{small}" if rest else f"{much}{unit}"
