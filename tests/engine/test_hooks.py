"""Hooks run beside the workers: how each kind ends, what is told, and that nothing of it stays."""

from __future__ import annotations

import socket

import pytest

from edgelet import errors, ports
from edgelet.engine.hooks import Hooks
from edgelet.model.hooks import HookKind, HookState
from edgelet.model.pod import Container, Exec, HookHandler, HttpGet, PodKey, Port, Sleep, TcpSocket
from tests.engine import probing
from tests.fakes import FakeClock, FakeRecorder

KEY = PodKey("default", "web-edge1")
PRE, POST = HookKind.PRE_STOP, HookKind.POST_START


class Bench:
    """Hooks without a thread, driven by hand."""

    def __init__(self) -> None:
        self.fatal: list[str] = []
        self.clock = FakeClock()
        self.runner = probing.FakeRunner()
        self.recorder = FakeRecorder()
        self.woken: list[PodKey] = []
        self.hooks = Hooks(self.clock, self.runner, self.recorder, self.woken.append, self.fatal.append)

    def begin(self, handler: HookHandler, kind: HookKind = PRE, limit: float = 30, container_id: str = "id1") -> None:
        container = Container("c", "i", ports=(Port(81, name="http"),))
        target = ports.Target(KEY, "uid", container, container_id, 1, "", "127.0.0.1", 0.0, "spec.containers{c}")
        self.hooks.begin(kind, target, handler, limit)
        self.hooks.step(block=False)

    def turn(self, seconds: float = 0.0) -> None:
        self.clock.advance(seconds)
        self.hooks.step(block=False)

    def state(self, kind: HookKind = PRE) -> HookState | None:
        return self.hooks.states(KEY).get(("id1", kind))

    def until_ended(self) -> HookState | None:
        """Real servers answer in real time."""
        probing.wait_until(self._ended)
        return self.state()

    def _ended(self) -> bool:
        self.turn()
        return self.state() is not HookState.RUNNING

    def told(self) -> list[tuple[str, str, str]]:
        return [(e.kind, e.reason, e.message) for e in self.recorder.events]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_sleep_ends_at_its_time(bench: Bench) -> None:
    bench.begin(Sleep(5))
    bench.turn(4.9)
    assert (bench.state(), bench.woken) == (HookState.RUNNING, [])
    bench.turn(0.1)
    assert (bench.state(), bench.woken, bench.told()) == (HookState.DONE, [KEY], [])


def test_a_sleep_of_nothing_ends_at_once(bench: Bench) -> None:
    bench.begin(Sleep(0))
    assert bench.state() is HookState.DONE


@pytest.mark.parametrize(("kind", "name"), [(PRE, "PreStop"), (POST, "PostStart")])
@pytest.mark.parametrize(("code", "state"), [(0, HookState.DONE), (3, HookState.FAILED)])
def test_a_command_runs_as_written_and_its_exit_code_counts(
    bench: Bench, kind: HookKind, name: str, code: int, state: HookState
) -> None:
    bench.begin(Exec(("say", "$(HOME)")), kind)
    (running,) = bench.runner.under_way()
    assert running.command == ("say", "$(HOME)")
    running.end(code)
    bench.turn()
    assert (bench.state(kind), bench.woken) == (state, [KEY])
    assert bench.told() == ([("Warning", f"Failed{name}Hook", f"{name}Hook failed")] if code else [])
    assert all(e.ref == ports.EventRef(KEY, "uid", "spec.containers{c}") for e in bench.recorder.events)


def test_a_command_that_cannot_be_started_has_failed(bench: Bench) -> None:
    bench.runner.error = errors.ExecError("no such program")
    bench.begin(Exec(("say",)))
    assert bench.state() is HookState.FAILED


def test_a_hook_that_does_not_end_is_given_up_at_its_limit(bench: Bench) -> None:
    bench.begin(Exec(("hang",)), limit=10)
    bench.turn(9.9)
    assert bench.state() is HookState.RUNNING
    bench.turn(0.1)
    bench.turn()
    assert bench.state() is HookState.FAILED
    assert [r.state() for r in bench.runner.begun] == ["aborted reaped"]


def test_a_hook_is_begun_once(bench: Bench) -> None:
    bench.begin(Exec(("say",)))
    bench.begin(Exec(("say",)))
    bench.begin(Exec(("say",)), POST)
    bench.begin(Exec(("say",)), container_id="id2")
    assert len(bench.runner.begun) == 3


@pytest.mark.parametrize("status", ["200 OK", "404 Not Found", "500 Oh", "302 Found\r\nLocation: http://elsewhere/"])
def test_any_answer_of_a_server_is_good(bench: Bench, status: str) -> None:
    seen: list[str] = []
    with probing.server(probing.replies(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n", seen=seen)) as port:
        bench.begin(HttpGet(port, "/bye", headers=(("A", "b"),)))
        assert bench.until_ended() is HookState.DONE
    (request,) = seen
    assert request.startswith(f"GET /bye HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUser-Agent: kube-lifecycle/1.36\r\n")
    assert "\r\nA: b\r\n" in request


def test_a_server_that_is_not_there_is_a_failure(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    bench.begin(HttpGet(port))
    assert bench.until_ended() is HookState.FAILED


def test_https_to_a_plain_server_is_asked_again_without_tls_and_credentials(bench: Bench) -> None:
    seen: list[str] = []

    def plain(conn: socket.socket) -> None:
        first = conn.recv(4096)
        if first.startswith(b"GET"):
            seen.append(first.decode())
        conn.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    with probing.server(plain) as port:
        bench.begin(HttpGet(port, scheme="HTTPS", headers=(("Authorization", "Bearer t"),)))
        assert bench.until_ended() is HookState.DONE
    (request,) = seen
    assert "Bearer" not in request
    assert [reason for _, reason, _ in bench.told()] == ["LifecycleHTTPFallback"]


@pytest.mark.parametrize("handler", [TcpSocket(80), HttpGet("nameless")])
def test_what_cannot_be_run_fails(bench: Bench, handler: HookHandler) -> None:
    bench.begin(handler)
    assert bench.state() is HookState.FAILED


def test_hooks_of_containers_that_are_gone_are_ended_and_forgotten(bench: Bench) -> None:
    bench.begin(Exec(("hang",)))
    bench.begin(Exec(("hang",)), container_id="id2")
    bench.hooks.keep(KEY, ["id2"])
    bench.turn()
    assert set(bench.hooks.states(KEY)) == {("id2", PRE)}
    assert [r.state() for r in bench.runner.begun] == ["aborted reaped", ""]
    assert bench.runner.forgotten == ["id1"]
    bench.hooks.keep(KEY, [])
    bench.turn()
    assert bench.hooks.states(KEY) == {}
    assert bench.runner.under_way() == []
    assert bench.told() == []


def test_the_thread_runs_hooks_and_ends_with_all_it_runs() -> None:
    bench = Bench()
    bench.hooks.start()
    target = ports.Target(KEY, "uid", Container("c", "i"), "id1", 1, "", "127.0.0.1", 0.0)
    bench.hooks.begin(PRE, target, Exec(("hang",)), 1e9)  # longer than the kernel can wait
    probing.wait_until(lambda: bool(bench.runner.under_way()))
    bench.hooks.stop()
    assert bench.runner.under_way() == []
    assert bench.fatal == []


def test_the_end_of_the_thread_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def boom(hooks: Hooks, block: bool = True) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(Hooks, "step", boom)
    broken = Bench()
    broken.hooks.start()
    probing.wait_until(lambda: broken.fatal == ["the thread hooks has ended: boom"])
    broken.hooks.stop()
