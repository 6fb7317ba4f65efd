"""Whether an ended container runs again (semantics 3.5), how its end is called (3.13.2), and the back-off (3.6)."""

from __future__ import annotations

from dataclasses import replace

import hypothesis
import hypothesis.strategies as st
import pytest

from edgelet.core import backoff, restart, starting, text, view
from edgelet.core.backoff import Backoff
from edgelet.core.memory import ContainerMemory, StartError
from edgelet.model.observed import ObservedContainer, State
from edgelet.model.status import Terminated
from tests.core.scenes import (
    APP,
    INIT,
    NOW,
    SIDECAR,
    WALL,
    created,
    ended,
    known,
    memory,
    over,
    pod,
    runs,
    sandbox,
    stops,
)

POD = pod(inits=(INIT, SIDECAR))
ROLES = {"regular": APP, "init": INIT, "sidecar": SIDECAR}

MATRIX = [
    ("regular", "Always", 0, "Completed", True),
    ("regular", "Always", 1, "Error", True),
    ("regular", "Always", 137, "OOMKilled", True),
    ("regular", "OnFailure", 0, "Completed", False),
    ("regular", "OnFailure", 1, "Error", True),
    ("regular", "OnFailure", 0, "OOMKilled", False),
    ("regular", "Never", 0, "Completed", False),
    ("regular", "Never", 1, "Error", False),
    ("init", "Always", 0, "Completed", False),
    ("init", "Always", 1, "Error", True),
    ("init", "Always", 0, "OOMKilled", True),
    ("init", "OnFailure", 0, "Completed", False),
    ("init", "OnFailure", 1, "Error", True),
    ("init", "Never", 0, "Completed", False),
    ("init", "Never", 1, "Error", False),
    ("sidecar", "Always", 0, "Completed", True),
    ("sidecar", "OnFailure", 0, "Completed", True),
    ("sidecar", "Never", 0, "Completed", True),
    ("sidecar", "Never", 1, "Error", True),
]


@pytest.mark.parametrize(("role", "policy", "code", "reason", "expected"), MATRIX)
def test_restart_matrix(role: str, policy: str, code: int, reason: str, expected: bool) -> None:
    wanted = replace(POD, restart_policy=policy)
    assert restart.again(wanted, ROLES[role], Terminated(code, reason)) is expected


@pytest.mark.parametrize(("policy", "expected"), [("Always", False), ("OnFailure", False), ("Never", True)])
@pytest.mark.parametrize("code", [0, 137])
def test_after_a_probe_killed_it_a_container_runs_again_except_under_never(
    policy: str, code: int, expected: bool
) -> None:
    wanted = pod(restart_policy=policy)
    seen = view.view(wanted, sandbox(ended(code=code)), memory({"app": known(stopping=stops())}))
    assert view.over(wanted, seen.regulars[0]) is expected


def test_a_sidecar_that_a_probe_killed_runs_again_even_under_never() -> None:
    wanted = pod(inits=(SIDECAR,), restart_policy="Never")
    seen = view.view(wanted, sandbox(ended("proxy")), memory({"proxy": known(stopping=stops("proxy-0"))}))
    assert seen.inits[0].stopped
    assert not view.over(wanted, seen.inits[0])


def test_that_we_stopped_it_is_known_in_a_later_life_too() -> None:
    wanted = pod(restart_policy="OnFailure")
    remembered = over(0, stopped=True)
    assert not view.over(wanted, view.view(wanted, sandbox(ended()), memory({"app": remembered})).regulars[0])
    newer = sandbox(ended(), ended(count=1))
    assert view.over(wanted, view.view(wanted, newer, memory({"app": remembered})).regulars[0])
    without = replace(remembered, last=None)
    assert view.over(wanted, view.view(wanted, sandbox(ended()), memory({"app": without})).regulars[0])


@pytest.mark.parametrize(
    ("container", "expected"),
    [(APP, False), (INIT, False), (SIDECAR, True), (replace(APP, restart_policy="Always"), False)],
)
def test_only_an_init_container_that_is_always_restarted_is_a_sidecar(container: object, expected: bool) -> None:
    assert POD.is_sidecar(container) is expected  # type: ignore[arg-type]


ENDS: list[tuple[str, ObservedContainer, tuple[int, str, str] | None]] = [
    ("running", runs(), None),
    ("created", created(), None),
    ("unknown", runs(state=State.UNKNOWN), None),
    ("exit 0", ended(), (0, "Completed", "")),
    ("exit 3", ended(code=3), (3, "Error", "")),
    ("killed", ended(code=137), (137, "Error", "")),
    ("out of memory", ended(code=137, oom_killed=True), (137, "OOMKilled", "")),
    ("out of memory with 0", ended(code=0, oom_killed=True), (0, "OOMKilled", "")),
    ("code not known yet", ended(code=None, partial=True), (137, "ContainerStatusUnknown", "")),
    ("code never to be known", ended(code=None), (137, "ContainerStatusUnknown", "")),
    ("with a termination message", ended(message="bye"), (0, "Completed", "bye")),
    ("with both", ended(message="bye", error="x"), (0, "Completed", "x: bye")),
    ("with the runtime's error", ended(code=127, error="no such file"), (127, "Error", "no such file")),
]


@pytest.mark.parametrize(("instance", "expected"), [e[1:] for e in ENDS], ids=[e[0] for e in ENDS])
def test_how_an_end_is_called(instance: ObservedContainer, expected: tuple[int, str, str] | None) -> None:
    end = restart.ended(instance, ContainerMemory())
    assert (end and (end.exit_code, end.reason, end.message)) == expected
    if end:
        assert (end.started_at, end.finished_at, end.container_id) == (WALL - 100, WALL - 1, "app-0")


def test_a_start_that_failed_is_an_end() -> None:
    failed = known(start_error=StartError("app-0", "no such file", NOW))
    end = restart.ended(created(), failed)
    assert end == Terminated(128, "StartError", 0.0, WALL - 101, "no such file", "app-0")
    assert restart.ended(created(count=1), failed) is None
    assert restart.ended(runs(), failed) is None


def test_what_is_remembered_of_a_container_without_an_instance() -> None:
    lost = restart.remembered(memory({"app": known()}), "app")
    assert lost is not None
    assert (lost.exit_code, lost.reason) == (137, "ContainerStatusUnknown")
    assert "could not be located" in lost.message
    assert restart.remembered(memory(), "app") is None
    assert restart.remembered(memory({"app": known(-1)}), "app") is None
    assert restart.remembered(memory({"app": over(3)}), "app") == over(3).last
    assert restart.remembered(memory({"app": replace(over(3), ended=False)}), "app") == lost
    assert restart.remembered(memory({"app": known(ended=True)}), "app") == lost


# -- back-off ---------------------------------------------------------------------------------------


def starts(runs_for: float, count: int) -> list[float]:
    """When a container that ends `runs_for` seconds after each start is started, from 0."""
    entry, now, times = None, 0.0, [0.0]
    while len(times) < count:
        finished = now + runs_for
        now = max(finished, backoff.wait_until(entry, finished) or finished)
        entry = backoff.attempt(entry, finished, now)
        times.append(now)
    return times


def test_a25_crash_loop_starts_as_the_kubelet_does() -> None:
    assert starts(0, 9) == [0, 0, 10, 30, 70, 150, 310, 610, 910]


def test_a_good_run_wipes_the_slate() -> None:
    assert starts(601, 4) == [0, 601, 1202, 1803]
    assert starts(600, 3) == [0, 600, 1210]


def test_the_entry_step_by_step() -> None:
    assert backoff.attempt(None, 5.0, 6.0) == Backoff(10.0, 6.0)
    assert backoff.attempt(Backoff(10.0, 0.0), 5.0, 16.0) == Backoff(20.0, 16.0)
    assert backoff.attempt(Backoff(160.0, 0.0), 5.0, 170.0) == Backoff(300.0, 170.0)
    assert backoff.attempt(Backoff(160.0, 0.0), 600.0, 800.0) == Backoff(300.0, 800.0)
    assert backoff.attempt(Backoff(160.0, 0.0), 600.5, 800.0) == Backoff(10.0, 800.0)
    assert backoff.wait_until(None, 5.0) is None
    assert backoff.wait_until(Backoff(20.0, 4.0), 5.0) == 25.0
    assert backoff.wait_until(Backoff(20.0, 4.0), 604.0) == 624.0
    assert backoff.wait_until(Backoff(20.0, 4.0), 604.5) is None


@hypothesis.given(st.lists(st.floats(0, 2000), min_size=1, max_size=12))
def test_delays_stay_within_bounds(lengths: list[float]) -> None:
    entry, now = None, 0.0
    for length in lengths:
        finished = now + length
        at = backoff.wait_until(entry, finished)
        delay = 0.0 if at is None else at - finished
        assert delay == 0 or 10 <= delay + 1e-6 <= 300.1
        now = finished + delay
        entry = backoff.attempt(entry, finished, now)
        assert 10 <= entry.delay <= 300


@pytest.mark.parametrize(
    ("failures", "seconds"), [(-1, 0.0), (0, 0.0), (1, 0.5), (2, 1.0), (3, 2.0), (5, 8.0), (6, 15.0), (9999, 15.0)]
)
def test_steps(failures: int, seconds: float) -> None:
    assert backoff.steps(failures, 0.5, 15.0) == seconds


def test_from_which_end_the_back_off_counts() -> None:
    two = sandbox(ended(ago=50), ended(count=1, ago=5))
    newest, first = two.containers[1], two.containers[0]
    assert starting.basis(None, two, known()) is None
    assert starting.basis(newest, two, known(1)) == NOW - 5
    assert starting.basis(newest, two, known(1, stopping=stops("app-1"))) == NOW - 50
    assert starting.basis(newest, two, known(1, stopping=stops("app-0"))) == NOW - 5
    assert starting.basis(first, two, known(stopping=stops("app-0"))) is None
    assert starting.basis(newest, two, known(1, start_error=StartError("app-1", "no", NOW - 3))) == NOW - 3
    assert starting.basis(newest, two, known(1, start_error=StartError("app-0", "no", NOW - 3))) == NOW - 5
    assert starting.basis(replace(newest, finished_mono=0.0), two, known(1)) == NOW - 100
    assert starting.basis(created(), two, known()) is None


def test_another_container_is_no_earlier_instance() -> None:
    both = sandbox(ended("side", ago=50), ended(count=1, ago=5))
    assert starting.basis(both.containers[1], both, known(1, stopping=stops("app-1"))) is None


def test_a_container_whose_post_start_hook_failed_ends_as_by_itself() -> None:
    failed = known(stopping=replace(stops(), reason="FailedPostStartHook"))
    assert not restart.stopped(ended(), failed)
    assert restart.stopped(ended(), known(stopping=stops()))


@pytest.mark.parametrize(
    ("instance", "remembered", "reason"),
    [
        (ended(code=0), known(), "Completed"),
        (ended(code=1), known(), "Error"),
        (ended(code=137, oom_killed=True), known(), "OOMKilled"),
        (ended(code=None), known(), "ContainerStatusUnknown"),
        (runs(), known(), "ContainerStatusUnknown"),
        (created(), known(start_error=StartError("app-0", "no such command", NOW)), "StartError"),
        (None, known(), "SandboxChanged"),
        (ended(code=0), known(stopping=stops()), "Asked"),
        (ended(code=0), known(stopping=stops("another")), "Completed"),
        (ended(), known(stopping=replace(stops(), reason=text.probe_kill("app", "liveness"))), "LivenessProbe"),
        (ended(), known(stopping=replace(stops(), reason=text.probe_kill("app", "startup"))), "StartupProbe"),
        (ended(), known(stopping=replace(stops(), reason=text.POST_START_FAILED)), "PostStartHook"),
    ],
)
def test_why_a_container_starts_again(
    instance: ObservedContainer | None, remembered: ContainerMemory, reason: str
) -> None:
    assert restart.cause("app", instance, remembered) == reason
