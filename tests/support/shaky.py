"""A file system for `durable.Files` that loses power: whatever was not synced may be gone, in any order.

What POSIX promises, and no more: a synced file keeps its content, a synced directory keeps its
entries, and a rename takes effect whole or not at all.  Between the syncs, every change of a
directory may have reached the disk or not, independent of the others, and unsynced content may be
there, missing, cut short or filled with NUL bytes.
"""

from __future__ import annotations

import itertools
import os.path
from collections.abc import Iterator
from dataclasses import dataclass, field


class PowerCut(BaseException):
    """The machine stops here; no handler of the code under test can catch it by accident."""


@dataclass
class Inode:
    """A file: what programs see, and what the disk holds."""

    seen: bytes = b""
    on_disk: bytes = b""
    clean: bool = False

    def survivors(self) -> list[bytes]:
        """What may be found after a power cut."""
        if self.clean:
            return [self.on_disk]
        half = self.seen[: len(self.seen) // 2]
        return list(dict.fromkeys([self.seen, b"", half, half.ljust(len(self.seen), b"\0"), self.on_disk]))


Entries = dict[str, Inode | None]
"""Changes of one directory operation: path -> the file there afterwards, None = nothing."""


@dataclass
class ShakyFiles:
    """`durable.Files` in memory.

    `cut_after` = the number of operations after which PowerCut is raised (before the next one
    takes effect); `broken` names an operation ("sync", "sync_directory") whose call number
    `broken_call` does nothing, as if it were missing from the code.
    """

    entries: dict[str, Inode] = field(default_factory=dict)
    durable_entries: dict[str, Inode] = field(default_factory=dict)
    pending: list[tuple[str, Entries]] = field(default_factory=list)
    directories: set[str] = field(default_factory=lambda: {"/"})
    durable_directories: set[str] = field(default_factory=lambda: {"/"})
    cut_after: int = 1_000_000
    broken: str = ""
    broken_call: int = 0
    operations: list[str] = field(default_factory=list)
    _open: dict[int, Inode] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(3))

    def _step(self, operation: str) -> bool:
        """Count one operation; False = it is to have no effect."""
        if len(self.operations) >= self.cut_after:
            raise PowerCut
        self.operations.append(operation)
        return not (operation == self.broken and self.operations.count(operation) - 1 == self.broken_call)

    def _change(self, path: str, changes: Entries) -> None:
        self.pending.append((os.path.dirname(path), changes))
        _apply(self.entries, changes)

    def _in_directory(self, path: str) -> None:
        if os.path.dirname(path) not in self.directories:
            raise FileNotFoundError(2, "No such file or directory", path)

    # -- durable.Files ------------------------------------------------------------------------

    def create(self, path: str, mode: int) -> int:
        """See Files."""
        self._in_directory(path)
        self._step("create")
        inode = Inode()
        self._change(path, {path: inode})
        number = next(self._numbers)
        self._open[number] = inode
        return number

    def write(self, descriptor: int, data: bytes) -> None:
        """See Files."""
        self._step("write")
        inode = self._open[descriptor]
        inode.seen, inode.clean = inode.seen + data, False

    def sync(self, descriptor: int) -> None:
        """See Files."""
        if self._step("sync"):
            inode = self._open[descriptor]
            inode.on_disk, inode.clean = inode.seen, True

    def close(self, descriptor: int) -> None:
        """See Files."""
        self._step("close")
        del self._open[descriptor]

    def rename(self, source: str, target: str) -> None:
        """See Files."""
        self._in_directory(target)
        self._step("rename")
        self._change(target, {source: None, target: self.entries[source]})

    def sync_directory(self, path: str) -> None:
        """See Files."""
        if self._step("sync_directory"):
            for where, changes in self.pending:
                if where == path:
                    _apply(self.durable_entries, changes)
            self.pending = [p for p in self.pending if p[0] != path]
            self.durable_directories |= {d for d in self.directories if os.path.dirname(d) == path}

    def remove(self, path: str) -> None:
        """See Files."""
        if path not in self.entries:
            raise FileNotFoundError(2, "No such file or directory", path)
        self._step("remove")
        self._change(path, {path: None})

    def read(self, path: str) -> bytes:
        """See Files."""
        if path not in self.entries:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self.entries[path].seen

    def names(self, path: str) -> list[str]:
        """See Files."""
        if path not in self.directories:
            raise FileNotFoundError(2, "No such file or directory", path)
        return sorted(os.path.basename(p) for p in self.entries if os.path.dirname(p) == path)

    def make_directory(self, path: str, mode: int) -> None:
        """See Files."""
        if path in self.directories:
            raise FileExistsError(17, "File exists", path)
        self._in_directory(path)
        self._step("make_directory")
        self.directories.add(path)

    # -- the end of the world -----------------------------------------------------------------

    def after_crash(self) -> Iterator[ShakyFiles]:
        """The program was killed, the machine went on: all that was done is there."""
        yield self._boot(dict(self.entries), self.directories)

    def after_power_cut(self) -> Iterator[ShakyFiles]:
        """Every state the disk may be in: any subset of the pending changes, in any order."""
        made_since = sorted(self.directories - self.durable_directories)
        for count in range(len(made_since) + 1):
            directories = _reachable(self.durable_directories | set(made_since[:count]))
            for entries in self._orders():
                found = {path: inode for path, inode in entries.items() if os.path.dirname(path) in directories}
                yield from self._contents(found, directories)

    def _orders(self) -> Iterator[dict[str, Inode]]:
        for size in range(len(self.pending) + 1):
            for chosen in itertools.permutations(self.pending, size):
                entries = dict(self.durable_entries)
                for _, changes in chosen:
                    _apply(entries, changes)
                yield entries

    def _contents(self, entries: dict[str, Inode], directories: set[str]) -> Iterator[ShakyFiles]:
        inodes = list({id(i): i for i in entries.values()}.values())
        for contents in itertools.product(*(i.survivors() for i in inodes)):
            found = {id(i): Inode(data, data, True) for i, data in zip(inodes, contents, strict=True)}
            yield self._boot({p: found[id(i)] for p, i in entries.items()}, directories)

    @staticmethod
    def _boot(entries: dict[str, Inode], directories: set[str]) -> ShakyFiles:
        return ShakyFiles(dict(entries), dict(entries), [], set(directories), set(directories))


def _reachable(directories: set[str]) -> set[str]:
    """Those whose parents are all there."""
    found = {"/"}
    for path in sorted(directories):
        if os.path.dirname(path) in found:
            found.add(path)
    return found


def _apply(entries: dict[str, Inode], changes: Entries) -> None:
    for path, inode in changes.items():
        if inode is None:
            entries.pop(path, None)
        else:
            entries[path] = inode
