"""Listens to inotify, and hands over what it heard as hints.

Hints make the source fast, never right: a lost one costs a wait until the next listing.  Owns the
only use of watchdog here: its binding of the three inotify calls.  Its observers are not used, as
they hold back everything behind a rename-away for half a second, which is how editors save.
"""

from __future__ import annotations

import ctypes
import logging
import os
import select
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from watchdog.observers.inotify_c import InotifyConstants, inotify_add_watch, inotify_init, inotify_rm_watch

log = logging.getLogger(__name__)

WHOLE = InotifyConstants.IN_CLOSE_WRITE | InotifyConstants.IN_MOVED_TO
GONE = InotifyConstants.IN_DELETE | InotifyConstants.IN_MOVED_FROM
SELF = InotifyConstants.IN_DELETE_SELF | InotifyConstants.IN_MOVE_SELF
OTHER = InotifyConstants.IN_MODIFY | InotifyConstants.IN_CREATE | InotifyConstants.IN_ATTRIB
MASK = WHOLE | GONE | SELF | OTHER | InotifyConstants.IN_ONLYDIR

HEADER = struct.Struct("iIII")
BUFFER = 64 * 1024
LONGEST_WAIT = 3600.0
"""Seconds that `take` waits at the most: the kernel takes no wait of a month."""
SWAP_LINK = "..data"
"""The link that is renamed when a mounted ConfigMap changes: all files change with it."""


@dataclass(slots=True)
class Hints:
    """What was heard since the last time, by file name, newest last.

    `renamed` names are also in `whole`.  `listing` = look at everything: the directory itself or its
    ``..data`` link changed (`swapped`: all at once, by rename), or the kernel lost events (`deaf`).
    """

    whole: dict[str, None] = field(default_factory=dict)
    renamed: set[str] = field(default_factory=set)
    written: dict[str, None] = field(default_factory=dict)
    touched: dict[str, None] = field(default_factory=dict)
    gone: dict[str, None] = field(default_factory=dict)
    listing: bool = False
    swapped: bool = False
    deaf: bool = False

    def hear(self, mask: int, name: str) -> None:
        """Take in one event; name "" = the directory itself."""
        if name in {"", SWAP_LINK}:
            self.listing = True
            self.swapped |= name == SWAP_LINK
            self.deaf |= bool(mask & InotifyConstants.IN_Q_OVERFLOW)
        elif not name.startswith("."):
            self._hear_file(mask, name)

    def _hear_file(self, mask: int, name: str) -> None:
        if mask & GONE:
            self._forget(name)
            self.gone[name] = None
        elif mask & WHOLE:
            self._forget(name)
            self.whole[name] = None
            if mask & InotifyConstants.IN_MOVED_TO:
                self.renamed.add(name)
        elif mask & InotifyConstants.IN_MODIFY:
            self._forget(name)
            self.written[name] = None
        elif name not in self.written and name not in self.whole:
            self.touched[name] = None

    def _forget(self, name: str) -> None:
        """A newer event makes earlier ones about the name obsolete (`gone` stays: it is evidence)."""
        for heard in (self.whole, self.written, self.touched):
            heard.pop(name, None)
        self.renamed.discard(name)


class Ear:
    """One inotify descriptor on one directory at a time, for one thread; `stop` and `look` from any."""

    def __init__(self) -> None:
        self._stop = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._asked = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._inotify = -1
        self._watch = -1
        self._complained = False
        self._poll = select.poll()
        self._poll.register(self._stop, select.POLLIN)
        self._poll.register(self._asked, select.POLLIN)

    @property
    def armed(self) -> bool:
        """Whether changes of the directory given last will be heard."""
        return self._watch >= 0

    def arm(self, directory: str) -> None:
        """Listen to the directory that is at this path now; one that cannot be is listed only."""
        self.disarm()
        try:
            self._open()
            self._watch = _checked(inotify_add_watch(self._inotify, os.fsencode(directory), MASK))
            self._complained = False
        except OSError as err:
            if not self._complained:
                log.warning("cannot watch %s: %s; changes are seen at the next listing", directory, err.strerror)
            self._complained = True

    def disarm(self) -> None:
        """Stop listening to a directory that is no longer at the path."""
        if self._watch >= 0:
            # Fails where the kernel dropped the watch already, with the directory.
            inotify_rm_watch(self._inotify, self._watch)  # type: ignore[arg-type]  # a NewType of newer releases
        self._watch = -1

    def take(self, timeout: float) -> Hints | None:
        """Wait for hints, at most `timeout` seconds; empty hints = time is up; None = stopped."""
        ready = dict(self._poll.poll(min(max(timeout, 0.0), LONGEST_WAIT) * 1000.0))
        if self._stop in ready:
            return None
        hints = Hints()
        if self._asked in ready:
            os.eventfd_read(self._asked)
            hints.listing = True
        if self._inotify in ready:
            for watch, mask, name in _events(os.read(self._inotify, BUFFER)):
                self._hear(hints, watch, mask, name)
        return hints

    def look(self) -> None:
        """Somebody asks for a listing now."""
        os.eventfd_write(self._asked, 1)

    def stop(self) -> None:
        """Make `take` return None, now and from now on."""
        os.eventfd_write(self._stop, 1)

    def close(self) -> None:
        """Give the descriptors back; only once nobody is in `take`."""
        for descriptor in (self._stop, self._asked, self._inotify):
            if descriptor >= 0:
                os.close(descriptor)
        self._stop = self._asked = self._inotify = self._watch = -1

    def _open(self) -> None:
        if self._inotify < 0:
            self._inotify = _checked(inotify_init())
            os.set_inheritable(self._inotify, False)
            self._poll.register(self._inotify, select.POLLIN)

    def _hear(self, hints: Hints, watch: int, mask: int, name: str) -> None:
        """Events of a directory that was at the path before say nothing about the one there now."""
        if watch == self._watch or mask & InotifyConstants.IN_Q_OVERFLOW:
            hints.hear(mask, name)
            if mask & InotifyConstants.IN_IGNORED:
                self._watch = -1


def _events(data: bytes) -> Iterator[tuple[int, int, str]]:
    """struct inotify_event of inotify(7): watch descriptor, mask, name."""
    position = 0
    while position + HEADER.size <= len(data):
        watch, mask, _, length = HEADER.unpack_from(data, position)
        position += HEADER.size
        yield watch, mask, os.fsdecode(data[position : position + length].rstrip(b"\0"))
        position += length


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
