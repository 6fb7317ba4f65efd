"""Reads the log of one container instance: from its tail, since a time, and on as it grows, over rotations.

As in the kubelet, only the live file is read (6.4.5), `tail_lines` counts entries of the file, and a
time stamp stands once before each line, not before each of its parts.
"""

from __future__ import annotations

import os
from pathlib import Path

from ... import errors
from ...model.layout import Layout
from ...model.logs import LogOptions
from ...model.pod import Pod
from ...model.status import ContainerStatus, Waiting
from . import lines

BLOCK = 64 << 10

LONGEST = 1 << 20
"""A line without an end is given up after that many bytes (conmon cuts entries at 8 KiB)."""


class LogReader:
    """Finds and opens logs; implements the server's `Logs`."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def locate(self, pod: Pod, status: ContainerStatus, previous: bool) -> str:
        """The log that `kubectl logs [--previous]` shows (8.3). Raises errors.NotFound."""
        count = status.restart_count
        newest = status.log_path or self._layout.log_path(pod.namespace, pod.name, pod.uid, status.name, count)
        if previous:
            return _previous(pod, status, newest)
        if isinstance(status.state, Waiting):
            if status.last_state is None:
                raise errors.NotFound(_waiting(pod, status))
            return newest if os.path.exists(newest) else _before(newest)
        return newest

    def open(self, path: str, options: LogOptions) -> LogFile:
        """Open it at the place `options` asks for. Raises errors.NotFound."""
        return LogFile(path, options)


class LogFile:
    """An open log; not thread-safe, never waits."""

    def __init__(self, path: str, options: LogOptions) -> None:
        self._path = path
        self._since = options.since
        self._stamps = options.timestamps
        self._left = options.limit_bytes
        self._rest = b""
        self._fresh = True
        self._file = _open(path)
        if options.tail_lines is not None:
            os.lseek(self._file, tail_start(self._file, options.tail_lines), os.SEEK_SET)

    def read(self) -> bytes | None:
        """The next piece, b"" = nothing to show in it, None = nothing more for now."""
        if self.full:
            return None
        block = os.read(self._file, BLOCK)
        if not block and not (block := self._next_file()):
            return None
        *whole, self._rest = (self._rest + block).split(b"\n")
        if len(self._rest) > LONGEST:
            self._rest = b""
        return self._limited(b"".join(self._render(raw) for raw in whole))

    @property
    def full(self) -> bool:
        """Whether `limit_bytes` has been reached."""
        return self._left is not None and self._left <= 0

    def close(self) -> None:
        """Give the file back; twice is fine."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _next_file(self) -> bytes:
        """At the end of the file: what came meanwhile, from the file that took its place if it was rotated.

        The new file is made by conmon when it reopens, so nothing is written to the old one after that.
        """
        if not self._replaced():
            return b""
        late = os.read(self._file, BLOCK)
        if late:
            return late
        try:
            newer = _open(self._path)
        except errors.NotFound:
            return b""
        self.close()
        self._file, self._rest = newer, b""
        return os.read(newer, BLOCK)

    def _replaced(self) -> bool:
        ours = os.fstat(self._file)
        try:
            there = os.stat(self._path)
        except OSError:
            return False
        if (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino):
            return True
        return there.st_size < os.lseek(self._file, 0, os.SEEK_CUR)  # cut by Podman's own max-size

    def _render(self, raw: bytes) -> bytes:
        line = lines.parse(raw)
        if line is None or self._too_old(line):
            return b""
        stamp = line.stamp + b" " if self._stamps and self._fresh else b""
        self._fresh = not line.partial
        return stamp + line.text + (b"" if line.partial else b"\n")

    def _too_old(self, line: lines.Line) -> bool:
        if not self._since:
            return False
        when = lines.moment(line.stamp)
        if when is None or when < self._since:
            return True
        self._since = 0.0  # entries are in order: no need to look at the others
        return False

    def _limited(self, text: bytes) -> bytes:
        if self._left is None:
            return text
        text = text[: self._left]
        self._left -= len(text)
        return text


def tail_start(file: int, count: int) -> int:
    """The offset of the last `count` lines, read block by block from the end."""
    end = position = os.fstat(file).st_size
    if count == 0:
        return end
    missing = count + 1  # the newline that ends the line before the first one wanted
    while position > 0:
        size = min(BLOCK, position)
        position -= size
        block = os.pread(file, size, position)
        if position + size == end and not block.endswith(b"\n"):
            missing -= 1  # the last line has no end yet
        found = block.count(b"\n")
        if found >= missing:
            return position + _nth_from_end(block, missing) + 1
        missing -= found
    return 0


def _nth_from_end(block: bytes, number: int) -> int:
    index = len(block)
    for _ in range(number):
        index = block.rindex(b"\n", 0, index)
    return index


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError as error:
        raise errors.NotFound(f"cannot read the log {path}: it is not there (any more)") from error
    except OSError as error:
        raise errors.StateError(f"cannot read the log {path}: {errors.cause(error)}") from error


def _previous(pod: Pod, status: ContainerStatus, newest: str) -> str:
    if status.last_state is None:
        raise errors.NotFound(f'previous terminated container "{status.name}" in pod "{pod.name}" not found')
    between = isinstance(status.state, Waiting)  # the newest instance is the one that ended
    return newest if between and os.path.exists(newest) else _before(newest)


def _before(path: str) -> str:
    """The log of the instance before: 4.log -> 3.log."""
    file = Path(path)
    try:
        return str(file.with_name(f"{int(file.stem) - 1}.log"))
    except ValueError as error:
        raise errors.NotFound(f"cannot tell which log came before {path}: it is not named by a number") from error


def _waiting(pod: Pod, status: ContainerStatus) -> str:
    reason = status.state.reason if isinstance(status.state, Waiting) else ""
    told = {
        "ErrImagePull": "image can't be pulled",
        "ImagePullBackOff": "trying and failing to pull image",
    }.get(reason, reason)
    return f'container "{status.name}" in pod "{pod.name}" is waiting to start: {told}'
