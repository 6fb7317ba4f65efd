"""What went over the wire: how many requests of which kind, how many bytes, over how many connections."""

from __future__ import annotations

import collections
import ssl
import threading
import time
from dataclasses import dataclass, field
from typing import Any

KEPT = 50_000
"""Requests that are remembered one by one."""


@dataclass(frozen=True)
class Request:
    """One request; `code` 0 = it got no answer. `time` is time.monotonic()."""

    time: float
    user: str
    verb: str
    target: str
    namespace: str
    name: str
    code: int


@dataclass
class Traffic:
    """Counters of one server; bytes are those inside TLS, both ways, heads included."""

    received: int = 0
    sent: int = 0
    connections: int = 0
    log: collections.deque[Request] = field(default_factory=lambda: collections.deque(maxlen=KEPT))
    counts: collections.Counter[tuple[str, str]] = field(default_factory=collections.Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, verb: str = "", target: str = "", code: int | None = None) -> int:
        """How many requests there were: of a verb, of a resource (pods/status), with a code; "" = any."""
        if code is None:
            return sum(n for (v, t), n in list(self.counts.items()) if verb in ("", v) and target in ("", t))
        return sum(r.code == code and verb in ("", r.verb) and target in ("", r.target) for r in list(self.log))

    def note(self, user: str, verb: str, target: str, namespace: str, name: str, code: int) -> None:
        """One request is done."""
        with self._lock:
            self.counts[verb, target] += 1
            self.log.append(Request(time.monotonic(), user, verb, target, namespace, name, code))

    def reset(self) -> None:
        """Begin to count anew."""
        with self._lock:
            self.received = self.sent = self.connections = 0
            self.log.clear()
            self.counts.clear()

    def took(self, received: int = 0, sent: int = 0) -> None:
        """Bytes came or went."""
        with self._lock:
            self.received += received
            self.sent += sent


class CountedSocket(ssl.SSLSocket):
    """A TLS socket that tells its `traffic` what it carries."""

    traffic: Traffic | None = None

    def recv_into(self, *args: Any, **named: Any) -> int:
        """See ssl.SSLSocket."""
        size = super().recv_into(*args, **named)
        if self.traffic:
            self.traffic.took(received=size)
        return size

    def sendall(self, data: Any, flags: int = 0) -> None:
        """See ssl.SSLSocket."""
        super().sendall(data, flags)
        if self.traffic:
            self.traffic.took(sent=len(data))
