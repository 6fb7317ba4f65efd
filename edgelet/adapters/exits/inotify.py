"""Watches exit directories by inotify, through the C library (it has no Python module)."""

from __future__ import annotations

import ctypes
import logging
import os
import struct

from ...errors import StateError

log = logging.getLogger(__name__)

_CLOSE_WRITE = 0x00000008
_MOVED_TO = 0x00000080
_Q_OVERFLOW = 0x00004000
_IGNORED = 0x00008000
_CLOEXEC_NONBLOCK = os.O_CLOEXEC | os.O_NONBLOCK
_EVENT = struct.Struct("iIII")


class Inotify:
    """Watches on exit directories, by the C library; each directory once."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._dirs: dict[str, int] = {}
        self.fd = self._libc.inotify_init1(_CLOEXEC_NONBLOCK)
        if self.fd < 0:
            raise StateError(f"cannot watch for exits: inotify: {os.strerror(ctypes.get_errno())}")

    def add(self, directory: str) -> None:
        """Watch it; a directory that cannot be watched costs speed only (the pidfds remain)."""
        if directory in self._dirs:
            return
        wd = self._libc.inotify_add_watch(self.fd, os.fsencode(directory), _CLOSE_WRITE | _MOVED_TO)
        if wd < 0:
            log.warning("cannot watch exit directory %s: %s", directory, os.strerror(ctypes.get_errno()))
            return
        self._dirs[directory] = wd

    def read(self) -> list[str | None]:
        """Names of files that have appeared; None = some were missed."""
        names: list[str | None] = []
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return names
        at = 0
        while at < len(data):
            wd, mask, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size
            name = data[at : at + length].rstrip(b"\0")
            at += length
            if mask & _Q_OVERFLOW:
                names.append(None)
            elif mask & _IGNORED:
                self._dirs = {d: w for d, w in self._dirs.items() if w != wd}
            elif name:
                names.append(os.fsdecode(name))
        return names

    def close(self) -> None:
        """Free it."""
        os.close(self.fd)
