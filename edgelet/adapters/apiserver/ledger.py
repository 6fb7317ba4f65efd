"""Which events the server has been told, kept over restarts: one small file of appended JSON lines.

The events themselves are in the agent's own event file.  What is lost here is told once more under
the same name, and the server then answers that it knows it.  An event's line without figures stands before each
request and one with figures after it, so that a kill between the two is noticed.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping

from ... import durable
from ...core.mirror_events import UNSURE, Told
from ...errors import StateError

log = logging.getLogger(__name__)

LIMIT = 256 * 1024
"""Bytes at which the file is written anew with what is still of use."""


class Ledger:
    """`sent`: event name -> what the server was told of it. For one thread."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.node_uid = ""
        self._sent: dict[str, Told] = {}
        self._new: list[bytes] = []
        self._failed = False
        self._size = 0
        self._load()

    @property
    def sent(self) -> Mapping[str, Told]:
        """Read only."""
        return self._sent

    def begin(self, node_uid: str) -> None:
        """The Node has this uid; under another one the server was replaced, and knows no event."""
        if node_uid != self.node_uid:
            self._sent.clear()
            self.node_uid = node_uid
            self._new = []
            self._rewrite()

    def telling(self, names: Iterable[str]) -> None:
        """Those are about to be told; noted at once."""
        self._new += [_line([name]) for name in names]
        self._write()

    def told(self, name: str, what: Told) -> None:
        """The server knows it."""
        self._sent[name] = what
        self._new.append(_line([name, *what]))

    def flush(self, alive: Iterable[str]) -> None:
        """Write what is new; `alive` are the events that still exist. A full disk is logged once."""
        self._write()
        if self._size > LIMIT:
            names = set(alive)
            self._sent = {n: c for n, c in self._sent.items() if n in names}
            self._rewrite()
            self._size = 0

    def _write(self) -> None:
        data, self._new = b"".join(self._new), []
        if not data:
            return
        try:
            self._size = self._append(data)
            self._failed = False
        except (OSError, StateError) as error:
            self._complain(error)

    def _append(self, data: bytes) -> int:
        durable.make_directory(os.path.dirname(self._path))
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, data)
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)

    def _rewrite(self) -> None:
        lines = [_line(self.node_uid), *(_line([n, *what]) for n, what in self._sent.items())]
        try:
            durable.make_directory(os.path.dirname(self._path))
            durable.write(self._path, b"".join(lines))
        except StateError as error:
            self._complain(error)

    def _complain(self, error: Exception) -> None:
        if not self._failed:
            log.warning("cannot note which events the API server knows: %s", error)
        self._failed = True

    def _load(self) -> None:
        try:
            with open(self._path, "rb") as file:
                lines = file.read(4 * LIMIT).splitlines()
        except OSError:
            return
        for line in lines:
            try:
                found = json.loads(line)
            except ValueError:  # torn by a power cut
                continue
            if isinstance(found, str):
                self.node_uid = found
            elif isinstance(found, list) and found:
                self._sent[str(found[0])] = _figures(found[1:])


def _figures(found: list[object]) -> Told:
    match found:
        case [int(times), float(last)]:
            return Told(times, last)
    return UNSURE


def _line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
