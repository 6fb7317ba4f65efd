"""``.../pods/NAME/log``: a container's log, as a stream when it is followed (semantics 8.3)."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import tornado.iostream

from ... import errors
from ...engine.store import Entry
from ...model.logs import LogOptions
from ...model.pod import PodKey
from ...model.status import ContainerStatus, Running
from . import choose, params, statuses
from .base import Refused
from .contracts import LogStream
from .streaming import Streaming

POLL_SECONDS = 0.2
"""How often a followed log is looked at; nothing looks when nobody follows."""

FOLLOWERS = 64


class Log(Streaming):
    """One request for a log."""

    resource = "pods/log"
    following: ClassVar[int] = 0

    async def get(self, namespace: str, name: str) -> None:
        entry = choose.pod(self.services.store, PodKey(namespace, name))
        status = choose.container(entry, self.param("container"))
        options = self._options()
        if options.follow and Log.following >= FOLLOWERS:
            raise Refused(statuses.failure(429, f"cannot follow: {FOLLOWERS} logs are being followed already"))
        stream = self._open(entry, status, options)
        try:
            self.set_header("Content-Type", "text/plain")
            await self._copy(stream)
            if options.follow:
                with self.streaming():
                    await self._follow(stream, entry, status)
        except tornado.iostream.StreamClosedError:
            pass  # the client has seen enough
        finally:
            stream.close()

    def _options(self) -> LogOptions:
        seconds = params.integer(self.param, "sinceSeconds", 1)
        moment = params.moment(self.param, "sinceTime")
        if seconds is not None and moment is not None:
            raise Refused(statuses.failure(422, "cannot use sinceSeconds and sinceTime together: give one"))
        since = self.services.clock.time() - seconds if seconds is not None else moment or 0.0
        tail = "" if self.param("tailLines") == "-1" else self.param("tailLines")
        return LogOptions(
            follow=params.flag(self.param, "follow"),
            tail_lines=params.integer(lambda _: tail, "tailLines"),
            since=since,
            timestamps=params.flag(self.param, "timestamps"),
            limit_bytes=params.integer(self.param, "limitBytes", 1),
        )

    def _open(self, entry: Entry, status: ContainerStatus, options: LogOptions) -> LogStream:
        logs = self.services.logs
        try:
            return logs.open(logs.locate(entry.pod, status, params.flag(self.param, "previous")), options)
        except errors.NotFound as error:
            raise Refused(statuses.failure(400, str(error))) from error

    async def _copy(self, stream: LogStream) -> None:
        """Send all there is now."""
        while (piece := stream.read()) is not None:
            if piece:
                self.write(piece)
            await self.push()
            await asyncio.sleep(0)  # a fast reader of a long log lets the others have their turn

    async def _follow(self, stream: LogStream, entry: Entry, status: ContainerStatus) -> None:
        """Send what comes, until the instance has ended and all of it is sent, or the client goes."""
        Log.following += 1
        try:
            await self.push()
            ended = False
            while not (ended or self.over or stream.full):
                waiter = self.waiter()
                ended = not self._alive(entry, status)
                await self._copy(stream)
                await self.pause(waiter, 0.0 if ended else POLL_SECONDS)
        finally:
            Log.following -= 1

    def _alive(self, entry: Entry, status: ContainerStatus) -> bool:
        """Whether the instance whose log this is still runs (or has yet to be seen running)."""
        now = self.services.store.get(entry.pod.key)
        if now is None or now.pod.uid != entry.pod.uid:
            return False
        found = choose.status_of(now.status, status.name)
        if found is None or found.restart_count != status.restart_count:
            return False
        return isinstance(found.state, Running)
