"""Owns commands that a person talks to: with a terminal, or with stdin, stdout and stderr apart.

With a terminal the runtime's client gets a pseudo-terminal of ours and relays to the one that it
makes inside the container, as when it is called by hand; so it is told of a new size by a signal.
"""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import termios
import time
from collections.abc import Sequence

from ... import ports
from ...errors import ExecError
from . import client, files, runtime

START_TIMEOUT = 30.0
"""Seconds for the runtime to start a command."""

_LOOK_MS = 5
_END_OF_INPUT = b"\x04"


class Session:
    """An interactive command; owned by one thread at a time. A descriptor that is not there is -1."""

    def __init__(self, running: client.Client, stdin: int, stdout: int, stderr: int) -> None:
        self._client = running
        self._tty = stderr < 0
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr

    def fileno(self) -> int:
        """A descriptor that becomes readable when the command has ended."""
        return self._client.fileno()

    def close_stdin(self) -> None:
        """No more input; on a terminal that is a Ctrl-D."""
        if self.stdin < 0:
            return
        if self._tty:
            try:
                os.write(self.stdin, _END_OF_INPUT)
            except (BlockingIOError, OSError):
                return
        else:
            os.close(self.stdin)
            self.stdin = -1

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has another size now (terminals only)."""
        if self._tty and self.stdout >= 0:
            fcntl.ioctl(self.stdout, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            self._client.signal(signal.SIGWINCH)

    def finish(self) -> int:
        """Reap it and give back its descriptors; the exit code. Only once `fileno` was readable."""
        code = self._client.reap()
        self._close()
        return code

    def kill(self) -> None:
        """End the whole process tree, reap it, give back its descriptors; may be called after `finish`."""
        self._client.kill()
        self._close()

    def _close(self) -> None:
        close({self.stdin, self.stdout, self.stderr})
        self.stdin = self.stdout = self.stderr = -1


def begin(slots: files.Slots, slot: files.Slot, known: runtime.Known, target: ports.Target, stdin: bool) -> Session:
    """Start what `slot` holds, and wait until it runs. The slot is given back in any case.

    Raises ExecError when the runtime says that it cannot be started, OSError.
    """
    tty = slot.key[2]
    ours, theirs = _terminal() if tty else _pipes(stdin)
    complaints, errors = os.pipe2(os.O_CLOEXEC) if tty else (-1, -1)
    try:
        stdio = (theirs[0] if theirs[0] >= 0 else None, theirs[1], errors if tty else theirs[2])
        pid = client.spawn(known, slot, target.container_id, stdio)
        running = client.Client(slots, slot, pid, target.pid)
    except OSError:
        slots.give_back(slot)
        close({*ours, complaints})
        raise
    finally:
        close({*theirs, errors})
    session = Session(running, *ours)
    try:
        _await_start(running, complaints if tty else session.stderr)
    except ExecError:
        session.kill()
        raise
    finally:
        close({complaints})
    return session


def close(descriptors: set[int]) -> None:
    """Close each of them; -1 is none."""
    for descriptor in descriptors - {-1}:
        os.close(descriptor)


def _terminal() -> tuple[Sequence[int], Sequence[int]]:
    """Our end of a new pseudo-terminal as (stdin, stdout, -1), and the client's."""
    master, slave = pty.openpty()
    return (master, master, -1), (slave, slave, -1)


def _pipes(stdin: bool) -> tuple[Sequence[int], Sequence[int]]:
    """Our ends of up to three pipes, and the client's."""
    child_in, our_in = os.pipe2(os.O_CLOEXEC) if stdin else (-1, -1)
    our_out, child_out = os.pipe2(os.O_CLOEXEC)
    our_err, child_err = os.pipe2(os.O_CLOEXEC)
    return (our_in, our_out, our_err), (child_in, child_out, child_err)


def _await_start(running: client.Client, complaints: int) -> None:
    """Wait until the command runs. Raises ExecError with the runtime's words when it never will.

    A pid file can be waited for by looking only; this ends with the start, within milliseconds.
    """
    limit = time.monotonic() + START_TIMEOUT
    while not running.has_started():
        if running.ended(_LOOK_MS):
            if running.has_started():
                return
            said = client.complaint(os.read(complaints, 65536)) if complaints >= 0 else ""
            raise ExecError(said or f"the OCI runtime exited with {running.reap()} and said nothing")
        if time.monotonic() > limit:
            raise ExecError(f"the OCI runtime did not start the command within {START_TIMEOUT:.0f} s")
