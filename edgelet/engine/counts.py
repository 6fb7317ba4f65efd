"""Counts and durations by labels, for metrics: what was done how often, how long it took. Thread-safe.

Labels come from closed sets (verbs, reasons, methods), so nothing grows without bound.
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from .probe_tally import BUCKETS


@dataclass(frozen=True, slots=True)
class Row:
    """One combination of labels: how many, how many of them failed, seconds; `buckets` as probe_tally has them."""

    labels: tuple[str, ...]
    count: int = 0
    errors: int = 0
    seconds: float = 0.0
    buckets: tuple[int, ...] = ()


class _Sum:
    __slots__ = ("buckets", "count", "errors", "seconds")

    def __init__(self) -> None:
        self.count = self.errors = 0
        self.seconds = 0.0
        self.buckets = [0] * (len(BUCKETS) + 1)


class Counts:
    """Sums by labels since the start."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[tuple[str, ...], _Sum] = {}

    def add(self, *labels: str, seconds: float = 0.0, failed: bool = False) -> None:
        """One more."""
        with self._lock:
            found = self._sums.setdefault(labels, _Sum())
            found.count += 1
            found.errors += failed
            found.seconds += seconds
            found.buckets[bisect.bisect_left(BUCKETS, seconds)] += 1

    @contextmanager
    def timed(self, now: Callable[[], float], failure: type[Exception], *labels: str) -> Iterator[None]:
        """Count what is done inside the with block, as failed when `failure` comes out of it."""
        began, failed = now(), False
        try:
            yield
        except failure:
            failed = True
            raise
        finally:
            self.add(*labels, seconds=now() - began, failed=failed)

    def rows(self) -> tuple[Row, ...]:
        """What was counted, in the order of the labels."""
        with self._lock:
            sums = sorted(self._sums.items())
            return tuple(Row(k, s.count, s.errors, s.seconds, tuple(s.buckets)) for k, s in sums)


class Work:
    """What the workers do: `steps` and the news they `waited` for a step; `actions` by verb, `restarts` by reason."""

    def __init__(self) -> None:
        self.steps = Counts()
        self.waited = Counts()
        self.actions = Counts()
        self.restarts = Counts()
