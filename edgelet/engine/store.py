"""The newest status of every pod, versioned: the one truth that all readers (server, CLI, metrics) see."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from .. import ports
from ..model.pod import Pod, PodKey
from ..model.status import PodStatus
from .journal import Change, ChangeKind, Journal, first_version

Subscriber = Callable[[Change["Entry"]], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """A pod with its newest status. `seen_at`: epoch second this generation was first put."""

    pod: Pod
    status: PodStatus
    version: int
    seen_at: float


class StatusStore:
    """Thread-safe. Writers are the pods' workers; a change wakes the subscribers outside the lock.

    `capacity` bounds the journal of changes, not the number of pods.
    """

    def __init__(self, clock: ports.Clock, capacity: int = 256) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[PodKey, Entry] = {}
        self._journal: Journal[Entry] = Journal(first_version(clock), capacity)
        self._subscribers: tuple[Subscriber, ...] = ()

    def put(self, pod: Pod, status: PodStatus) -> None:
        """Make this the newest status of the pod; an equal one is no change."""
        changes: list[Change[Entry]] = []
        with self._lock:
            old = self._entries.get(pod.key)
            if old is not None and old.pod.uid != pod.uid:
                changes.append(self._delete(old))  # another object in the API's eyes
                old = None
            if old is None or old.status != status or old.pod != pod:
                changes.append(self._set(pod, status, old))
            subscribers = self._subscribers
        _notify(subscribers, changes)

    def remove(self, key: PodKey) -> None:
        """The pod is gone; unknown is fine."""
        with self._lock:
            old = self._entries.get(key)
            changes = [self._delete(old)] if old is not None else []
            subscribers = self._subscribers
        _notify(subscribers, changes)

    def get(self, key: PodKey) -> Entry | None:
        """The newest entry of that pod."""
        with self._lock:
            return self._entries.get(key)

    def list(self) -> tuple[int, tuple[Entry, ...]]:
        """The version of this snapshot and all entries, sorted by namespace and name."""
        with self._lock:
            return self._journal.version, tuple(self._entries[key] for key in sorted(self._entries))

    def since(self, version: int) -> tuple[Change[Entry], ...]:
        """The changes after that version. Raises journal.Expired."""
        with self._lock:
            return self._journal.since(version)

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Call `callback` (cheap, from any thread) after each change; returns how to end that.

        Calls may come out of order when writers race: read `since` for the order.
        """
        with self._lock:
            self._subscribers = (*self._subscribers, callback)
        return lambda: self._unsubscribe(callback)

    def _unsubscribe(self, callback: Subscriber) -> None:
        with self._lock:
            self._subscribers = tuple(s for s in self._subscribers if s is not callback)

    def _set(self, pod: Pod, status: PodStatus, old: Entry | None) -> Change[Entry]:
        seen_at = old.seen_at if old is not None else self._clock.time()
        kind = ChangeKind.ADDED if old is None else ChangeKind.MODIFIED
        change = self._journal.append(kind, lambda version: Entry(pod, status, version, seen_at), old)
        self._entries[pod.key] = change.value
        return change

    def _delete(self, old: Entry) -> Change[Entry]:
        del self._entries[old.pod.key]
        return self._journal.append(ChangeKind.DELETED, lambda version: replace(old, version=version), old)


def _notify(subscribers: tuple[Subscriber, ...], changes: list[Change[Entry]]) -> None:
    for change in changes:
        for subscriber in subscribers:
            subscriber(change)
