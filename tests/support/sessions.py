"""Sessions of local processes: what the OCI runtime gives the server, without a container."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios

from edgelet import errors
from edgelet.model.pod import PodKey


class LocalSession:
    """A local process as a contracts.Session."""

    def __init__(self, command: tuple[str, ...], tty: bool, stdin: bool) -> None:
        self._tty = tty
        self._owned: list[int] = []
        self.finished = False
        self.killed = False
        if tty:
            self._start_tty(command)
        else:
            self._start_pipes(command, stdin)
        self._pidfd = os.pidfd_open(self._process.pid)
        self._owned.append(self._pidfd)

    def _start_tty(self, command: tuple[str, ...]) -> None:
        master, slave = pty.openpty()
        self._process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        self.stdin = self.stdout = master
        self.stderr = -1
        self._owned.append(master)

    def _start_pipes(self, command: tuple[str, ...], stdin: bool) -> None:
        given = subprocess.PIPE if stdin else subprocess.DEVNULL
        out = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=given, stdout=out, stderr=out, start_new_session=True)
        streams = [self._process.stdin, self._process.stdout, self._process.stderr]
        copies = [os.dup(s.fileno()) if s is not None else -1 for s in streams]
        for stream in streams:
            if stream is not None:
                stream.close()
        self.stdin, self.stdout, self.stderr = copies
        self._owned += [c for c in copies if c >= 0]

    def fileno(self) -> int:
        """See contracts.Session."""
        return self._pidfd

    def close_stdin(self) -> None:
        """See contracts.Session."""
        if not self._tty:
            os.close(self.stdin)
            self._owned.remove(self.stdin)

    def resize(self, columns: int, rows: int) -> None:
        """See contracts.Session."""
        fcntl.ioctl(self.stdout, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def finish(self) -> int:
        """See contracts.Session."""
        code = self._process.wait()
        self._release()
        self.finished = True
        return code if code >= 0 else 128 - code

    def kill(self) -> None:
        """See contracts.Session."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._release()
        self.killed = True

    def _release(self) -> None:
        for descriptor in self._owned:
            os.close(descriptor)
        self._owned.clear()


class LocalExecs:
    """contracts.Execs over local processes; remembers what it was asked for."""

    def __init__(self) -> None:
        self.sessions: list[LocalSession] = []
        self.asked: list[tuple[PodKey, str, tuple[str, ...], bool, bool]] = []

    def begin(self, key: PodKey, container: str, command: tuple[str, ...], tty: bool, stdin: bool) -> LocalSession:
        """See contracts.Execs."""
        self.asked.append((key, container, command, tty, stdin))
        try:
            session = LocalSession(command, tty, stdin)
        except FileNotFoundError as error:
            raise errors.ExecError(f"cannot execute {command[0]}: no such file or directory") from error
        self.sessions.append(session)
        return session
