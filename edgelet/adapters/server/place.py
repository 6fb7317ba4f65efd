"""The path of the API socket: whether it is free, and made so. Imports nothing heavy: it is looked at first of all."""

from __future__ import annotations

import os
import socket
import stat

from ... import errors


def clear(path: str) -> None:
    """Remove a socket that nobody listens on. Raises errors.StateError when somebody does, or it is something else."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise errors.StateError(f"cannot listen on {path}: something is there that is no socket; move it away")
        if _answered(path):
            raise errors.StateError(f"cannot listen on {path}: another agent answers there; give another --socket")
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise errors.StateError(f"cannot listen on {path}: {error.strerror or error}") from error


def _answered(path: str) -> bool:
    """Whether somebody listens on that socket. Raises OSError."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True
