"""hostPath volumes: what must be there, and what is made (semantics 5.5)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from ... import errors
from ...model.pod import HostPath

_CHECKS: dict[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "directory"),
    "File": (stat.S_ISREG, "file"),
    "FileOrCreate": (stat.S_ISREG, "file"),
    "Socket": (stat.S_ISSOCK, "socket file"),
    "CharDevice": (stat.S_ISCHR, "character device"),
    "BlockDevice": (stat.S_ISBLK, "block device"),
}


def host_path(source: HostPath) -> tuple[str, str]:
    """The path and its kind, after the check of semantics 5.5. Raises VolumeError and OSError."""
    mode = _mode(source.path)
    if mode is None:
        mode = _create(source)
    check = _CHECKS.get(source.type)
    if check is not None and (mode is None or not check[0](mode)):
        raise errors.VolumeError(f"hostPath type check failed: {source.path} is not a {check[1]}")
    if source.type in ("CharDevice", "BlockDevice"):
        return os.path.realpath(source.path), "device"
    return source.path, "dir" if mode is not None and stat.S_ISDIR(mode) else "file"


def _create(source: HostPath) -> int | None:
    """What the type allows to be created; "" gets a directory, as CRI runtimes do."""
    if source.type in ("", "DirectoryOrCreate"):
        os.makedirs(source.path, mode=0o755, exist_ok=True)
    elif source.type == "FileOrCreate":
        os.close(os.open(source.path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    return _mode(source.path)


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
