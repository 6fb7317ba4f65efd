"""Words of errors."""

from __future__ import annotations

import errno
import os

import pytest

from edgelet import errors


@pytest.mark.parametrize(
    ("error", "lacks"),
    [
        (OSError(errno.EMFILE, "x"), True),
        (OSError(errno.ENOENT, "x"), False),
        (BlockingIOError(errno.EAGAIN, "x"), True),
        (MemoryError(), True),
        (RuntimeError("can't start new thread"), True),
        (RuntimeError("dictionary changed size during iteration"), False),
    ],
)
def test_what_the_machine_lacks_is_no_fault(error: Exception, lacks: bool) -> None:
    assert errors.of_machine(error) is lacks


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EROFS, os.strerror(errno.EROFS), "/var/x"), "Read-only file system: /var/x"),
        (OSError(errno.EROFS, os.strerror(errno.EROFS), b"/var/\xe9"), "Read-only file system: /var/\udce9"),
        (OSError(errno.EBADF, os.strerror(errno.EBADF), 7), "Bad file descriptor"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "No space left on device"),
        (OSError("umount failed"), "umount failed"),
        (MemoryError(), "out of memory"),
        (ValueError(), "ValueError"),
        (errors.VolumeError("it leads out of the volume"), "it leads out of the volume"),
    ],
)
def test_what_the_system_said_is_told_without_its_number(error: Exception, words: str) -> None:
    assert errors.cause(error) == words
