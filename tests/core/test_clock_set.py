"""When the wall clock counts as set."""

from __future__ import annotations

from edgelet.core.clock_set import JUMP, offset, was_set


def test_clocks_that_run_together_were_not_set() -> None:
    assert not was_set(offset(1000.0, 10.0), offset(4600.0, 3610.0))


def test_a_drift_is_no_setting() -> None:
    assert not was_set(offset(1000.0, 10.0), offset(1001.0 + JUMP, 11.0))


def test_it_may_be_set_either_way() -> None:
    assert was_set(offset(1000.0, 10.0), offset(1001.1 + JUMP, 11.0))
    assert was_set(offset(1000.0, 10.0), offset(1000.9 - JUMP, 11.0))
