"""Helpers for probe tests: loopback servers that behave badly, a command runner without containers."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from edgelet import ports
from edgelet.engine.probe_io import Answer, Steps
from edgelet.engine.probe_loop import Loop
from tests.support.podman_env import SystemClock

Serve = Callable[[socket.socket], None]
"""What a server does with one connection; it is closed afterwards."""


@contextlib.contextmanager
def server(serve: Serve, family: socket.AddressFamily = socket.AF_INET) -> Iterator[int]:
    """A server on loopback that gives each connection to `serve`, each in its own thread; yields its port."""
    listener = socket.create_server(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), family=family)
    threads: list[threading.Thread] = []
    open_now: set[socket.socket] = set()

    def one(conn: socket.socket) -> None:
        with conn, contextlib.suppress(OSError, ssl.SSLError):
            serve(conn)
        open_now.discard(conn)

    def loop() -> None:
        while True:
            try:
                conn, _ = listener.accept()
            except OSError:
                return
            open_now.add(conn)
            threads.append(threading.Thread(target=one, args=(conn,), daemon=True))
            threads[-1].start()

    accepting = threading.Thread(target=loop, daemon=True)
    accepting.start()
    try:
        yield listener.getsockname()[1]
    finally:
        for sock in (listener, *open_now):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join(5)
        for thread in threads:
            thread.join(5)


def request_of(conn: socket.socket) -> str:
    """Read one request head."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = conn.recv(4096)
        if not more:
            break
        data += more
    return data.decode()


def replies(*answers: str, seen: list[str] | None = None) -> Serve:
    """A server that gives those raw answers in turn (the last one for ever), then closes."""
    left = list(answers)

    def serve(conn: socket.socket) -> None:
        request = request_of(conn)
        if seen is not None:
            seen.append(request)
        conn.sendall((left.pop(0) if len(left) > 1 else left[0]).encode())

    return serve


def silent(conn: socket.socket) -> None:
    """A server that takes the request and never answers."""
    while conn.recv(4096):
        pass


def run(steps: Steps, timeout: float = 20.0) -> Answer:
    """Run one try to its end on a loop of its own, in real time."""
    loop = Loop(SystemClock())
    try:
        answer = loop.add(1, steps, SystemClock().monotonic() + timeout)
        while answer is None:
            answers = loop.turn(None)
            answer = answers[0][1] if answers else None
        return answer
    finally:
        loop.close()


def certificate(directory: Path) -> ssl.SSLContext:
    """A server context with a fresh self-signed certificate of a wrong name and a weak key."""
    key, cert = directory / "key.pem", directory / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:1024", "-nodes", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*command, "-days", "1", "-subj", "/CN=wrong.example"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.load_cert_chain(cert, key)
    return context


@dataclass(eq=False)
class FakeRunning:
    """ports.Running made of pipes: the test says when it ends."""

    command: tuple[str, ...]
    aborted: bool = False
    reaped: bool = False
    stubborn: bool = False
    result: ports.ExecResult = field(default_factory=lambda: ports.ExecResult(0))
    error: Exception | None = None

    def __post_init__(self) -> None:
        self._ended, self._end = os.pipe()

    def state(self) -> str:
        """What has happened to it."""
        return " ".join(word for word in ("aborted", "reaped") if getattr(self, word))

    def end(self, code: int = 0, output: bytes = b"") -> None:
        """The command ends with that exit code and output."""
        self.result = ports.ExecResult(code, output, timed_out=self.aborted)
        end, self._end = self._end, -1
        os.close(end)

    def fileno(self) -> int:
        """See ports.Running."""
        return self._ended

    def output_fileno(self) -> int:
        """See ports.Running."""
        return -1

    def drain(self) -> None:
        """See ports.Running."""

    def finish(self) -> ports.ExecResult:
        """See ports.Running."""
        self._reap()
        if self.error is not None:
            raise self.error
        return self.result

    def abort(self) -> None:
        """See ports.Running; a stubborn command does not die of it."""
        self.aborted = True
        if not self.stubborn:
            self.end(137)

    def kill(self) -> None:
        """See ports.Running."""
        self.aborted = True
        self._reap()

    def _reap(self) -> None:
        if self.reaped:
            raise AssertionError("reaped twice")
        self.reaped = True
        for fd in (self._ended, self._end):
            if fd >= 0:
                os.close(fd)


class FakeRunner:
    """ports.ExecRunner without containers."""

    def __init__(self) -> None:
        self.begun: list[FakeRunning] = []
        self.forgotten: list[str] = []
        self.error: Exception | None = None
        self.stubborn = False

    def begin(self, target: ports.Target, command: tuple[str, ...]) -> FakeRunning:
        """See ports.ExecRunner."""
        if self.error is not None:
            raise self.error
        self.begun.append(FakeRunning(command, stubborn=self.stubborn))
        return self.begun[-1]

    def forget(self, container_id: str) -> None:
        """See ports.ExecRunner."""
        self.forgotten.append(container_id)

    def under_way(self) -> list[FakeRunning]:
        """Those that were begun and not reaped."""
        return [r for r in self.begun if not r.reaped]


def wait_until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    """Return as soon as `true()`; fails after `seconds`."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise AssertionError("it did not come true in time")
        time.sleep(0.005)
