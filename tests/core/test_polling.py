"""When a URL is asked again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.core import polling

draws = st.floats(0, 1, exclude_max=True)
frequencies = st.floats(0.1, 3600)


def test_a_box_with_nothing_to_run_asks_at_once() -> None:
    assert polling.first_delay(20, last_good=False, draw=0.9) == 0


@given(frequencies, draws)
def test_a_box_with_last_good_pods_asks_within_half_the_frequency(frequency: float, draw: float) -> None:
    assert 0 <= polling.first_delay(frequency, last_good=True, draw=draw) <= frequency / 2


def test_the_wait_at_start_is_drawn_from_all_of_it() -> None:
    assert [polling.first_delay(20, last_good=True, draw=draw) for draw in (0, 0.5, 1)] == [0, 5, 10]


@pytest.mark.parametrize(("first", "lowest", "highest"), [(True, 5, 20), (False, 18, 22)])
def test_polls_are_jittered_and_spread_widely_after_the_first(first: bool, lowest: float, highest: float) -> None:
    assert polling.after_success(20, first, 0.0) == pytest.approx(lowest)
    assert polling.after_success(20, first, 1.0) == pytest.approx(highest)


@pytest.mark.parametrize(
    ("failures", "lowest", "highest"), [(1, 10, 20), (2, 20, 40), (3, 40, 80), (4, 60, 120), (9999, 60, 120)]
)
def test_failures_double_the_wait_up_to_the_cap(failures: int, lowest: float, highest: float) -> None:
    assert polling.after_failure(20, failures, None, 0.0) == lowest
    assert polling.after_failure(20, failures, None, 1.0) == highest


def test_a_rare_poll_is_not_made_more_often_by_failing() -> None:
    assert polling.after_failure(600, 9, None, 0.0) == 300


@given(frequencies, st.integers(1, 10**6), st.floats(0, 1e9), draws)
def test_retry_after_is_respected_up_to_an_hour(frequency: float, failures: int, asked: float, draw: float) -> None:
    wait = polling.after_failure(frequency, failures, asked, draw)
    assert wait >= min(asked, polling.RETRY_AFTER_CAP)
    assert wait <= max(1.25 * polling.RETRY_AFTER_CAP, polling.BACKOFF_CAP, frequency)


def test_complaints_end_with_the_fourth() -> None:
    assert [polling.complaint(n) for n in range(1, 7)] == ["warning", "warning", "warning", "last", "debug", "debug"]
