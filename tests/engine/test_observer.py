"""The newest observation: exits in any order, lists that race with workers, and what is watched."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from edgelet import errors
from edgelet.core import memory as memories
from edgelet.engine import observer as observers
from edgelet.engine.observer import EARLY, Observer
from edgelet.engine.states import States
from edgelet.model.observed import ObservedContainer, ObservedPod, State
from edgelet.model.pod import PodKey
from tests import fakes
from tests.core.scenes import KEY, created, ended, known, memory, runs, sandbox
from tests.engine.world import FakeExits, MemoryStore


class Runtime(fakes.FakeRuntime):
    """A runtime whose list says what the test puts into `answer`, after calling `during`."""

    answer: tuple[ObservedPod, ...] = ()

    def __init__(self) -> None:
        super().__init__(fakes.FakeClock())
        self.during: Callable[[], object] = lambda: None
        self.lists = 0

    def list(self, key: PodKey | None = None) -> tuple[ObservedPod, ...]:
        """See ports.Runtime."""
        self.lists += 1
        answer = self.answer
        self.during()
        if self.unreachable:
            raise errors.Unreachable("cannot reach Podman: connection refused")
        return tuple(p for p in answer if key in (None, p.key))


class Bench:
    """An observer and what it talks to."""

    def __init__(self) -> None:
        self.runtime = Runtime()
        self.clock = self.runtime.clock
        self.exits = FakeExits()
        self.woken: list[PodKey] = []
        self.listed: list[int] = []
        self.observer = Observer(
            self.runtime,
            self.clock,
            self.exits,
            self.woken.append,
            lambda: self.listed.append(self.runtime.lists),
            message=self.message,
        )

    def message(self, ended: ObservedContainer) -> str:
        """What a container has left: its state and code as it is asked for."""
        return f"{ended.id} {ended.state.value} {ended.exit_code}"

    def app(self) -> ObservedContainer:
        """The newest instance of app, as observed."""
        seen = self.observer.get(KEY)
        newest = seen.newest("app") if seen else None
        assert newest is not None
        return newest


@pytest.fixture
def bench() -> Bench:
    """A fresh one."""
    return Bench()


def test_a_list_is_taken_over_and_wakes_whom_it_concerns(bench: Bench) -> None:
    other = replace(sandbox(), key=PodKey("default", "other"), id="other")
    bench.runtime.answer = (sandbox(runs()), other)
    bench.observer.relist()
    assert bench.observer.get(KEY) == sandbox(runs())
    assert set(bench.observer.all()) == {KEY, other.key}
    assert sorted(bench.woken) == sorted([KEY, other.key])
    bench.woken.clear()
    bench.observer.relist()
    assert bench.woken == []
    bench.runtime.answer = (sandbox(runs()),)
    bench.observer.relist()
    assert bench.woken == [other.key]
    assert bench.observer.get(other.key) is None
    assert bench.observer.listed_at == bench.clock.monotonic()


def test_what_runs_is_watched_and_what_does_not_is_forgotten(bench: Bench) -> None:
    bench.observer.put(KEY, sandbox(runs(conmon_pid=7), created("new"), ended("old")))
    assert bench.exits.watched == {"app-0": 4000, "infra": 3999}
    bench.observer.put(KEY, sandbox(ended(), infra_pid=0, infra_dead=True))
    assert bench.exits.watched == {}
    bench.observer.put(KEY, sandbox(runs("side"), infra_pid=0))
    assert bench.exits.watched == {"side-0": 4000}


def test_an_exit_is_known_at_once_with_its_code(bench: Bench) -> None:
    bench.observer.put(KEY, sandbox(runs(), runs("side")))
    bench.clock.advance(5)
    bench.observer.exited("app-0", 3, "exit file")
    app = bench.app()
    assert (app.state, app.exit_code, app.pid, app.partial) == (State.EXITED, 3, 0, True)
    assert (app.finished_mono, app.finished_at) == (bench.clock.monotonic(), bench.clock.time())
    assert app.message == "app-0 exited 3"  # told with the exit itself
    assert bench.woken == [KEY]
    seen = bench.observer.get(KEY)
    assert seen is not None
    assert [c.running for c in seen.containers] == [False, True]


def test_a_second_word_about_the_same_exit_changes_nothing(bench: Bench) -> None:
    bench.observer.put(KEY, sandbox(runs()))
    bench.observer.exited("app-0", 3, "exit file")
    before = bench.app()
    bench.clock.advance(5)
    bench.observer.exited("app-0", None, "pidfd")
    assert bench.app() == before


def test_what_has_died_once_never_runs_again_whatever_a_list_says(bench: Bench) -> None:
    bench.observer.put(KEY, sandbox(runs()))
    bench.observer.exited("app-0", 3, "exit file")
    bench.observer.exited("infra", 0, "exit file")
    bench.runtime.answer = (sandbox(runs()),)
    bench.observer.relist()
    bench.observer.refresh(KEY)
    bench.observer.put(KEY, sandbox(runs()))
    seen = bench.observer.get(KEY)
    assert seen is not None
    assert (bench.app().exit_code, seen.infra_dead, seen.infra_pid) == (3, True, 0)


def test_in_another_sandbox_the_same_may_run(bench: Bench) -> None:
    bench.observer.put(KEY, sandbox(runs()))
    bench.observer.exited("infra", 0, "exit file")
    bench.observer.put(KEY, sandbox(runs(), id="sandbox-2"))
    seen = bench.observer.get(KEY)
    assert seen is not None
    assert not seen.infra_dead


def test_an_exit_in_full_replaces_one_in_part(bench: Bench) -> None:
    bench.observer.put(KEY, sandbox(runs()))
    bench.observer.exited("app-0", 137, "exit file")
    bench.observer.put(KEY, sandbox(ended(code=137, oom_killed=True)))
    assert bench.app().oom_killed


def test_an_exit_before_the_start_has_answered_is_kept(bench: Bench) -> None:
    bench.observer.exited("app-0", 3, "exit file")
    assert bench.woken == []
    bench.observer.put(KEY, sandbox(runs()))
    assert (bench.app().state, bench.app().exit_code) == (State.EXITED, 3)
    bench.observer.put(KEY, None)
    bench.observer.put(KEY, sandbox(runs()))
    assert bench.app().running


def test_so_is_that_of_an_infra_container(bench: Bench) -> None:
    bench.observer.exited("infra", 0, "exit file")
    bench.observer.put(KEY, sandbox(runs()))
    seen = bench.observer.get(KEY)
    assert seen is not None
    assert seen.infra_dead


def test_a_created_container_that_has_died_is_dead(bench: Bench) -> None:
    bench.observer.put(KEY, sandbox(created()))
    bench.observer.exited("app-0", 3, "exit file")
    bench.observer.put(KEY, sandbox(runs()))
    assert bench.app().exit_code == 3


def test_exits_of_strangers_do_not_pile_up(bench: Bench) -> None:
    for n in range(EARLY + 50):
        bench.observer.exited(f"stranger-{n}", 0, "exit file")
    bench.observer.put(KEY, sandbox(runs(id="stranger-49")))
    assert bench.app().running
    bench.observer.put(KEY, sandbox(runs(id="stranger-50"), id="sandbox-2"))
    assert not bench.app().running


def test_a_list_under_way_does_not_undo_what_a_worker_did(bench: Bench) -> None:
    bench.observer.put(KEY, sandbox(runs()))
    bench.runtime.answer = (sandbox(runs()),)
    bench.runtime.during = lambda: bench.observer.put(KEY, sandbox(runs(), created("new")))
    bench.observer.relist()
    seen = bench.observer.get(KEY)
    assert seen is not None
    assert [c.name for c in seen.containers] == ["app", "new"]


def test_nor_brings_it_back_what_a_worker_removed(bench: Bench) -> None:
    bench.observer.put(KEY, sandbox(runs()))
    bench.runtime.answer = (sandbox(runs()),)
    bench.runtime.during = lambda: bench.observer.put(KEY, None)
    bench.observer.relist()
    assert bench.observer.get(KEY) is None
    bench.runtime.during = lambda: None
    bench.observer.relist()
    assert bench.observer.get(KEY) == sandbox(runs())


def test_one_pod_can_be_asked_for(bench: Bench) -> None:
    other = replace(sandbox(), key=PodKey("default", "other"), id="other")
    bench.runtime.answer = (sandbox(runs()), other)
    assert bench.observer.refresh(KEY) == sandbox(runs())
    assert set(bench.observer.all()) == {KEY}
    bench.runtime.answer = ()
    assert bench.observer.refresh(KEY) is None


def test_a_list_that_fails_changes_nothing(bench: Bench) -> None:
    bench.observer.put(KEY, sandbox(runs()))
    bench.runtime.unreachable = True
    with pytest.raises(errors.Unreachable):
        bench.observer.relist()
    assert bench.observer.get(KEY) == sandbox(runs())


def wait_for(event: threading.Event) -> None:
    """Bounded."""
    assert event.wait(10)


def test_its_thread_lists_at_once_again_when_told_and_survives_failures(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observers, "RETRY", 3600.0)
    seen = threading.Event()
    bench.runtime.during = seen.set
    bench.runtime.unreachable = True
    bench.observer.start()
    wait_for(seen)
    deadline = time.monotonic() + 10
    while not bench.observer.error and time.monotonic() < deadline:
        time.sleep(0.002)
    assert "cannot reach Podman" in bench.observer.error
    assert bench.listed == []
    seen.clear()
    bench.runtime.unreachable = False
    bench.observer.suspect()
    wait_for(seen)
    while not bench.listed and time.monotonic() < deadline:
        time.sleep(0.002)
    bench.observer.stop()
    assert bench.observer.error == ""
    assert bench.listed == [2]


# -- states ------------------------------------------------------------------------------------------------


class Broken(MemoryStore):
    """A disk that is full."""

    def put(self, key: str, data: bytes) -> None:
        """See engine.states.Store."""
        raise errors.StateError("cannot write states/uid-a: disk full")

    def remove(self, key: str) -> None:
        """See engine.states.Store."""
        raise errors.StateError("cannot remove states/uid-a: read-only")


def test_states_are_written_when_they_change_and_read_back() -> None:
    store = MemoryStore()
    states = States(store, {}, "boot-1")
    states.save(memory({"app": known(3)}))
    assert states.uids() == {"uid-a"}
    store.entries["uid-a"] = store.entries["uid-a"].replace(b"3", b"4")
    states.save(memory({"app": known(3)}))
    assert b'"restartCount":4' in store.entries["uid-a"]
    again = States(store, dict(store.entries), "boot-1")
    assert again.load("uid-a", "1-a") == memory({"app": known(4)})
    assert again.load("uid-x", "1-a") is None
    assert again.load("uid-a", "1-x") is None
    again.drop("uid-a")
    again.drop("uid-a")
    assert (store.entries, again.uids()) == ({}, frozenset())


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[]", b"{}", b'{"bootID": 1, "containers": 5}', b"null"])
def test_damaged_states_count_as_none(data: bytes) -> None:
    assert States(MemoryStore(), {"uid-a": data}, "boot-1").load("uid-a", "1-a") is None


def test_a_disk_that_is_full_stops_no_pod() -> None:
    states = States(Broken(), {}, "boot-1")
    states.save(memory())
    states.drop("uid-a")
    assert states.uids() == frozenset()
    assert memories.load(memories.dump(memory()), "boot-1") == memory()


def test_a_fault_in_the_observer_is_told_and_not_silent() -> None:
    told: list[str] = []
    clock = fakes.FakeClock()

    def listed() -> None:
        raise ValueError("no such thing")

    found = Observer(fakes.FakeRuntime(clock), clock, FakeExits(), lambda key: None, listed, told.append)
    found.start()
    found.stop()
    assert told == ["the observer has ended: no such thing"]
