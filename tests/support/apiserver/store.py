"""The objects of the fake server: versions, uids, times, and the history that watches read. Thread-safe."""

from __future__ import annotations

import collections
import copy
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
Key = tuple[str, str, str]
"""Plural, namespace ("" for what has none), name."""

HISTORY = 20_000
"""Changes that a watch can go back."""


def now() -> str:
    """The time as the API writes it, in whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Store:
    """Everything given out is a copy; `changed` is notified at every change, and held for read-change-write.

    `lag` = seconds until authorizer and admission know of a change, as they read a cache.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.revision = 100
        self._objects: dict[Key, Json] = {}
        self._history: collections.deque[tuple[int, str, Key, Json]] = collections.deque(maxlen=HISTORY)
        self.first_revision = 100
        self.lag = 0.0
        self._added: dict[Key, float] = {}
        self._removed: dict[Key, tuple[float, Json]] = {}

    def get(self, key: Key) -> Json | None:
        """The object, or None."""
        with self.changed:
            found = self._objects.get(key)
            return copy.deepcopy(found)

    def known(self, key: Key) -> Json | None:
        """The same, as far as authorizer and admission know: they learn of new and of removed objects `lag` later."""
        with self.changed:
            then = time.monotonic() - self.lag
            if key in self._objects and self._added[key] <= then:
                return self.get(key)
            ended, last = self._removed.get(key, (0.0, {}))
            return copy.deepcopy(last) if ended > then else None

    def items(self, plural: str, namespace: str = "") -> list[Json]:
        """All of a resource, by namespace and name; of one namespace if given."""
        with self.changed:
            keys = sorted(k for k in self._objects if k[0] == plural and namespace in ("", k[1]))
            return [copy.deepcopy(self._objects[k]) for k in keys]

    def add(self, key: Key, item: Json) -> Json:
        """A new object: it gets uid, time and version."""
        with self.changed:
            metadata = item["metadata"]
            metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": now()}
            return self._write("ADDED", key, item)

    def replace(self, key: Key, item: Json) -> Json:
        """A change; nothing happens where nothing differs, as with the real server."""
        with self.changed:
            old = self._objects[key]
            item["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
            return copy.deepcopy(old) if old == item else self._write("MODIFIED", key, item)

    def remove(self, key: Key) -> Json | None:
        """The object that was there; it carries the version of its end."""
        with self.changed:
            found = self._objects.get(key)
            if found is None:
                return None
            return self._write("DELETED", key, copy.deepcopy(found))

    def _write(self, kind: str, key: Key, item: Json) -> Json:
        self.revision += 1
        item["metadata"]["resourceVersion"] = str(self.revision)
        kept = copy.deepcopy(item)
        if kind == "ADDED":
            self._added[key] = time.monotonic()
        if kind == "DELETED":
            self._removed[key] = time.monotonic(), kept
            del self._objects[key]
        else:
            self._objects[key] = kept
        self._history.append((self.revision, kind, key, kept))
        self.changed.notify_all()
        return item

    def wipe(self) -> None:
        """Another server, empty: nothing is left, and versions begin again."""
        with self.changed:
            self._objects.clear()
            self._history.clear()
            self.revision = self.first_revision = 1
            self.changed.notify_all()

    def pending(self, revision: int, plural: str) -> bool:
        """Whether a watch at this version has anything to do, be it to end."""
        with self.changed:
            latest = next((r for r, _, key, _ in reversed(self._history) if key[0] == plural), 0)
            return latest > revision or revision > self.revision

    def since(self, revision: int, plural: str) -> Iterator[tuple[int, str, Json]]:
        """Changes of a resource after a version. Raises LookupError when they are not remembered, or lie ahead."""
        with self.changed:
            oldest = self._history[0][0] - 1 if self._history else self.first_revision
            if revision < min(oldest, self.revision) or revision > self.revision:
                raise LookupError(revision)
            found = [
                (r, kind, copy.deepcopy(item))
                for r, kind, key, item in self._history
                if r > revision and key[0] == plural
            ]
        yield from found
