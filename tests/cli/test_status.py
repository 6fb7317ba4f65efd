"""`edgelet status` says in its exit code how the box is: 0 good, 1 degraded, 2 it cannot be known."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from edgelet.adapters.server import peers
from edgelet.adapters.server.peers import Role, User
from edgelet.cli import client
from edgelet.cli.main import main
from edgelet.model.agent_report import SourceReport
from tests.support.serving import Rig, pod, running, serving

BROKEN = SourceReport("http:fleet", "https://fleet.example/pods", ok=False, message="connection refused")
PROBLEM = SourceReport("file", "/m", problems=("a.yaml:3: spec.containers: is required",))


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with serving(tmp_path) as rig:
        yield rig


def test_good_is_0(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    rig.store.put(pod(), running())
    assert main(["--socket", rig.socket, "status"]) == 0
    told = capsys.readouterr().out
    assert [line.split(":")[0] for line in told.splitlines()[:5]] == ["Node", "Agent", "Podman", "Source file", "Pods"]
    assert told.endswith("good\n")


@pytest.mark.parametrize("what", ["podman", "source", "problem", "unready"])
def test_each_thing_that_is_not_well_is_1_and_named(rig: Rig, capsys: pytest.CaptureFixture[str], what: str) -> None:
    good = rig.control.answer
    changed = {
        "podman": replace(good, podman_ok=False, podman_message="connection refused"),
        "source": replace(good, sources=(BROKEN,)),
        "problem": replace(good, sources=(PROBLEM,)),
        "unready": good,
    }
    rig.control.answer = changed[what]
    rig.store.put(pod(), running(ready=what != "unready"))
    assert main(["--socket", rig.socket, "status"]) == 1
    told = capsys.readouterr().out
    words = {"podman": "connection refused", "source": "fleet", "problem": "is required", "unready": "0/1 ready"}
    assert words[what] in told
    assert told.endswith("degraded\n")
    for form in ("json", "yaml"):
        assert main(["--socket", rig.socket, "status", "-o", form]) == 1


def test_a_stopped_pod_is_no_fault(rig: Rig) -> None:
    rig.store.put(pod(), replace(running(ready=False), held=True))
    assert main(["--socket", rig.socket, "status"]) == 0


def test_an_agent_that_is_down_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--socket", str(tmp_path / "none"), "status"]) == 2
    assert "it is not running" in capsys.readouterr().err


def test_who_may_not_ask_gets_2(rig: Rig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(peers, "user", lambda sock, group: User("nobody", Role.NONE))
    assert main(["--socket", rig.socket, "status"]) == 2
    assert "forbidden" in capsys.readouterr().err


@contextmanager
def answering(path: Path, answer: bytes) -> Iterator[str]:
    """Something that answers every request with these bytes and then says nothing."""
    held: list[socket.socket] = []

    def serve() -> None:
        connection, _ = listener.accept()
        held.append(connection)
        connection.recv(65536)
        connection.sendall(answer)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        yield str(path)
        thread.join()
        for connection in held:
            connection.close()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"", "no answer within"),
        (b"HTTP/1.1 200 OK\r\nServer: edgelet\r\nContent-Length: 100\r\n\r\n{", "no answer within"),
        (b"HTTP/1.1 200 OK\r\nServer: edgelet\r\nContent-Length: 5\r\n\r\nhello", "it is no JSON"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "it is not edgelet"),
        (b"nonsense\r\n\r\n", "cannot reach the agent"),
    ],
)
def test_what_does_not_answer_as_an_agent_does_is_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: bytes, says: str
) -> None:
    monkeypatch.setattr(client, "TIMEOUT_SECONDS", 1.0)
    with answering(tmp_path / "s", answer) as path:
        assert main(["--socket", path, "status"]) == 2
    assert says in capsys.readouterr().err
