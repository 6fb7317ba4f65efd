"""Monotonic times of containers, fixed at first sight, so that no jump of the wall clock moves them.

A running process's start is exact: the kernel keeps it in clock ticks since boot.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Set
from dataclasses import replace

from ...model.observed import ObservedContainer, State
from ...ports import Clock

TICKS = os.sysconf("SC_CLK_TCK")


class Times:
    """Remembers `started_mono` and `finished_mono` by container id and wall-clock time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._started: dict[str, tuple[float, float]] = {}
        self._finished: dict[str, tuple[float, float]] = {}

    def fix(self, seen: ObservedContainer) -> ObservedContainer:
        """The same container with its monotonic times."""
        with self._lock:
            started = self._start(seen) if seen.started_at else 0.0
            finished = self._finish(seen, started) if seen.state is State.EXITED and seen.finished_at else 0.0
        return replace(seen, started_mono=started, finished_mono=finished)

    def forget(self, ids: Iterable[str]) -> None:
        """They are gone."""
        with self._lock:
            for container_id in ids:
                self._started.pop(container_id, None)
                self._finished.pop(container_id, None)

    def keep(self, ids: Set[str]) -> None:
        """Forget all others."""
        with self._lock:
            self._started = {i: v for i, v in self._started.items() if i in ids}
            self._finished = {i: v for i, v in self._finished.items() if i in ids}

    def _start(self, seen: ObservedContainer) -> float:
        known = self._started.get(seen.id)
        if known is not None and known[0] == seen.started_at:
            return known[1]
        exact = process_start(seen.pid) if seen.pid else None
        value = self._from_wall(seen.started_at) if exact is None else exact
        self._started[seen.id] = (seen.started_at, value)
        return value

    def _finish(self, seen: ObservedContainer, started: float) -> float:
        known = self._finished.get(seen.id)
        if known is not None and known[0] == seen.finished_at:
            return known[1]
        # the run's length by the wall clock, unless that clock jumped meanwhile
        value = min(self._clock.monotonic(), max(started, self._from_wall(seen.finished_at)))
        self._finished[seen.id] = (seen.finished_at, value)
        return value

    def _from_wall(self, moment: float) -> float:
        now = self._clock.monotonic()
        return min(now, max(0.0, now - (self._clock.time() - moment)))


def lives(pid: int) -> bool:
    """Whether the process runs; one that has ended and that nobody has reaped does not."""
    fields = _stat(pid)
    return fields is not None and fields[0] not in (b"Z", b"X")


def process_start(pid: int) -> float | None:
    """Seconds since boot (CLOCK_BOOTTIME, steps of 10 ms) at which the process started; None = no such process."""
    fields = _stat(pid)
    return None if fields is None else int(fields[19]) / TICKS


def _stat(pid: int) -> list[bytes] | None:
    """Fields of /proc/PID/stat from the third on (proc(5)), None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # the command name may hold blanks and brackets: fields are counted from the last bracket
    return text.rpartition(b")")[2].split()
