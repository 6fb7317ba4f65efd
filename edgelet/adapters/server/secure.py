"""The TCP ports: binds them, keeps the certificate fresh, and tries again when something is in the way.

Nothing here may hurt the unix socket: a port that is taken or a certificate that cannot be made is
told in the log and in the status, and tried again.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass

import tornado.httpserver
import tornado.netutil

from ... import errors
from ...core import clock_set
from . import bounds

logger = logging.getLogger(__name__)

RETRY_SECONDS = 30.0
"""Before the second try; each further one is twice as late, up to RENEWAL_SECONDS."""
RENEWAL_SECONDS = 3600.0
"""How often the certificate is looked at; a renewed one serves the next connections."""


@dataclass(frozen=True, slots=True)
class ReadOnly:
    """The port that asks nobody who he is. `names` are the DNS names it may be called by."""

    address: str
    port: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Secure:
    """What the TLS port needs. `prepare` makes or renews what is missing (seconds, once in a year);
    it raises errors.StateError. `names` are the DNS names it may be called by.

    `ca_file` is what clients have to trust ("" = they know already), `client_ca_file` what vouches
    for client certificates ("" = none are taken).
    """

    address: str
    port: int
    cert_file: str
    key_file: str
    ca_file: str
    client_ca_file: str
    token_file: str
    names: tuple[str, ...]
    prepare: Callable[[], None]


CLOCK_SECONDS = 10.0
"""Between two looks whether the clock was set: a box without a battery boots in 1970, and so did its certificate."""

Make = Callable[[ssl.SSLContext | None], tornado.httpserver.HTTPServer]


class Port:
    """One listening port; `serve` runs until it is cancelled."""

    def __init__(self, address: str, port: int, make: Make) -> None:
        self._address = address
        self._port = port
        self._make = make
        self._server: tornado.httpserver.HTTPServer | None = None
        self.trouble = ""

    async def serve(self) -> None:
        """Listen, and from then on keep fresh what the port stands on."""
        pause = RETRY_SECONDS
        while True:
            try:
                await self.prepare()
                if self._server is None:
                    self._listen()
                self._tell("")
            except (OSError, errors.EdgeletError) as error:  # ssl.SSLError is an OSError
                self._tell(f"cannot serve {self.what} on {self._address}:{self._port}: {errors.cause(error)}")
            await _rest(RENEWAL_SECONDS if self._server is not None else pause)
            pause = min(2 * pause, RENEWAL_SECONDS)

    what = "the read-only port"

    async def prepare(self) -> None:
        """Before it listens, and every RENEWAL_SECONDS. Raises OSError, errors.StateError."""

    def context(self) -> ssl.SSLContext | None:
        """What connections are secured with; None = they are not. Raises OSError."""
        return None

    def _listen(self) -> None:
        context = self.context()
        sockets = tornado.netutil.bind_sockets(self._port, self._address, socket.AF_UNSPEC, backlog=128)
        self._server = self._make(context)
        self._server.add_sockets([bounds.patient(sock) for sock in sockets])
        logger.info("%s is served on %s:%d", self.what, self._address, self._port)

    def _tell(self, trouble: str) -> None:
        if trouble and trouble != self.trouble:
            logger.warning("%s", trouble)
        self.trouble = trouble

    def stop(self) -> None:
        """Take no more connections."""
        if self._server is not None:
            self._server.stop()

    async def close(self) -> None:
        """End the connections there are."""
        if self._server is not None:
            await self._server.close_all_connections()


async def _rest(seconds: float) -> None:
    """Sleep so long, or until the clock is set."""
    end, before = time.monotonic() + seconds, _offset()
    while (left := end - time.monotonic()) > 0 and not clock_set.was_set(before, _offset()):
        await asyncio.sleep(min(left, CLOCK_SECONDS))


def _offset() -> float:
    return clock_set.offset(time.time(), time.monotonic())


class SecurePort(Port):
    """The port that needs a certificate."""

    what = "TLS"

    def __init__(self, plan: Secure, make: Make) -> None:
        super().__init__(plan.address, plan.port, make)
        self._plan = plan
        self._context: ssl.SSLContext | None = None

    async def prepare(self) -> None:
        """Make or renew what is missing; a renewed certificate serves the next connections."""
        await asyncio.to_thread(self._plan.prepare)
        if self._context is not None:
            self._context.load_cert_chain(self._plan.cert_file, self._plan.key_file or None)

    def context(self) -> ssl.SSLContext:
        """See Port."""
        self._context = _context(self._plan)
        return self._context


def _context(plan: Secure) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(plan.cert_file, plan.key_file or None)
    if plan.client_ca_file:
        context.load_verify_locations(plan.client_ca_file)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
