"""Lifecycle hooks through the real agent on real Podman (semantics 3.4, 3.8)."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agent import Agent, at_most
from tests.e2e.manifests import SERVE, container, exec_probe, mount, pod


def hooked(shared: Path, pre_stop: dict[str, Any], script: str = "", **fields: Any) -> dict[str, Any]:
    """A container that notes its SIGTERM in /s/log, and what its hook notes there, too."""
    body = script or "trap 'echo term >> /s/log; exit 0' TERM; while :; do sleep 1000 & wait $!; done"
    made = container(script=body, volumeMounts=[mount("s", "/s")], lifecycle={"preStop": pre_stop}, **fields)
    return {**made, "command": ["sh", "-c", body]}


def shared_volume(directory: Path) -> list[dict[str, Any]]:
    """The volume `s` on the host."""
    return [{"name": "s", "hostPath": {"path": str(directory)}}]


def notes(directory: Path) -> list[str]:
    """What was noted."""
    file = directory / "log"
    return file.read_text().split() if file.exists() else []


def run(*command: str) -> dict[str, Any]:
    """An exec hook."""
    return {"exec": {"command": list(command)}}


@pytest.fixture
def calls() -> Iterator[tuple[int, list[str]]]:
    """An HTTP server on the host that answers 500: its port, and the requests it has seen."""
    seen: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(f"{self.path} {self.headers['User-Agent']} {self.headers.get('X-Why', '')}")
            self.send_response(500)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1], seen
    server.shutdown()
    server.server_close()


def test_pain_37_a_pre_stop_hook_runs_before_the_signal(agent: Agent, tmp_path: Path) -> None:
    hook = run("sh", "-c", "echo hook >> /s/log; sleep 0.5; echo hook-end >> /s/log")
    app = hooked(tmp_path, hook)
    agent.start().write(pod("bye", app, volumes=shared_volume(tmp_path), terminationGracePeriodSeconds=30))
    agent.wait_ready("bye")
    agent.remove("bye")
    took = agent.wait_gone("bye")
    assert notes(tmp_path) == ["hook", "hook-end", "term"]
    assert took < at_most(20)  # far from the grace period: the end of the hook is heard of
    assert [e["message"] for e in agent.events("bye", "Killing")] == ["Stopping container app"]


def test_a22_a_liveness_kill_runs_the_hook_and_then_restarts(agent: Agent, tmp_path: Path) -> None:
    app = hooked(tmp_path, run("sh", "-c", "echo hook-$(cat /proc/1/comm) >> /s/log"))
    app["livenessProbe"] = exec_probe("sh", "-c", "! [ -e /s/sick ] || [ -e /s/log ]")
    agent.start().write(pod("sick", app, volumes=shared_volume(tmp_path), terminationGracePeriodSeconds=30))
    agent.wait_ready("sick")
    (tmp_path / "sick").touch()
    agent.wait("the restart", lambda: agent.restarts("sick") == 1 and agent.ready("sick"))
    assert notes(tmp_path) == ["hook-sh", "term"]  # process 1 lived while the hook ran


def test_a23_an_http_hook_is_called_once_and_any_answer_is_good(
    agent: Agent, tmp_path: Path, calls: tuple[int, list[str]]
) -> None:
    port, seen = calls
    get = {"port": port, "host": "127.0.0.1", "path": "/bye?x=1", "httpHeaders": [{"name": "X-Why", "value": "stop"}]}
    agent.start().write(pod("call", hooked(tmp_path, {"httpGet": get}), volumes=shared_volume(tmp_path)))
    agent.wait_ready("call")
    agent.remove("call")
    agent.wait_gone("call")
    assert seen == ["/bye?x=1 kube-lifecycle/1.36 stop"]
    assert notes(tmp_path) == ["term"]
    assert not agent.events("call", "FailedPreStopHook")


def test_a24_a_sleeping_hook_delays_the_end_by_its_time(agent: Agent, tmp_path: Path) -> None:
    app = hooked(tmp_path, {"sleep": {"seconds": 3}})
    agent.start().write(pod("nap", app, volumes=shared_volume(tmp_path), terminationGracePeriodSeconds=30))
    agent.wait_ready("nap")
    agent.remove("nap")
    begin = time.monotonic()
    agent.wait("the signal", lambda: notes(tmp_path))
    assert 2.8 < time.monotonic() - begin < at_most(20)
    agent.wait_gone("nap")


def test_a_hook_that_hangs_leaves_two_seconds_for_the_stop(agent: Agent, tmp_path: Path) -> None:
    app = hooked(tmp_path, run("sleep", "1000"), "trap 'echo term >> /s/log' TERM; while :; do sleep 0.1; done")
    agent.start().write(pod("hang", app, volumes=shared_volume(tmp_path), terminationGracePeriodSeconds=3))
    agent.wait_ready("hang")
    agent.remove("hang")
    took = agent.wait_gone("hang")
    assert notes(tmp_path) == ["term"]
    assert 4.5 < took < at_most(15)  # 3 s of hook and 2 s between the signal and the kill


def test_a_hook_that_fails_is_told_and_stops_nothing(agent: Agent, tmp_path: Path) -> None:
    app = hooked(tmp_path, run("sh", "-c", "exit 3"))
    agent.start().write(pod("bad", app, volumes=shared_volume(tmp_path), terminationGracePeriodSeconds=30))
    agent.wait_ready("bad")
    agent.remove("bad")
    assert agent.wait_gone("bad") < at_most(20)
    assert [e["message"] for e in agent.events("bad", "FailedPreStopHook")] == ["PreStopHook failed"]
    assert notes(tmp_path) == ["term"]


def test_a_pod_removed_while_the_agent_was_down_still_gets_its_hook(agent: Agent, tmp_path: Path) -> None:
    app = hooked(tmp_path, run("sh", "-c", "echo hook >> /s/log"))
    agent.start().write(pod("late", app, volumes=shared_volume(tmp_path), terminationGracePeriodSeconds=30))
    agent.wait_ready("late")
    agent.kill()
    agent.remove("late")
    agent.start()
    agent.wait("its end", lambda: not agent.rows("containers"))
    assert notes(tmp_path) == ["hook", "term"]


def greeted(hook: dict[str, Any], script: str) -> dict[str, Any]:
    """A container called `first` with a postStart hook."""
    return container("first", script, volumeMounts=[mount("s", "/s")], lifecycle={"postStart": hook})


def test_a21_the_next_container_starts_after_the_post_start_hook(agent: Agent, tmp_path: Path) -> None:
    hook = run("sh", "-c", "echo hook >> /s/log; sleep 1; echo hook-end >> /s/log")
    second = container("second", f"echo second >> /s/log; {SERVE}", volumeMounts=[mount("s", "/s")])
    agent.start().write(pod("two", greeted(hook, SERVE), second, volumes=shared_volume(tmp_path)))
    agent.wait_ready("two")
    assert notes(tmp_path) == ["hook", "hook-end", "second"]


def test_a23_a_post_start_hook_is_one_call(agent: Agent, tmp_path: Path, calls: tuple[int, list[str]]) -> None:
    port, seen = calls
    get = {"port": port, "host": "127.0.0.1", "path": "/hello"}
    agent.start().write(pod("hello", greeted({"httpGet": get}, SERVE), volumes=shared_volume(tmp_path)))
    agent.wait("the call", lambda: seen)
    agent.wait_ready("hello")
    agent.kill()
    agent.start()
    agent.wait_ready("hello")
    assert seen == ["/hello kube-lifecycle/1.36 "]


def test_a_post_start_hook_that_fails_ends_its_container_which_is_started_again(agent: Agent, tmp_path: Path) -> None:
    hook = run("sh", "-c", "[ -e /s/been ] || { touch /s/been; exit 1; }")
    agent.start().write(pod("fail", greeted(hook, SERVE), volumes=shared_volume(tmp_path)))
    agent.wait("the restart", lambda: agent.restarts("fail", "first") == 1 and agent.ready("fail"), 60)
    assert [e["message"] for e in agent.events("fail", "FailedPostStartHook")] == ["PostStartHook failed"]
    assert [e["message"] for e in agent.events("fail", "Killing")] == ["FailedPostStartHook"]
