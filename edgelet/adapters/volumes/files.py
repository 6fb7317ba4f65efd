"""Volumes of files that edgelet writes: all turned at once, as the kubelet does."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping

Contents = Mapping[str, tuple[bytes, int]]


def write_tree(path: str, files: Contents) -> None:
    """All files at once: a new directory, and one link that is turned to it; unchanged ones are left alone."""
    data = os.path.join(path, "..data")
    old = os.path.realpath(data)
    if os.path.isdir(data) and _tree(old) == dict(files):
        return
    new = tempfile.mkdtemp(prefix="..", dir=path)
    try:
        _fill(new, files)
        _turn(os.path.basename(new), data)
    except OSError:
        # It is tried again and again: a full disk must not get fuller each time.
        shutil.rmtree(new, ignore_errors=True)
        raise
    tops = {name.split("/")[0] for name in files}
    for name in os.listdir(path):
        if not name.startswith("..") and name not in tops:
            os.unlink(os.path.join(path, name))
    for name in tops:
        if not os.path.islink(os.path.join(path, name)):
            os.symlink(f"..data/{name}", os.path.join(path, name))
    if old != data:
        shutil.rmtree(old, ignore_errors=True)


def _fill(directory: str, files: Contents) -> None:
    os.chmod(directory, 0o755)
    for name, (content, mode) in files.items():
        place = os.path.join(directory, name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)


def _turn(target: str, link: str) -> None:
    """Make a link lead to another place, in one step."""
    beside = f"{link}_tmp"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(beside)
    os.symlink(target, beside)
    os.rename(beside, link)


def _tree(path: str) -> dict[str, tuple[bytes, int]]:
    """The files below a directory, as they were written."""
    found = {}
    for directory, _, names in os.walk(path):
        for name in names:
            place = os.path.join(directory, name)
            with open(place, "rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                found[os.path.relpath(place, path)] = (file.read(), mode)
    return found
