"""The TLS port: binds it, keeps its certificate fresh, and tries again when something is in the way.

Nothing here may hurt the unix socket: a port that is taken or a certificate that cannot be made is
told in the log and in the status, and tried again.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass

import tornado.httpserver
import tornado.netutil

from ... import errors

logger = logging.getLogger(__name__)

RETRY_SECONDS = 30.0
"""Before the second try; each further one is twice as late, up to RENEWAL_SECONDS."""
RENEWAL_SECONDS = 3600.0
"""How often the certificate is looked at; a renewed one serves the next connections."""


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


class SecurePort:
    """One listening port; `serve` runs until it is cancelled."""

    def __init__(self, plan: Secure, make: Callable[[ssl.SSLContext], tornado.httpserver.HTTPServer]) -> None:
        self._plan = plan
        self._make = make
        self._server: tornado.httpserver.HTTPServer | None = None
        self.trouble = ""

    async def serve(self) -> None:
        """Listen, and from then on keep the certificate fresh."""
        context: ssl.SSLContext | None = None
        pause = RETRY_SECONDS
        while True:
            try:
                await asyncio.to_thread(self._plan.prepare)
                if context is None:
                    context = self._listen()
                else:
                    context.load_cert_chain(self._plan.cert_file, self._plan.key_file or None)
                self._tell("")
            except (OSError, errors.EdgeletError) as error:  # ssl.SSLError is an OSError
                self._tell(f"cannot serve TLS on {self._plan.address}:{self._plan.port}: {error}")
            await asyncio.sleep(RENEWAL_SECONDS if context is not None else pause)
            pause = min(2 * pause, RENEWAL_SECONDS)

    def _listen(self) -> ssl.SSLContext:
        context = _context(self._plan)
        sockets = tornado.netutil.bind_sockets(self._plan.port, self._plan.address, socket.AF_UNSPEC, backlog=128)
        self._server = self._make(context)
        self._server.add_sockets(sockets)
        logger.info("the API is served with TLS on %s:%d", self._plan.address, self._plan.port)
        return context

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


def _context(plan: Secure) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(plan.cert_file, plan.key_file or None)
    if plan.client_ca_file:
        context.load_verify_locations(plan.client_ca_file)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
