"""Exec over the WebSocket: channels, exit codes, terminals, what happens when somebody leaves."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tornado.websocket

from edgelet.cli.client import ApiFailure
from edgelet.cli.exec_stream import _connect as connect
from edgelet.model.status import ContainerStatus, Terminated
from tests.support.serving import Rig, pod, running, serving
from tests.support.sessions import LocalExecs

PATH = "/api/v1/namespaces/default/pods/web-edge1/exec"


@pytest.fixture
def execs() -> LocalExecs:
    return LocalExecs()


@pytest.fixture
def rig(tmp_path: Path, execs: LocalExecs) -> Iterator[Rig]:
    with serving(tmp_path, execs=execs) as rig:
        rig.store.put(pod(), running())
        yield rig


def target(*command: str, **flags: str) -> str:
    """The path and query of an exec."""
    return f"{PATH}?{urllib.parse.urlencode([*(('command', word) for word in command), *flags.items()])}"


async def run(rig: Rig, url: str, *messages: bytes) -> tuple[dict[int, bytes], Any]:
    """All output by channel, and the final status."""
    stream = await connect(rig.socket, url)
    with contextlib.suppress(tornado.websocket.WebSocketClosedError):  # it may end before it has read all
        for message in messages:
            await stream.write_message(message, binary=True)
    seen: dict[int, bytes] = {}
    while (data := await stream.read_message()) is not None:
        assert isinstance(data, bytes)
        seen[data[0]] = seen.get(data[0], b"") + data[1:]
    return seen, json.loads(seen.pop(3, b"null"))


def test_output_and_errors_come_on_their_channels_and_the_end_is_a_success(rig: Rig, execs: LocalExecs) -> None:
    seen, status = asyncio.run(run(rig, target("sh", "-c", "echo out; echo err >&2")))
    assert seen == {1: b"out\n", 2: b"err\n"}
    assert status == {"metadata": {}, "status": "Success"}
    assert execs.asked == [(pod().key, "c", ("sh", "-c", "echo out; echo err >&2"), False, False)]
    assert execs.sessions[0].finished


def test_an_exit_code_is_a_cause_of_the_failure(rig: Rig) -> None:
    _, status = asyncio.run(run(rig, target("sh", "-c", "exit 42")))
    assert status["reason"] == "NonZeroExitCode"
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "42"}]


def test_a_command_that_cannot_start_says_why(rig: Rig) -> None:
    _, status = asyncio.run(run(rig, target("/no/such/thing")))
    assert status["status"] == "Failure"
    assert "cannot execute /no/such/thing" in status["message"]


def test_ten_megabytes_through_stdin_and_back_are_intact(rig: Rig) -> None:
    data = os.urandom(10 << 20)

    async def through() -> bytes:
        stream = await connect(rig.socket, target("cat", stdin="true"))

        async def send() -> None:
            for start in range(0, len(data), 32768):
                await stream.write_message(b"\0" + data[start : start + 32768], binary=True)
            await stream.write_message(b"\xff\0", binary=True)

        sender = asyncio.create_task(send())
        back = bytearray()
        while (message := await stream.read_message()) is not None:
            if message[0] == 1:
                back += message[1:]  # type: ignore[arg-type]
        await sender
        return bytes(back)

    assert hashlib.sha256(asyncio.run(through())).digest() == hashlib.sha256(data).digest()


def test_a_terminal_has_the_size_that_the_client_says(rig: Rig) -> None:
    url = target("sh", "-c", "read x; stty size; test -t 0 && echo tty", tty="true", stdin="true")
    seen, status = asyncio.run(run(rig, url, b'\x04{"Width":101,"Height":37}', b"\0go\n"))
    assert b"37 101\r\n" in seen[1]
    assert b"tty\r\n" in seen[1]
    assert status["status"] == "Success"


def test_a_client_that_leaves_ends_its_command(rig: Rig, execs: LocalExecs) -> None:
    async def leave() -> None:
        stream = await connect(rig.socket, target("sleep", "1000"))
        while not execs.sessions:
            await asyncio.sleep(0.01)
        stream.close()

    asyncio.run(leave())
    deadline = time.monotonic() + 10
    while not execs.sessions[0].killed and time.monotonic() < deadline:
        time.sleep(0.01)
    assert execs.sessions[0].killed


def test_a_child_left_behind_does_not_hold_the_session(rig: Rig) -> None:
    started = time.monotonic()
    seen, status = asyncio.run(run(rig, target("sh", "-c", "sleep 30 & echo done")))
    assert seen[1] == b"done\n"
    assert status["status"] == "Success"
    assert time.monotonic() - started < 10


def test_input_for_a_command_that_reads_none_is_dropped(rig: Rig) -> None:
    _, status = asyncio.run(run(rig, target("true", stdin="true"), *[b"\0" + b"x" * 32768] * 20))
    assert status["status"] == "Success"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        (PATH.replace("web", "nope") + "?command=true", 'pods "nope-edge1" not found'),
        (PATH, "at least 1 command"),
        (PATH + "?command=true&container=x", "container x is not valid for pod web-edge1"),
    ],
    ids=["no such pod", "no command", "no such container"],
)
def test_what_cannot_be_is_refused_before_the_upgrade(rig: Rig, url: str, says: str) -> None:
    with pytest.raises(ApiFailure, match=says):
        asyncio.run(connect(rig.socket, url))


def test_a_container_that_does_not_run_is_named(rig: Rig) -> None:
    ended = ContainerStatus("c", "i", Terminated(1, "Error"))
    rig.store.put(pod(), running(containers=(ended,)))
    with pytest.raises(ApiFailure, match='container "c" of pod web-edge1 is not running'):
        asyncio.run(connect(rig.socket, target("true")))


def test_a_plain_request_is_refused_politely(rig: Rig) -> None:
    with socket.socket(socket.AF_UNIX) as plain:
        plain.connect(rig.socket)
        plain.sendall(f"GET {target('true')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert plain.recv(100).startswith(b"HTTP/1.1 400")


def test_the_server_stops_with_a_session_open(tmp_path: Path, execs: LocalExecs) -> None:
    with serving(tmp_path, execs=execs) as rig:
        rig.store.put(pod(), running())
        client = threading.Thread(target=lambda: asyncio.run(run(rig, target("sleep", "1000"))))
        client.start()
        while not execs.sessions:
            time.sleep(0.01)
        started = time.monotonic()
    client.join(10)
    assert not client.is_alive()
    assert time.monotonic() - started < 5
    assert execs.sessions[0].killed


def test_what_few_ask_for_is_loaded_when_they_ask() -> None:
    code = (
        "import sys, edgelet.adapters.server.api; "
        "print([m for m in ('tornado.websocket', 'tornado.httpclient', '_curses') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
