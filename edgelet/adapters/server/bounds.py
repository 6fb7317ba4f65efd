"""How many connections the server takes, and what it does when the process can open nothing more."""

from __future__ import annotations

import logging
import resource
import socket
from typing import Any

import tornado.httpserver
import tornado.iostream
from tornado.ioloop import IOLoop

from ... import errors

logger = logging.getLogger(__name__)

CONNECTIONS = 256
"""Open connections; one more is closed at once."""
SHARE = 4
"""A quarter of the descriptors that the process may open, at the most: watching pods comes first."""
PAUSE_SECONDS = 1.0
"""How long nobody is let in once no descriptor was left: epoll would report the same caller again and again."""


def connections() -> int:
    """How many one server may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS if soft == resource.RLIM_INFINITY else min(CONNECTIONS, soft // SHARE)


class Bounded(tornado.httpserver.HTTPServer):
    """Closes what comes above `connections()`."""

    def initialize(self, *args: Any, **kwargs: Any) -> None:
        super().initialize(*args, **kwargs)
        self._open = 0
        self._told = False
        self._most = connections()

    def handle_stream(self, stream: tornado.iostream.IOStream, address: Any) -> None:
        if self._open >= self._most:
            if not self._told:
                logger.warning("connections are refused: %d are open already", self._open)
            self._told = True
            stream.close()
            return
        self._open += 1
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        self._open -= 1
        self._told = self._told and self._open > self._most // 2  # not a line for each caller of many
        super().on_close(server_conn)


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
