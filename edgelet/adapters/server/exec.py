"""``.../pods/NAME/exec`` over WebSocket, ``v5.channel.k8s.io`` (and v4): each message is a channel byte and data.

Channels: 0 stdin, 1 stdout, 2 stderr, 3 the final v1.Status, 4 terminal size; 255 (v5) closes the
channel named by its one data byte.  Nothing is buffered without bound: while a write waits, the
descriptor or the WebSocket on the other side is not read.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import tornado.websocket

from ... import errors
from ...model.pod import PodKey
from ...model.status import Running
from . import choose, params, statuses
from .base import Access, Refused
from .contracts import Session

logger = logging.getLogger(__name__)

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")

SESSIONS = 32
BLOCK = 32 << 10

LINGER_SECONDS = 0.5
"""After the command has ended its output is still read, until nothing came for so long: a child that
it left behind may keep the pipe open for ever."""

Send = Callable[[bytes], Awaitable[None]]


class Exec(Access, tornado.websocket.WebSocketHandler):
    """One command in a container. Admin only."""

    resource = "pods/exec"
    sessions: ClassVar[int] = 0

    @property
    def long_running(self) -> bool:
        """See Access."""
        return True

    def verb(self) -> str:
        return "create"

    async def get(self, namespace: str, name: str) -> None:
        self._key = PodKey(namespace, name)
        self._container = self._checked()
        self._bridge: Bridge | None = None
        self._closed = False
        await super().get(namespace, name)

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        return next((p for p in PROTOCOLS if p in subprotocols), None)

    def open(self, *_args: str, **_kwargs: str) -> None:
        """The WebSocket is there. Messages come only once this has returned, so the rest is a task."""
        self._task = asyncio.create_task(self._whole())

    async def _whole(self) -> None:
        """Run the command to its end and tell how it ended."""
        Exec.sessions += 1
        try:
            status = await self._run()
        finally:
            Exec.sessions -= 1
        if not self._closed:
            await self._send(bytes([ERROR]) + json.dumps(status).encode())
            self.close(1000)

    async def on_message(self, message: str | bytes) -> None:
        data = message.encode() if isinstance(message, str) else message
        await self._ready.wait()
        if self._bridge is not None and data:
            await self._bridge.take(data[0], data[1:])

    def on_close(self) -> None:
        self._closed = True
        if self._bridge is not None:
            self._bridge.abandon()

    def _checked(self) -> str:
        """The container meant, after all that can be refused before the upgrade."""
        entry = choose.pod(self.services.store, self._key)
        status = choose.container(entry, self.param("container"))
        self._check_command()
        if not isinstance(status.state, Running):
            raise Refused(statuses.failure(400, f'container "{status.name}" of pod {self._key.name} is not running'))
        offered = self.request.headers.get("Sec-WebSocket-Protocol", "")
        if self.select_subprotocol([p.strip() for p in offered.split(",")]) is None:
            raise Refused(statuses.failure(400, f"exec needs a WebSocket with one of {', '.join(PROTOCOLS)}"))
        if Exec.sessions >= SESSIONS:
            raise Refused(statuses.failure(429, f"cannot execute: {SESSIONS} commands are being executed already"))
        self._ready = asyncio.Event()
        return status.name

    def _check_command(self) -> None:
        if not self.get_query_arguments("command", strip=False):
            raise Refused(statuses.failure(400, "you must specify at least 1 command for the container"))

    async def _run(self) -> dict[str, Any]:
        try:
            self._bridge = Bridge(await self._begin(), self._send)
        except errors.EdgeletError as error:
            return statuses.failure(500, str(error))
        finally:
            self._ready.set()
        if self._closed:  # the client left while the command was being started
            self._bridge.abandon()
        return statuses.exit_status(await self._bridge.run())

    async def _begin(self) -> Session:
        command = tuple(self.get_query_arguments("command", strip=False))
        tty, stdin = params.flag(self.param, "tty"), params.flag(self.param, "stdin")
        begin = self.services.execs.begin
        return await asyncio.to_thread(begin, self._key, self._container, command, tty, stdin)

    async def _send(self, data: bytes) -> None:
        try:
            await self.write_message(data, binary=True)
        except tornado.websocket.WebSocketClosedError:
            self._closed = True


class Attach(Exec):
    """``.../attach``: the container's own input and output, from now on."""

    resource = "pods/attach"

    def _check_command(self) -> None:
        """There is none."""

    async def _begin(self) -> Session:
        stdin = params.flag(self.param, "stdin")
        return await asyncio.to_thread(self.services.execs.attach, self._key, self._container, stdin)


class Bridge:
    """Carries data between a session's descriptors and the channels of one client."""

    def __init__(self, session: Session, send: Send) -> None:
        self._session = session
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._stdin_open = session.stdin >= 0
        self._ended = False
        self._moved = False
        self._waits: set[asyncio.Future[None]] = set()
        self._abandoned: asyncio.Future[None] = self._loop.create_future()
        for descriptor in {session.stdin, session.stdout, session.stderr} - {-1}:
            os.set_blocking(descriptor, False)

    async def run(self) -> int:
        """Until the command has ended and its output is sent, or the client has gone; the exit code."""
        try:
            await self._carry()
        except asyncio.CancelledError:  # the server ends, and the command with it
            self._session.kill()
            raise
        if self._abandoned.done():
            await asyncio.to_thread(self._session.kill)
            return 137
        return self._session.finish()

    async def _carry(self) -> None:
        session = self._session
        outputs = ((session.stdout, STDOUT), (session.stderr, STDERR))
        pumps = [asyncio.create_task(self._pump(fd, channel)) for fd, channel in outputs if fd >= 0]
        exited = asyncio.create_task(self._readable(session.fileno()))
        try:
            await asyncio.wait((exited, self._abandoned), return_when=asyncio.FIRST_COMPLETED)
            await self._drain(pumps)
        finally:
            for task in (*pumps, exited):
                task.cancel()
            await asyncio.gather(*pumps, exited, return_exceptions=True)
            await self._let_go()

    async def take(self, channel: int, data: bytes) -> None:
        """A message of the client."""
        if channel == STDIN and data:
            await self._write(data)
        elif channel == RESIZE:
            self._resize(data)
        elif channel == CLOSE and data == bytes([STDIN]) and self._stdin_open and not self._ended:
            self._stdin_open = False
            self._session.close_stdin()

    def abandon(self) -> None:
        """The client is gone: the command is ended."""
        _end(self._abandoned)

    async def _let_go(self) -> None:
        """Nobody waits on the descriptors any more: they may be closed."""
        self._ended = True
        for wait in tuple(self._waits):
            _end(wait)
        await asyncio.sleep(0)

    async def _drain(self, pumps: list[asyncio.Task[None]]) -> None:
        """Until both outputs have ended, or none has moved for a while, or the client has gone."""
        moved = True
        while moved and not self._abandoned.done() and any(not pump.done() for pump in pumps):
            self._moved = False
            everything = asyncio.gather(*pumps)
            first = asyncio.FIRST_COMPLETED
            await asyncio.wait((asyncio.shield(everything), self._abandoned), timeout=LINGER_SECONDS, return_when=first)
            moved = self._moved

    async def _pump(self, descriptor: int, channel: int) -> None:
        while True:
            await self._readable(descriptor)
            try:
                data = os.read(descriptor, BLOCK)
            except BlockingIOError:
                continue
            except OSError as error:
                if error.errno != errno.EIO:  # the end of a terminal
                    logger.debug("cannot read a command's output: %s", error)
                return
            if not data:
                return
            self._moved = True
            await self._send(bytes([channel]) + data)

    async def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view and self._stdin_open and not (self._ended or self._abandoned.done()):
            try:
                view = view[os.write(self._session.stdin, view) :]
            except BlockingIOError:
                await self._writable(self._session.stdin)
            except OSError:  # the command does not read any more
                self._stdin_open = False

    def _resize(self, data: bytes) -> None:
        try:
            size = json.loads(data)
            columns, rows = int(size["Width"]), int(size["Height"])
        except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
            return
        if not self._ended and 0 < columns < 10_000 and 0 < rows < 10_000:
            self._session.resize(columns, rows)

    async def _readable(self, descriptor: int) -> None:
        await self._when(descriptor, self._loop.add_reader, self._loop.remove_reader)

    async def _writable(self, descriptor: int) -> None:
        """Until it can be written, the command has ended, or at most a moment: the caller looks again."""
        try:
            async with asyncio.timeout(1.0):
                await self._when(descriptor, self._loop.add_writer, self._loop.remove_writer)
        except TimeoutError:
            pass

    async def _when(self, descriptor: int, add: Callable[..., None], remove: Callable[[int], bool]) -> None:
        future = self._loop.create_future()
        self._waits.add(future)
        add(descriptor, _end, future)
        try:
            await future
        finally:
            remove(descriptor)
            self._waits.discard(future)


def _end(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
