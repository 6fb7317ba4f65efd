"""Threads around the step: newest wish wins, nothing is lost when a worker retires, a stuck pod delays no other."""

from __future__ import annotations

import errno
import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from edgelet import errors, ports
from edgelet.core.memory import Pull, PullState
from edgelet.engine import observer as observers
from edgelet.engine.director import Director
from edgelet.engine.executor import Executor, Tools
from edgelet.engine.local import Local
from edgelet.engine.puller import Puller
from edgelet.engine.reconciler import Context, Reconciler
from edgelet.engine.states import States
from edgelet.engine.store import StatusStore
from edgelet.engine.workers import Mailbox, Wish, Workers
from edgelet.model.observed import ObservedPod
from edgelet.model.pod import Container, Pod, PodKey
from edgelet.model.problems import Problem
from edgelet.ports import Snapshot
from tests import fakes
from tests.core.scenes import created, ended, known, memory, pulls, runs, sandbox
from tests.engine.world import FakeExits, MemoryStore, make_pod


class RealClock:
    """ports.Clock."""

    def monotonic(self) -> float:
        """See ports.Clock."""
        return time.monotonic()

    def time(self) -> float:
        """See ports.Clock."""
        return time.time()


class Holds:
    """engine.director.Holds in memory."""

    def __init__(self, data: bytes | None = None) -> None:
        self.data = data
        self.broken = False

    def read(self) -> bytes | None:
        """See engine.director.Holds."""
        if self.broken:
            raise errors.StateError("cannot read holds: damaged")
        return self.data

    def write(self, data: bytes) -> None:
        """See engine.director.Holds."""
        if self.broken:
            raise errors.StateError("cannot write holds: disk full")
        self.data = data


class Engine:
    """Workers, director and observer around one fake runtime, with real threads."""

    def __init__(self, holds: Holds | None = None, runtime: fakes.FakeRuntime | None = None) -> None:
        self.clock = RealClock()
        self.runtime = runtime or fakes.FakeRuntime(fakes.FakeClock(), images=("demo",))
        self.recorder = fakes.FakeRecorder()
        self.broken: list[str] = []
        self.exits = FakeExits()
        self.store = StatusStore(self.clock)
        self.workers = Workers(self.clock, self.broken.append)
        self.observer = observers.Observer(self.runtime, self.clock, self.exits, self.wake)
        self.runtime.on_change = self.deliver
        self.puller = Puller(self.runtime, self.clock, self.recorder, self.workers.pulled)
        self.volumes = fakes.FakeVolumes()
        hooks = fakes.FakeHooks()
        repairs = fakes.FakeRepairs(self.runtime)
        tools = Tools(self.runtime, self.volumes, self.observer, self.puller, self.recorder, self.clock, hooks, repairs)
        states = States(MemoryStore(), {}, "boot-1")
        self.workers.use(
            Reconciler(
                Context(
                    Executor(tools),
                    self.observer,
                    fakes.FakeProbes(),
                    hooks,
                    self.recorder,
                    self.store,
                    states,
                    self.clock,
                    "boot-1",
                    lambda: "192.0.2.1",
                )
            )
        )
        self.holds = holds or Holds()
        self.director = Director(("file", "http"), self.workers, self.observer, self.recorder, self.holds)

    def wake(self, key: PodKey) -> None:
        """As app.wiring does it."""
        if not self.workers.wake(key):
            self.director.recheck()

    def deliver(self) -> None:
        """Tell the exits of what is watched, as the exit watcher does."""
        for pod in self.runtime.pods():
            for container in pod.containers:
                if container.exit_code is not None and container.id in self.exits.watched:
                    self.exits.forget(container.id)
                    self.observer.exited(container.id, container.exit_code, "test")

    def give(self, *pods: Pod, source: str = "file") -> None:
        """A snapshot of a source."""
        self.director.put(Snapshot(source, pods))


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine that is open for wishes; stopped afterwards."""
    made = Engine()
    made.puller.start()
    made.director.open()
    yield made
    assert made.workers.stop(5) == []
    made.puller.stop()
    assert made.broken == []


def until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait for something that must come true; AssertionError if it does not."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.002)


def named(name: str, config_hash: str = "1-a", **fields: object) -> Pod:
    """A pod of another name."""
    base = make_pod(config_hash, **fields)  # type: ignore[arg-type]
    return Pod(
        name=name,
        namespace="default",
        uid=f"{name}-{config_hash}",
        config_hash=config_hash,
        source="file",
        containers=base.containers,
        grace=base.grace,
    )


# -- mailbox ---------------------------------------------------------------------------------------------


def test_the_newest_wish_wins() -> None:
    box = Mailbox()
    for n in range(300):
        box.wish(Wish(make_pod(f"1-{n}"), n % 2 == 0))
    local = box.take(Local(make_pod().key))
    assert local.desired == make_pod("1-299")
    assert not local.held
    assert box.empty


def test_news_are_seen_once() -> None:
    box = Mailbox()
    box.wake(stale=True)
    box.wake()
    assert not box.empty
    first = box.take(Local(make_pod().key))
    assert first.stale
    assert not box.take(Local(make_pod().key)).stale
    assert box.take(first).stale


def test_a_wait_ends_with_news_with_time_and_with_the_end() -> None:
    box = Mailbox()
    assert box.wait(0.001)
    box.wake()
    assert box.wait(None)
    box.close()
    assert not box.wait(None)


def test_results_of_pulls_reach_their_generation_only() -> None:
    local = Local(make_pod().key, memory=memory(), incoming=memory(config_hash="1-b", uid="uid-b"))
    box = Mailbox()
    ready, failed = Pull(PullState.READY), Pull(PullState.FAILED)
    box.pulled("1-a", "app", failed)
    box.pulled("1-a", "app", ready)
    box.pulled("1-b", "app", failed)
    box.pulled("1-z", "app", failed)
    after = box.take(local)
    assert after.memory.of("app").pull == ready
    assert after.incoming.of("app").pull == failed
    assert box.take(local) == local


def test_a_restart_marks_what_runs() -> None:
    box = Mailbox()
    local = Local(make_pod().key, observed=sandbox(ended(), runs(count=1)), memory=memory({"app": known(1)}))
    box.restart()
    assert box.take(local).memory.replace_id == "sandbox"
    assert box.take(local).memory.replace_id == ""
    box.restart("app")
    assert box.take(local).memory.of("app").restart_id == "app-1"
    box.restart("other")
    assert box.take(local).memory.containers == local.memory.containers


def test_a_container_about_to_be_started_is_not_marked() -> None:
    box = Mailbox()
    box.restart("app")
    local = Local(make_pod().key, observed=sandbox(created()), memory=memory({"app": known()}))
    assert box.take(local).memory.of("app").restart_id == ""


def test_a_restart_without_a_sandbox_lets_all_run_anew() -> None:
    box = Mailbox()
    box.restart()
    assert box.take(Local(make_pod().key, memory=memory())).memory.anew
    box.restart()
    assert not box.take(Local(make_pod().key)).memory.anew
    box.restart("app")
    assert not box.take(Local(make_pod().key, memory=memory())).memory.anew


def test_hurry_ends_waits_of_both_generations() -> None:
    failed = pulls(PullState.FAILED, delay=300)
    local = Local(
        make_pod().key,
        memory=memory({"app": known(pull=failed)}),
        incoming=memory({"app": known(pull=failed)}, config_hash="1-b"),
    )
    box = Mailbox()
    box.hurry()
    after = box.take(local)
    assert (after.memory.of("app").pull, after.incoming.of("app").pull) == (None, None)
    assert box.take(local) == local


# -- workers ---------------------------------------------------------------------------------------------


def test_300_edits_end_in_exactly_the_last_version(engine: Engine) -> None:
    for n in range(300):
        engine.give(make_pod(f"1-{n}", grace=0))
    until(lambda: [p.config_hash for p in engine.runtime.pods()] == ["1-299"] and engine.runtime.running() == ["app"])
    assert len(engine.runtime.called("create_pod")) <= 300
    assert len(engine.runtime.pods()) == 1


def test_pods_come_and_go_while_workers_retire(engine: Engine) -> None:
    dice = random.Random(7)
    names = [f"pod-{n}" for n in range(6)]
    for _ in range(150):
        engine.give(*(named(n, f"1-{dice.randrange(3)}", grace=0) for n in names if dice.random() < 0.5))
        if dice.random() < 0.3:
            time.sleep(0.002)
    last = [named(n, "1-9") for n in names[:4]]
    engine.give(*last)
    want = [p.config_hash for p in last]
    until(lambda: [p.config_hash for p in engine.runtime.pods()] == want and len(engine.runtime.running()) == 4)
    until(lambda: engine.workers.keys() == {p.key for p in last})
    engine.give()
    until(lambda: engine.runtime.pods() == () and not engine.workers.keys())
    assert engine.store.list()[1] == ()
    assert engine.volumes.uids() == frozenset()


def test_a_stuck_pod_delays_no_other(engine: Engine) -> None:
    stuck, go = threading.Event(), threading.Event()
    call = engine.runtime.create_pod

    def slow(pod: Pod, attempt: int) -> object:
        if pod.name == "stuck":
            stuck.set()
            go.wait(20)
        return call(pod, attempt)

    engine.runtime.create_pod = slow  # type: ignore[method-assign, assignment]
    others = [named(f"pod-{n}") for n in range(10)]
    engine.give(named("stuck"))
    assert stuck.wait(5)
    engine.give(named("stuck"), *others)
    until(lambda: len(engine.runtime.running()) == 10)
    go.set()
    until(lambda: len(engine.runtime.running()) == 11)


def test_a_stop_is_bounded_though_a_worker_is_stuck() -> None:
    engine = Engine()
    engine.director.open()
    stuck, go = threading.Event(), threading.Event()

    def slow(pod: Pod, attempt: int) -> object:
        stuck.set()
        go.wait(20)
        raise errors.Temporary("cannot create pod: it took too long")

    engine.runtime.create_pod = slow  # type: ignore[method-assign, assignment]
    engine.give(make_pod())
    assert stuck.wait(5)
    began = time.monotonic()
    assert engine.workers.stop(0.2) == [make_pod().key]
    assert time.monotonic() - began < 2
    go.set()
    assert engine.workers.stop(5) == []


def test_nothing_begins_after_a_stop() -> None:
    engine = Engine()
    assert engine.workers.stop(1) == []
    engine.workers.wish(make_pod().key, Wish(make_pod()))
    assert engine.workers.keys() == frozenset()


def test_a_fault_of_our_own_is_loud() -> None:
    engine = Engine()
    engine.director.open()

    def faulty(pod: Pod, attempt: int) -> object:
        raise ZeroDivisionError

    engine.runtime.create_pod = faulty  # type: ignore[method-assign, assignment]
    engine.give(make_pod())
    until(lambda: engine.broken == ["the worker of pod default/web-node has failed"])
    assert engine.workers.stop(5) == []


def test_what_the_machine_lacks_is_waited_for_and_ends_no_worker() -> None:
    engine = Engine()
    engine.director.open()
    lacks = iter([OSError(errno.EMFILE, "Too many open files"), MemoryError()])
    create = engine.runtime.create_pod

    def lacking(pod: Pod, attempt: int) -> ObservedPod:
        for lack in lacks:
            raise lack
        return create(pod, attempt)

    engine.runtime.create_pod = lacking  # type: ignore[method-assign]
    engine.give(make_pod())
    until(lambda: engine.runtime.running() == ["app"])
    assert (engine.broken, engine.workers.stop(5)) == ([], [])


def test_a_pod_for_which_there_is_no_thread_gets_one_when_its_wish_is_told_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    assert not engine.workers.lacked()
    monkeypatch.setattr(threading.Thread, "start", refused)
    engine.give(make_pod())
    assert engine.workers.keys() == frozenset()
    monkeypatch.setattr(threading.Thread, "start", start)
    assert engine.workers.lacked()
    assert not engine.workers.lacked()
    engine.director.recheck()
    until(lambda: engine.runtime.running() == ["app"])


def test_workers_need_a_step() -> None:
    broken: list[str] = []
    workers = Workers(RealClock(), broken.append)
    workers.wish(make_pod().key, Wish(make_pod()))
    until(lambda: len(broken) == 1)
    assert workers.stop(1) == []


def test_orders_to_pods_nobody_knows(engine: Engine) -> None:
    unknown = PodKey("default", "none")
    assert not engine.workers.restart(unknown)
    assert not engine.workers.wake(unknown)
    engine.workers.hurry(unknown)
    engine.workers.pulled(unknown, "1-a", "app", Pull(PullState.READY))
    assert engine.workers.keys() == frozenset()


def test_orders_reach_a_pod(engine: Engine) -> None:
    engine.give(make_pod(grace=0))
    until(lambda: engine.runtime.running() == ["app"])
    first = engine.runtime.pods()[0].id
    assert engine.workers.restart(make_pod().key)
    until(lambda: bool(engine.runtime.running()) and engine.runtime.pods()[0].id != first)
    assert engine.workers.wake(make_pod().key)


def test_an_image_is_pulled_by_the_puller_s_thread(engine: Engine) -> None:
    engine.runtime.registry["far"] = engine.runtime.images["demo"]
    engine.give(make_pod(containers=(Container("app", "far"),)))
    until(lambda: engine.runtime.running() == ["app"])


# -- director --------------------------------------------------------------------------------------------


def test_wishes_wait_until_the_runtime_was_listed() -> None:
    engine = Engine()
    engine.give(make_pod())
    assert engine.workers.keys() == frozenset()
    engine.director.recheck()
    assert engine.workers.keys() == frozenset()
    engine.director.open()
    until(lambda: engine.runtime.running() == ["app"])
    assert engine.workers.stop(5) == []


def test_a_pod_found_running_that_nobody_wants_is_ended_once_its_source_has_spoken() -> None:
    engine = Engine()
    engine.runtime.create_pod(make_pod(), 0)
    engine.observer.relist()
    engine.director.open()
    engine.give(source="http")
    assert engine.workers.keys() == frozenset()
    engine.director.put(Snapshot("file", (), seen=False))
    assert engine.workers.keys() == frozenset()
    engine.give()
    until(lambda: engine.runtime.pods() == ())
    assert engine.workers.stop(5) == []


def test_a_source_that_is_lost_ends_nothing(engine: Engine) -> None:
    engine.give(make_pod())
    until(lambda: engine.runtime.running() == ["app"])
    engine.director.put(Snapshot("file", (), seen=False))
    engine.director.recheck()
    time.sleep(0.05)
    assert engine.runtime.running() == ["app"]
    assert engine.runtime.called("signal_container") == []


def test_a_pod_that_appears_behind_our_back_is_ended(engine: Engine) -> None:
    engine.give()
    engine.give(make_pod(grace=0))
    until(lambda: engine.runtime.running() == ["app"])
    engine.give()
    until(lambda: not engine.workers.keys())
    engine.runtime.create_pod(make_pod(), 0)
    engine.observer.relist()
    until(lambda: engine.runtime.pods() == ())


def test_the_stronger_source_wins_and_that_is_told_once(engine: Engine) -> None:
    engine.give(make_pod())
    engine.give(make_pod("1-b"), source="http")
    engine.give(make_pod("1-b"), source="http")
    until(lambda: engine.runtime.running() == ["app"])
    assert engine.runtime.pods()[0].config_hash == "1-a"
    told = [e for e in engine.recorder.events if e.reason == "FailedValidation"]
    assert len(told) == 1
    assert told[0].ref == ports.EventRef(make_pod().key, "uid-a")
    assert engine.director.pod(make_pod().key) == make_pod()
    assert engine.director.wanted().pods == {make_pod().key: make_pod()}
    assert sorted(engine.director.snapshots()) == ["file", "http"]


def test_what_workers_are_busy_with(engine: Engine) -> None:
    engine.give(make_pod())
    until(lambda: engine.runtime.running() == ["app"])
    assert engine.director.working() == {"uid-a"}
    assert [p.uid for p in engine.director.running()] == ["uid-a"]


def test_a_deletion_may_be_given_less_time(engine: Engine) -> None:
    engine.runtime.ignores_sigterm.add("app")
    engine.give(make_pod(grace=600))
    until(lambda: engine.runtime.running() == ["app"])
    engine.director.deleting(make_pod().key, 300)
    engine.give()
    until(lambda: engine.runtime.signals("app") == ["SIGTERM"])
    engine.director.deleting(make_pod().key, 0)
    engine.director.deleting(make_pod().key, 100)
    until(lambda: engine.runtime.pods() == ())


def test_a_deletion_s_time_is_not_that_of_the_next_pod_of_the_name(engine: Engine) -> None:
    engine.give(make_pod(grace=0))
    until(lambda: engine.runtime.running() == ["app"])
    engine.director.deleting(make_pod().key, 1)
    engine.give()
    engine.give(make_pod("1-b", grace=600))
    until(lambda: [p.config_hash for p in engine.runtime.pods()] == ["1-b"] and bool(engine.runtime.running()))
    engine.runtime.ignores_sigterm.add("app")
    engine.give()
    until(lambda: bool(engine.runtime.called("signal_container")))
    time.sleep(0.05)
    assert engine.runtime.running() == ["app"]
    engine.runtime.exit("app", 0)
    until(lambda: engine.runtime.pods() == ())


def test_a_hold_is_on_disk_before_it_acts_and_outlives_the_agent(engine: Engine) -> None:
    key = make_pod().key
    engine.give(make_pod(grace=0))
    until(lambda: engine.runtime.running() == ["app"])
    engine.director.hold(key, True)
    assert engine.holds.data == b'[["default", "web-node"]]'
    assert engine.director.held() == {key}
    until(lambda: engine.runtime.pods() == ())
    again = Engine(Holds(engine.holds.data))
    again.give(make_pod())
    again.director.open()
    until(lambda: again.store.get(key) is not None)
    assert again.runtime.pods() == ()
    again.director.hold(key, False)
    until(lambda: again.runtime.running() == ["app"])
    assert again.holds.data == b"[]"
    assert again.workers.stop(5) == []
    engine.director.hold(key, False)
    until(lambda: engine.runtime.running() == ["app"])


def test_a_hold_that_cannot_be_written_does_nothing(engine: Engine) -> None:
    engine.give(make_pod())
    until(lambda: engine.runtime.running() == ["app"])
    engine.holds.broken = True
    with pytest.raises(errors.StateError):
        engine.director.hold(make_pod().key, True)
    assert engine.director.held() == frozenset()
    engine.director.hold(make_pod().key, False)


@pytest.mark.parametrize("data", [b"{", b"[1]", b'[["a", "b", "c"]]', b"\xff"])
def test_damaged_holds_stop_nothing(data: bytes) -> None:
    assert Engine(Holds(data)).director.held() == frozenset()


def test_unreadable_holds_stop_nothing() -> None:
    holds = Holds()
    holds.broken = True
    assert Engine(holds).director.held() == frozenset()


def test_what_is_wrong_with_a_manifest_is_told_once_as_an_event_of_the_node() -> None:
    recorder = fakes.FakeRecorder()
    clock = fakes.FakeClock()
    runtime = fakes.FakeRuntime(clock)
    observer = observers.Observer(runtime, clock, FakeExits(), lambda key: None)
    director = Director(("file",), Workers(clock, print), observer, recorder, Holds(), "edge1")
    wrong = Problem("unknown kind", file="web.yaml", line=3)
    remark = Problem("not honoured", file="web.yaml", line=4, warning=True)
    director.put(ports.Snapshot("file", (), (wrong, remark)))
    director.put(ports.Snapshot("file", (), (wrong, remark)))
    told = [(e.ref.key, e.reason, e.message) for e in recorder.events]
    assert told == [(PodKey("", "edge1"), "FailedValidation", "web.yaml:3: error: unknown kind")]


def test_a_source_that_is_lost_and_comes_back_is_told_as_events_of_the_node() -> None:
    engine = Engine()
    lost = ports.Snapshot("file", problems=(Problem("no such directory", file="/m"),), trouble="no such directory")
    director = engine.director
    for snapshot in (ports.Snapshot("file"), lost, lost, ports.Snapshot("file"), ports.Snapshot("file")):
        director.put(snapshot)
    assert [(e.kind, e.reason, e.message) for e in engine.recorder.events] == [
        ("Warning", "SourceUnavailable", "source file: no such directory"),
        ("Normal", "SourceRecovered", "source file is read again"),
    ]


# -- one bad pod ----------------------------------------------------------------------------------------


def test_pain_59_64_one_bad_pod_keeps_no_other_from_starting(engine: Engine) -> None:
    """Podman answers nothing good about one pod, and takes its time for that."""
    good, bad = [named(f"good-{n}") for n in range(5)], named("bad")
    create = engine.runtime.create_pod

    def slow(pod: Pod, attempt: int) -> ObservedPod:
        if pod.key == bad.key:
            time.sleep(0.5)
            raise errors.Temporary("cannot create pod: injected")
        return create(pod, attempt)

    engine.runtime.create_pod = slow  # type: ignore[method-assign]
    began = time.monotonic()
    engine.give(bad, *good)
    until(lambda: len(engine.runtime.running()) == 5)
    assert engine.store.get(bad.key) is not None
    assert time.monotonic() - began < 10
    until(lambda: "injected" in (entry.status.summary if (entry := engine.store.get(bad.key)) else ""))
