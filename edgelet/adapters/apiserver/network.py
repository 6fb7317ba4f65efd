"""Notices that an address or route of this machine has changed (rtnetlink(7)): a lost link may be back."""

from __future__ import annotations

import logging
import os
import select
import socket
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

log = logging.getLogger(__name__)

_GROUPS = 0x10 | 0x40 | 0x100 | 0x400
"""RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_IFADDR, RTMGRP_IPV6_ROUTE of linux/rtnetlink.h."""
SETTLE = 0.2
"""Seconds in which further changes belong to the first: one cable brings a dozen messages."""


TARGETS = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
"""Addresses that every default route leads to and nobody has (RFC 5737, RFC 3849)."""


def way(server: str) -> tuple[str, ...]:
    """The own addresses from which packets to the server's URL would leave; () = there is no way.

    Connecting a UDP socket sends nothing, and a name is not looked up: that could wait for a DNS server.
    """
    host = urlsplit(server).hostname or ""
    found = []
    for family, target in ((socket.AF_INET6 if ":" in host else socket.AF_INET, host), *TARGETS):
        try:
            socket.inet_pton(family, target)
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((target, 9))
                found.append(str(probe.getsockname()[0]))
        except OSError:
            continue
    return tuple(found)


class NetworkWatch:
    """Calls `changed` from its own thread when there is another way to the server than before.

    The comings and goings of pods are changes of the network too, and mean nothing.
    """

    def __init__(self, changed: Callable[[], None], server: Callable[[], str]) -> None:
        self._changed = changed
        self._server = server
        self._stop = threading.Event()
        self._end = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; where the kernel refuses it, the link is found again by its own tries."""
        try:
            found = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
            found.bind((0, _GROUPS))
        except OSError as error:
            log.warning("cannot watch the network for changes: %s", error.strerror)
            return
        self._thread = threading.Thread(target=self._run, args=(found,), name="network", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        if self._stop.is_set():
            return
        self._stop.set()
        os.eventfd_write(self._end, 1)
        if self._thread is not None:
            self._thread.join(5.0)
        os.close(self._end)

    def _run(self, watched: socket.socket) -> None:
        known = way(self._server())
        with watched:
            while not self._stop.is_set():
                ready, _, _ = select.select([watched.fileno(), self._end], [], [])
                if watched.fileno() not in ready:
                    continue
                try:
                    watched.recv(65536)
                except OSError:  # ENOBUFS: so many changes that some were lost, which is a change too
                    pass
                if self._stop.wait(SETTLE):
                    return
                self._drain(watched)
                before, known = known, way(self._server())
                if known and known != before:
                    self._changed()

    @staticmethod
    def _drain(watched: socket.socket) -> None:
        while select.select([watched], [], [], 0)[0]:
            try:
                watched.recv(65536)
            except OSError:
                return
