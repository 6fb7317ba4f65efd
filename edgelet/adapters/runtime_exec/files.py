"""Owns the small files of exec calls: OCI process files, written once and reused, and pid files.

A *slot* is one process file with a pid file and a marker of its own; two calls of the same command
at the same time use two slots, so that each can find its own processes again.
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import ExecError, cause

MARKER = "EDGELET_EXEC"
"""Name of the variable that a command started by edgelet carries, and all its children."""

MAX_IDLE = 512
"""Process files kept for reuse, over all containers; the longest unused goes first."""

Key = tuple[str, tuple[str, ...], bool]
"""Container id, command, terminal."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One process file. `marker` is the environment entry that its processes carry."""

    key: Key
    process_file: str
    pid_file: str
    marker: str

    def remove(self) -> None:
        """Delete both files; gone already is success."""
        for path in (self.process_file, self.pid_file):
            _unlink(path)


class Slots:
    """Slots by command, idle ones kept for reuse. Safe from any thread."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._idle: OrderedDict[Slot, None] = OrderedDict()
        self._dropped: set[str] = set()
        self._busy: dict[str, int] = {}
        self._lock = threading.Lock()
        self._ready = False

    def take(self, key: Key, process: Mapping[str, Any]) -> Slot:
        """A slot for this command, its process file written. Raises ExecError."""
        with self._lock:
            self._prepare()
            slot = next((s for s in self._idle if s.key == key), None)
            if slot is not None:
                del self._idle[slot]
            if slot is None or not os.path.exists(slot.process_file):  # somebody may have emptied the directory
                slot = self._write(key, process)
            self._busy[key[0]] = self._busy.get(key[0], 0) + 1
            return slot

    def give_back(self, slot: Slot) -> None:
        """The call has ended; keep its process file for the next one."""
        container_id = slot.key[0]
        with self._lock:
            left = self._busy[container_id] - 1
            if left:
                self._busy[container_id] = left
            else:
                del self._busy[container_id]
            if container_id in self._dropped:
                slot.remove()
                if not left:
                    self._dropped.discard(container_id)
                return
            self._idle[slot] = None
            while len(self._idle) > MAX_IDLE:
                self._idle.popitem(last=False)[0].remove()

    def drop(self, container_id: str) -> None:
        """The container is gone: its idle files go now, those in use when they are given back."""
        with self._lock:
            for slot in [s for s in self._idle if s.key[0] == container_id]:
                del self._idle[slot]
                slot.remove()
            if container_id in self._busy:
                self._dropped.add(container_id)

    def clear(self) -> None:
        """Remove all idle files."""
        with self._lock:
            for slot in self._idle:
                slot.remove()
            self._idle.clear()

    def _prepare(self) -> None:
        """Make the directory, once, without what an earlier process left there."""
        if self._ready:
            return
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            for name in os.listdir(self._directory):
                _unlink(os.path.join(self._directory, name))
        except OSError as error:
            raise ExecError(f"cannot prepare {self._directory} for exec calls: {cause(error)}") from error
        self._ready = True

    def _write(self, key: Key, process: Mapping[str, Any]) -> Slot:
        name = uuid.uuid4().hex
        path = os.path.join(self._directory, name)
        slot = Slot(key, f"{path}.json", f"{path}.pid", f"{MARKER}={name}")
        body = {**process, "args": list(key[1]), "terminal": key[2], "env": [*process.get("env", ()), slot.marker]}
        body.pop("consoleSize", None)
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            with open(slot.process_file, "x", encoding="utf-8") as file:
                json.dump(body, file)
        except OSError as error:
            # Without the file's name, which is another one each time: the events are to be counted.
            raise ExecError(f"cannot write into {self._directory}: {error.strerror}") from error
        return slot


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
