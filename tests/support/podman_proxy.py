"""A unix socket in front of Podman's that loses requests or answers on demand.

mode "pass"    hand everything on
mode "before"  take the request, hand nothing on, hang up: the call has had no effect
mode "after"   hand the request on, wait for the whole answer, hang up: the effect is there, the answer lost
mode "refuse"  nobody listens
mode "hang"    hand the request on, then say nothing for some seconds, hang up
mode "delay"   hand the answer on, some seconds late
mode "cut"     hand on one half of the answer, hang up
mode "500"     hand nothing on, answer that the server has failed
mode "404"     hand nothing on, answer that there is no such thing
mode "broken"  hand on an answer whose JSON ends in the middle

`choose` gives the mode of each request; by default that is `mode`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

from edgelet import errors
from edgelet.adapters.podman.api import Connection

CHUNK = 65536


class Proxy:
    """A podman_api Connection to `behind` through a socket at `path`. Close it when done."""

    def __init__(self, path: str, behind: Connection) -> None:
        self._path = path
        self.behind = behind
        self._mode = "pass"
        self.choose: Callable[[bytes], str] = lambda request: self._mode
        self.seconds = 1.0
        """How long "hang" and "delay" last."""
        self.counts: Counter[str] = Counter()
        self._threads: list[threading.Thread] = []
        self._listen()

    @property
    def mode(self) -> str:
        """What happens to requests now."""
        return self._mode

    @mode.setter
    def mode(self, mode: str) -> None:
        before, self._mode = self._mode, mode
        if mode == "refuse":
            self._hang_up()
        elif before == "refuse":
            self._listen()

    @contextlib.contextmanager
    def connected(self) -> Iterator[str]:
        """See Connection."""
        yield self._path

    def failed(self, error: errors.RuntimeFailure) -> None:
        """See Connection."""

    def close(self) -> None:
        """Stop listening and wait for what is under way."""
        if self._mode != "refuse":
            self._hang_up()
        for thread in self._threads:
            thread.join(10)

    def _listen(self) -> None:
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(self._path)
        self._server.listen(64)
        thread = threading.Thread(target=self._accept, args=(self._server,), name="proxy-accept", daemon=True)
        thread.start()
        self._threads.append(thread)

    def _hang_up(self) -> None:
        os.unlink(self._path)
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,), name="proxy", daemon=True)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            request = _request(client)
            mode = self.choose(request) if request else "before"
            self.counts[mode] += 1
            if mode in ANSWERS:
                client.sendall(ANSWERS[mode])
            if mode == "before" or mode in ANSWERS:
                return
            with self.behind.connected() as path, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
                server.connect(path)
                server.sendall(request)
                if mode == "pass":
                    for data in iter(lambda: server.recv(CHUNK), b""):
                        client.sendall(data)
                    return
                answer = b"".join(iter(lambda: server.recv(CHUNK), b""))
            if mode in ("hang", "delay"):
                time.sleep(self.seconds)
            client.sendall(_spoilt(mode, answer))


def _spoilt(mode: str, answer: bytes) -> bytes:
    """What the client gets of an answer."""
    if mode == "delay":
        return answer
    if mode == "cut":
        return answer[: len(answer) // 2]
    if mode == "broken":
        head, _, body = answer.partition(b"\r\n\r\n")
        body = body[: len(body) // 2]
        return head.split(b"\r\n")[0] + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    return b""


def _error(status: bytes, cause: bytes, message: bytes) -> bytes:
    body = b'{"cause":"%s","message":"%s","response":%s}' % (cause, message, status[:3])
    return b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body


ANSWERS = {
    "500": _error(b"500 Internal Server Error", b"injected", b"the server has failed"),
    "404": _error(b"404 Not Found", b"no such container", b"there is no such thing"),
}
FAULTS = ("before", "after", "hang", "delay", "cut", "500", "404", "broken")


def _request(client: socket.socket) -> bytes:
    """One whole request: edgelet opens a connection for each."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = client.recv(CHUNK)
        if not more:
            return data
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    missing = int(lengths[0] if lengths else 0) - len(body)
    while missing > 0:
        more = client.recv(CHUNK)
        if not more:
            break
        data, missing = data + more, missing - len(more)
    return data
