"""The commands a person types, against a running agent."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import time

import yaml

from tests.e2e.agent import ROOT, Agent, program
from tests.e2e.manifests import SERVE, container, exec_probe, pod


def test_get_pods_in_every_form(agent: Agent) -> None:
    agent.start()
    agent.write(pod("web", labels={"app": "web"}))
    agent.write(pod("db", container(), container("side")))
    agent.wait_ready("web", "db")
    rows = [line.split() for line in agent.cli("get", "pods").stdout.splitlines()]
    assert rows[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [r[:4] for r in rows[1:]] == [["db-n1", "2/2", "Running", "0"], ["web-n1", "1/1", "Running", "0"]]
    assert agent.cli("get", "pods", "-o", "name").stdout.split() == ["pod/db-n1", "pod/web-n1"]
    found = json.loads(agent.cli("get", "pods", "-o", "json").stdout)
    assert (found["kind"], len(found["items"])) == ("List", 2)
    one = yaml.safe_load(agent.cli("get", "pod", "web", "-o", "yaml").stdout)
    assert (one["kind"], one["metadata"]["name"], one["status"]["phase"]) == ("Pod", "web-n1", "Running")
    wide = agent.cli("get", "pods", "web", "-o", "wide").stdout
    assert "10.87." in wide
    assert "n1" in wide
    assert agent.cli("get", "pods", "-l", "app=web", "-o", "name").stdout == "pod/web-n1\n"
    missing = agent.cli("get", "pod", "nosuch", check=False)
    assert (missing.returncode, '"nosuch' in missing.stderr) == (1, True)


def test_watching_pods_shows_changes_as_they_come(agent: Agent) -> None:
    agent.start().write(pod("web", container(readinessProbe=exec_probe("test", "-e", "/tmp/ok"))))
    agent.wait("it to run", lambda: agent.running_id("web"))
    watch = agent.spawn("get", "pods", "-w")
    lines = Lines(watch)
    try:
        assert lines.with_text("web-n1").split()[1] == "0/1"
        agent.inside("web", "touch", "/tmp/ok")
        assert lines.with_text("1/1").split()[0] == "web-n1"
        agent.write(pod("more"))
        assert lines.with_text("more-n1")
    finally:
        end(watch)


class Lines:
    """What a process prints, line by line, with a deadline."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self._descriptor = process.stdout.fileno()
        self._rest = b""

    def with_text(self, text: str, seconds: float = 20) -> str:
        """The next line that has `text` in it."""
        limit = time.monotonic() + seconds
        while True:
            line, newline, rest = self._rest.partition(b"\n")
            if newline:
                self._rest = rest
                if text in line.decode():
                    return line.decode()
                continue
            left = limit - time.monotonic()
            assert left > 0, f"no line with {text!r} in {seconds:g} s"
            if select.select([self._descriptor], [], [], left)[0]:
                more = os.read(self._descriptor, 65536)
                assert more, f"it ended without {text!r}"
                self._rest += more


def end(process: subprocess.Popen[str]) -> None:
    """End a client as Ctrl-C does."""
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)


def test_describe_tells_the_state_and_the_story(agent: Agent) -> None:
    agent.start().write(pod("web", container(livenessProbe=exec_probe("true")), labels={"app": "web"}))
    agent.wait_ready("web")
    told = agent.cli("describe", "pod", "web").stdout
    for words in ("Name:", "web-n1", "app=web", "State:", "Running", "Liveness:", "Conditions:", "Events:", "Started"):
        assert words in told


def test_logs_previous_tail_since_and_follow(agent: Agent) -> None:
    script = """
        for n in 1 2 3; do echo line $n; done; echo problem >&2
        while [ ! -e /tmp/end ]; do [ -e /tmp/say ] && { echo later; rm /tmp/say; }; sleep 0.1; done
        exit 1"""
    agent.start().write(pod("talk", container(script=script)))
    agent.wait("its lines", lambda: "problem" in agent.container_log("talk"))
    assert sorted(agent.cli("logs", "talk").stdout.splitlines()) == ["line 1", "line 2", "line 3", "problem"]
    assert len(agent.cli("logs", "talk", "--tail", "2").stdout.splitlines()) == 2
    assert len(agent.cli("logs", "talk", "--since", "1h").stdout.splitlines()) == 4
    assert agent.cli("logs", "talk", "--previous", check=False).returncode == 1
    stamped = agent.cli("logs", "talk", "--timestamps", "--tail", "1").stdout
    assert stamped[:2] == "20"
    follow = agent.spawn("logs", "-f", "talk", "--tail", "1")
    lines = Lines(follow)
    try:
        assert lines.with_text("")  # it follows from here
        agent.inside("talk", "touch", "/tmp/say")
        assert lines.with_text("later") == "later"
    finally:
        end(follow)
    agent.inside("talk", "touch", "/tmp/end")
    agent.wait("a restart", lambda: agent.restarts("talk") >= 1 and agent.running_id("talk"))
    assert "later" in agent.cli("logs", "talk", "--previous").stdout
    assert "later" not in agent.cli("logs", "talk").stdout


def test_exec_gives_output_input_and_the_exit_code(agent: Agent) -> None:
    agent.start().write(pod("web", container(), container("side")))
    agent.wait_ready("web")
    done = agent.cli("exec", "web", "-c", "app", "--", "sh", "-c", "echo out; echo err >&2; exit 7", check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")
    assert agent.cli("exec", "-i", "web", "-c", "side", "--", "cat", data=b"to and fro").stdout == "to and fro"
    assert agent.cli("exec", "web", "-c", "side", "--", "hostname").stdout == "web-n1\n"
    defaulted = agent.cli("exec", "web", "--", "true")
    assert defaulted.stderr == 'Defaulted container "app" out of: app, side\n'
    big = agent.cli(
        "exec", "web", "--", "sh", "-c", "dd if=/dev/zero bs=64k count=16 2>/dev/null | od -v | wc -l"
    ).stdout
    assert int(big) == 65537
    missing = agent.cli("exec", "web", "--", "nosuch", check=False)
    assert missing.returncode not in (0, 7)
    assert "nosuch" in missing.stderr
    assert not agent.of_pod("web")[0].get("ExecIDs")  # not through Podman


def test_exec_with_a_terminal(agent: Agent) -> None:
    agent.start().write(pod("web"))
    agent.wait_ready("web")
    outer, inner = pty.openpty()
    words = [*program(), "exec", "-it", "web", "--", "sh"]
    shell = subprocess.Popen(
        words, stdin=inner, stdout=inner, stderr=inner, env=agent.environment(), cwd=ROOT, start_new_session=True
    )
    os.close(inner)
    try:
        os.write(outer, b"tty; echo $((40+2)); exit 5\n")
        told = read_until(outer, b"42")
        assert shell.wait(20) == 5
        assert b"/dev/" in told
    finally:
        shell.kill()
        shell.wait()
        os.close(outer)


def read_until(descriptor: int, text: bytes, seconds: float = 20) -> bytes:
    """What comes from a terminal up to `text`."""
    found, limit = b"", time.monotonic() + seconds
    while text not in found:
        left = limit - time.monotonic()
        assert left > 0, f"no {text!r} in {found!r}"
        if select.select([descriptor], [], [], left)[0]:
            found += os.read(descriptor, 4096)
    return found


def test_restart_of_a_container_and_of_a_pod(agent: Agent) -> None:
    agent.start().write(pod("web", container(), container("side")))
    agent.wait_ready("web")
    app, side = agent.running_id("web"), agent.running_id("web", "side")
    agent.cli("restart", "web", "-c", "app")
    agent.wait("another app", lambda: agent.running_id("web") not in ("", app))
    assert (agent.running_id("web", "side"), agent.restarts("web")) == (side, 1)
    agent.cli("restart", "web")
    agent.wait("another side", lambda: agent.running_id("web", "side") not in ("", side))
    agent.wait_ready("web")
    assert agent.restarts("web", "side") == 1


def test_stop_and_start(agent: Agent) -> None:
    agent.start().write(pod("web", container(script=f"echo v1; {SERVE}")))
    agent.write(pod("other"))
    agent.wait_ready("web", "other")
    assert "stopping" in agent.cli("stop", "web").stdout
    agent.wait(
        "its end", lambda: not agent.of_pod("web") or not any(c["State"]["Running"] for c in agent.of_pod("web"))
    )
    agent.wait("the mark", lambda: "stopped by a person" in agent.summary("web"))
    assert "web-n1" in agent.cli("get", "pods").stdout
    assert "1 stopped by hand" in agent.cli("status").stdout
    agent.write(pod("web", container(script=f"echo v2; {SERVE}")))
    agent.write(pod("mark"))
    agent.wait_ready("mark")
    assert not [c for c in agent.of_pod("web") if c["State"]["Running"]]
    agent.cli("start", "web")
    agent.wait_ready("web")
    agent.wait("its word", lambda: agent.container_log("web") == "v2\n")


def test_status_exit_codes(agent: Agent) -> None:
    down = agent.cli("status", check=False)
    assert down.returncode == 2
    assert "it is not running" in down.stderr
    agent.start().write(pod("web"))
    agent.wait_ready("web")
    good = agent.cli("status")
    assert "1/1 ready" in good.stdout
    agent.write(pod("bad", container(image="localhost/nowhere:1", imagePullPolicy="Never")))
    agent.wait("the bad one", lambda: agent.waiting("bad"))
    degraded = agent.cli("status", check=False)
    assert (degraded.returncode, "default/bad-n1" in degraded.stdout) == (1, True)


def test_wrong_flags_are_told_all_at_once(agent: Agent) -> None:
    told = agent.cli("run", "--pod-manifest-pth=/x", "--sync-frequency=never", "--max-pods=-1", check=False)
    assert told.returncode != 0
    for words in ("--pod-manifest-pth", "--pod-manifest-path", "--sync-frequency", "--max-pods"):
        assert words in told.stderr
