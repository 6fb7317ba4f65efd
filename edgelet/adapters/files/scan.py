"""Looks at the manifest directory: which names count, what they are now, and their bytes.

Raises OSError as it comes; the caller knows what a failure means.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import NamedTuple

SUFFIXES = (".yaml", ".yml", ".json")
MAX_BYTES = 10 * 1024 * 1024


class Place(NamedTuple):
    """Which directory a path leads to: its file system and its inode.

    The file system's own id (of its UUID, mostly) is the same after a reboot where a device number
    may not be; 0 = it has none, then the device number stands in.
    """

    filesystem: int
    inode: int


class Stamp(NamedTuple):
    """What changes when a file does."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class Found:
    """One manifest in the directory; `stamp` None = it is there but cannot be looked at (`error`)."""

    name: str
    stamp: Stamp | None
    link: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """The directory at one moment; `skipped` has a reason for each name that is not read.

    `inhabited` = there is any entry at all, of whatever name.
    """

    place: Place
    found: dict[str, Found]
    skipped: dict[str, str]
    inhabited: bool


class Root:
    """The configured path: a directory, or one file (whose name then needs no known suffix)."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._single = False

    @property
    def directory(self) -> str:
        """The directory to watch."""
        return os.path.dirname(self.path) if self._single else self.path

    def resolve(self) -> bool:
        """Whether the path is one file; remembered, so that a file that is away stays a file."""
        try:
            self._single = not stat.S_ISDIR(os.stat(self.path).st_mode)
        except FileNotFoundError:
            self._single = self._single or self.path.endswith(SUFFIXES)
        return self._single

    def reason_to_skip(self, name: str) -> str | None:
        """Why a name is not a manifest: None = it is one, "" = not even worth mentioning."""
        if self._single:
            return None if name == os.path.basename(self.path) else ""
        if name.startswith("."):
            return ""
        return None if name.endswith(SUFFIXES) else "its name does not end in .yaml, .yml or .json"

    def list(self) -> Listing:
        """Look at everything."""
        self.resolve()
        where = place(self.directory)
        names = sorted(os.listdir(self.directory))
        listing = Listing(where, {}, {}, bool(names))
        for name in names:
            self._sort_in(name, listing)
        return listing

    def _sort_in(self, name: str, listing: Listing) -> None:
        reason = self.reason_to_skip(name)
        if reason:
            listing.skipped[name] = reason
        if reason is not None:
            return
        try:
            found = self.look(name)
        except FileNotFoundError:
            return
        if isinstance(found, Found):
            listing.found[name] = found
        else:
            listing.skipped[name] = found

    def look(self, name: str) -> Found | str:
        """One entry; a text says why it is skipped. Raises FileNotFoundError (a broken link does not)."""
        path = os.path.join(self.directory, name)
        link = stat.S_ISLNK(os.lstat(path).st_mode)
        try:
            info = os.stat(path)
        except OSError as err:
            return Found(name, None, link, str(err.strerror or err))
        kind = _kind(info.st_mode)
        if kind:
            return f"it is a {kind}, not a regular file"
        return Found(name, _stamp(info), link)

    def read(self, name: str) -> tuple[bytes, Stamp]:
        """The bytes, at most MAX_BYTES + 1 of them, and the stamp they belong to. Raises OSError."""
        # Not blocking: the file may have become a FIFO since it was looked at.
        descriptor = os.open(os.path.join(self.directory, name), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode):
                raise OSError(0, f"it is a {_kind(info.st_mode)}, not a regular file")
            return file.read(MAX_BYTES + 1), _stamp(os.fstat(descriptor))


def place(directory: str) -> Place:
    """Identify a directory. Raises OSError (NotADirectoryError too)."""
    info = os.stat(directory)
    if not stat.S_ISDIR(info.st_mode):
        raise NotADirectoryError(20, "it is not a directory")
    return Place(os.statvfs(directory).f_fsid or info.st_dev, info.st_ino)


def _stamp(info: os.stat_result) -> Stamp:
    return Stamp(info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


def _kind(mode: int) -> str:
    kinds = (
        (stat.S_ISREG, ""),
        (stat.S_ISDIR, "directory"),
        (stat.S_ISFIFO, "FIFO"),
        (stat.S_ISSOCK, "socket"),
    )
    return next((name for test, name in kinds if test(mode)), "device")
