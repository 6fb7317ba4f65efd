"""Follows the pods that are bound to this node: their metadata, from one list on, until the stream ends."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import quote

from ...core import mirror_pods
from ...errors import LinkError
from .connection import METADATA, Connection

log = logging.getLogger(__name__)

SECONDS = 300.0
"""A watch lasts so long, and up to twice as long, as the kubelet's."""

SHORTEST = 5.0
"""A stream that ends sooner than that is a failure, not the end of its time."""


class Sink(Protocol):
    """Takes what the server tells, from the watch's thread."""

    def changed(self, there: mirror_pods.Remote) -> None:
        """It is so now."""
        ...

    def removed(self, there: mirror_pods.Remote) -> None:
        """It is gone."""
        ...


class Watch:
    """One thread that lives as long as the mirror; `begin` sends it off, `cut` calls it back."""

    def __init__(self, connection: Connection, node: str, sink: Sink, ended: Callable[[], None]) -> None:
        self._connection = connection
        self._node = quote(node, safe="")
        self._sink = sink
        self._ended = ended
        self._lock = threading.Condition()
        self._version = ""
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to wait for `begin`."""
        self._thread = threading.Thread(target=self._run, name="apiserver-watch", daemon=True)
        self._thread.start()

    def begin(self, version: str) -> None:
        """Watch from that version of the list on; `ended` is called when the list must be read again."""
        with self._lock:
            self._version = version
            self._lock.notify()

    def cut(self) -> None:
        """The link is lost: end the stream."""
        self._connection.cut()

    def stop(self) -> None:
        """End the thread."""
        with self._lock:
            self._stopping = True
            self._lock.notify()
        self._connection.cut()
        if self._thread is not None:
            self._thread.join(5.0)
        self._connection.close()

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._version and not self._stopping:
                    self._lock.wait()
                if self._stopping:
                    return
                version, self._version = self._version, ""
            self._watch(version)
            with self._lock:
                over = not self._version and not self._stopping
            if over:
                self._ended()

    def _watch(self, version: str) -> None:
        """Until an error, or the server no longer knows the version; a stream that runs out goes on anew."""
        try:
            begun = float("-inf")
            while version and not self._stopping and time.monotonic() - begun > SHORTEST:
                begun = time.monotonic()
                version = self._stream(version)
        except LinkError as error:
            log.debug("the watch of the mirror pods ended: %s", error)
        except Exception:  # guard
            # A fault here must not end the mirror: the list is read again.
            log.exception("cannot understand the watch of the mirror pods")

    def _stream(self, version: str) -> str:
        seconds = int(SECONDS * (1 + random.random()))
        path = (
            f"/api/v1/pods?fieldSelector=spec.nodeName%3D{self._node}&watch=true&allowWatchBookmarks=true"
            f"&resourceVersion={quote(version, safe='')}&timeoutSeconds={seconds}"
        )
        for change in self._connection.stream(path, METADATA):
            version = self._take(change, version)
            if not version or self._stopping:
                return ""
        return version

    def _take(self, change: dict[str, Any], version: str) -> str:
        """The version after it; "" = list again."""
        kind, found = change.get("type"), change.get("object")
        if kind == "ERROR" or not isinstance(found, dict):
            return ""
        if kind in ("ADDED", "MODIFIED"):
            self._sink.changed(mirror_pods.remote(found))
        elif kind == "DELETED":
            self._sink.removed(mirror_pods.remote(found))
        return str((found.get("metadata") or {}).get("resourceVersion") or version)
