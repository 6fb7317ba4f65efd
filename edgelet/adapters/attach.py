"""Attaches to a running container's own input and output, through conmon's attach socket.

conmon listens on ``attach`` in the container's bundle (SOCK_SEQPACKET): packets from it begin with
the number of the stream (2 stdout, 3 stderr in conmon's utils.h, and a terminal is all stdout), those to
it are input.  The size of a terminal goes to ``ctl`` as ``1 ROWS COLUMNS``.  Two threads carry the data,
because packets are no bytes of a pipe; both end with the socket.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading

from .. import errors

log = logging.getLogger(__name__)

STDOUT, STDERR = 2, 3
PACKET = 8192
"""What conmon sends at most, without the stream's number; also sent to it at most."""
RESIZE = 1
CONNECT_SECONDS = 5.0


class Attachment:
    """A client's end; see adapters.server.contracts.Session. Leaving ends nothing in the container."""

    def __init__(self, sock: socket.socket, bundle: str, pid: int, tty: bool, stdin: bool) -> None:
        self._sock = sock
        self._bundle = bundle
        self._pidfd = os.pidfd_open(pid)
        self.stdout, self._out = os.pipe2(os.O_CLOEXEC)
        self.stderr, self._err = (-1, -1) if tty else os.pipe2(os.O_CLOEXEC)
        self._in, self.stdin = os.pipe2(os.O_CLOEXEC) if stdin else (-1, -1)
        self._lock = threading.Lock()
        self._start("attach output", self._carry_out)
        if stdin:
            self._start("attach input", self._carry_in)

    def _start(self, name: str, run: object) -> None:
        threading.Thread(target=run, name=name, daemon=True).start()  # type: ignore[arg-type]

    def fileno(self) -> int:
        """Readable when the container has ended."""
        return self._pidfd

    def close_stdin(self) -> None:
        """No more input."""
        with self._lock:
            if self.stdin >= 0:
                os.close(self.stdin)
                self.stdin = -1

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has another size now."""
        with contextlib.suppress(OSError):
            control = os.open(os.path.join(self._bundle, "ctl"), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                os.write(control, f"{RESIZE} {rows} {columns}\n".encode())
            finally:
                os.close(control)

    def finish(self) -> int:
        """The container has ended; how, its status says: an attachment has no exit code of its own."""
        self.kill()
        return 0

    def kill(self) -> None:
        """Let go."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self.close_stdin()
        with self._lock:
            for descriptor in {self.stdout, self.stderr, self._pidfd} - {-1}:
                os.close(descriptor)
            self.stdout = self.stderr = self._pidfd = -1

    def _carry_out(self) -> None:
        """Until conmon closes, or nobody reads any more."""
        outputs = {STDOUT: self._out, STDERR: self._err if self._err >= 0 else self._out}
        try:
            while packet := self._sock.recv(PACKET + 1):
                _write(outputs.get(packet[0], self._out), packet[1:])
        except OSError as error:
            log.debug("an attachment has ended: %s", error)
        finally:
            for descriptor in {self._out, self._err} - {-1}:
                os.close(descriptor)

    def _carry_in(self) -> None:
        try:
            while data := os.read(self._in, PACKET):
                self._sock.sendall(data)
            self._sock.shutdown(socket.SHUT_WR)
        except OSError as error:
            log.debug("the input of an attachment has ended: %s", error)
        finally:
            os.close(self._in)


def attach(oci_config: str, pid: int, tty: bool, stdin: bool) -> Attachment:
    """Attach to the container whose bundle holds `oci_config`. Raises errors.ExecError."""
    bundle = os.path.dirname(oci_config)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        directory = os.open(bundle, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            sock.settimeout(CONNECT_SECONDS)
            sock.connect(f"/proc/self/fd/{directory}/attach")  # its own path is too long for a sockaddr_un
            sock.settimeout(None)
        finally:
            os.close(directory)
        return Attachment(sock, bundle, pid, tty, stdin)
    except OSError as error:
        sock.close()
        raise errors.ExecError(f"cannot attach to the container: {error.strerror or error}") from error


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
