"""Token buckets: what they let through over any stretch of time, and that they hold up nothing for longer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.core import rate

QPS, BURST = 5.0, 3.0
_gaps = st.lists(st.sampled_from([0.0, 0.05, 0.19, 0.21, 0.7, 3.0]), max_size=60)


def room(sent: list[float], now: float) -> float:
    """How many more requests fit at `now` into each stretch that ends there; below 0 = the limit is broken."""
    return min((BURST + QPS * (now - begin) - (len(sent) - i) for i, begin in enumerate(sent)), default=BURST)


@given(st.lists(st.floats(0, 5), max_size=300))
def test_the_rate_limit_holds_over_any_stretch(gaps: list[float]) -> None:
    bucket, now = rate.bucket(50, 100, 0.0), 0.0
    for sent, gap in enumerate(gaps, 1):
        now += gap
        bucket, wait = rate.take(bucket, now)
        now += wait
        assert sent <= 100 + now * 50 + 1e-6


@given(_gaps)
def test_a_request_waits_only_while_the_limit_is_reached_and_never_longer(gaps: list[float]) -> None:
    bucket, now = rate.bucket(QPS, BURST, 0.0), 0.0
    sent: list[float] = []
    for gap in gaps:
        now += gap
        bucket, wait = rate.take(bucket, now)
        now += wait
        left = room(sent, now) - 1
        assert left > -1e-6 and (wait == 0 or left < 1e-6)
        sent.append(now)


@given(_gaps)
def test_what_does_not_wait_is_refused_just_where_it_would_break_the_limit(gaps: list[float]) -> None:
    bucket, now = rate.bucket(QPS, BURST, 0.0), 0.0
    sent: list[float] = []
    for gap in gaps:
        now += gap
        bucket, may = rate.try_take(bucket, now)
        left = room(sent, now) - 1
        assert left > -1e-6 if may else left < 1e-6
        sent += [now] if may else []


def test_a_burst_goes_at_once_and_what_follows_keeps_the_distance() -> None:
    bucket, waits = rate.bucket(4, 2, 100.0), []
    for _ in range(5):
        bucket, wait = rate.take(bucket, 100.0)
        waits.append(wait)
    assert waits == [0, 0, 0.25, 0.5, 0.75]


def test_the_burst_is_all_that_a_long_silence_saves_up() -> None:
    bucket, allowed = rate.bucket(4, 2, 0.0), []
    for now in (1000.0, 1000.0, 1000.0, 1000.25):
        bucket, may = rate.try_take(bucket, now)
        allowed.append(may)
    assert allowed == [True, True, False, True]


@pytest.mark.parametrize("tries", [1, 4, 16])
def test_a_refused_request_costs_nothing_however_often_it_is_tried(tries: int) -> None:
    bucket, may = rate.try_take(rate.bucket(1, 1, 0.0), 0.0)
    for number in range(tries):
        bucket, may = rate.try_take(bucket, number / tries)
        assert not may
    assert rate.try_take(bucket, 1.0)[1]


def test_without_a_rate_all_may() -> None:
    bucket = rate.bucket(0, 0, 0.0)
    for second in range(100):
        bucket, may = rate.try_take(bucket, second)
        assert may
