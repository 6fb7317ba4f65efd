"""Makes the root directory this agent's alone, also one that can only be read: a worn card must not end its pods."""

from __future__ import annotations

import errno
import fcntl
import logging
import os

from .. import durable, errors

log = logging.getLogger(__name__)


def lock(root_dir: str) -> int:
    """The descriptor holds the lock until the process ends.

    Raises StateError when another agent has it, and when it can be neither made nor read.
    """
    durable.make_directory(root_dir)
    path = os.path.join(root_dir, "lock")
    try:
        descriptor = _open(path)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise errors.StateError(
            f"cannot use {root_dir}: another edgelet runs with it; stop it, or give this one a --root-dir of its own"
        ) from error
    except OSError as error:
        raise errors.StateError(f"cannot lock {path}: {error.strerror}") from error
    return descriptor


def _open(path: str) -> int:
    """Made, or on a read-only disk as an earlier start left it: where there is none, nothing is to be looked after."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno != errno.EROFS or not os.path.exists(path):
            raise
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    log.error("%s lies on a read-only file system: what runs is looked after, nothing of it is remembered", path)
    return descriptor
