"""The ring of events: bounded, repeats counted, versioned for watches, kept over a restart by who asks.

A noisy pod cannot push out the events of the others: when the ring is full, the oldest event of the
pod that holds the most goes first.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from .. import ports
from ..model.events import Event
from ..model.plain import plain
from ..model.pod import PodKey
from .journal import Change, ChangeKind, Journal, first_version

logger = logging.getLogger(__name__)

MESSAGE_LIMIT = 1024
"""Characters of a message that are kept, as the API server does (validation of v1.Event)."""

BURST = 25
"""Repeats of one event that are told one by one (7.6: client-go's burst per object)."""

TELL_SECONDS = 300.0
"""After that many, repeats are still counted, but told to watchers and to the disk only so often."""

WATCHED = 256
"""Changes that a watcher may lag behind before it must list again: what is kept of events that are repeated."""

Subscriber = Callable[[Change[Event]], None]


class _Same(NamedTuple):
    """What makes two events one that is counted."""

    key: PodKey
    uid: str
    field_path: str
    kind: str
    reason: str
    message: str


class EventRing:
    """Implements ports.Recorder. Thread-safe; `node_name` goes into the readers' `source.host`."""

    def __init__(self, clock: ports.Clock, node_name: str, capacity: int = 1000) -> None:
        self.node_name = node_name
        self._clock = clock
        self._capacity = capacity
        self._lock = threading.Lock()
        self._events: dict[_Same, Event] = {}  # oldest occurrence first
        self._held: Counter[PodKey] = Counter()
        self._told: dict[_Same, float] = {}  # monotonic second, for events past their burst
        self._journal: Journal[Event] = Journal(first_version(clock), WATCHED)
        self._subscribers: tuple[Subscriber, ...] = ()

    def event(self, ref: ports.EventRef, kind: str, reason: str, message: str) -> None:
        """Record one; a repeat of a known one is counted."""
        now = self._clock.time()
        same = _Same(ref.key, ref.uid, ref.field_path, kind, reason, _cut(message))
        level = logging.WARNING if kind == "Warning" else logging.INFO
        logger.log(level, "%s %s: %s", ref.key, reason, same.message)
        with self._lock:
            changes = self._record(same, now)
            subscribers = self._subscribers
        for change in changes:
            for subscriber in subscribers:
                subscriber(change)

    def events(self, since_version: int = 0) -> tuple[Event, ...]:
        """All events newer than that version, the longest unseen first."""
        with self._lock:
            return tuple(e for e in self._events.values() if e.version > since_version)

    def list(self) -> tuple[int, tuple[Event, ...]]:
        """The version of this snapshot and all events."""
        with self._lock:
            return self._journal.version, tuple(self._events.values())

    def since(self, version: int) -> tuple[Change[Event], ...]:
        """The changes after that version. Raises journal.Expired."""
        with self._lock:
            return self._journal.since(version)

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Call `callback` (cheap, from any thread) after each change; returns how to end that."""
        with self._lock:
            self._subscribers = (*self._subscribers, callback)
        return lambda: self._unsubscribe(callback)

    def dump(self, limit: int = 1000) -> bytes:
        """The newest `limit` events as JSON lines, for `load` after a restart."""
        return b"".join(line(event) for event in self.events()[-limit:])

    def load(self, data: bytes) -> int:
        """Take back dumped events, before the first `event`; a broken line is skipped. Returns how many."""
        found = [event for event in map(_parse, data.splitlines()) if event is not None]
        with self._lock:
            # Versions are parts of names: with a clock that was set back, a new event would get an old one's name.
            self._journal.raise_to(max((e.version for e in found), default=0))
            for event in found[-self._capacity :]:
                self._restore(event)
            return len(self._events)

    def _unsubscribe(self, callback: Subscriber) -> None:
        with self._lock:
            self._subscribers = tuple(s for s in self._subscribers if s is not callback)

    def _record(self, same: _Same, now: float) -> Iterable[Change[Event]]:
        old = self._events.pop(same, None)
        if old is not None:
            return self._repeat(same, replace(old, count=old.count + 1, last=now), old)
        changes = [self._put(ChangeKind.ADDED, same, Event("", *same, first=now, last=now), None)]
        self._held[same.key] += 1
        if len(self._events) > self._capacity:
            changes.append(self._evict())
        return changes

    def _repeat(self, same: _Same, again: Event, old: Event) -> Iterable[Change[Event]]:
        if old.count >= BURST:
            now = self._clock.monotonic()
            if now - self._told.get(same, now - TELL_SECONDS) < TELL_SECONDS:
                self._events[same] = again
                return []
            self._told[same] = now
        return [self._put(ChangeKind.MODIFIED, same, again, old)]

    def _put(self, kind: ChangeKind, same: _Same, event: Event, old: Event | None) -> Change[Event]:
        def versioned(version: int) -> Event:
            return replace(event, version=version, name=event.name or f"{same.key.name}.{version:x}")

        change = self._journal.append(kind, versioned, old)
        self._events[same] = change.value
        return change

    def _evict(self) -> Change[Event]:
        noisiest, _ = self._held.most_common(1)[0]
        same = next(s for s in self._events if s.key == noisiest)
        self._held[noisiest] -= 1
        if not self._held[noisiest]:
            del self._held[noisiest]
        self._told.pop(same, None)
        old = self._events.pop(same)
        return self._journal.append(ChangeKind.DELETED, lambda version: replace(old, version=version), old)

    def _restore(self, event: Event) -> None:
        same = _Same(event.key, event.uid, event.field_path, event.kind, event.reason, event.message)
        if self._events.pop(same, None) is None:
            self._held[same.key] += 1
        self._put(ChangeKind.ADDED, same, event, None)
        if len(self._events) > self._capacity:
            self._evict()


def line(event: Event) -> bytes:
    """One event as a JSON line."""
    return json.dumps(asdict(event), separators=(",", ":")).encode() + b"\n"


def _parse(data: bytes) -> Event | None:
    try:
        fields: dict[str, Any] = json.loads(data)
        event = Event(**{**fields, "key": PodKey(*fields["key"]), "message": plain(fields["message"])})
    except (ValueError, TypeError, KeyError, RecursionError):  # torn by a power cut, or of another version
        return None
    return event if _sound(event) else None


def _sound(event: Event) -> bool:
    """Whether every field is what it should be: what is damaged may still be JSON."""
    texts = (event.name, *event.key, event.uid, event.field_path, event.kind, event.reason)
    numbers = (event.count, event.version)
    times = (event.first, event.last)
    return (
        all(isinstance(x, str) for x in texts)
        and all(type(x) is int for x in numbers)
        and all(type(x) in (int, float) for x in times)
    )


def _cut(message: str) -> str:
    message = plain(message)
    return message if len(message) <= MESSAGE_LIMIT else message[: MESSAGE_LIMIT - 3] + "..."
