"""Token buckets: what they let through over any stretch of time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgelet.core import rate


@given(st.lists(st.floats(0, 5), max_size=300))
def test_the_rate_limit_holds_over_any_stretch(gaps: list[float]) -> None:
    bucket, now = rate.bucket(50, 100, 0.0), 0.0
    for sent, gap in enumerate(gaps, 1):
        now += gap
        bucket, wait = rate.take(bucket, now)
        now += wait
        assert sent <= 100 + now * 50 + 1e-6


@given(st.lists(st.floats(0, 5), max_size=300))
def test_what_does_not_wait_is_refused_beyond_the_rate(gaps: list[float]) -> None:
    bucket, now, sent = rate.bucket(5, 10, 0.0), 0.0, 0
    for gap in gaps:
        now += gap
        bucket, may = rate.try_take(bucket, now)
        sent += may
        assert sent <= 10 + now * 5 + 1e-6
    assert sent >= min(len(gaps), 10)


def test_without_a_rate_all_may() -> None:
    bucket = rate.bucket(0, 0, 0.0)
    for _ in range(100):
        bucket, may = rate.try_take(bucket, 0.0)
        assert may
