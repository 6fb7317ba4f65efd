"""Runs commands in containers through their own OCI runtime (`<runtime> exec --process FILE ...`).

Never through Podman's API: that costs two conmon processes and a database write per call (design
section 3).  The command gets the container's user, capabilities, seccomp, directory, limits and
environment, because the process file is the container's own with other args.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import threading
from collections import OrderedDict

from ... import ports
from ...errors import ExecError
from . import files, runtime, tree

log = logging.getLogger(__name__)

MAX_OUTPUT = 10 * 1024
"""Bytes of output kept (semantics 4.2)."""

MAX_KNOWN = 1024
"""Containers whose facts are remembered."""

_READS = 16
"""Reads of 64 KiB per drain: a command that never stops talking shares the thread with others."""

_KILL_WAIT_MS = 1000


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
            raise ExecError(f"cannot start {known.argv[0]} for {target.key}: {error}") from error

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

    @property
    def slots(self) -> files.Slots:
        """The process files, for interactive calls."""
        return self._slots

    def _spawn(self, target: ports.Target, known: runtime.Known, slot: files.Slot) -> Running:
        reader, writer = os.pipe2(os.O_CLOEXEC)
        try:
            os.set_blocking(reader, False)
            pid = spawn(known, slot, target.container_id, (None, writer, writer))
            try:
                return Running(self._slots, slot, pid, reader, target.pid)
            except OSError:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                raise
        except OSError:
            os.close(reader)
            raise
        finally:
            os.close(writer)


def spawn(
    known: runtime.Known, slot: files.Slot, container_id: str, stdio: tuple[int | None, int, int], session: bool = False
) -> int:
    """Start the runtime's client with these descriptors as 0, 1, 2 (None = /dev/null). Returns its pid.

    posix_spawn, because a fork of a process with threads and 40 MB costs more than the runtime.
    The client leads a process group, so that Ctrl-C at the agent does not reach it.  One thread
    of Go is enough for it, and saves a tenth of its CPU.  Raises OSError.
    """
    argv = (*known.argv, "--process", slot.process_file, "--pid-file", slot.pid_file, container_id)
    stdin, stdout, stderr = stdio
    first = (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0) if stdin is None else (os.POSIX_SPAWN_DUP2, stdin, 0)
    actions = [first, (os.POSIX_SPAWN_DUP2, stdout, 1), (os.POSIX_SPAWN_DUP2, stderr, 2)]
    env = {**known.env, "GOMAXPROCS": "1"}
    defaults = [signal.SIGPIPE, signal.SIGXFSZ]
    if session:
        return os.posix_spawn(argv[0], argv, env, file_actions=actions, setsigdef=defaults, setsigmask=[], setsid=True)
    return os.posix_spawn(argv[0], argv, env, file_actions=actions, setsigdef=defaults, setsigmask=[], setpgroup=0)


class Running:
    """See ports.Running. Owned by one thread."""

    def __init__(self, slots: files.Slots, slot: files.Slot, pid: int, output: int, inside: int) -> None:
        self._slots = slots
        self._slot = slot
        self._pid = pid
        self._inside = inside
        self._output = output
        self._kept = bytearray()
        self._aborted = False
        self._result: ports.ExecResult | None = None
        self._pidfd = os.pidfd_open(pid)

    def fileno(self) -> int:
        """See ports.Running."""
        return self._pidfd

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
                os.close(self._output)
                self._output = -1
            self._kept += data[: MAX_OUTPUT - len(self._kept)]

    def finish(self) -> ports.ExecResult:
        """See ports.Running."""
        if self._result is not None:
            return self._result
        info = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED)
        self.drain()
        code = info.si_status if info and info.si_code == os.CLD_EXITED else 128 + (info.si_status if info else 0)
        started = self._release()
        self._result = ports.ExecResult(exit_code=code, output=bytes(self._kept), timed_out=self._aborted)
        if not started and not self._aborted:
            raise ExecError(_reason(bytes(self._kept)) or f"the OCI runtime exited with {code} and said nothing")
        return self._result

    def abort(self) -> None:
        """See ports.Running."""
        self._aborted = True
        signal.pidfd_send_signal(self._pidfd, signal.SIGSTOP)
        ended = tree.end(self._pid, self._slot.marker, self._inside)
        # A client that has lost its children collects them and ends by itself; killed, it would
        # leave them to the machine's init, and not every init collects.
        signal.pidfd_send_signal(self._pidfd, signal.SIGCONT if ended else signal.SIGKILL)

    def kill(self) -> None:
        """See ports.Running."""
        if self._result is not None:
            return
        self.abort()
        if not _wait(self._pidfd, _KILL_WAIT_MS // 2):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            _wait(self._pidfd, _KILL_WAIT_MS // 2)
        if _wait(self._pidfd, 0):
            self.finish()
        else:
            log.error("cannot end process %d: it does not die; its files are left behind", self._pid)

    def _release(self) -> bool:
        """Give back descriptors and files; tells whether the command had been started at all."""
        if self._output >= 0:
            os.close(self._output)
            self._output = -1
        os.close(self._pidfd)
        self._pidfd = -1
        try:
            os.unlink(self._slot.pid_file)
            started = True
        except FileNotFoundError:
            started = False
        self._slots.give_back(self._slot)
        return started


def _wait(pidfd: int, milliseconds: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(milliseconds))


def _reason(output: bytes) -> str:
    """The runtime's own complaint, without the frame that runc puts around it."""
    text = output.decode("utf-8", "replace").strip()
    last = text.rpartition("\n")[2]
    _, found, message = last.partition('msg="')
    return message.rstrip('"').replace('\\"', '"') if found else last
