"""Owns one runtime client: the `<runtime> exec` process that has started a command and waits for it."""

from __future__ import annotations

import logging
import os
import select
import signal

from ...core import crash
from . import files, runtime, tree

log = logging.getLogger(__name__)

_KILL_WAIT_MS = 1000


def spawn(known: runtime.Known, slot: files.Slot, container_id: str, stdio: tuple[int | None, int, int]) -> int:
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
    pid = os.posix_spawn(argv[0], argv, env, file_actions=actions, setsigdef=defaults, setsigmask=[], setpgroup=0)
    _score(pid, known.process.get("oomScoreAdj"))
    return pid


def _score(pid: int, value: object) -> None:
    """Give the client the container's own oom_score_adj, before it starts the command, which inherits it.

    crun does not do that by itself (1.8): a hog in a probe would have the agent's -900, and the
    kernel would kill the container's main process in its stead. runc does.
    """
    if not isinstance(value, int):
        return
    try:
        with open(f"/proc/{pid}/oom_score_adj", "w", encoding="ascii") as file:
            file.write(str(value))
    except OSError as error:  # it has ended already, or may not be lowered so far
        log.debug("cannot set oom_score_adj of process %d to %d: %s", pid, value, error)


class Client:
    """A client under way, its pidfd and its slot; given back by `reap` or `kill`, once."""

    def __init__(self, slots: files.Slots, slot: files.Slot, pid: int, inside: int) -> None:
        """`inside` is a pid in the container. Raises OSError; the client is ended then."""
        self._slots = slots
        self._slot = slot
        self._pid = pid
        self._inside = inside
        self.aborted = False
        self.code: int | None = None
        self.started = False
        try:
            self._pidfd = os.pidfd_open(pid)
        except OSError:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise

    def fileno(self) -> int:
        """A pidfd, readable once it has ended; -1 when it is reaped."""
        return self._pidfd

    def has_started(self) -> bool:
        """Whether the command itself is running, or has been."""
        return self.started or os.path.exists(self._slot.pid_file)

    def ended(self, milliseconds: int = 0) -> bool:
        """Whether it has ended, waiting that long for it."""
        if self._pidfd < 0:
            return True
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(milliseconds))

    def signal(self, number: signal.Signals) -> None:
        """Signal the client itself."""
        if self._pidfd >= 0:
            signal.pidfd_send_signal(self._pidfd, number)

    def abort(self) -> None:
        """Signal the command's whole tree to die, without waiting; the client ends by it."""
        self.aborted = True
        self.signal(signal.SIGSTOP)
        ended = tree.end(self._pid, self._slot.marker, self._inside)
        # A client that has lost its children collects them and ends by itself; killed, it would
        # leave them to the machine's init, and not every init collects.
        self.signal(signal.SIGCONT if ended else signal.SIGKILL)

    def reap(self) -> int:
        """Its exit code (128 + n for signal n), and the end of its descriptor and files."""
        if self.code is None:
            info = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED)
            status = info.si_status if info else 0
            self.code = status if info and info.si_code == os.CLD_EXITED else 128 + status
            os.close(self._pidfd)
            self._pidfd = -1
            self._give_back()
        return self.code

    def kill(self) -> bool:
        """End everything and reap it, within a second; False when it does not die."""
        if self.code is not None:
            return True
        self.abort()
        if not self.ended(_KILL_WAIT_MS // 2):
            self.signal(signal.SIGKILL)
        if not self.ended(_KILL_WAIT_MS // 2):
            log.error("cannot end process %d: it does not die; its files are left behind", self._pid)
            return False
        self.reap()
        return True

    def _give_back(self) -> None:
        try:
            os.unlink(self._slot.pid_file)
            self.started = True
        except FileNotFoundError:
            pass
        self._slots.give_back(self._slot)


def complaint(output: bytes) -> str:
    """What a runtime said when it could not start a command, without the frame that runc puts around it."""
    last = crash.headline(output.decode("utf-8", "replace")).rpartition("\n")[2]
    _, found, message = last.partition('msg="')
    return message.rstrip('"').replace('\\"', '"') if found else last
