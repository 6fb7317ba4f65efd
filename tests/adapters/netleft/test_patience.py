"""A Podman that cannot be asked is asked again after a while only."""

from __future__ import annotations

import errno
import itertools
import threading
import time
from collections.abc import Callable

import pytest

from edgelet import errors
from edgelet.adapters.netleft import Facts, Sweeper, sweep
from edgelet.core import leftovers
from edgelet.core.leftovers import Left

NOTHING = Facts(frozenset(), frozenset(), ())
RETRY = 0.05


def run(sweeper: Sweeper, look: Callable[[], object], enough: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first suspicion until `look` has had enough."""
    monkeypatch.setattr(sweep, "RETRY", RETRY)
    monkeypatch.setattr(sweeper, "_look", look)
    sweeper.start()
    sweeper.suspect()
    assert enough.wait(30)
    sweeper.stop()


def test_a_podman_that_dies_of_being_asked_is_not_asked_without_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[float] = []
    enough = threading.Event()

    def look() -> Facts:
        asked.append(time.monotonic())
        sweeper.suspect()  # as the service does when it has died
        if len(asked) == 4:
            enough.set()
        raise errors.Unreachable("cannot start the Podman service: it is broken")

    sweeper = Sweeper(look, lambda _: None)
    run(sweeper, look, enough, monkeypatch)
    assert min(later - earlier for earlier, later in itertools.pairwise(asked)) >= RETRY
    assert caplog.text.count("it is broken") == 1


def test_the_end_does_not_wait_for_the_next_try(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = threading.Event()

    def look() -> Facts:
        failed.set()
        raise errors.Unreachable("cannot reach Podman")

    sweeper = Sweeper(look, lambda _: None)
    monkeypatch.setattr(sweeper, "_look", look)
    sweeper.start()
    sweeper.suspect()
    assert failed.wait(30)
    began = time.monotonic()
    sweeper.stop()
    assert time.monotonic() - began < 9


def test_after_a_death_there_is_a_second_look_and_no_third(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []
    twice = threading.Event()

    def look() -> leftovers.Left:
        looks.append(time.monotonic())
        if len(looks) == 2:
            twice.set()
        return leftovers.Left()

    monkeypatch.setattr(sweep, "AFTERMATH", 0.2)
    sweeper = Sweeper(lambda: Facts(frozenset(), frozenset(), ()), lambda _: None)
    monkeypatch.setattr(sweeper, "_look", look)
    sweeper.start()
    sweeper.died()
    assert twice.wait(30)
    assert looks[1] - looks[0] >= 0.2
    assert not sweeper._again
    sweeper.stop()
    assert len(looks) == 2


def test_a_machine_without_descriptors_does_not_end_the_looking(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    troubles = iter([OSError(errno.EMFILE, "Too many open files"), ZeroDivisionError("a fault")])
    enough = threading.Event()

    def look() -> Left:
        for trouble in troubles:
            raise trouble
        enough.set()
        return Left()

    sweeper = Sweeper(lambda: NOTHING, lambda _: None)
    run(sweeper, look, enough, monkeypatch)
    assert "cannot look for what is left of pods: Too many open files" in caplog.text
    assert caplog.text.count("this is a fault in edgelet") == 1
