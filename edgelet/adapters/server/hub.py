"""Wakes the coroutines of the server's loop when another thread has news; many news are one wake-up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable


class Hub:
    """One per server loop. `pulse` comes from any thread, the rest is called inside the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._pending = False
        self._closed = False
        self._waiters: set[asyncio.Future[None]] = set()
        self.streams = 0  # answers under way that go on until somebody leaves
        self.trouble: Callable[[], str] = lambda: ""  # why the TLS port is not served
        self.writing = asyncio.Lock()  # held by the one change to submitted pods that is under way

    def pulse(self, _change: object = None) -> None:
        """There is news. Cheap; never raises; nothing happens once the hub is closed."""
        with self._lock:
            if self._pending or self._closed:
                return
            self._pending = True
            self._loop.call_soon_threadsafe(self._wake)

    def waiter(self) -> asyncio.Future[None]:
        """A future that ends at the next news: taken before reading, so that none is missed."""
        future = self._loop.create_future()
        self._waiters.add(future)
        future.add_done_callback(self._waiters.discard)
        return future

    def close(self) -> None:
        """Wake everybody for the last time; to be called before the loop is closed."""
        with self._lock:
            self._closed = True
        self._wake()

    @property
    def closed(self) -> bool:
        """Whether the server is ending: followers and watches end too."""
        return self._closed

    def _wake(self) -> None:
        with self._lock:
            self._pending = False
        for future in tuple(self._waiters):
            if not future.done():
                future.set_result(None)
