"""Tells at once that a container has ended, with its exit code, without asking Podman.

conmon writes ``<exit dir>/<container id>`` a millisecond after its container's death, and Podman
deletes it some 40 ms later; one inotify watch per exit directory catches it.  A pidfd on every
container and on every conmon catches what leaves no file.  One thread, one epoll, no polling.

A container whose conmon has died is an orphan: nobody collects its output or its exit code, and
Podman says "running" of it for ever and cannot remove it.  So it is ended (SIGTERM, two seconds,
SIGKILL), and then its exit file is written here, with 137, because the code cannot be known: with
it Podman sees an ordinary exit (design section 3).
"""

from __future__ import annotations

import logging
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from ...errors import StateError, cause, of_machine
from . import proc
from .inotify import Inotify
from .place import Place

log = logging.getLogger(__name__)

EXIT_FILE = "exit-file"
"""How: conmon wrote it; the code is known."""

CONMON_DIED = "conmon-died"
"""How: its conmon had died, so the container was ended and its exit file written by hand, with 137."""

LOST = "lost"
"""How: the container has ended in good order, but its exit file was not seen. Ask Podman."""

OnExit = Callable[[str, int | None, str], None]
"""(container id, exit code or None, how); called from the watcher's thread, without a lock held."""

ORPHAN_CODE = 137
ORPHAN_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL for an orphan, the kubelet's minimum (semantics 3.10)."""

FILE_PATIENCE = 1.0
"""Seconds between the end of a process and the moment its exit file is given up."""


SETTLE_SECONDS = 1.0
AGAIN_SECONDS = 1.0
"""Between two tries to watch what could not be watched for want of descriptors."""


Report = tuple[str, int | None, str]


@dataclass(eq=False, slots=True)
class _Watched:
    """A container under watch; descriptors are -1 once that process has ended, or was never known.

    `exit_dir` "" = its conmon could not be asked.  `unknown` = nobody has told its conmon (an infra container): it
    is looked for only once the container has ended, for without one the rest of the pod runs on.  `before` = both
    had ended when the watch began: an ordinary exit, as far as one can tell.
    `next_at` is the monotonic second at which the next step is due, 0 = none; `signals` are the
    ones an orphan is still to get.
    """

    container_id: str
    exit_dir: str
    container: int = -1
    conmon: int = -1
    conmon_dead: bool = False
    unknown: bool = False
    before: bool = False
    ended: bool = False
    next_at: float = 0.0
    signals: tuple[signal.Signals, ...] = (signal.SIGTERM, signal.SIGKILL)


class ExitWatcher:
    """See the module. All methods may be called from any thread."""

    def __init__(
        self,
        on_exit: OnExit,
        fatal: Callable[[str], None] | None = None,
        place: Place | None = None,
    ) -> None:
        """`fatal` is told when the thread ends although it must not.

        `place` is taken for a container whose conmon cannot be asked any more. Raises StateError.
        """
        self._on_exit = on_exit
        self._fatal = fatal
        self._place = place or Place()
        self._lock = threading.Lock()
        self._watched: dict[str, _Watched] = {}
        self._by_fd: dict[int, _Watched] = {}
        self._owed: dict[str, tuple[int, int]] = {}
        self._again = 0.0
        self._inotify = Inotify()
        self._epoll = select.epoll()
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        for fd in (self._event, self._inotify.fd):
            self._epoll.register(fd, select.EPOLLIN)
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="exits", daemon=True)

    def start(self) -> None:
        """Begin to report."""
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End the thread and free all descriptors."""
        self._stopping = True
        os.eventfd_write(self._event, 1)
        if self._thread.ident is not None:
            self._thread.join(timeout)
        with self._lock:
            for container_id in list(self._watched):
                self._remove(container_id)
        self._epoll.close()
        self._inotify.close()
        os.close(self._event)

    def watch(self, container_id: str, pid: int, conmon_pid: int) -> None:
        """Report the end of this container (infra containers too). Watched already: nothing changes.

        What has ended before is reported, too, soon after this returns.
        """
        with self._lock:
            if container_id in self._watched:
                return
            news = self._try(container_id, pid, conmon_pid)
        if news:
            os.eventfd_write(self._event, 1)

    def _try(self, container_id: str, pid: int, conmon_pid: int) -> bool:
        """Whether there is something to do at once; what cannot be watched now is owed."""
        try:
            news = self._begin(container_id, pid, conmon_pid)
        except OSError as error:
            if not of_machine(error):
                raise
            self._remove(container_id)
            if not self._owed:
                log.warning("cannot watch for exits: %s; tried again each second", cause(error))
            self._owed[container_id] = (pid, conmon_pid)
            self._again = time.monotonic() + AGAIN_SECONDS
            return True
        self._owed.pop(container_id, None)
        return news

    def _begin(self, container_id: str, pid: int, conmon_pid: int) -> bool:
        exit_dir = proc.exit_dir_near(pid, conmon_pid)
        self._place.learn(exit_dir)
        self._inotify.add(self._place.directory)
        watched = _Watched(container_id, exit_dir, unknown=conmon_pid <= 0)
        self._watched[container_id] = watched
        watched.conmon = self._open(watched, conmon_pid, proc.is_conmon(conmon_pid, container_id))
        watched.container = self._open(watched, pid, proc.is_inside(pid, container_id, conmon_pid))
        watched.conmon_dead = conmon_pid > 0 and watched.conmon < 0
        if pid > 0 and watched.container < 0:
            watched.ended, watched.next_at = True, time.monotonic() + FILE_PATIENCE
        watched.before = watched.conmon_dead and watched.ended
        return watched.conmon_dead or watched.ended

    def forget(self, container_id: str) -> None:
        """Nobody cares any more; unknown is fine."""
        with self._lock:
            self._remove(container_id)
            self._owed.pop(container_id, None)

    def settle(self, container_id: str) -> None:
        """End the processes of a container by the kernel; write its exit file by hand if it has no conmon.

        Waits for their end, a second at most: a process that hangs in the kernel stays. Raises StateError.
        """
        with self._lock:
            exit_dir = self._place.directory
        conmons, inside = proc.of_container(container_id)
        if not proc.end(inside, SETTLE_SECONDS):
            raise StateError(f"cannot end container {container_id[:12]}: its process does not even heed SIGKILL")
        if not conmons and proc.read_exit_file(exit_dir, container_id) is None:
            proc.write_exit_file(exit_dir, container_id, ORPHAN_CODE)

    # ---- the thread -------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._turn()
        except BaseException as error:  # guard
            log.critical("the exit watcher has ended, exits are seen by relist only", exc_info=True)
            if self._fatal is None:
                raise
            self._fatal(f"the exit watcher has ended: {error}")

    def _turn(self) -> None:
        ready = {fd for fd, _ in self._epoll.poll(self._patience())}
        if self._event in ready:
            os.eventfd_read(self._event)
        with self._lock:
            if self._owed and time.monotonic() >= self._again:
                self._again = time.monotonic() + AGAIN_SECONDS
                for container_id, (pid, conmon_pid) in list(self._owed.items()):
                    self._try(container_id, pid, conmon_pid)
            # Exit files first: they carry the code, and the pidfds of the same exit are then moot.
            reports = self._from_files() if self._inotify.fd in ready else []
            for fd in ready:
                self._ended(fd)
            judged = [self._judge(watched) for watched in list(self._watched.values())]
            reports += [report for report in judged if report is not None]
        for report in reports:
            self._on_exit(*report)

    def _patience(self) -> float | None:
        with self._lock:
            steps = [w.next_at for w in self._watched.values() if w.next_at] + [self._again] * bool(self._owed)
        return max(min(steps) - time.monotonic(), 0.0) if steps else None

    def _from_files(self) -> list[Report]:
        """The reports of all exit files that have appeared for watched containers."""
        reports = []
        for name in self._inotify.read():
            for container_id in list(self._watched) if name is None else [name]:
                report = self._read_file(container_id)
                if report is None and name in self._watched:
                    # It was there, and Podman has taken it away before this thread could run.
                    self._remove(container_id)
                    report = (container_id, None, LOST)
                if report is not None:
                    reports.append(report)
        return reports

    def _read_file(self, container_id: str) -> Report | None:
        watched = self._watched.get(container_id)
        code = proc.read_exit_file(watched.exit_dir or self._place.directory, container_id) if watched else None
        if code is None:
            return None
        self._remove(container_id)
        return container_id, code, EXIT_FILE

    def _ended(self, fd: int) -> None:
        """Note that the process behind a pidfd has ended; its number may have been reused, so look again."""
        watched = self._by_fd.get(fd)
        if watched is None or not _readable(fd):
            return
        if fd == watched.container:
            watched.container = -1
            watched.ended, watched.next_at = True, time.monotonic() + FILE_PATIENCE
        else:
            watched.conmon = -1
            watched.conmon_dead = True
        self._close(fd)

    def _judge(self, watched: _Watched) -> Report | None:
        """Take the next step for a container whose exit file has not been seen; the report of its end.

        Called for all of them, because it costs nothing where nothing has happened.
        """
        if not watched.conmon_dead and not watched.ended:
            return None
        report = self._read_file(watched.container_id)
        if report is not None:
            return report
        if watched.conmon_dead and watched.container >= 0:
            self._end_orphan(watched)
            return None
        if watched.conmon_dead:
            return self._bury(watched)
        if time.monotonic() < watched.next_at:
            return None
        if watched.unknown and self._has_no_conmon(watched):
            self._owe(watched)
        self._remove(watched.container_id)
        return watched.container_id, None, LOST

    @staticmethod
    def _has_no_conmon(watched: _Watched) -> bool:
        try:
            return not proc.of_container(watched.container_id)[0]
        except OSError:  # for want of descriptors: its conmon may be there
            return False

    def _end_orphan(self, watched: _Watched) -> None:
        now = time.monotonic()
        if not watched.signals or now < watched.next_at:
            return
        number, *rest = watched.signals
        log.warning(
            "the conmon of container %s has died: sending %s to the container", watched.container_id[:12], number.name
        )
        watched.signals = tuple(rest)
        watched.next_at = now + ORPHAN_GRACE if rest else 0.0
        try:
            signal.pidfd_send_signal(watched.container, number)
        except ProcessLookupError:
            pass

    def _bury(self, watched: _Watched) -> Report:
        self._owe(watched)
        self._remove(watched.container_id)
        if watched.before:
            return watched.container_id, None, LOST
        return watched.container_id, ORPHAN_CODE, CONMON_DIED

    def _owe(self, watched: _Watched) -> None:
        """Write the exit file that nobody else will; one that Podman does not need goes with the container."""
        try:
            proc.write_exit_file(watched.exit_dir or self._place.directory, watched.container_id, ORPHAN_CODE)
        except StateError as error:
            log.error("%s", error)

    # ---- descriptors, under the lock --------------------------------------------------------

    def _open(self, watched: _Watched, pid: int, right: bool) -> int:
        """A registered pidfd, -1 when that process is not there (any more)."""
        if pid <= 0 or not right:
            return -1
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            return -1
        self._by_fd[fd] = watched
        self._epoll.register(fd, select.EPOLLIN)
        return fd

    def _close(self, fd: int) -> None:
        if self._by_fd.pop(fd, None) is not None:
            self._epoll.unregister(fd)
            os.close(fd)

    def _remove(self, container_id: str) -> None:
        watched = self._watched.pop(container_id, None)
        if watched is not None:
            self._close(watched.container)
            self._close(watched.conmon)


def _readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))
