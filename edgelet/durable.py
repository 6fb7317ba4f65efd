"""Owns how edgelet writes its own state: atomic, synced, checked, and with the copy before kept.

Three layers, each on the one below: `write` replaces one file atomically; `write_checked` and
`read_checked` add a header with version and checksum and fall back to the previous copy; `Store`
keeps many such files in one directory, by key.

A path has one writer at a time: the temporary file has a fixed name, so a killed writer leaves
at most one behind, and the next write takes it over.  When a function returns, its effect survives
a power cut; when it does not return, the old state or the new one survives, never a mixture.
Everything that touches the disk goes through `Files`, so that tests can stop at every operation.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from .errors import StateError

MAGIC = b"edgelet-state"
PREVIOUS = ".prev"


class Files(Protocol):
    """The operations on a file system that durability consists of; all raise OSError."""

    def create(self, path: str, mode: int) -> int:
        """Open an empty file for writing, with exactly that mode; an old one is emptied."""
        ...

    def write(self, descriptor: int, data: bytes) -> None:
        """Write all of `data`."""
        ...

    def sync(self, descriptor: int) -> None:
        """Force the content to the disk."""
        ...

    def close(self, descriptor: int) -> None:
        """Close it."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Replace `target` by `source`."""
        ...

    def sync_directory(self, path: str) -> None:
        """Force the directory's entries to the disk."""
        ...

    def remove(self, path: str) -> None:
        """Unlink a file."""
        ...

    def read(self, path: str) -> bytes:
        """All of a file."""
        ...

    def names(self, path: str) -> list[str]:
        """Names in a directory."""
        ...

    def make_directory(self, path: str, mode: int) -> None:
        """Create one directory."""
        ...


class Disk:
    """`Files` on the real disk."""

    def create(self, path: str, mode: int) -> int:
        """See Files."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        os.fchmod(descriptor, mode)
        return descriptor

    def write(self, descriptor: int, data: bytes) -> None:
        """See Files."""
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]

    def sync(self, descriptor: int) -> None:
        """See Files."""
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        """See Files."""
        os.close(descriptor)

    def rename(self, source: str, target: str) -> None:
        """See Files."""
        os.replace(source, target)

    def sync_directory(self, path: str) -> None:
        """See Files."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, path: str) -> None:
        """See Files."""
        os.unlink(path)

    def read(self, path: str) -> bytes:
        """See Files."""
        with open(path, "rb") as file:
            return file.read()

    def names(self, path: str) -> list[str]:
        """See Files."""
        return os.listdir(path)

    def make_directory(self, path: str, mode: int) -> None:
        """See Files."""
        os.mkdir(path, mode)


DISK = Disk()


@contextlib.contextmanager
def _explained(what: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as err:
        raise StateError(f"cannot {what} {path}: {err.strerror or err}") from err


def make_directory(path: str, mode: int = 0o700, files: Files = DISK) -> None:
    """Create `path` and its missing parents, durably; there already is success. Raises StateError."""
    with _explained("create directory", path):
        _make_directory(path, mode, files)


def _make_directory(path: str, mode: int, files: Files) -> None:
    parent = os.path.dirname(path.rstrip("/")) or "."
    try:
        files.make_directory(path, mode)
    except FileExistsError:
        return
    except FileNotFoundError:
        _make_directory(parent, mode, files)
        files.make_directory(path, mode)
    files.sync_directory(parent)


def write(path: str, data: bytes, mode: int = 0o600, files: Files = DISK) -> None:
    """Replace the file at `path` by `data`, atomically and durably. Raises StateError."""
    with _explained("write", path):
        temporary = _write_temporary(path, data, mode, files)
        files.rename(temporary, path)
        files.sync_directory(os.path.dirname(path) or ".")


def _write_temporary(path: str, data: bytes, mode: int, files: Files) -> str:
    temporary = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.tmp")
    descriptor = files.create(temporary, mode)
    try:
        files.write(descriptor, data)
        files.sync(descriptor)
    except OSError:
        # A full disk must get its space back; what failed to be written is of no use to anybody.
        with contextlib.suppress(OSError):
            files.remove(temporary)
        raise
    finally:
        files.close(descriptor)
    return temporary


@dataclass(frozen=True, slots=True)
class Checked:
    """What was read: the payload, the version its writer gave, and whether it is the copy before the last."""

    data: bytes
    version: int
    previous: bool = False


def write_checked(path: str, data: bytes, version: int = 1, mode: int = 0o600, files: Files = DISK) -> None:
    """Like `write`, with a header; the copy that was there stays as ``<path>.prev``. Raises StateError."""
    head = b"%s %d %s\n" % (MAGIC, version, hashlib.sha256(data).hexdigest().encode())
    with _explained("write", path):
        temporary = _write_temporary(path, head + data, mode, files)
        # A damaged copy must not push out the good one before it.
        if isinstance(_read_one(path, files), Checked):
            files.rename(path, path + PREVIOUS)
        files.rename(temporary, path)
        files.sync_directory(os.path.dirname(path) or ".")


def read_checked(path: str, newest: int = 1, files: Files = DISK) -> Checked | None:
    """What `write_checked` wrote last, or the copy before where that one is damaged.

    None = nothing was ever written.  `newest` is the highest version the caller understands.
    Raises StateError when there is something but no usable copy.
    """
    with _explained("read", path):
        current = _read_one(path, files)
        if isinstance(current, Checked):
            return _understood(path, current, newest)
        previous = _read_one(path + PREVIOUS, files)
    if isinstance(previous, Checked):
        return _understood(path, Checked(previous.data, previous.version, True), newest)
    damage = current or previous
    if damage is None:
        return None
    raise StateError(f"cannot read {path}: {damage}, and there is no good copy before it; remove the file to go on")


def _understood(path: str, found: Checked, newest: int) -> Checked:
    if found.version > newest:
        raise StateError(
            f"cannot read {path}: it has format version {found.version} and this edgelet knows up to {newest};"
            f" install the newer edgelet again or remove the file"
        )
    return found


def _read_one(path: str, files: Files) -> Checked | str | None:
    """The copy at `path`; a text that says what is wrong with it; None where there is none."""
    try:
        raw = files.read(path)
    except FileNotFoundError:
        return None
    head, newline, data = raw.partition(b"\n")
    fields = head.split(b" ")
    if not newline or len(fields) != 3 or fields[0] != MAGIC or not fields[1].isdigit():
        return "it has no valid header"
    if fields[2] != hashlib.sha256(data).hexdigest().encode():
        return "its checksum does not match its content"
    return Checked(data, int(fields[1]))


def remove_checked(path: str, files: Files = DISK) -> None:
    """Remove the file and its previous copy, durably; gone already is success. Raises StateError."""
    directory = os.path.dirname(path) or "."
    with _explained("remove", path):
        # The older copy goes first, and for good: else a power cut could bring it back to life alone.
        for copy in (path + PREVIOUS, path):
            try:
                files.remove(copy)
            except FileNotFoundError:
                continue
            files.sync_directory(directory)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a Store holds: payload by key.

    `restored` has a sentence per file whose copy before the last is used, `lost` one per file that
    cannot be used at all.
    """

    entries: dict[str, bytes] = field(default_factory=dict)
    restored: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def complaints(self) -> tuple[str, ...]:
        """All that should be logged."""
        return self.restored + self.lost


class Store:
    """Payloads by key in one directory, one checked file each; safe to use from several threads.

    A key is any text (lone surrogates of file names included).  The directory is created, readable
    by its owner only, at the first `put`.
    """

    def __init__(self, directory: str, version: int = 1, files: Files = DISK) -> None:
        self._directory = directory
        self._version = version
        self._files = files
        self._lock = threading.Lock()

    def put(self, key: str, data: bytes) -> None:
        """Keep `data` under `key`, durably when this returns. Raises StateError."""
        payload = json.dumps(key).encode() + b"\n" + data
        with self._lock:
            make_directory(self._directory, files=self._files)
            write_checked(self._path(key), payload, self._version, files=self._files)

    def remove(self, key: str) -> None:
        """Forget `key`, durably when this returns; unknown is success. Raises StateError."""
        with self._lock:
            remove_checked(self._path(key), files=self._files)

    def get(self, key: str) -> bytes | None:
        """What is kept under `key`. Raises StateError when no copy can be used."""
        with self._lock:
            _, found = self._load_one(os.path.basename(self._path(key)))
        return found.data if found is not None else None

    def load(self) -> Loaded:
        """All that is kept. Raises StateError only when the directory itself cannot be read."""
        entries: dict[str, bytes] = {}
        restored, lost = [], []
        with self._lock, _explained("read", self._directory):
            for name in self._stems():
                try:
                    key, found = self._load_one(name)
                except StateError as err:
                    lost.append(str(err))
                    continue
                if found is not None:
                    entries[key] = found.data
                if found is not None and found.previous:
                    restored.append(f"{self._directory}/{name} was damaged or cut off: the copy before it is used")
        return Loaded(entries, tuple(restored), tuple(lost))

    def _stems(self) -> list[str]:
        try:
            names = self._files.names(self._directory)
        except FileNotFoundError:
            return []
        return sorted({n.removesuffix(PREVIOUS) for n in names if not n.startswith(".")})

    def _load_one(self, name: str) -> tuple[str, Checked | None]:
        path = os.path.join(self._directory, name)
        found = read_checked(path, self._version, self._files)
        if found is None:
            return "", None
        first, _, data = found.data.partition(b"\n")
        try:
            key = str(json.loads(first))
        except ValueError as err:
            raise StateError(f"cannot use {path}: it does not say what it is the state of; remove it") from err
        if self._path(key) != path:
            raise StateError(f"cannot use {path}: it is the state of something else, {key!r}; remove it")
        return key, Checked(data, found.version, found.previous)

    def _path(self, key: str) -> str:
        readable = re.sub(r"[^A-Za-z0-9_-]", "_", key)[:60]
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        # The first character is never a dot, so temporary files are told apart by theirs.
        return os.path.join(self._directory, f"s{readable}-{digest}")
