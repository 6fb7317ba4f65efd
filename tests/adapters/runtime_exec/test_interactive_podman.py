"""Commands for people in real containers: terminals, sizes, pipes kept apart, and what happens at the end."""

from __future__ import annotations

import os
import select
import threading
import time

import pytest

from edgelet.adapters.runtime_exec import OciExec
from edgelet.adapters.runtime_exec.interactive import Session
from edgelet.errors import ExecError
from tests.adapters.runtime_exec.conftest import MakeTarget
from tests.adapters.runtime_exec.test_exec_podman import alive, runner
from tests.engine import probing

__all__ = ["runner"]

pytestmark = pytest.mark.podman


def read(descriptor: int) -> bytes:
    """All that comes until the end."""
    data = b""
    while True:
        try:
            more = os.read(descriptor, 65536)
        except OSError:  # the end of a terminal
            return data
        if not more:
            return data
        data += more


def until(descriptor: int, text: bytes, seconds: float = 5.0) -> bytes:
    """Read until `text` has come."""
    data, end = b"", time.monotonic() + seconds
    while text not in data:
        ready = select.select([descriptor], [], [], max(end - time.monotonic(), 0))[0]
        assert ready, f"only {data!r} came"
        data += os.read(descriptor, 65536)
    return data


def wait(session: Session) -> int:
    assert select.select([session], [], [], 10)[0], "it did not end"
    return session.finish()


def test_outputs_come_apart_with_the_exit_code(runner: OciExec, make_target: MakeTarget) -> None:
    session = runner.begin_interactive(make_target(), ("sh", "-c", "echo out; echo err >&2; exit 5"), False, False)
    assert session.stdin == -1
    assert (read(session.stdout), read(session.stderr), wait(session)) == (b"out\n", b"err\n", 5)


def test_ten_megabytes_through_and_back(runner: OciExec, make_target: MakeTarget) -> None:
    session = runner.begin_interactive(make_target(), ("cat",), False, True)
    sent = os.urandom(10_000_000)

    def feed() -> None:
        rest = memoryview(sent)
        while rest:
            rest = rest[os.write(session.stdin, rest) :]
        session.close_stdin()

    feeding = threading.Thread(target=feed)
    feeding.start()
    assert read(session.stdout) == sent
    feeding.join()
    assert wait(session) == 0


def test_a_terminal(runner: OciExec, make_target: MakeTarget) -> None:
    target = make_target()
    session = runner.begin_interactive(target, ("sh", "-c", "test -t 0 && test -t 1 && test -t 2; exit $?"), True, True)
    assert (session.stdin, session.stderr) == (session.stdout, -1)
    assert (read(session.stdout), wait(session)) == (b"", 0)
    session = runner.begin_interactive(target, ("sh", "-c", "read line; echo got $line; exit 3"), True, True)
    os.write(session.stdin, b"hello\n")
    assert b"got hello\r\n" in until(session.stdout, b"got hello\r\n")
    assert wait(session) == 3


def test_the_size_of_the_window_arrives(runner: OciExec, make_target: MakeTarget) -> None:
    session = runner.begin_interactive(make_target(), ("sh",), True, True)
    session.resize(91, 33)
    os.write(session.stdin, b"PS1=; echo rea''dy\n")
    until(session.stdout, b"ready\r\n")
    probing.wait_until(lambda: _size(session) == b"33 91")
    session.resize(120, 40)
    probing.wait_until(lambda: _size(session) == b"40 120")
    probing.wait_until(lambda: _ends(session))
    read(session.stdout)
    assert wait(session) == 0


def _ends(session: Session) -> bool:
    """A Ctrl-D that meets the shell between a command and its next prompt is no end of input: the terminal changes."""
    session.close_stdin()
    return bool(select.select([session], [], [], 0.2)[0])


def _size(session: Session) -> bytes:
    os.write(session.stdin, b"echo '<'$(busybox stty size)'>'\n")
    return until(session.stdout, b">\r\n").rpartition(b"<")[2].partition(b">")[0]


@pytest.mark.parametrize("tty", [False, True])
def test_a_command_that_is_not_there_is_told_at_once(runner: OciExec, make_target: MakeTarget, tty: bool) -> None:
    with pytest.raises(ExecError, match='exec: "nope": executable file not found'):
        runner.begin_interactive(make_target(), ("nope",), tty, True)


@pytest.mark.parametrize("tty", [False, True])
def test_a_person_who_leaves_leaves_nothing_behind(runner: OciExec, make_target: MakeTarget, tty: bool) -> None:
    target = make_target()
    script = "sleep 1001 & (setsid sleep 1002 &); sleep 1003"
    session = runner.begin_interactive(target, ("sh", "-c", script), tty, True)
    probing.wait_until(lambda: sum(line.startswith("sleep") for line in alive(target)) == 3)
    session.kill()
    probing.wait_until(lambda: alive(target) == [], 20)
    session.kill()
