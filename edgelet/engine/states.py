"""Owns what of a pod's memory outlives the agent: restart counts and last ends, one checked file per pod."""

from __future__ import annotations

import json
import logging
import threading
from typing import Protocol

from .. import errors
from ..core import memory as memories
from ..core.memory import PodMemory

log = logging.getLogger(__name__)

VERSION = 1
"""Version of the file's content; one that is newer than this is not understood and not touched."""


class Store(Protocol):
    """Durable, checked entries by key (durable.Store)."""

    def put(self, key: str, data: bytes) -> None:
        """Write one. Raises errors.StateError."""
        ...

    def remove(self, key: str) -> None:
        """Remove one. Raises errors.StateError."""
        ...


class States:
    """Last states by pod uid. `entries` are what the store held at the start."""

    def __init__(self, store: Store, entries: dict[str, bytes], boot_id: str) -> None:
        self._store = store
        self._boot_id = boot_id
        self._lock = threading.Lock()
        self._saved: dict[str, bytes] = dict(entries)

    def load(self, uid: str, config_hash: str) -> PodMemory | None:
        """Memory of that generation from an earlier life; damaged or foreign content counts as none."""
        with self._lock:
            data = self._saved.get(uid)
        if data is None:
            return None
        try:
            found = memories.load(json.loads(data), self._boot_id)
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            log.warning("cannot use the saved state of the pod with uid %s: %r; counting starts anew", uid, error)
            return None
        return found if found.config_hash == config_hash else None

    def save(self, memory: PodMemory) -> None:
        """Write it if it differs from what is on disk; a failure is logged, the pod goes on."""
        data = json.dumps(memories.dump(memory), separators=(",", ":")).encode()
        with self._lock:
            if self._saved.get(memory.uid) == data:
                return
        try:
            self._store.put(memory.uid, data)
        except errors.StateError as error:
            log.error("%s; restart counts may be lost at the next reboot", error)
        with self._lock:
            self._saved[memory.uid] = data

    def drop(self, uid: str) -> None:
        """Forget a pod that is gone."""
        with self._lock:
            known = self._saved.pop(uid, None)
        if known is None:
            return
        try:
            self._store.remove(uid)
        except errors.StateError as error:
            log.warning("%s", error)

    def uids(self) -> frozenset[str]:
        """The pods that have a saved state."""
        with self._lock:
            return frozenset(self._saved)
