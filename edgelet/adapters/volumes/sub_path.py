"""Places inside a volume, reached without following a symlink out of it (semantics 5.4.4)."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

from ... import errors
from . import mounts

DIRECTORY_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


def bind(volume: str, sub_path: str, target: str) -> tuple[str, str]:
    """Bind `sub_path` of the volume to `target`, so that later symlink swaps change nothing (5.4.4)."""
    try:
        with opened(volume, sub_path) as (descriptor, kind):
            _bind_at(descriptor, kind, target)
            return target, kind
    except (OSError, errors.VolumeError) as error:
        raise errors.VolumeError(
            f"cannot use subPath {sub_path!r}: {errors.cause(error)}", reason="CreateContainerConfigError"
        ) from error


@contextlib.contextmanager
def opened(volume: str, sub_path: str, make: bool = True) -> Iterator[tuple[int, str]]:
    """A descriptor of the place, reached without following any symlink after its check; `make` what is missing."""
    root = os.path.realpath(volume)
    wanted = os.path.realpath(os.path.join(root, sub_path))
    if wanted != root and not wanted.startswith(root.rstrip("/") + "/"):
        raise errors.VolumeError(f"it leads out of the volume, to {wanted}")
    names = os.path.relpath(wanted, root).split(os.sep) if wanted != root else []
    descriptor = os.open(root, DIRECTORY_FLAGS)
    try:
        mode = os.fstat(descriptor).st_mode
        for name in names:
            below = _step(descriptor, name, stat.S_IMODE(mode) if make else None)
            os.close(descriptor)
            descriptor = below
        kind = "dir" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        yield descriptor, kind
    finally:
        os.close(descriptor)


def _step(parent: int, name: str, mode: int | None) -> int:
    """Open `name` below `parent`, as a new directory of the volume's `mode` (None = none is made) if it is missing."""
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        found = os.open(name, flags, dir_fd=parent)
    except FileNotFoundError:
        if mode is None:
            raise
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=parent)
            os.chmod(name, mode, dir_fd=parent)
        found = os.open(name, flags, dir_fd=parent)
    if stat.S_ISLNK(os.fstat(found).st_mode):
        os.close(found)
        raise errors.VolumeError(f"{name} became a symbolic link while it was being resolved")
    return found


def _bind_at(descriptor: int, kind: str, target: str) -> None:
    here = os.fstat(descriptor)
    if os.path.exists(target):
        there = os.stat(target)
        if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino):
            return
        if target in mounts.mounts_below(target):
            mounts.run("umount", target)
    if kind == "dir":
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o640))
    mounts.run("mount", "--bind", f"/proc/{os.getpid()}/fd/{descriptor}", target)
