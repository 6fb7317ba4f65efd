"""Reads what a container that has ended left as its termination message (semantics 3.14)."""

from __future__ import annotations

import os

from ... import errors
from ...model.logs import LogOptions
from ...model.observed import ObservedContainer
from .reader import LogFile

MAX_FILE = 4096
"""Bytes, the last ones, of the file that are shown (3.14.2)."""
MAX_LOG, LOG_LINES = 2048, 80
"""Bytes and lines, the last ones, of the log that are shown instead (3.14.3)."""


def read(ended: ObservedContainer) -> str:
    """The message of an instance that has ended, "" = it left none; trouble in reading is the message then.

    An exit code that nobody knows counts as a failure.  Never raises: whoever asks is told of an exit.
    """
    try:
        data = _tail(ended.message_file) if ended.message_file else b""
    except OSError as error:
        return f"Error on reading termination log {ended.message_file}: {error.strerror}"
    if not data and ended.message_policy == "FallbackToLogsOnError" and ended.exit_code != 0 and ended.log_path:
        data = _log(ended.log_path)
    return data.decode("utf-8", "replace")


def _tail(path: str) -> bytes:
    """The end of a file, which may be a volume's: never waits at one that is no regular file. Raises OSError."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        size = os.fstat(file).st_size
        return os.pread(file, MAX_FILE, max(0, size - MAX_FILE))
    finally:
        os.close(file)


def _log(path: str) -> bytes:
    try:
        log = LogFile(path, LogOptions(tail_lines=LOG_LINES))
    except errors.EdgeletError as error:
        return f"Error on reading termination message from logs: {error}".encode()
    try:
        kept = b""
        while (piece := log.read()) is not None:
            kept = (kept + piece)[-MAX_LOG:]
        return kept
    finally:
        log.close()
