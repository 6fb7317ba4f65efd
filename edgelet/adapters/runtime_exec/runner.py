"""Runs commands in containers through their own OCI runtime (`<runtime> exec --process FILE ...`).

Never through Podman's API: that costs two conmon processes and a database write per call (design
section 3).  The command gets the container's user, capabilities, seccomp, directory, limits and
environment, because the process file is the container's own with other args.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict

from ... import ports
from ...errors import ExecError, cause
from . import client, files, interactive, runtime

MAX_OUTPUT = 10 * 1024
"""Bytes of output kept (semantics 4.2)."""

MAX_KNOWN = 1024
"""Containers whose facts are remembered."""

_READS = 16
"""Reads of 64 KiB per drain: a command that never stops talking shares the thread with others."""


class OciExec:
    """ports.ExecRunner over the OCI runtime of each container. Safe from any thread.

    `directory` holds process and pid files; best on tmpfs. It is emptied at the first call.
    """

    def __init__(self, directory: str) -> None:
        self._slots = files.Slots(directory)
        self._known: OrderedDict[str, runtime.Known] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, target: ports.Target, command: tuple[str, ...]) -> Running:
        """See ports.ExecRunner."""
        known = self.known(target)
        slot = self._slots.take((target.container_id, command, False), known.process)
        try:
            return self._spawn(target, known, slot)
        except OSError as error:
            self._slots.give_back(slot)
            raise ExecError(f"cannot start {known.argv[0]} for {target.key}: {cause(error)}") from error

    def forget(self, container_id: str) -> None:
        """See ports.ExecRunner."""
        with self._lock:
            self._known.pop(container_id, None)
        self._slots.drop(container_id)

    def close(self) -> None:
        """Remove the files kept for reuse."""
        self._slots.clear()

    def known(self, target: ports.Target) -> runtime.Known:
        """The facts of the target's container, looked up once. Raises ExecError."""
        with self._lock:
            found = self._known.get(target.container_id)
        if found is None:
            found = runtime.look_up(target)
            with self._lock:
                self._known[target.container_id] = found
                while len(self._known) > MAX_KNOWN:
                    self._known.popitem(last=False)
        return found

    def begin_interactive(
        self, target: ports.Target, command: tuple[str, ...], tty: bool, stdin: bool
    ) -> interactive.Session:
        """Start argv for a person, with a terminal or with three pipes.

        Returns once the command runs (or has run); waits for that, some 50 ms. Raises ExecError.
        """
        known = self.known(target)
        slot = self._slots.take((target.container_id, command, tty), known.process)
        try:
            return interactive.begin(self._slots, slot, known, target, stdin)
        except OSError as error:
            raise ExecError(f"cannot start {known.argv[0]} for {target.key}: {cause(error)}") from error

    def _spawn(self, target: ports.Target, known: runtime.Known, slot: files.Slot) -> Running:
        reader, writer = os.pipe2(os.O_CLOEXEC)
        try:
            os.set_blocking(reader, False)
            pid = client.spawn(known, slot, target.container_id, (None, writer, writer))
            return Running(client.Client(self._slots, slot, pid, target.pid), reader)
        except OSError:
            os.close(reader)
            raise
        finally:
            os.close(writer)


class Running:
    """See ports.Running. Owned by one thread."""

    def __init__(self, running: client.Client, output: int) -> None:
        self._client = running
        self._output = output
        self._kept = bytearray()
        self._result: ports.ExecResult | None = None

    def fileno(self) -> int:
        """See ports.Running."""
        return self._client.fileno()

    def output_fileno(self) -> int:
        """See ports.Running."""
        return self._output

    def drain(self) -> None:
        """See ports.Running."""
        for _ in range(_READS):
            if self._output < 0:
                return
            try:
                data = os.read(self._output, 65536)
            except BlockingIOError:
                return
            if not data:
                self._close()
            self._kept += data[: MAX_OUTPUT - len(self._kept)]

    def finish(self) -> ports.ExecResult:
        """See ports.Running."""
        if self._result is None:
            code = self._client.reap()
            self.drain()
            self._close()
            self._result = ports.ExecResult(code, bytes(self._kept), timed_out=self._client.aborted)
        if not self._client.started and not self._client.aborted:
            said = client.complaint(bytes(self._kept))
            raise ExecError(said or f"the OCI runtime exited with {self._result.exit_code} and said nothing")
        return self._result

    def abort(self) -> None:
        """See ports.Running."""
        self._client.abort()

    def kill(self) -> None:
        """See ports.Running."""
        if self._client.kill():
            self.finish()
        else:
            self._close()

    def _close(self) -> None:
        if self._output >= 0:
            os.close(self._output)
            self._output = -1
