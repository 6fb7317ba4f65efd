"""Many pods cost in proportion; the figures themselves are the bench's business (tests/bench_planning.py)."""

from __future__ import annotations

from tests import bench_planning


def test_a_pass_over_idle_pods_is_linear_and_makes_no_call() -> None:
    few, many = (min(bench_planning.measure(size, rounds=5)[1] / size for _ in range(2)) for size in (20, 400))
    assert many < 6 * few
