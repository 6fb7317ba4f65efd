"""The prober: schedules on a virtual clock, verdicts, events, wakes; and nobody is delayed by the hanging."""

from __future__ import annotations

import dataclasses
import gc
import os
import socket
import time
from collections.abc import Iterator, Mapping

import pytest

from edgelet import errors, ports
from edgelet.core.probes import Kind
from edgelet.engine import probe_exec
from edgelet.engine.prober import Prober
from edgelet.model.pod import Container, Exec, Handler, HttpGet, PodKey, Port, Probe, TcpSocket
from tests.engine import probing
from tests.fakes import FakeClock, FakeRecorder
from tests.support.podman_env import SystemClock

KEY = PodKey("default", "web-edge1")
CHECK = Exec(("check",))


class Bench:
    """A prober without a thread, driven by hand."""

    def __init__(self, results: FakeResults | None = None) -> None:
        self.clock = FakeClock()
        self.runner = probing.FakeRunner()
        self.recorder = FakeRecorder()
        self.woken: list[PodKey] = []
        self.dead: set[str] = set()
        self.prober = Prober(
            self.clock,
            self.runner,
            self.recorder,
            self.woken.append,
            results=results,
            alive=lambda target: target.container_id not in self.dead,
        )

    def target(
        self,
        container_id: str = "id1",
        age: float = 0.0,
        *,
        terminating: bool = False,
        startup: Probe | None = None,
        liveness: Probe | None = None,
        readiness: Probe | None = None,
    ) -> ports.Target:
        container = Container(
            "c", "i", ports=(Port(81, name="http"),), startup=startup, liveness=liveness, readiness=readiness
        )
        start = self.clock.monotonic() - age
        return ports.Target(KEY, "uid", container, container_id, 0, "", "127.0.0.1", start, terminating=terminating)

    def sync(self, *targets: ports.Target) -> None:
        self.prober.sync(KEY, targets)

    def turn(self, seconds: float = 0.0) -> None:
        """Let time pass, then let the prober do all there is to do."""
        self.clock.advance(seconds)
        for _ in range(4):
            self.prober.step(block=False)

    def verdict(self) -> ports.Verdict:
        return self.prober.verdicts(KEY)["c"]

    def answer(self, code: int = 0, output: bytes = b"") -> None:
        """The one command under way ends."""
        (running,) = self.runner.under_way()
        running.end(code, output)
        self.turn()

    def messages(self) -> list[str]:
        return [e.message for e in self.recorder.events]


class FakeResults:
    def __init__(self, kept: Mapping[str, tuple[bool, bool]]) -> None:
        self.kept = dict(kept)

    def load(self) -> Mapping[str, tuple[bool, bool]]:
        return self.kept

    def save(self, results: Mapping[str, tuple[bool, bool]]) -> None:
        self.kept = dict(results)


@pytest.fixture
def bench() -> Iterator[Bench]:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    one = Bench()
    yield one
    one.prober.stop()
    assert one.runner.under_way() == []
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a12_ready_after_the_initial_delay_and_not_before(bench: Bench) -> None:
    bench.sync(bench.target(readiness=Probe(CHECK, initial_delay=5)))
    bench.turn(4.9)
    assert bench.runner.begun == [] and not bench.verdict().ready
    bench.turn(0.2)
    bench.answer()
    assert bench.verdict() == ports.Verdict("id1", started=True, ready=True)
    assert bench.woken == [KEY]


def test_a_container_without_probes_is_started_and_ready_at_once(bench: Bench) -> None:
    bench.sync(bench.target())
    assert bench.verdict() == ports.Verdict("id1", started=True, ready=True)
    assert bench.woken == []


def test_pain_1_liveness_kills_once_after_the_threshold(bench: Bench) -> None:
    bench.sync(bench.target(liveness=Probe(CHECK, period=2, termination_grace=7)))
    for _ in range(3):
        bench.turn()
        bench.answer(1, b"broken\n")
        bench.clock.advance(2)
    assert bench.verdict() == ports.Verdict("id1", started=True, ready=True, failed="liveness", grace=7)
    assert bench.woken == [KEY]
    assert bench.messages() == ["Liveness probe failed: broken\n"] * 3
    event = bench.recorder.events[0]
    assert (event.kind, event.reason) == ("Warning", "Unhealthy")
    assert event.ref == ports.EventRef(KEY, "uid", "spec.containers{c}")
    bench.turn(100)
    assert len(bench.runner.begun) == 3, "it is on hold until the next instance"


def test_a_new_instance_begins_anew(bench: Bench) -> None:
    bench.sync(bench.target(liveness=Probe(CHECK, failure_threshold=1)))
    bench.turn()
    bench.answer(1)
    bench.sync(bench.target("id2", liveness=Probe(CHECK, failure_threshold=1)))
    assert bench.verdict() == ports.Verdict("id2", started=True, ready=True)
    assert bench.runner.forgotten == ["id1"]
    bench.turn()
    bench.answer(0)
    assert bench.verdict().failed == ""


def test_pain_7_readiness_goes_up_and_down_and_nothing_is_killed(bench: Bench) -> None:
    bench.sync(bench.target(readiness=Probe(CHECK, period=1, failure_threshold=2)))
    seen = []
    for code in (1, 0, 2, 1, 0):
        bench.turn()
        bench.answer(code)
        bench.clock.advance(1)
        seen.append((bench.verdict().ready, bench.verdict().failed))
    assert seen == [(False, ""), (True, ""), (True, ""), (False, ""), (True, "")]
    assert bench.woken == [KEY] * 3


def test_a11_startup_gates_the_others(bench: Bench) -> None:
    one = Probe(Exec(("liveness",)))
    bench.sync(bench.target(startup=Probe(CHECK, period=3, failure_threshold=30), liveness=one, readiness=Probe(CHECK)))
    for _ in range(5):
        bench.turn()
        bench.answer(1)
        bench.clock.advance(3)
    assert not bench.verdict().started and not bench.verdict().ready and bench.verdict().failed == ""
    bench.turn()
    bench.answer(0)
    assert bench.verdict().started
    assert [r.command for r in bench.runner.under_way()] == [("liveness",), ("check",)], "both begin at once"


def test_startup_failure_kills(bench: Bench) -> None:
    bench.sync(bench.target(startup=Probe(CHECK, failure_threshold=1, termination_grace=3), liveness=Probe(CHECK)))
    bench.turn()
    bench.answer(1, b"no")
    assert bench.verdict() == ports.Verdict("id1", started=False, ready=False, failed="startup", grace=3)
    assert bench.messages() == ["Startup probe failed: no"]


def test_pain_22_a13_a_command_that_hangs_fails_after_its_timeout(bench: Bench) -> None:
    bench.sync(bench.target(liveness=Probe(Exec(("sleep", "20")), timeout=2, period=10)))
    for _ in range(3):
        bench.turn()
        bench.turn(1.9)
        assert bench.runner.begun[-1].state() == ""
        bench.turn(0.2)
        assert bench.runner.begun[-1].state() == "aborted reaped"
        bench.clock.advance(7.9)
    assert bench.messages() == ['Liveness probe failed: command timed out: "sleep 20" timed out after 2s'] * 3
    assert bench.verdict().failed == "liveness"
    assert bench.woken == [KEY]


def test_a_command_that_survives_its_end_is_killed_a_second_later(bench: Bench) -> None:
    bench.runner.stubborn = True
    bench.sync(bench.target(liveness=Probe(CHECK, failure_threshold=1)))
    bench.turn()
    bench.turn(1.1)
    assert bench.runner.begun[0].state() == "aborted"
    bench.turn(1.1)
    assert bench.runner.begun[0].state() == "aborted reaped"
    assert bench.verdict().failed == "liveness"


def test_a_command_that_cannot_be_started_is_tried_three_times_and_ignored(bench: Bench) -> None:
    bench.runner.error = errors.ExecError("no such file")
    bench.sync(bench.target(liveness=Probe(CHECK, failure_threshold=1), readiness=Probe(CHECK)))
    bench.turn()
    assert sorted(bench.messages()) == [
        "Liveness probe errored and resulted in unknown state: no such file",
        "Readiness probe errored and resulted in unknown state: no such file",
    ]
    assert bench.verdict() == ports.Verdict("id1", started=True, ready=False)
    assert bench.woken == []
    assert {t.kind: t.results for t in bench.prober.counters()} == {
        Kind.LIVENESS: {"unknown": 1},
        Kind.READINESS: {"unknown": 1},
    }


@pytest.mark.parametrize("handler", [HttpGet("nope"), TcpSocket("nope")])
def test_a_port_name_that_is_not_there_is_an_error(bench: Bench, handler: Handler) -> None:
    bench.sync(bench.target(readiness=Probe(handler)))
    bench.turn()
    (message,) = bench.messages()
    assert message.startswith('Readiness probe errored and resulted in unknown state: couldn\'t find port "nope"')


def test_network_probes_reach_the_network(bench: Bench) -> None:
    moved = "HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 2\r\n\r\nhi"
    with probing.server(probing.replies(moved)) as port:
        bench.sync(
            bench.target(readiness=Probe(HttpGet(port), timeout=60), liveness=Probe(TcpSocket(port), timeout=60))
        )

        def both() -> bool:
            bench.turn()
            return bench.verdict().ready and len(bench.prober.counters()) == 2

        probing.wait_until(both)
    assert [(e.reason, e.message) for e in bench.recorder.events] == [
        ("ProbeWarning", "Readiness probe warning: Probe terminated redirects, Response body: hi")
    ]


def test_results_of_a_dead_container_are_void(bench: Bench) -> None:
    bench.sync(bench.target(liveness=Probe(CHECK, failure_threshold=1)))
    bench.turn()
    bench.dead.add("id1")
    bench.answer(1)
    assert (bench.verdict().failed, bench.messages(), bench.woken) == ("", [], [])
    bench.dead.clear()
    bench.turn(10)
    bench.answer(1)
    assert bench.verdict().failed == "liveness"


def test_a_container_that_left_takes_its_command_along(bench: Bench) -> None:
    bench.sync(bench.target(liveness=Probe(CHECK)))
    bench.turn()
    bench.sync()
    assert bench.prober.verdicts(KEY) == {}
    bench.turn()
    assert bench.runner.begun[0].state() == "aborted reaped"
    bench.turn(100)
    assert len(bench.runner.begun) == 1


def test_a_sync_that_changes_nothing_changes_nothing(bench: Bench) -> None:
    target = bench.target(liveness=Probe(CHECK))
    bench.sync(target)
    bench.turn()
    bench.sync(target)
    bench.turn()
    assert len(bench.runner.under_way()) == 1
    bench.answer()
    bench.turn(9.9)
    assert len(bench.runner.begun) == 1
    bench.turn(0.2)
    assert len(bench.runner.begun) == 2


def test_probes_are_not_read_again_for_a_running_instance(bench: Bench) -> None:
    bench.sync(bench.target(liveness=Probe(CHECK)))
    bench.sync(bench.target(liveness=Probe(Exec(("other",)))))
    bench.turn()
    assert [r.command for r in bench.runner.begun] == [("check",)]


def test_termination_ends_liveness_and_keeps_readiness(bench: Bench) -> None:
    target = bench.target(liveness=Probe(Exec(("live",)), period=1), readiness=Probe(Exec(("ready",)), period=1))
    bench.sync(target)
    bench.sync(dataclasses.replace(target, terminating=True))
    bench.turn()
    assert [r.command for r in bench.runner.begun] == [("ready",)]


def test_verdicts_survive_the_agent() -> None:
    results = FakeResults({"id1": (True, True), "other": (True, False)})
    bench = Bench(results)
    bench.sync(bench.target(age=500, startup=Probe(CHECK), readiness=Probe(CHECK)))
    assert bench.verdict() == ports.Verdict("id1", started=True, ready=True)
    assert bench.woken == [KEY], "no try will announce what is known already"
    assert results.kept == {"id1": (True, True), "other": (True, False)}, "the other is still to be adopted"
    for _ in range(3):
        bench.turn()
        bench.answer(1)
        bench.clock.advance(10)
    assert results.kept["id1"] == (True, False)
    bench.sync()
    assert results.kept == {"other": (True, False)}
    bench.prober.stop()


def test_verdicts_of_containers_that_never_came_back_are_dropped() -> None:
    results = FakeResults({"gone": (True, True)})
    bench = Bench(results)
    bench.sync(bench.target())
    assert set(results.kept) == {"gone", "id1"}
    bench.clock.advance(601)
    bench.sync(bench.target("id2"))
    assert set(results.kept) == {"id2"}
    bench.prober.stop()


def test_forget_drops_everything(bench: Bench) -> None:
    bench.sync(bench.target(liveness=Probe(CHECK)))
    bench.turn()
    bench.answer()
    assert len(bench.prober.counters()) == 1
    bench.prober.forget(KEY)
    assert (bench.prober.counters(), bench.prober.verdicts(KEY)) == ((), {})
    bench.turn(100)
    assert len(bench.runner.begun) == 1


def test_counters(bench: Bench) -> None:
    bench.sync(bench.target(liveness=Probe(CHECK)))
    for code, took in ((0, 0.02), (1, 0.02), (0, 0.7)):
        bench.turn()
        bench.clock.advance(took)
        bench.answer(code)
        bench.clock.advance(10 - took)
    (tally,) = bench.prober.counters()
    assert (tally.key, tally.uid, tally.container, tally.kind) == (KEY, "uid", "c", Kind.LIVENESS)
    assert tally.results == {"successful": 2, "failed": 1}
    assert tally.buckets == [0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0]
    assert tally.total_seconds == pytest.approx(0.72)


def test_nothing_grows_over_a_thousand_restarts(bench: Bench) -> None:
    for number in range(1000):
        late = Probe(CHECK, initial_delay=86400)
        bench.sync(bench.target(f"id{number}", liveness=late, readiness=late))
    assert len(bench.prober._due) < 200


def many(bench: Bench, names: range, handler: Handler) -> None:
    for number in names:
        key = PodKey("default", f"pod{number}")
        container = Container("c", "i", liveness=Probe(handler, timeout=30, period=30))
        bench.prober.sync(
            key, (ports.Target(key, "u", container, f"x{number}", 0, "", "127.0.0.1", bench.clock.monotonic()),)
        )


def test_commands_start_a_few_at_a_time_and_hanging_ones_make_place(bench: Bench) -> None:
    many(bench, range(100), CHECK)
    bench.turn()
    assert len(bench.runner.begun) == probe_exec.MAX_YOUNG
    bench.turn(probe_exec.YOUNG + 0.01)
    assert len(bench.runner.begun) == 2 * probe_exec.MAX_YOUNG
    for _ in range(20):
        bench.turn(probe_exec.YOUNG + 0.01)
    assert len(bench.runner.under_way()) == probe_exec.MAX_RUNNING
    for running in bench.runner.under_way():
        running.end()
    bench.turn()
    assert len(bench.runner.begun) == probe_exec.MAX_RUNNING + probe_exec.MAX_YOUNG


def test_commands_that_hung_before_leave_most_places_to_the_others(bench: Bench) -> None:
    many(bench, range(100), Exec(("hang",)))
    for _ in range(300):
        bench.turn(probe_exec.YOUNG + 0.01)
    hanging = len(bench.runner.under_way())
    assert hanging == probe_exec.MAX_SUSPECTS
    bench.sync(bench.target(readiness=Probe(CHECK)))
    bench.turn()
    assert [r.command for r in bench.runner.under_way()].count(("check",)) == 1


def test_a_hundred_hanging_probes_delay_nobody() -> None:
    """Real time, real sockets: 100 servers that never answer, and one good probe per 1 s beside them."""
    woken: list[float] = []
    clock = SystemClock()
    prober = Prober(clock, probing.FakeRunner(), FakeRecorder(), lambda key: woken.append(clock.monotonic()))
    arrivals: list[float] = []

    def good(conn: socket.socket) -> None:
        arrivals.append(clock.monotonic())
        probing.replies("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")(conn)

    with socket.create_server(("127.0.0.1", 0), backlog=1000) as hole, probing.server(good) as port:
        for number in range(100):
            key = PodKey("default", f"bad{number}")
            container = Container("c", "i", liveness=Probe(HttpGet(hole.getsockname()[1]), timeout=60, period=60))
            prober.sync(key, (ports.Target(key, "u", container, f"b{number}", 0, "", "127.0.0.1", clock.monotonic()),))
        prober.start()
        began = clock.monotonic()
        container = Container("c", "i", readiness=Probe(HttpGet(port), period=1, timeout=20))
        prober.sync(KEY, (ports.Target(KEY, "u", container, "good", 0, "", "127.0.0.1", began),))
        try:
            probing.wait_until(lambda: len(arrivals) == 3, 20)
        finally:
            prober.stop()
    late = [arrival - began - number for number, arrival in enumerate(arrivals)]
    assert max(late) < 2, late
    assert len(woken) == 1


def test_the_thread_sleeps_when_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[bool] = []
    step = Prober.step

    def counted(prober: Prober, block: bool = True) -> None:
        turns.append(block)
        step(prober, block)

    monkeypatch.setattr(Prober, "step", counted)
    prober = Prober(SystemClock(), probing.FakeRunner(), FakeRecorder(), lambda key: None)
    prober.start()
    time.sleep(0.3)
    prober.stop()
    assert 1 <= len(turns) <= 2


def test_the_end_of_the_thread_is_told() -> None:
    said: list[str] = []

    def broken(key: PodKey) -> None:
        raise RuntimeError("boom")

    runner = probing.FakeRunner()
    prober = Prober(SystemClock(), runner, FakeRecorder(), broken, fatal=said.append)
    container = Container("c", "i", readiness=Probe(CHECK, timeout=60))
    prober.sync(KEY, (ports.Target(KEY, "u", container, "x", 0, "", "", SystemClock().monotonic()),))
    prober.start()
    probing.wait_until(lambda: len(runner.begun) == 1)
    runner.begun[0].end()
    probing.wait_until(lambda: len(said) == 1)
    assert said == ["the thread prober has ended: boom"]
    prober.stop()
