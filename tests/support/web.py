"""A web server on loopback that fails in every way a test can name, over http or https.

What it answers is a value: bytes to send, pauses between them, and how it ends.
"""

from __future__ import annotations

import contextlib
import gzip
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.certificates import Pair


@dataclass(frozen=True)
class Request:
    """What came in: header names are lower-case."""

    path: str
    headers: dict[str, str]


@dataclass(frozen=True)
class Answer:
    """What goes out: the parts one by one with `pause` seconds between; `hang` = then nothing, no end."""

    parts: tuple[bytes, ...]
    pause: float = 0.0
    hang: bool = False
    keep: bool = False


def answer(body: str | bytes = b"", status: str = "200 OK", **headers: str) -> Answer:
    """A proper reply; header names with underscores for dashes."""
    data = body.encode() if isinstance(body, str) else body
    lines = {"Content-Length": str(len(data)), **{k.replace("_", "-"): v for k, v in headers.items()}}
    head = f"HTTP/1.1 {status}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items() if v) + "\r\n"
    return Answer((head.encode() + data,), keep=bool(lines["Content-Length"]) or status[:3] in {"204", "304"})


def zipped(body: str) -> Answer:
    """The same, compressed."""
    return answer(gzip.compress(body.encode()), Content_Encoding="gzip")


def cut(body: str, at: int) -> Answer:
    """Promises all of it and sends a part."""
    data = body.encode()
    return Answer((f"HTTP/1.1 200 OK\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data[:at],))


def chunked(body: str, finished: bool = True) -> Answer:
    """In chunks; without the last one where not `finished`."""
    data = body.encode()
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return Answer((head, f"{len(data):x}\r\n".encode(), data, b"\r\n", b"0\r\n\r\n" if finished else b""))


def unmeasured(body: str) -> Answer:
    """HTTP/1.0: it ends where the connection ends."""
    return Answer((b"HTTP/1.0 200 OK\r\n\r\n" + body.encode(),))


def drip(reply: Answer, pause: float) -> Answer:
    """Byte by byte."""
    data = b"".join(reply.parts)
    return Answer(tuple(data[i : i + 1] for i in range(len(data))), pause)


HANG = Answer((), hang=True)
NOTHING = Answer(())
Script = Callable[[Request], Answer]


@dataclass
class WebServer:
    """Answers every request by `script`; counts what it saw."""

    script: Script
    pair: Pair | None = None
    client_ca: str = ""
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    received: int = 0
    sent: int = 0

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"{'https' if self.pair else 'http'}://127.0.0.1:{self.port}/pods"

    def __enter__(self) -> WebServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for one in (self._listener, *self._open):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()
        for thread in self._threads:
            thread.join(10)

    def hang_up(self) -> None:
        """End every open connection, so that the next request makes a new one."""
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _start(self, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run, daemon=True, name="test-web-server")
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                made, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.add(made)
            self._start(lambda made=made: self._serve(made))  # type: ignore[misc]

    def _serve(self, made: socket.socket) -> None:
        try:
            with self._secured(made) as connection:
                while self._serve_one(connection):
                    pass
        except OSError:
            pass
        finally:
            self._open.discard(made)
            made.close()

    def _secured(self, made: socket.socket) -> socket.socket:
        if self.pair is None:
            return made
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.pair.cert, self.pair.key)
        if self.client_ca:
            context.load_verify_locations(self.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        secured = context.wrap_socket(made, server_side=True)
        self._open.add(secured)
        return secured

    def _serve_one(self, connection: socket.socket) -> bool:
        head = b""
        while b"\r\n\r\n" not in head:
            more = connection.recv(65536)
            if not more:
                return False
            head += more
            if head.startswith(b"\x16"):
                self._send(connection, answer("TLS was spoken to a plain port", status="400 Bad Request"))
                return False
        self.received += len(head)
        first, *lines = head.decode("latin-1").split("\r\n\r\n")[0].split("\r\n")
        pairs = (line.partition(":") for line in lines)
        request = Request(first.split(" ")[1], {k.lower(): v.strip() for k, _, v in pairs})
        self.requests.append(request)
        return self._send(connection, self.script(request))

    def _send(self, connection: socket.socket, reply: Answer) -> bool:
        for part in reply.parts:
            connection.sendall(part)
            self.sent += len(part)
            if self._stopping.wait(reply.pause):
                return False
        if reply.hang:
            self._stopping.wait()
        return reply.keep
