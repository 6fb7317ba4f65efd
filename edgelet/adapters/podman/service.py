"""The Podman service: the host's where it answers, else one of our own, started on demand.

Owns the child process `podman system service`: starts it before a call, ends it when nothing has
called for `idle` seconds (it holds 48 MB), starts it again when it died.  It runs in a session of
its own, so Ctrl-C does not reach it; conmon and containers never depend on it.  `--time` is a net
for the case that the agent itself is killed.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket as sockets
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ... import errors
from ...core import crash
from . import conf as containers_conf
from . import host as host_facts

log = logging.getLogger(__name__)

START_SECONDS = 15.0
CHECK_AGAIN_SECONDS = 30.0
USER_CONF = "/etc/containers/containers.conf"
STDERR_KEPT = 4096
STDERR_MAX = 256 * 1024
SILENT_MAX = 3
DYING_SECONDS = 1.0
RENEW_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Storage:
    """Where Podman keeps everything; "" = Podman's default. Tests give all three."""

    root: str = ""
    runroot: str = ""
    tmpdir: str = ""
    network_config_dir: str = ""

    def arguments(self) -> list[str]:
        """Global arguments of the podman command."""
        pairs = (
            ("--root", self.root),
            ("--runroot", self.runroot),
            ("--tmpdir", self.tmpdir),
            ("--network-config-dir", self.network_config_dir),
        )
        return [word for flag, value in pairs if value for word in (flag, value)]


@dataclass
class _State:
    """What `describe` tells."""

    own: bool = False
    starts: int = 0
    deaths: int = 0
    last_error: str = ""
    checked: float = -CHECK_AGAIN_SECONDS
    suspect: bool = False
    silent: int = 0
    renewed: float = -RENEW_SECONDS


class Service:
    """A podman_api.Connection. `socket` is the host's own Podman socket ("" = use none).

    run_dir: where our socket and containers.conf go.  idle: seconds without a call after which our
    service is ended.  Thread-safe.  `environ` and `command` are for tests.
    """

    def __init__(
        self,
        socket: str | None,
        run_dir: str,
        *,
        storage: Storage | None = None,
        idle: float = 8.0,
        environ: Mapping[str, str] | None = None,
        command: tuple[str, ...] = ("podman",),
        host: host_facts.Host | None = None,
    ) -> None:
        self._configured = socket or ""
        self._run_dir = run_dir
        self._own_socket = os.path.join(run_dir, "podman.sock")
        self._storage = storage or Storage()
        self._idle = idle
        self._environ = dict(os.environ if environ is None else environ)
        self._command = command
        self._host = host
        self._changed = threading.Condition()
        self._child: subprocess.Popen[bytes] | None = None
        self._calls = 0
        self._last_end = 0.0
        self._stopped = False
        self._state = _State()
        self.died: Callable[[], None] = lambda: None
        """Told, from any thread, that a service of ours has ended in the middle of its work; must be cheap."""

    # ---- Connection -------------------------------------------------------------------------

    @contextlib.contextmanager
    def connected(self) -> Iterator[str]:
        """The socket to call; our own service is up and stays up until the call is over."""
        with self._changed:
            try:
                path = self._ready()
            except OSError as error:  # of the machine: no descriptor, no process
                raise errors.Unreachable(f"cannot reach Podman: {errors.cause(error)}") from error
            self._calls += 1
        try:
            yield path
            self._state.silent = 0
        finally:
            with self._changed:
                self._calls -= 1
                self._last_end = time.monotonic()
                self._cut_stderr()
                self._changed.notify_all()

    def failed(self, error: errors.RuntimeFailure) -> None:
        """Look before the next call; a service of ours that keeps silent again and again is replaced."""
        with self._changed:
            self._state.last_error = str(error)
            self._state.suspect = True
            if isinstance(error, errors.TimedOut):
                self._state.silent += 1
                if self._state.silent >= SILENT_MAX and self._alive():
                    log.warning("the Podman service did not answer %d calls in a row: it is replaced", SILENT_MAX)
                    self._state.silent = 0
                    self._end_child(patience=0.0)

    def rely_on_own(self) -> None:
        """From now on use the host's service no more: it is going away, though its socket may still listen."""
        with self._changed:
            self._configured = ""

    def renew(self) -> bool:
        """Restart our service, at most every five minutes; False = left alone, or it is the host's."""
        with self._changed:
            now = time.monotonic()
            if not self._alive() or now - self._state.renewed < RENEW_SECONDS:
                return False
            self._state.renewed = now
            self._end_child()
            self.died()
            return True

    # ---- for the composition root -----------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """For status: which socket, whose service, how often it was started and died, the last error."""
        state, child = self._state, self._child  # without the lock: a start under way may hold it for seconds
        return {
            "socket": self._own_socket if state.own else self._configured,
            "embedded": state.own,
            "running": not state.own or (child is not None and child.poll() is None),
            "starts": state.starts,
            "deaths": state.deaths,
            "lastError": state.last_error,
        }

    def stop(self) -> None:
        """End our service, if any; containers go on."""
        with self._changed:
            self._stopped = True
            self._end_child()
            self._changed.notify_all()

    def command_line(self, *arguments: str) -> list[str]:
        """A podman command that sees the same storage as the service; run it with `environment()`."""
        return [*self._command, *self._storage.arguments(), *arguments]

    def environment(self) -> dict[str, str]:
        """The environment for `command_line`, with our containers.conf where this host needs one."""
        environ = {k: v for k, v in self._environ.items() if k not in ("NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID")}
        conf = self._write_conf()
        return {**environ, "CONTAINERS_CONF": conf} if conf else environ

    # ---- inside (all with the lock held) ----------------------------------------------------

    def _ready(self) -> str:
        if self._stopped:
            raise errors.Unreachable("cannot reach Podman: edgelet is stopping")
        if self._state.suspect:
            self._look()
        if self._state.own and self._alive():
            return self._own_socket
        if self._configured and self._host_answers():
            self._state.own = False
            return self._configured
        self._state.own = True
        self._start()
        return self._own_socket

    def _look(self) -> None:
        """After trouble: a dying child is waited for, one that does not listen is ended."""
        self._state.suspect = False
        self._state.checked = -CHECK_AGAIN_SECONDS
        if self._child is not None and not _answers(self._own_socket):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(DYING_SECONDS)
            if self._alive():
                self._end_child()

    def _host_answers(self) -> bool:
        """Whether the configured socket answers; asked once, then only after trouble or some time."""
        now = time.monotonic()
        if not self._state.own and now - self._state.checked < CHECK_AGAIN_SECONDS:
            return True
        answers = _answers(self._configured)
        self._state.checked = now if answers else -CHECK_AGAIN_SECONDS
        return answers

    def _alive(self) -> bool:
        if self._child is None:
            return False
        code = self._child.poll()
        if code is None:
            return True
        self._child = None
        if code == 0:  # its own net: nothing had called for a long time
            return False
        self._state.deaths += 1
        self._state.last_error = f"the Podman service ended (exit status {code}): {self._stderr()}"
        log.warning("%s; it is started again", self._state.last_error)
        self.died()
        return False

    def _start(self) -> None:
        net = max(30, int(self._idle * 4))
        words = self.command_line("system", "service", "--time", str(net), f"unix://{self._own_socket}")
        try:
            os.makedirs(self._run_dir, mode=0o700, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._own_socket)
            self._child = self._spawn(words)
        except OSError as error:
            hint = "; is Podman installed?" if error.filename == self._command[0] else ""
            self._fail(f"cannot start the Podman service: {errors.cause(error)}{hint}", error)
        self._state.starts += 1
        self._await_socket()
        reaper = threading.Thread(target=self._reap_when_idle, args=(self._child,), name="podman-idle", daemon=True)
        try:
            reaper.start()
        except RuntimeError as error:
            log.info("the Podman service ends by itself when idle: %s", error)

    def _spawn(self, words: list[str]) -> subprocess.Popen[bytes]:
        # appended to, so that it can be cut short while Podman has it open
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        with open(os.open(self._stderr_path, flags, 0o600), "wb") as stderr:
            return subprocess.Popen(
                words,
                cwd=self._run_dir,  # conmon leaves a file called oom where it was started
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=self.environment(),
                start_new_session=True,
            )

    def _await_socket(self) -> None:
        end = time.monotonic() + START_SECONDS
        while not _answers(self._own_socket):
            if not self._alive():
                self._fail(f"cannot start the Podman service: {self._stderr() or 'it ended at once'}")
            if time.monotonic() > end:
                self._end_child()
                self._fail(f"cannot start the Podman service: no answer within {START_SECONDS:.0f} s")
            time.sleep(0.005)

    def _fail(self, message: str, cause: BaseException | None = None) -> None:
        self._state.last_error = message
        raise errors.Unreachable(message) from cause

    def _reap_when_idle(self, child: subprocess.Popen[bytes]) -> None:
        """Thread: wait until nothing has called for `idle` seconds, end the child, end."""
        with self._changed:
            while self._child is child and self._alive():
                rest = self._last_end + self._idle - time.monotonic() if not self._calls else None
                if rest is not None and rest <= 0:
                    self._end_child()
                    return
                self._changed.wait(rest)

    def _end_child(self, patience: float = 5.0) -> None:
        """End our service; what does not go within `patience` seconds is killed."""
        child, self._child = self._child, None
        if child is None or child.poll() is not None:
            return
        child.terminate()
        try:
            child.wait(patience)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            self.died()

    def _cut_stderr(self) -> None:
        """What Podman has to say is for the next error message: it does not pile up in memory (/run)."""
        with contextlib.suppress(OSError):
            if self._state.own and os.stat(self._stderr_path).st_size > STDERR_MAX:
                os.truncate(self._stderr_path, 0)

    @property
    def _stderr_path(self) -> str:
        return os.path.join(self._run_dir, "podman-service.log")

    def _stderr(self) -> str:
        try:
            with open(self._stderr_path, "rb") as file:
                # the dump of a crash is long, and its headline comes first
                file.seek(max(0, os.fstat(file.fileno()).st_size - STDERR_MAX))
                return crash.headline(file.read(STDERR_MAX).decode(errors="replace"))[-STDERR_KEPT:]
        except OSError:
            return ""

    def _write_conf(self) -> str:
        """Path of our containers.conf, "" when this host needs none or the user points at one."""
        if self._environ.get("CONTAINERS_CONF"):
            return ""
        self._host = self._host or host_facts.read()
        ours = containers_conf.needed(self._host)
        if not ours:
            return ""
        path = os.path.join(self._run_dir, "containers.conf")
        text = containers_conf.text(containers_conf.merged(_user_conf(), ours))
        os.makedirs(self._run_dir, mode=0o700, exist_ok=True)
        draft = f"{path}.{threading.get_ident()}"  # several threads may run podman commands at once
        with open(draft, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(draft, path)
        return path


def _user_conf() -> Mapping[str, Any]:
    import tomllib

    try:
        with open(USER_CONF, "rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, tomllib.TOMLDecodeError) as error:
        log.warning("cannot read %s, going on without it: %s", USER_CONF, error)
        return {}


def _answers(path: str) -> bool:
    """Whether somebody listens there; a socket under systemd's activation listens always."""
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
        probe.settimeout(2)
        try:
            probe.connect(path)
        except OSError as error:
            return error.errno in (errno.EAGAIN, errno.EWOULDBLOCK)  # the queue is full: somebody is there
        return True
