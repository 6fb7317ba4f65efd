"""Tell systemd how the agent is: the notify protocol (sd_notify(3)) over NOTIFY_SOCKET.

Without systemd (no NOTIFY_SOCKET) everything here does nothing.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Mapping

log = logging.getLogger(__name__)


class Notifier:
    """Sends state lines; never raises and never blocks, for the agent is worth more than its report."""

    def __init__(self, environ: Mapping[str, str], pid: int | None = None) -> None:
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self._interval = _interval(environ, os.getpid() if pid is None else pid)

    @property
    def watchdog_interval(self) -> float | None:
        """Seconds between two `watchdog()` calls, half of WatchdogSec (sd_watchdog_enabled(3)); None = not asked."""
        return self._interval

    def ready(self, status: str = "") -> None:
        """Start-up, or a reload, is complete."""
        self._send("READY=1", status)

    def reloading(self) -> None:
        """A reload begins; `ready` ends it."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        """Shutdown has begun."""
        self._send("STOPPING=1")

    def extend(self, seconds: float) -> None:
        """Stopping will take so long from now, whatever TimeoutStopSec says."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}")

    def watchdog(self) -> None:
        """The main loop is alive."""
        self._send("WATCHDOG=1")

    def status(self, text: str) -> None:
        """One line for `systemctl status`."""
        self._send("", text)

    def _send(self, state: str, status: str = "") -> None:
        if not self._address:
            return
        lines = [state] if state else []
        if status:
            lines.append("STATUS=" + " ".join(status.split()))
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
                channel.setblocking(False)
                channel.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            log.debug("cannot notify systemd: %s", error)


def _address(name: str) -> str:
    """The socket's address: a path, or "@name" for one in the abstract name space."""
    if name.startswith("@"):
        return "\0" + name[1:]
    return name if name.startswith("/") else ""


def _interval(environ: Mapping[str, str], pid: int) -> float | None:
    microseconds = environ.get("WATCHDOG_USEC", "")
    meant_for = environ.get("WATCHDOG_PID", "")
    if not microseconds.isdecimal() or int(microseconds) == 0 or meant_for not in ("", str(pid)):
        return None
    return int(microseconds) / 2_000_000
