"""How many connections the server takes, how much each caller may send, and what happens when nothing can be opened."""

from __future__ import annotations

import logging
import resource
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import tornado.httpserver
import tornado.iostream
from tornado import httputil
from tornado.ioloop import IOLoop

from ... import errors
from . import doors, peers

logger = logging.getLogger(__name__)

CONNECTIONS = 256
"""Open connections."""
BODY_BYTES = 4 << 20
SMALL_BODY_BYTES = 64 << 10
"""Of callers who may change nothing: a body is taken in before it is answered, and there may be many of them."""
SHARE = 4
"""A quarter of the descriptors that the process may open, at the most: watching pods comes first."""
PAUSE_SECONDS = 1.0
"""How long nobody is let in once no descriptor was left: epoll would report the same caller again and again."""


def connections() -> int:
    """How many one server may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS if soft == resource.RLIM_INFINITY else min(CONNECTIONS, soft // SHARE)


class Bounded(tornado.httpserver.HTTPServer):
    """Takes `connections()` at once; one more takes the place of the oldest stranger, or is closed.

    A stranger is who has not said who he is, by a good token or certificate, since he connected: any number of them
    keep nobody out. Whoever may change nothing sends small bodies only.
    """

    door: doors.Door

    def initialize(self, *args: Any, **kwargs: Any) -> None:
        super().initialize(*args, **kwargs)
        self._open = 0
        self._told = False
        self._most = connections()
        self._strangers: dict[object, None] = {}  # their streams, the oldest first

    def handle_stream(self, stream: tornado.iostream.IOStream, address: Any) -> None:
        if self._open >= self._most:
            if not self._told:
                logger.warning("connections are refused: %d are open already", self._open)
            self._told = True
            if not self._make_room():
                stream.close()
                return
        self._open += 1
        self._strangers[stream] = None
        super().handle_stream(stream, address)

    def _make_room(self) -> bool:
        oldest = next(iter(self._strangers), None)
        if not isinstance(oldest, tornado.iostream.IOStream):
            return False
        del self._strangers[oldest]
        oldest.close()
        return True

    def start_request(self, server_conn: object, request_conn: httputil.HTTPConnection) -> httputil.HTTPMessageDelegate:
        return _Weighed(super().start_request(server_conn, request_conn), request_conn, self._allowance)

    def _allowance(self, stream: tornado.iostream.IOStream, headers: httputil.HTTPHeaders) -> int:
        """Bytes of body that the sender of these headers may send."""
        user = self.door.user(stream.socket, headers)
        if user is not doors.NOBODY:
            self._strangers.pop(stream, None)
        return BODY_BYTES if user.role is peers.Role.ADMIN else SMALL_BODY_BYTES

    def on_close(self, server_conn: object) -> None:
        self._open -= 1
        self._told = self._told and self._open > self._most // 2  # not a line for each caller of many
        self._strangers.pop(getattr(server_conn, "stream", None), None)
        super().on_close(server_conn)


class _Weighed(httputil.HTTPMessageDelegate):
    """Hands a message on; looks who sends it between its headers and its body."""

    def __init__(
        self,
        inner: httputil.HTTPMessageDelegate,
        connection: Any,
        allowance: Callable[[Any, httputil.HTTPHeaders], int],
    ) -> None:
        self._connection = connection
        self._allowance = allowance
        self._inner = inner

    def headers_received(
        self, start_line: httputil.RequestStartLine | httputil.ResponseStartLine, headers: httputil.HTTPHeaders
    ) -> Awaitable[None] | None:
        stream = self._connection.stream
        gone = stream is None or stream.socket is None
        self._connection.set_max_body_size(0 if gone else self._allowance(stream, headers))
        return self._inner.headers_received(start_line, headers)

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        return self._inner.data_received(chunk)

    def finish(self) -> None:
        self._inner.finish()

    def on_connection_close(self) -> None:
        self._inner.on_connection_close()


class _Listener(socket.socket):
    """A listening socket of tornado's that lets callers wait while nothing more can be opened."""

    _told = False

    def accept(self) -> tuple[socket.socket, Any]:
        try:
            found = super().accept()
        except OSError as error:
            if isinstance(error, BlockingIOError) or not errors.of_machine(error):
                raise
            self._rest(error)
            raise BlockingIOError from error  # tornado then looks no further
        self._told = False
        return found

    def _rest(self, error: OSError) -> None:
        loop = IOLoop.current()
        loop.update_handler(self, 0)
        loop.call_later(PAUSE_SECONDS, self._resume, loop)
        if not self._told:
            logger.warning("cannot take connections: %s; tried again each second", errors.cause(error))
        self._told = True

    def _resume(self, loop: IOLoop) -> None:
        if self.fileno() >= 0:  # not stopped meanwhile
            loop.update_handler(self, IOLoop.READ)


def patient(sock: socket.socket) -> socket.socket:
    """The same listening socket, for `add_socket`; takes it over."""
    blocking = sock.gettimeout()
    listener = _Listener(sock.family, sock.type, sock.proto, sock.detach())
    listener.settimeout(blocking)
    return listener
