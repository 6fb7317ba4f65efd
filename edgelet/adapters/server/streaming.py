"""What watches and followed logs share: waiting for news, and noticing that the client or the server goes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import tornado.iostream

from .base import Access

STALL_SECONDS = 120.0
"""For so long a client may take nothing of an answer that goes on."""


class Streaming(Access):
    """A handler whose answer goes on for as long as the client likes."""

    gone = False
    _waiter: asyncio.Future[None] | None = None

    @property
    def long_running(self) -> bool:
        """See Access."""
        return any(self.param(name) not in ("", "0", "false") for name in ("watch", "follow"))

    @property
    def over(self) -> bool:
        """Whether the client is gone or the server is ending."""
        return self.gone or self.hub.closed

    def waiter(self) -> asyncio.Future[None]:
        """A future that ends at the next news, when the client goes and when the server ends."""
        self._waiter = self.hub.waiter()
        return self._waiter

    async def pause(self, waiter: asyncio.Future[None], seconds: float) -> bool:
        """Wait for the waiter, or so long; whether there was news."""
        await asyncio.wait((waiter,), timeout=max(0.0, seconds))
        news = waiter.done()
        waiter.cancel()
        return news

    async def push(self) -> None:
        """Send what was written; a client that takes nothing for a while is cut off. Raises StreamClosedError."""
        try:
            async with asyncio.timeout(STALL_SECONDS):
                await self.flush()
        except TimeoutError:
            stream = getattr(self.request.connection, "stream", None)
            if stream is not None:
                stream.close()
            raise tornado.iostream.StreamClosedError from None

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Around the whole answer: a server that ends lets it come to its own end first."""
        self.hub.streams += 1
        try:
            yield
        finally:
            self.hub.streams -= 1

    def on_connection_close(self) -> None:
        self.gone = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
