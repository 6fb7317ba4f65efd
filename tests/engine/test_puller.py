"""Pulls: what is asked, told and tried again (semantics 3.7)."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from edgelet import errors, ports
from edgelet.core.memory import Pull, PullState
from edgelet.engine.puller import Puller, Request
from edgelet.model.observed import Image
from edgelet.model.pod import Container
from tests import fakes
from tests.core.scenes import KEY

REF = ports.EventRef(KEY, "uid-a", "spec.containers{app}")


class Bench:
    """A puller whose thread is not started, and what it talks to."""

    def __init__(self) -> None:
        self.clock = fakes.FakeClock()
        self.runtime = fakes.FakeRuntime(self.clock, images=("demo",))
        self.recorder = fakes.FakeRecorder()
        self.delivered: list[tuple[str, Pull]] = []
        self.puller = Puller(
            self.runtime, self.clock, self.recorder, lambda key, gen, name, pull: self.delivered.append((name, pull))
        )


@pytest.fixture
def bench() -> Bench:
    """A fresh one."""
    return Bench()


def request(image: str = "far", policy: str = "IfNotPresent", previous: Pull | None = None) -> Request:
    """A request of the container app."""
    return Request(KEY, "1-a", Container("app", image, pull_policy=policy), REF, previous)


@pytest.mark.parametrize("policy", ["IfNotPresent", "Never"])
def test_a_present_image_is_ready_at_once(bench: Bench, policy: str) -> None:
    assert bench.puller.request(request("demo", policy)) == Pull(PullState.READY)
    assert bench.recorder.reasons() == ["Pulled"]
    assert bench.recorder.events[0].message == (
        'Container image "demo" already present on machine and can be accessed by the pod'
    )


def test_policy_always_asks_the_registry(bench: Bench) -> None:
    assert bench.puller.request(request("demo", "Always")) == Pull(PullState.PULLING, at=1000.0)
    assert bench.runtime.called("image") == []


def test_an_absent_image_is_queued(bench: Bench) -> None:
    assert bench.puller.request(request()).state is PullState.PULLING


def test_never_says_so(bench: Bench) -> None:
    made = bench.puller.request(request(policy="Never"))
    assert (made.state, made.reason, made.retry_at) == (PullState.FAILED, "ErrImageNeverPull", 1010.0)
    assert [(e.kind, e.reason) for e in bench.recorder.events] == [("Warning", "ErrImageNeverPull")]


def test_a_pull_that_works_tells_its_size(bench: Bench) -> None:
    bench.runtime.registry["far"] = replace(bench.runtime.images["demo"], size=77)
    assert bench.puller.pull(request()) == Pull(PullState.READY)
    assert [(e.kind, e.reason, e.message) for e in bench.recorder.events] == [
        ("Normal", "Pulling", 'Pulling image "far"'),
        (
            "Normal",
            "Pulled",
            'Successfully pulled image "far" in 0.000s (0.000s including waiting). Image size: 77 bytes.',
        ),
    ]


def test_failures_back_off_doubling_to_five_minutes(bench: Bench) -> None:
    previous: Pull | None = None
    delays, reasons = [], []
    for _ in range(8):
        previous = bench.puller.pull(request(previous=previous))
        delays.append(previous.delay)
        reasons.append(previous.reason)
    assert delays == [10, 20, 40, 80, 160, 300, 300, 300]
    assert reasons == ["ErrImagePull"] + ["ImagePullBackOff"] * 7
    assert previous is not None
    assert previous.message == 'Back-off pulling image "far": cannot pull far: manifest unknown'
    assert [(e.kind, e.reason, e.message) for e in bench.recorder.events[:2]] == [
        ("Normal", "Pulling", 'Pulling image "far"'),
        ("Warning", "Failed", 'Failed to pull image "far": cannot pull far: manifest unknown'),
    ]


def test_a_success_between_begins_anew(bench: Bench) -> None:
    assert bench.puller.pull(request(previous=Pull(PullState.READY))).delay == 10
    assert bench.puller.pull(request(previous=Pull(PullState.FAILED, "ErrImageNeverPull"))).delay == 10


def test_the_reason_is_the_registry_s(bench: Bench) -> None:
    bench.runtime.fail("pull", errors.PullFailed("cannot pull far: connection refused", "RegistryUnavailable"))
    assert bench.puller.pull(request()).reason == "RegistryUnavailable"
    bench.runtime.fail("pull", errors.Temporary("cannot pull far: time-out"))
    assert bench.puller.pull(request()).reason == "ErrImagePull"


def test_a_present_image_serves_under_always_only(bench: Bench) -> None:
    bench.runtime.fail("pull", errors.PullFailed("cannot pull demo: no route"), times=2)
    assert bench.puller.pull(request("demo", "Always")).state is PullState.READY
    assert bench.recorder.reasons() == ["Pulling", "PullFailedUsingPresent"]
    assert bench.puller.pull(request("demo")).state is PullState.FAILED
    bench.runtime.fail("pull", errors.PullFailed("cannot pull demo: no route"))
    bench.runtime.fail("image")
    assert bench.puller.pull(request("demo", "Always")).state is PullState.FAILED


def test_its_thread_pulls_one_after_the_other_and_ends(bench: Bench) -> None:
    bench.runtime.registry["far"] = bench.runtime.images["demo"]
    bench.puller.request(request())
    bench.puller.request(request("gone"))
    bench.puller.start()
    end = time.monotonic() + 10
    while len(bench.delivered) < 2 and time.monotonic() < end:
        time.sleep(0.002)
    bench.puller.stop()
    assert [(name, pull.state) for name, pull in bench.delivered] == [
        ("app", PullState.READY),
        ("app", PullState.FAILED),
    ]


def test_beyond_the_rate_a_pull_fails_and_a_present_image_serves(bench: Bench) -> None:
    puller = Puller(bench.runtime, bench.clock, bench.recorder, lambda *_: None, rated=(5, 2))
    bench.runtime.registry["far"] = bench.runtime.images["demo"]
    assert [puller.pull(request()).state for _ in range(2)] == [PullState.READY] * 2
    made = puller.pull(request("gone"))
    assert (made.reason, made.message, made.delay) == ("ErrImagePull", "pull QPS exceeded", 10)
    assert puller.pull(request("demo", "Always")) == Pull(PullState.READY)
    assert len(bench.runtime.called("pull")) == 2
    bench.clock.advance(0.2)
    assert puller.pull(request()).state is PullState.READY


def test_a_fault_in_the_puller_is_told_and_not_silent() -> None:
    told: list[str] = []
    clock = fakes.FakeClock()
    runtime = fakes.FakeRuntime(clock)

    def broken(reference: str) -> Image:
        raise ValueError(f"no such thing as {reference}")

    runtime.pull = broken  # type: ignore[method-assign]
    puller = Puller(runtime, clock, fakes.FakeRecorder(), lambda *_: None, told.append)
    puller.start()
    puller.request(Request(KEY, "1-a", Container("c", "localhost/x:1", pull_policy="Always"), ports.EventRef(KEY, "u")))
    puller.stop()
    assert told == ["the puller has ended: no such thing as localhost/x:1"]


def test_pain_68_an_untimely_certificate_is_tried_again_at_once_when_the_clock_is_set(bench: Bench) -> None:
    hurried: list[str] = []
    puller = Puller(
        bench.runtime, bench.clock, bench.recorder, lambda *_: None, hurry=lambda key: hurried.append(str(key))
    )
    said = "cannot pull far: x509: certificate has expired or is not yet valid: current time is before 2024"
    bench.runtime.fail("pull", errors.PullFailed(said))
    assert puller.pull(request()).state is PullState.FAILED
    bench.clock.advance(5)
    puller.look_at_clock()
    assert hurried == []
    bench.clock.jump(1_700_000_000.0)
    puller.look_at_clock()
    puller.look_at_clock()
    assert hurried == [str(KEY)]
    # Any other failure waits for its back-off, and a pull that was tried again is not remembered.
    bench.runtime.fail("pull", errors.PullFailed("cannot pull far: no route"))
    puller.pull(request())
    bench.clock.jump(1_800_000_000.0)
    puller.look_at_clock()
    assert hurried == [str(KEY)]
