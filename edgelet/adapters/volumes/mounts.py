"""Mounting and unmounting below a pod's directory, in the host's mount namespace (design section 3)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

MOUNT_SECONDS = 30
OPTIONS_MOST = 4000
"""Bytes of options that the kernel takes of one mount, a page and a little less."""


def mount_tmpfs(path: str, size: int, mode: str = "0777") -> None:
    """Mount a file system in memory. Raises OSError."""
    options = f"size={size},mode={mode}"
    if _kernel() >= (6, 4):
        options += ",noswap"
    run("mount", "-t", "tmpfs", "-o", options, "tmpfs", path)


def _kernel() -> tuple[int, ...]:
    parts = os.uname().release.split("-")[0].split(".")[:2]
    return tuple(int(p) for p in parts if p.isdigit())


def mounts_below(path: str) -> list[str]:
    """Mount points at or below `path`, in the order they were mounted."""
    real = os.path.realpath(path)
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        points = [_unescape(line.split()[4]) for line in file]
    return [p for p in points if p == real or p.startswith(real + "/")]


def _unescape(field: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, char)
    return field


def overlay(path: str, layers: Sequence[str], empty: str) -> None:
    """Mount these directories, the uppermost first, as one that nobody writes to. Raises OSError.

    `empty` is a directory with nothing in it: the kernel wants two at the least.
    """
    options = f"ro,noexec,lowerdir={':'.join([*layers, empty])}"
    if len(options) > OPTIONS_MOST:
        raise OSError(f"the image has {len(layers)} layers, more than one mount can name")
    run("mount", "-t", "overlay", "-o", options, "overlay", path)


def run(*words: str) -> None:
    """Run mount or umount. Raises OSError with what it said."""
    try:
        done = subprocess.run(words, capture_output=True, timeout=MOUNT_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{words[0]} of {words[-1]} took longer than {MOUNT_SECONDS} s") from error
    if done.returncode:
        raise OSError(done.stderr.decode(errors="replace").strip() or f"{words[0]} failed")
