"""Which events the server has been told, kept over restarts: one small file of appended JSON lines.

The events themselves are in the agent's own event file.  What is lost here is told once more under
the same name, and the server then answers that it knows it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping

from ... import durable
from ...errors import StateError

log = logging.getLogger(__name__)

LIMIT = 256 * 1024
"""Bytes at which the file is written anew with what is still of use."""


class Ledger:
    """`sent`: event name -> how often the server was told it has happened. For one thread."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.node_uid = ""
        self._sent: dict[str, int] = {}
        self._new: list[bytes] = []
        self._failed = False
        self._load()

    @property
    def sent(self) -> Mapping[str, int]:
        """Read only."""
        return self._sent

    def begin(self, node_uid: str) -> None:
        """The Node has this uid; under another one the server was replaced, and knows no event."""
        if node_uid != self.node_uid:
            self._sent.clear()
            self.node_uid = node_uid
            self._new = []
            self._rewrite()

    def told(self, name: str, count: int) -> None:
        """The server knows it."""
        self._sent[name] = count
        self._new.append(_line([name, count]))

    def flush(self, alive: Iterable[str]) -> None:
        """Write what is new; `alive` are the events that still exist. A full disk is logged once."""
        if not self._new:
            return
        data, self._new = b"".join(self._new), []
        try:
            size = self._append(data)
        except (OSError, StateError) as error:
            self._complain(error)
            return
        self._failed = False
        if size > LIMIT:
            names = set(alive)
            self._sent = {n: c for n, c in self._sent.items() if n in names}
            self._rewrite()

    def _append(self, data: bytes) -> int:
        durable.make_directory(os.path.dirname(self._path))
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, data)
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)

    def _rewrite(self) -> None:
        lines = [_line(self.node_uid), *(_line([n, c]) for n, c in self._sent.items())]
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
            elif isinstance(found, list) and len(found) == 2 and isinstance(found[1], int):
                self._sent[str(found[0])] = found[1]


def _line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
