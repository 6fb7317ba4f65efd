"""Signals, deadlines and kills (semantics 3.4): never SIGKILL before the grace period, two seconds at the least."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import pytest

from edgelet.core import stopping
from edgelet.core.memory import Stopping
from tests.core.scenes import NOW, created, ended, known, memory, runs, says, stops


@pytest.mark.parametrize(("grace", "seconds"), [(0, 2), (1, 2), (2, 2), (3, 3), (30, 30)])
def test_a_deadline_is_never_nearer_than_two_seconds(grace: int, seconds: int) -> None:
    assert stopping.begun("app-0", grace, "why", NOW) == Stopping("app-0", NOW, NOW + seconds, "why", 0)


def test_a_kill_is_repeated_after_five_seconds() -> None:
    once = stopping.killed(stops(ago=30), NOW)
    assert once == Stopping("app-0", NOW - 30, NOW + 5, "asked to", 1)
    assert stopping.killed(once, NOW + 5) == Stopping("app-0", NOW - 30, NOW + 10, "asked to", 2)


def step(stop: Stopping | None, grace: int) -> tuple[str, float | None]:
    """What is done about app-0, in words."""
    action, wake = stopping.step("app", "app-0", memory({"app": known(stopping=stop)}), grace, "why", NOW)
    return says(action) if action else "", wake


STEPS = [
    ("not begun", None, 30, ("stop container app app-0 30", None)),
    ("begun on an earlier instance", stops("app-7"), 30, ("stop container app app-0 30", None)),
    ("under way", stops(ago=29.5), 30, ("", NOW + 0.5)),
    ("due", stops(ago=30), 30, ("kill container app app-0", None)),
    ("a shorter grace moves the deadline nearer", stops(ago=1), 10, ("", NOW + 9)),
    ("a longer one does not move it", stops(ago=1, grace=10), 30, ("", NOW + 9)),
    ("a grace shorter than the time that passed", stops(ago=11), 10, ("kill container app app-0", None)),
    ("not nearer than two seconds", stops(ago=1), 0, ("", NOW + 1)),
    ("after a kill the grace plays no part", stops(ago=30, grace=33, kills=1), 0, ("", NOW + 3)),
    ("but the next kill does", stops(ago=35, grace=35, kills=1), 60, ("kill container app app-0", None)),
]


@pytest.mark.parametrize(("stop", "grace", "expected"), [s[1:] for s in STEPS], ids=[s[0] for s in STEPS])
def test_step(stop: Stopping | None, grace: int, expected: tuple[str, float | None]) -> None:
    assert step(stop, grace) == expected


def test_all_running_containers_are_stopped_at_once() -> None:
    seen = (runs(grace=7), ended("done"), created("new"), runs("side", grace=None))
    actions, wakes = stopping.stop_all(seen, memory(), None, NOW)
    assert [says(a) for a in actions] == ["stop container app app-0 7", "stop container side side-0 30"]
    assert wakes == []
    overridden, _ = stopping.stop_all(seen, memory(), 3, NOW)
    assert [a.number for a in overridden] == [3, 3]
    limited, _ = stopping.stop_all(seen, memory(), None, NOW, 10)
    assert [a.number for a in limited] == [7, 10]
    _, later = stopping.stop_all(seen, memory({"app": known(stopping=stops(grace=7))}), None, NOW)
    assert later == [NOW + 6]


@hypothesis.given(st.integers(0, 60), st.lists(st.tuples(st.floats(0.01, 40), st.integers(0, 60)), max_size=8))
def test_no_kill_before_the_smallest_grace_that_was_asked_for(first: int, steps: list[tuple[float, int]]) -> None:
    now = NOW
    stop = stopping.begun("app-0", first, "why", now)
    smallest = first
    for passed, grace in steps:
        now += passed
        smallest = min(smallest, grace)
        action, wake = stopping.step("app", "app-0", memory({"app": known(stopping=stop)}), grace, "why", now)
        allowed = NOW + max(min(first, grace), 2)
        assert (action is not None) == (now >= allowed)
        assert wake is None or now < wake <= allowed
        if action:
            return
