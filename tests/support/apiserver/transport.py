"""HTTPS of the fake server: one thread per connection, client certificates and tokens, faults, watches."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.support.certificates import Pair

from . import discovery, identity, kinds, proxy
from .answers import Refusal, gone, unauthorized
from .faults import REASONS, Rule
from .identity import ANONYMOUS, User
from .kinds import Call
from .traffic import CountedSocket
from .verbs import selected, shown

if TYPE_CHECKING:
    from .server import FakeServer

NO_CHECK_TIME = 0x200000
"""OpenSSL: a certificate that has ended is the server's business (401), not a failed handshake."""
BOOKMARK = 60.0
"""Seconds between two bookmarks of a watch."""
LOOK = 1.0
"""Seconds between two looks of a watch for its own end."""


class Cut(Exception):
    """The connection ends here."""


class Transport:
    """The listening side; can be stopped and started again on the same port."""

    def __init__(self, owner: FakeServer, pair: Pair, client_ca: str) -> None:
        self.owner = owner
        self.port = 0
        self.context = server_context(pair, client_ca)
        self.stopping = threading.Event()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Listen, on the port of the last time."""
        self.stopping = threading.Event()
        self._server = _Server(("127.0.0.1", self.port), self)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True, name="fake-api")
        self._thread.start()

    def stop(self) -> None:
        """No listener, no connection."""
        self.stopping.set()
        if self._server and self._thread:
            self._server.shutdown()
            self._server.server_close()
            self._server.hang_up()
            self._thread.join(10)
        self._server = None

    def hang_up(self) -> None:
        """End every connection; new ones are taken."""
        if self._server:
            self._server.hang_up()


def server_context(pair: Pair, client_ca: str) -> ssl.SSLContext:
    """TLS that asks for a client certificate and takes clients without one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    context.load_verify_locations(client_ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.verify_flags |= NO_CHECK_TIME
    context.sslsocket_class = CountedSocket
    return context


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], transport: Transport) -> None:
        self.transport = transport
        self.open: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        made, address = super().get_request()
        self.open.add(made)
        return made, address

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        for one in list(self.open):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(one, socket.SHUT_RDWR)  # an SSLSocket's own would take TLS away from its thread

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients come and go; what the server itself does wrong is told to the test."""
        import sys
        import traceback

        if not isinstance(sys.exc_info()[1], OSError | Cut):
            self.transport.owner.violations.append(f"the fake server failed: {traceback.format_exc()}")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        transport = self.server.transport
        raw = self.request
        rule = transport.owner.faults.find("", "connect")
        if rule:
            self._act(rule)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.request = transport.context.wrap_socket(raw, server_side=True)
        self.server.open.discard(raw)
        self.server.open.add(self.request)
        transport.owner.requests.connections += 1
        self.request.traffic = transport.owner.requests
        super().setup()

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()
        self.server.open.discard(self.request)
        self.request.close()

    def handle(self) -> None:
        with contextlib.suppress(Cut, OSError):
            super().handle()

    def log_message(self, *_: Any) -> None:
        """Nothing goes to the terminal."""

    def _all(self) -> None:
        owner = self.server.transport.owner
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if len(body) < length:
            raise Cut  # its client has gone in the middle: no server looks at half a body
        if self._plain():
            return
        user, call = None, None
        try:
            call = kinds.parse(self.command, self.path)
            user = self._user()
            self._serve(owner, user, call, body)
        except Refusal as refusal:
            self._note(user, call, refusal.code)
            self._refuse(refusal)
        except Cut:
            self._note(user, call, 0)
            raise

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _all

    def _note(self, user: User | None, call: Call | None, code: int) -> None:
        """Counted before the answer goes out: who has the answer finds it counted."""
        note, name = self.server.transport.owner.requests.note, user.name if user else ""
        if call:
            note(name, call.verb, call.target, call.namespace, call.name, code)
        else:
            note(name, self.command, self.path, "", "", code)

    def _serve(self, owner: FakeServer, user: User | None, call: Call, body: bytes) -> None:
        rule = owner.faults.find(call.verb, call.target)
        if rule:
            self._act(rule)
        if call.verb == "watch":
            self._watch(owner, user, call)
            return
        if call.sub == "log":
            self._log(owner, user, call)
            return
        code, item = owner.verbs.run(user, call, body, self.headers.get("Content-Type", "").partition(";")[0].strip())
        if rule and rule.action == "cut_answer":
            raise Cut
        self._note(user, call, code)
        item = shown(item, self.headers.get("Accept", ""))
        self._send(code, item, half=bool(rule and rule.action == "cut_half"))

    def _act(self, rule: Rule) -> None:
        transport = self.server.transport
        faults = transport.owner.faults
        match rule.action:
            case "refuse" if rule.resource == "connect":
                raise Cut
            case "refuse":
                raise Refusal(
                    rule.code, REASONS.get(rule.code, "Unknown"), f"refused with {rule.code}", None, rule.retry_after
                )
            case "hang":
                faults.wait(rule, transport.stopping)
                raise Cut
            case "slow":
                faults.sleep(rule, transport.stopping)
            case "cut_request":
                raise Cut

    def _user(self) -> User | None:
        """Who it is; None for credentials that are no good."""
        owner = self.server.transport.owner
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return owner.tokens.get(token.strip())
        certificate = self.request.getpeercert()
        return identity.of_certificate(certificate, owner.issuers) if certificate else ANONYMOUS

    def _plain(self) -> bool:
        """Paths that are no resources."""
        path = self.path.partition("?")[0]
        if path in ("/healthz", "/livez", "/readyz"):
            self._bytes(200, b"ok", "text/plain")
        elif (found := discovery.plain(path)) is not None:
            self._send(200, found)
        else:
            return False
        return True

    def _refuse(self, refusal: Refusal) -> None:
        extra = {"Retry-After": str(refusal.retry_after)} if refusal.retry_after else {}
        self._send(refusal.code, refusal.body(), extra)

    def _send(self, code: int, item: Any, extra: dict[str, str] | None = None, half: bool = False) -> None:
        self._bytes(code, json.dumps(item, separators=(",", ":")).encode() + b"\n", "application/json", extra, half)

    def _bytes(
        self, code: int, data: bytes, kind: str, extra: dict[str, str] | None = None, half: bool = False
    ) -> None:
        self.send_response(code)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **(extra or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if half else data)
        self.close_connection = self.close_connection or half

    def _log(self, owner: FakeServer, user: User | None, call: Call) -> None:
        if user is None:
            raise unauthorized()
        owner.verbs.allow(user, call)
        parts = proxy.log(call, owner.store, owner.kubelet_client)
        self._note(user, call, 200)
        self._stream("text/plain")
        for part in parts:
            self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def _stream(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    # ---- watches --------------------------------------------------------------------------------

    def _watch(self, owner: FakeServer, user: User | None, call: Call) -> None:
        if user is None:
            raise unauthorized()
        owner.verbs.allow(user, call)
        store, stopping = owner.store, self.server.transport.stopping
        revision = int(call.query.get("resourceVersion") or 0)
        ends = time.monotonic() + float(call.query.get("timeoutSeconds") or 1800)
        self._note(user, call, 200)
        self._stream("application/json")
        if not revision:
            with store.changed:
                items, revision = store.items(call.resource.plural, call.namespace), store.revision
            for item in items:
                self._event("ADDED", item, call)
        bookmark = time.monotonic() + BOOKMARK
        while not stopping.is_set() and time.monotonic() < ends:
            try:
                for version, kind, item in store.since(revision, call.resource.plural):
                    self._event(kind, item, call)
                    revision = version
            except LookupError:
                self._chunk({"type": "ERROR", "object": gone().body()})
                break
            with store.changed:
                news = store.pending(revision, call.resource.plural)
                if not news:
                    revision = store.revision
                    store.changed.wait(min(LOOK, max(ends - time.monotonic(), 0.01)))
            if not news and call.query.get("allowWatchBookmarks") == "true" and time.monotonic() >= bookmark:
                bookmark = time.monotonic() + BOOKMARK
                self._bookmark(call, revision)
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def _event(self, kind: str, item: Any, call: Call) -> None:
        if call.namespace in ("", item["metadata"].get("namespace", "")) and selected(item, call):
            self._chunk({"type": kind, "object": item})

    def _bookmark(self, call: Call, revision: int) -> None:
        metadata = {"resourceVersion": str(revision), "creationTimestamp": None}
        item = {"kind": call.resource.kind, "apiVersion": call.resource.api_version, "metadata": metadata}
        self._chunk({"type": "BOOKMARK", "object": item})

    def _chunk(self, item: Any) -> None:
        item["object"] = shown(item["object"], self.headers.get("Accept", ""))
        data = json.dumps(item, separators=(",", ":")).encode() + b"\n"
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
