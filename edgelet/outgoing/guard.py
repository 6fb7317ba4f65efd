"""A guard that can cut the sockets of a session from outside, and connection pools that report to it.

A time-out of a socket begins anew with every byte; a server that drips one byte every few seconds
would hold a request for hours.  So a timer shuts the sockets down when the deadline is over.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class Guard:
    """Knows the sockets of a session; `expired` = the deadline cut them in the last request.

    It holds a duplicate ("twin") of each, because TLS takes the original over.  The twin of a closed
    connection is kept to the end of the request: its reply may still be read.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._twins: list[socket.socket] = []
        self._closing: list[socket.socket] = []
        self.expired = False

    def add(self, connected: socket.socket) -> socket.socket:
        """A new connection; its twin is to be given to `release` when it is closed."""
        twin = connected.dup()
        with self._lock:
            self._twins.append(twin)
            if self.expired:
                self._shut()
        return twin

    def release(self, twin: socket.socket) -> None:
        """The connection was closed."""
        with self._lock:
            if twin in self._twins:
                self._twins.remove(twin)
                self._closing.append(twin)

    def cut(self) -> None:
        """Shut all sockets down: whoever waits on one wakes up with an error."""
        with self._lock:
            self._shut()
            self._forget(self._closing)

    @contextmanager
    def deadline(self, seconds: float) -> Iterator[None]:
        """Cut everything `seconds` from now, unless the block has ended by then."""
        self.expired = False
        timer = threading.Timer(seconds, self._expire)
        timer.daemon = True
        timer.name = "http-deadline"
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
            with self._lock:
                self._forget(self._closing)

    def _expire(self) -> None:
        with self._lock:
            self.expired = True
            self._shut()

    def _shut(self) -> None:
        for one in (*self._twins, *self._closing):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _forget(twins: list[socket.socket]) -> None:
        for one in twins:
            one.close()
        twins.clear()


def pools(guard: Guard) -> dict[str, Any]:
    """Connection pools by scheme, of connections that report to the guard."""
    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.connection import HTTPConnection, HTTPSConnection

    class Guarded:
        _twin: socket.socket | None = None

        def _new_conn(self) -> socket.socket:
            made: socket.socket = super()._new_conn()  # type: ignore[misc]
            self._twin = guard.add(made)
            return made

        def close(self) -> None:
            super().close()  # type: ignore[misc]
            if self._twin is not None:
                guard.release(self._twin)
                self._twin = None

    class Plain(Guarded, HTTPConnection): ...

    class Secure(Guarded, HTTPSConnection): ...

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}
