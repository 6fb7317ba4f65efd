"""Keeps the last good version of every file, and which directory they came from, across restarts.

On disk: one checked file per manifest under ``<store dir>/file``, readable by root only.  Nothing
raises from here: without a disk pods still run, and `trouble` says what is lost by it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable

from ... import durable
from ...core import lastgood
from ...errors import StateError
from .book import Record
from .scan import Place

log = logging.getLogger(__name__)

PLACE_KEY = "/"
"""Key of the directory's identity in the store; no file can be called that."""


class Kept:
    """The store of one file source whose configured path is `path`."""

    def __init__(self, store_dir: str, path: str, files: durable.Files) -> None:
        self._store = durable.Store(os.path.join(store_dir, "file"), files=files)
        self._path = path
        self._place: Place | None = None
        self._forgotten: set[str] = set()
        self.trouble = ""

    def restore(self) -> dict[str, Record]:
        """Records of before, to be looked at; none when another path was configured then."""
        try:
            loaded = self._store.load()
        except StateError as err:
            self.trouble = str(err)
            return {}
        for complaint in loaded.complaints:
            log.warning("%s", complaint)
        entries = dict(loaded.entries)
        place = self._read_place(entries.pop(PLACE_KEY, b""))
        if place is None:
            # Of another directory: not ours to run, and gone for good once ours was read.
            self._forgotten.update(entries)
            return {}
        self._place = place
        return {name: record for name, data in entries.items() if (record := _record(name, data, place))}

    def _read_place(self, value: bytes) -> Place | None:
        try:
            kept = json.loads(value)
            if kept["path"] == self._path:
                return Place(int(kept["filesystem"]), int(kept["inode"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            if value:
                log.warning("cannot use what was kept of %s: it does not name its directory", self._path)
        return None

    def forget(self, name: str) -> None:
        """The file is gone for good."""
        self._forgotten.add(name)

    def unsure(self) -> Place | None:
        """The directory of before, so that no directory equals it but its file system is still known."""
        return self._place and self._place._replace(inode=0)

    def save(
        self, records: dict[str, Record], place: Place | None, forget: bool, busy: Callable[[], bool] = lambda: False
    ) -> bool:
        """Write what changed; what fails is tried again next time. False = something is left for the next call.

        `place` is the directory in which all that is known was seen last (None = not known yet);
        `forget` False = nothing may be removed now.  `busy` is asked after each file: there is something else to do.
        """
        try:
            self._save_place(place)
            for record in [r for r in records.values() if r.dirty]:
                self._store.put(record.name, lastgood.pack(record.versions))
                record.dirty = False
                if busy():
                    return False
            self.trouble = ""
            return self._remove_forgotten(records, busy) if forget else True
        except StateError as err:
            self.trouble = f"{err}; after a reboot the last good version may be missing"
            return True

    def _save_place(self, place: Place | None) -> None:
        if place is not None and place != self._place:
            value = {"path": self._path, "filesystem": place.filesystem, "inode": place.inode}
            self._store.put(PLACE_KEY, json.dumps(value).encode())
            self._place = place

    def _remove_forgotten(self, records: dict[str, Record], busy: Callable[[], bool]) -> bool:
        for name in sorted(self._forgotten):
            record = records.get(name)
            if record is None or not record.versions:
                self._store.remove(name)
            self._forgotten.discard(name)
            if busy():
                return False
        return True


def _record(name: str, data: bytes, place: Place) -> Record | None:
    try:
        return Record(name, lastgood.unpack(data), place=place)
    except ValueError as err:
        log.warning("cannot use the kept version of %s: %s", name, err)
        return None
