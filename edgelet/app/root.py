"""Makes the root directory this agent's alone, also one that can only be read: a worn card must not end its pods."""

from __future__ import annotations

import errno
import fcntl
import logging
import os

from .. import errors
from . import machine

log = logging.getLogger(__name__)


def lock(root_dir: str) -> int:
    """The descriptor holds the lock until the process ends. Raises StateError when another agent has it."""
    try:
        return machine.lock(root_dir)
    except errors.StateError as error:
        if not isinstance(error.__cause__, OSError) or error.__cause__.errno != errno.EROFS:
            raise
        descriptor = _as_it_is(os.path.join(root_dir, "lock"), error)
    log.error("%s is on a read-only file system: what runs is looked after, nothing of it is remembered", root_dir)
    return descriptor


def _as_it_is(path: str, error: errors.StateError) -> int:
    """Lock the file of an earlier start; where there is none, no agent has been here, and nothing is to look after."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        raise error from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as taken:
        os.close(descriptor)
        raise errors.StateError(f"cannot use {os.path.dirname(path)}: another edgelet runs with it") from taken
    return descriptor
