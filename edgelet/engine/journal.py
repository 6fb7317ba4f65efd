"""A bounded journal of versioned changes: what watches are made of.

Versions only grow, also over a restart of the agent: the first one is derived from the wall clock,
so a version handed out before the restart is older than anything the journal still knows and its
holder is told to list again (HTTP 410 in the Kubernetes API).  Who has older versions at hand raises it to them.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from .. import errors, ports

T = TypeVar("T")


class Expired(errors.EdgeletError):
    """The changes since that version are not known (any more): list again."""


class ChangeKind(enum.Enum):
    """What happened to an object, in the words of a Kubernetes watch."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """One change; `value` is the object after it (the last one known, for DELETED)."""

    version: int
    kind: ChangeKind
    value: T
    previous: T | None = None


class Journal(Generic[T]):
    """The newest `capacity` changes. Not thread-safe: its owner holds a lock around every call."""

    def __init__(self, first_version: int, capacity: int) -> None:
        self._version = first_version
        self._floor = first_version
        self._changes: deque[Change[T]] = deque()
        self._capacity = capacity

    @property
    def version(self) -> int:
        """The version of the newest change."""
        return self._version

    def append(self, kind: ChangeKind, make: Callable[[int], T], previous: T | None = None) -> Change[T]:
        """Add a change; `make` gets the new version and returns the object that carries it."""
        self._version += 1
        change = Change(self._version, kind, make(self._version), previous)
        self._changes.append(change)
        if len(self._changes) > self._capacity:
            self._floor = self._changes.popleft().version
        return change

    def raise_to(self, version: int) -> None:
        """Let the next change be newer than that, though the clock was set back since it was handed out."""
        if version > self._version:
            self._version = self._floor = version
            self._changes.clear()

    def since(self, version: int) -> tuple[Change[T], ...]:
        """The changes after `version`, oldest first. Raises Expired when some are not known."""
        if not self._floor <= version <= self._version:
            raise Expired(f"too old resource version: {version} ({self._floor})")
        newer: deque[Change[T]] = deque()
        for change in reversed(self._changes):
            if change.version <= version:
                break
            newer.appendleft(change)
        return tuple(newer)


def first_version(clock: ports.Clock) -> int:
    """A start for versions that is above all those of earlier runs, unless the clock was set back."""
    return int(clock.time() * 1000)
