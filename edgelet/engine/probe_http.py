"""Speaks just enough HTTP/1.1 for httpGet probes, without ever blocking (semantics 4.2).

Only the status decides.  The body is read to its end or to 10 KiB, so that a well-behaved server
is not cut off in the middle of an answer; its text is wanted for one warning only.
"""

from __future__ import annotations

import functools
import re
import socket
import ssl
from collections.abc import Generator, Iterable
from dataclasses import dataclass

from ..core import probe_request
from ..core.probe_request import BadRequest, Url
from ..core.probes import Outcome
from . import probe_io
from .probe_io import READ, WRITE, Answer, Deadline, DialError, Ready, Steps, Wants

MAX_BODY = 10 * 1024
MAX_HEAD = 256 * 1024
MAX_REDIRECTS = 10

_STATUS = re.compile(rb"HTTP/\d\.\d (\d{3})(?: |$)")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BODILESS = frozenset({204, 304})

Headers = tuple[tuple[str, str], ...]


class Broken(Exception):
    """The exchange failed; str() is Go's text."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, as far as a probe cares."""

    status: int
    location: str
    body: bytes


def get(url: Url, headers: Headers) -> Steps:
    """httpGet: follow redirects to the same host name, judge the last status."""
    host = probe_request.host_header(headers)
    shown = str(url)
    try:
        for _ in range(MAX_REDIRECTS):
            shown = str(url)
            reply = yield from _exchange(url, probe_request.http_bytes(url, headers, host))
            if reply.status not in _REDIRECTS or not reply.location:
                return _judge(reply)
            shown = reply.location
            target = probe_request.redirected(url, reply.location)
            if target is None:
                return _judge(reply)
            if "://" in reply.location:
                host = ""
            url = target
        return _failed(reply.location, "stopped after 10 redirects")
    except (BadRequest, Broken, DialError) as error:
        return _failed(shown, str(error))
    except OSError as error:
        return _failed(shown, probe_io.go_error(error.errno or 0))
    except Deadline as error:
        phase = str(error) or "exceeded while awaiting headers"
        text = f"context deadline exceeded (Client.Timeout {phase})"
        return _failed(shown, text, timed_out=True)


NO_TLS = "server gave HTTP response to HTTPS client"


def call(url: Url, headers: Headers) -> Steps:
    """A hook's httpGet: whatever the server answers is success, only no answer at all fails (3.8)."""
    try:
        yield from _exchange(url, probe_request.http_bytes(url, headers, probe_request.host_header(headers)))
        return Answer(Outcome.SUCCESS)
    except (BadRequest, Broken, DialError) as error:
        return _failed(str(url), str(error))
    except OSError as error:
        return _failed(str(url), probe_io.go_error(error.errno or 0))


def _judge(reply: Reply) -> Answer:
    if 200 <= reply.status < 300:
        return Answer(Outcome.SUCCESS)
    if 300 <= reply.status < 400:
        body = reply.body.decode("utf-8", "replace")
        return Answer(Outcome.SUCCESS, f"Probe terminated redirects, Response body: {body}", warning=True)
    return Answer(Outcome.FAILURE, f"HTTP probe failed with statuscode: {reply.status}")


def _failed(url: str, cause: str, timed_out: bool = False) -> Answer:
    return Answer(Outcome.FAILURE, f"Get {probe_request.quoted(url)}: {cause}", timed_out=timed_out)


def _exchange(url: Url, request: bytes) -> Generator[Wants, Ready, Reply]:
    """One request on one connection. Raises Broken, DialError, OSError."""
    sock = yield from probe_io.connect(url.host, url.port)
    try:
        if url.scheme == "https":
            sock = _wrapped(sock, url.host)
            yield from _handshake(sock)
        yield from _send(sock, request)
        reply = yield from _receive(sock)
    finally:
        sock.close()
    return reply


@functools.cache
def _context() -> ssl.SSLContext:
    """TLS as probes want it: no certificate is refused, whatever its age, name or key (4.2)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.options |= 0x4  # OP_LEGACY_SERVER_CONNECT, which the ssl module names since 3.12 only
    return context


def _wrapped(sock: socket.socket, host: str) -> ssl.SSLSocket:
    name = host if re.search("[a-z]", host.lower()) and ":" not in host else None
    return _context().wrap_socket(sock, server_hostname=name, do_handshake_on_connect=False)


def _handshake(sock: socket.socket) -> Generator[Wants, Ready, None]:
    if not isinstance(sock, ssl.SSLSocket):
        return
    while True:
        try:
            sock.do_handshake()
            return
        except ssl.SSLWantReadError:
            yield ((sock.fileno(), READ),)
        except ssl.SSLWantWriteError:
            yield ((sock.fileno(), WRITE),)
        except ssl.SSLEOFError as error:
            raise Broken("EOF") from error
        except ssl.SSLError as error:
            raise Broken(_tls_text(error)) from error


def _tls_text(error: ssl.SSLError) -> str:
    reason = error.reason or str(error)
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"):
        return f"http: {NO_TLS}"
    return f"remote error: tls: {reason.lower().replace('_', ' ')}"


def _send(sock: socket.socket, data: bytes) -> Generator[Wants, Ready, None]:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[sock.send(rest) :]
        except ssl.SSLWantReadError:
            yield ((sock.fileno(), READ),)
        except (BlockingIOError, ssl.SSLWantWriteError):
            yield ((sock.fileno(), WRITE),)


def _more(sock: socket.socket) -> Generator[Wants, Ready, bytes]:
    """The next bytes, b"" at the end. A TLS peer that just hangs up has ended, too."""
    while True:
        try:
            return sock.recv(16384)
        except ssl.SSLWantWriteError:
            yield ((sock.fileno(), WRITE),)
        except (BlockingIOError, ssl.SSLWantReadError):
            yield ((sock.fileno(), READ),)
        except ssl.SSLEOFError:
            return b""


def _receive(sock: socket.socket) -> Generator[Wants, Ready, Reply]:
    data = b""
    while True:
        head, data = yield from _head(sock, data)
        status = _status(head)
        if status >= 200 or status == 101:
            break
    fields = dict(_fields(head))
    try:
        body = yield from _body(sock, data, status, fields)
    except Deadline as error:
        raise Deadline("or context cancellation while reading body") from error
    except OSError:
        body = data
    return Reply(status, fields.get("location", ""), body)


def _head(sock: socket.socket, data: bytes) -> Generator[Wants, Ready, tuple[bytes, bytes]]:
    """Status line and headers, and what came after them."""
    while True:
        end = re.search(rb"\r?\n\r?\n", data)
        if end:
            return data[: end.start()], data[end.end() :]
        if len(data) > MAX_HEAD:
            raise Broken(
                f"net/http: HTTP/1.x transport connection broken: server response headers exceeded {MAX_HEAD} bytes; "
                "aborted"
            )
        # A server that speaks another protocol shows it in its first bytes: no need to wait for more.
        if data and not b"HTTP/".startswith(data[:5]):
            raise Broken(_malformed(data))
        try:
            more = yield from _more(sock)
        except ConnectionResetError as error:
            raise Broken("read: connection reset by peer") from error
        if not more:
            raise Broken("EOF" if not data else "unexpected EOF")
        data += more


def _status(head: bytes) -> int:
    match = _STATUS.match(head.partition(b"\n")[0].rstrip(b"\r"))
    if not match:
        raise Broken(_malformed(head))
    return int(match[1])


def _malformed(data: bytes) -> str:
    line = data.partition(b"\n")[0].rstrip(b"\r")[:200].decode("latin-1")
    return f"net/http: HTTP/1.x transport connection broken: malformed HTTP response {probe_request.quoted(line)}"


def _fields(head: bytes) -> Iterable[tuple[str, str]]:
    for line in head.split(b"\n")[1:]:
        name, colon, value = line.partition(b":")
        if colon:
            yield name.decode("latin-1").strip().lower(), value.decode("utf-8", "replace").strip()


def _body(sock: socket.socket, data: bytes, status: int, fields: dict[str, str]) -> Generator[Wants, Ready, bytes]:
    """The body's first 10 KiB; ends early when the server does."""
    if status in _BODILESS:
        return b""
    chunked = fields.get("transfer-encoding", "").lower() == "chunked"
    length = fields.get("content-length", "")
    limit = min(int(length), MAX_BODY) if length.isdigit() and not chunked else MAX_BODY
    while True:
        body, complete = _unchunked(data) if chunked else (data, False)
        if complete or len(body) >= limit or len(data) > 4 * MAX_BODY:
            return body[:limit]
        more = yield from _more(sock)
        if not more:
            return body
        data += more


def _unchunked(data: bytes) -> tuple[bytes, bool]:
    """What of a chunked body has come, and whether that was all. Nonsense counts as the end."""
    body = b""
    while True:
        line, newline, rest = data.partition(b"\n")
        if not newline:
            return body, False
        try:
            size = int(line.split(b";")[0].strip() or b"x", 16)
        except ValueError:
            return body, True
        if size <= 0:
            return body, True
        body += rest[:size]
        if len(rest) < size + 1:
            return body, False
        data = rest[size:].lstrip(b"\r")[1:] if rest[size:].lstrip(b"\r") else b""
        if not data:
            return body, False
