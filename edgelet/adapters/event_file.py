"""Keeps events over restarts: one file of JSON lines, appended in batches, rewritten when it grows.

Written by the main loop only, so that no worker ever waits for the disk.  A power cut may cost the
last second of events and leave half a line, which is skipped when read.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable

from .. import durable, errors
from ..engine import recorder
from ..engine.recorder import EventRing

log = logging.getLogger(__name__)

LIMIT = 512 * 1024
"""Bytes at which the file is written anew with the newest events only."""
KEPT = 500
"""Events that survive a rewrite and a restart."""


class EventFile:
    """`news` is called when there is something to `flush`."""

    def __init__(self, path: str, events: EventRing) -> None:
        self._path = path
        self._events = events
        self.news: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._version = 0
        self._dirty = False
        self._failed = False

    def load(self) -> None:
        """Take back what an earlier life recorded, then listen."""
        try:
            with open(self._path, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 2 * LIMIT))
                self._events.load(b"".join(file.readlines()[-KEPT * 4 :]))
        except FileNotFoundError:
            pass
        except OSError as error:
            log.warning("cannot read the events of earlier runs from %s: %s", self._path, errors.cause(error))
        self._version = max((e.version for e in self._events.events()), default=0)
        self._events.subscribe(self._changed)

    def _changed(self, *_: object) -> None:
        with self._lock:
            self._dirty = True
        self.news()

    @property
    def kept(self) -> int:
        """The version up to which events are on disk; a very high one while the disk takes none."""
        return sys.maxsize if self._failed else self._version

    @property
    def dirty(self) -> bool:
        """There are events that are not on disk."""
        with self._lock:
            return self._dirty

    def flush(self) -> None:
        """Write what is new; a full disk is logged once and tried again with the next event."""
        with self._lock:
            if not self._dirty:
                return
            self._dirty = False
        new = self._events.events(self._version)
        try:
            self._append(b"".join(recorder.line(e) for e in new))
            self._failed = False
        except (OSError, errors.StateError) as error:
            if not self._failed:
                log.error("cannot keep events in %s: %s", self._path, errors.cause(error))
            self._failed = True
            return
        self._version = max((e.version for e in new), default=self._version)

    def _append(self, data: bytes) -> None:
        durable.make_directory(os.path.dirname(self._path))
        descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                data = b"\n" + data  # the line before was cut off, by a full disk or a power cut: it costs itself only
            view = memoryview(data)
            while view:  # a disk that is nearly full takes a part, and says so only when asked again
                view = view[os.write(descriptor, view) :]
            size = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
        if size > LIMIT:
            durable.write(self._path, self._events.dump(KEPT))
