"""Signals, deadlines and kills (semantics 3.4): never SIGKILL before the grace period, two seconds at the least."""

from __future__ import annotations

from dataclasses import replace

import hypothesis
import hypothesis.strategies as st
import pytest

from edgelet.core import stopping
from edgelet.core.memory import Stopping
from edgelet.core.stopping import Mark
from edgelet.model.hooks import HookKind, HookState
from edgelet.model.observed import ObservedContainer
from edgelet.model.pod import Exec, Sleep
from tests.core.scenes import NOW, created, ended, known, memory, runs, says, stops

APP = Mark("app", "app-0")
HOOKED = Mark("app", "app-0", Exec(("true",)))


@pytest.mark.parametrize(("grace", "seconds"), [(0, 2), (1, 2), (2, 2), (3, 3), (30, 30)])
def test_a_deadline_is_never_nearer_than_two_seconds(grace: int, seconds: int) -> None:
    assert stopping.begun("app-0", grace, "why", NOW) == Stopping("app-0", NOW, NOW + seconds, "why", 0)


def test_a_kill_is_repeated_after_five_seconds() -> None:
    once = stopping.killed(stops(ago=30), NOW)
    assert once == Stopping("app-0", NOW - 30, NOW + 5, "asked to", 1)
    assert stopping.killed(once, NOW + 5) == Stopping("app-0", NOW - 30, NOW + 10, "asked to", 2)


def step(stop: Stopping | None, grace: int) -> tuple[str, float | None]:
    """What is done about app-0, in words."""
    action, wake = stopping.step(APP, memory({"app": known(stopping=stop)}), grace, "why", NOW)
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
        action, wake = stopping.step(APP, memory({"app": known(stopping=stop)}), grace, "why", now)
        allowed = NOW + max(min(first, grace), 2)
        assert (action is not None) == (now >= allowed)
        assert wake is None or now < wake <= allowed
        if action:
            return


HOOKING = Stopping("app-0", NOW - 4.5, NOW + 5.5, "asked to", hooking=True)


def hook_step(
    stop: Stopping | None,
    grace: int,
    state: HookState | None = None,
    kind: HookKind = HookKind.PRE_STOP,
    mark: Mark = HOOKED,
) -> tuple[str, float | None]:
    """What is done about app-0, which has a preStop hook that stands like this."""
    hooks = {("app-0", kind): state} if state else {}
    remembered = memory({"app": known(stopping=stop)}, hooks=hooks)
    action, wake = stopping.step(mark, remembered, grace, "why", NOW)
    return says(action) if action else "", wake


@pytest.mark.parametrize(
    ("stop", "grace", "state", "expected"),
    [
        (None, 10, None, ("run the preStop hook of container app app-0 10", None)),
        (None, 1, None, ("run the preStop hook of container app app-0 1", None)),
        (None, 0, None, ("stop container app app-0 0", None)),
        (stops("app-7"), 10, None, ("run the preStop hook of container app app-0 10", None)),
        (HOOKING, 10, HookState.RUNNING, ("", NOW + 5.5)),
        (HOOKING, 5, HookState.RUNNING, ("", NOW + 0.5)),
        (HOOKING, 60, HookState.RUNNING, ("", NOW + 5.5)),
        (HOOKING, 10, HookState.DONE, ("stop container app app-0 6", None)),
        (HOOKING, 10, HookState.FAILED, ("stop container app app-0 6", None)),
        (HOOKING, 10, None, ("stop container app app-0 6", None)),
        (HOOKING, 7, HookState.DONE, ("stop container app app-0 3", None)),
        (HOOKING, 4, HookState.RUNNING, ("stop container app app-0 0", None)),
        (HOOKING, 3, HookState.RUNNING, ("stop container app app-0 0", None)),
    ],
    ids=[
        "the hook comes first",
        "also with a grace of one second",
        "without grace there is none",
        "a stop of an earlier instance says nothing",
        "it is waited for",
        "a shorter grace ends the wait sooner",
        "a longer one does not prolong it",
        "its end is followed by the signal; whole seconds are used up",
        "so is its failure",
        "so is a hook nobody knows of",
        "of a shorter grace less is left",
        "a grace that is used up",
        "or was over before",
    ],
)
def test_a_pre_stop_hook_is_part_of_the_grace(
    stop: Stopping | None, grace: int, state: HookState | None, expected: tuple[str, float | None]
) -> None:
    assert hook_step(stop, grace, state) == expected


def test_a_post_start_hook_that_runs_delays_no_stop() -> None:
    assert hook_step(HOOKING, 10, HookState.RUNNING, HookKind.POST_START) == ("stop container app app-0 6", None)


def test_a_hook_that_took_all_the_grace_leaves_two_seconds() -> None:
    assert stopping.hooked("app-0", 10, "why", NOW) == Stopping("app-0", NOW, NOW + 10, "why", hooking=True)
    stop = stopping.signalled(HOOKING, 0, NOW)
    assert stop == Stopping("app-0", NOW - 4.5, NOW + 2, "asked to", late=4.5)
    assert hook_step(stop, 4) == ("", NOW + 2)
    assert stopping.signalled(HOOKING, 6, NOW).deadline == NOW + 6
    late = stopping.signalled(HOOKING, 6, NOW)
    assert hook_step(late, 0) == ("", NOW + 2)
    killed = stopping.killed(late, NOW + 9)
    assert (killed.deadline, killed.kills, killed.late) == (NOW + 14, 1, 4.5)


def test_each_container_of_a_pod_runs_its_own_hook() -> None:
    two = [runs(grace=5, pre_stop=Sleep(1)), runs("side", grace=0, pre_stop=Sleep(1)), runs("third", grace=7)]
    actions, _ = stopping.stop_all(two, memory(), None, NOW)
    assert [says(a) for a in actions] == [
        "run the preStop hook of container app app-0 5",
        "stop container side side-0 0",
        "stop container third third-0 7",
    ]


SLEEPS = Mark("app", "app-0", Sleep(8))


def test_a_sleeping_hook_of_an_earlier_agent_is_slept_to_its_end() -> None:
    assert hook_step(HOOKING, 10, mark=SLEEPS) == ("", NOW + 3.5)
    assert hook_step(HOOKING, 6, mark=SLEEPS) == ("", NOW + 1.5)
    assert hook_step(HOOKING, 10, mark=Mark("app", "app-0", Sleep(4))) == ("stop container app app-0 6", None)
    assert hook_step(HOOKING, 10, HookState.DONE, mark=SLEEPS) == ("stop container app app-0 6", None)


def sidecar(place: int, **fields: object) -> ObservedContainer:
    """A running sidecar, `s<place>`."""
    return replace(runs(f"s{place}"), sidecar=place, **fields)  # type: ignore[arg-type]


TELL = "let those before it end first, then stop container"
TURNS = [
    (
        "all are told at once, hooks begin, sidecars wait",
        [runs(), sidecar(0, pre_stop=Sleep(1)), sidecar(2)],
        ["stop container app app-0 30", "run the preStop hook of container s0 s0-0 30", f"{TELL} s2 s2-0 30"],
    ),
    ("the last one goes first", [ended(), sidecar(0), sidecar(2)], [f"{TELL} s0 s0-0 30", "stop container s2 s2-0 30"]),
    (
        "nobody is waited for that does not run",
        [created(), ended("x"), sidecar(0), ended("s1", sidecar=1)],
        ["stop container s0 s0-0 30"],
    ),
    (
        "without grace there are no turns",
        [runs(grace=0), sidecar(0, grace=0)],
        ["stop container app app-0 0", "stop container s0 s0-0 0"],
    ),
]


@pytest.mark.parametrize(("seen", "actions"), [t[1:] for t in TURNS], ids=[t[0] for t in TURNS])
def test_sidecars_stop_in_turn(seen: list[ObservedContainer], actions: list[str]) -> None:
    made, _ = stopping.stop_all(seen, memory(), None, NOW)
    assert [says(a) for a in made] == actions


def test_a_sidecar_waits_for_its_turn_and_its_hook_and_no_longer_than_the_grace() -> None:
    told = stopping.hooked("s0-0", 10, "why", NOW - 4)
    hooks = {("s0-0", HookKind.PRE_STOP): HookState.RUNNING}
    regular, first = runs(grace=30), sidecar(0, grace=10, pre_stop=Exec(("true",)))
    kept = {"app": known(stopping=stops(ago=4)), "s0": known(stopping=told)}
    assert stopping.stop_all([regular, first], memory(kept), None, NOW) == ([], [NOW + 26, NOW + 6])
    assert stopping.stop_all([first], memory(kept, hooks=hooks), None, NOW) == ([], [NOW + 6])
    actions, _ = stopping.stop_all([first], memory(kept), None, NOW)
    assert [says(a) for a in actions] == ["stop container s0 s0-0 6"]
    actions, wakes = stopping.stop_all([regular, first], memory(kept, hooks=hooks), None, NOW + 6)
    assert ([says(a) for a in actions], wakes) == (["stop container s0 s0-0 0"], [NOW + 26])
