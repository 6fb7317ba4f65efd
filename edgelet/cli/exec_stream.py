"""The streams of `edgelet exec`: terminal or pipes on this side, the WebSocket's channels on the other."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import termios
import tty as terminal
import urllib.parse
from collections.abc import Iterator
from typing import Any

import tornado.httpclient
import tornado.netutil
import tornado.websocket

from . import client as api

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255

PROTOCOL = "v5.channel.k8s.io"
BLOCK = 32 << 10

Query = list[tuple[str, str]]
Status = dict[str, Any]


class _SocketFile(tornado.netutil.Resolver):
    """Resolves every host to the agent's socket file."""

    def initialize(self, path: str) -> None:
        """Take the path."""
        self._path = path

    async def resolve(self, host: str, port: int, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[Any]:
        """See tornado.netutil.Resolver."""
        return [(socket.AF_UNIX, self._path)]


def run(socket_path: str, path: str, query: Query, stdin: bool, tty: bool) -> Status | None:
    """Carry data both ways until the command ends; its v1.Status, or None when the connection broke."""
    with _raw(tty):
        return asyncio.run(_Streams(stdin, tty).run(socket_path, path, query))


class _Streams:
    def __init__(self, stdin: bool, tty: bool) -> None:
        self._stdin = stdin
        self._tty = tty

    async def run(self, socket_path: str, path: str, query: Query) -> Status | None:
        self._socket = await _connect(socket_path, f"{path}?{urllib.parse.urlencode(query)}")
        loop = asyncio.get_running_loop()
        sender = asyncio.create_task(self._send_stdin()) if self._stdin else None
        if self._tty:
            self._resize()
            loop.add_signal_handler(signal.SIGWINCH, self._resize)
        try:
            return await self._receive()
        finally:
            if sender is not None:
                sender.cancel()

    async def _receive(self) -> Status | None:
        while (message := await self._socket.read_message()) is not None:
            data = message.encode() if isinstance(message, str) else message
            if not data:
                continue
            if data[0] == ERROR:
                found: Status = json.loads(data[1:])
                return found
            if data[0] in (STDOUT, STDERR):
                _write_all(data[0], data[1:])
        return None

    async def _send_stdin(self) -> None:
        """Standard input in a thread of its own: a file cannot be waited for, and a terminal is not ours to change."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[bytes] = asyncio.Queue(1)

        def read() -> None:
            data = b"x"
            while data:
                data = os.read(sys.stdin.fileno(), BLOCK)
                try:
                    asyncio.run_coroutine_threadsafe(queue.put(data), loop).result()
                except RuntimeError:  # the command has ended and the loop with it
                    return

        _daemon(read)
        with contextlib.suppress(tornado.websocket.WebSocketClosedError):
            while data := await queue.get():
                await self._socket.write_message(bytes([STDIN]) + data, binary=True)
            await self._socket.write_message(bytes([CLOSE, STDIN]), binary=True)

    def _resize(self) -> None:
        size = os.get_terminal_size(sys.stdin.fileno())
        body = json.dumps({"Width": size.columns, "Height": size.lines}).encode()
        with contextlib.suppress(tornado.websocket.WebSocketClosedError):
            self._socket.write_message(bytes([RESIZE]) + body, binary=True)


async def _connect(socket_path: str, target: str) -> tornado.websocket.WebSocketClientConnection:
    request = tornado.httpclient.HTTPRequest(f"ws://localhost{target}", request_timeout=0)
    # For the whole process: tornado 6.2 (Debian 12) takes no resolver for one connection.
    tornado.netutil.Resolver.configure(_SocketFile, path=socket_path)
    try:
        return await tornado.websocket.websocket_connect(
            request,
            subprotocols=[PROTOCOL],
            max_message_size=1 << 20,
        )
    except tornado.httpclient.HTTPClientError as error:
        body = error.response.body if error.response is not None else b""
        raise api.ApiFailure(api.status_of(body, error.code)) from error
    except OSError as error:
        raise api.AgentDown(api.unreachable(socket_path, error)) from error


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _daemon(target: Any) -> None:
    import threading

    threading.Thread(target=target, name="stdin", daemon=True).start()


@contextlib.contextmanager
def _raw(tty: bool) -> Iterator[None]:
    """The terminal hands on every key while the command runs, and is as before afterwards."""
    if not tty:
        yield
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    terminal.setraw(descriptor, termios.TCSADRAIN)  # what was typed ahead is not thrown away
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
