"""How often something may be done: a token bucket as client-go has it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Bucket:
    """`qps` a second on the average, `burst` at once; `tokens` were there at the monotonic second `at`."""

    qps: float
    burst: float
    tokens: float
    at: float


def bucket(qps: float, burst: float, now: float) -> Bucket:
    """A full one."""
    return Bucket(qps, burst, burst, now)


def take(full: Bucket, now: float) -> tuple[Bucket, float]:
    """One request: the bucket after it, and the seconds to wait before it."""
    tokens = _tokens(full, now) - 1.0
    return replace(full, tokens=tokens, at=now), max(0.0, -tokens / full.qps)


def try_take(full: Bucket, now: float) -> tuple[Bucket, bool]:
    """One request that does not wait: the bucket after it, and whether it may be made; without a rate it may."""
    tokens = _tokens(full, now)
    if full.qps and tokens < 1.0:
        return replace(full, tokens=tokens, at=now), False
    return replace(full, tokens=max(tokens - 1.0, 0.0), at=now), True


def _tokens(full: Bucket, now: float) -> float:
    return min(full.burst, full.tokens + (now - full.at) * full.qps)
