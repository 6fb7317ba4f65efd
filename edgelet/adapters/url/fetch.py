"""Makes one GET that cannot hurt: a deadline over all of it, a cap on the body, safe redirects.

Secrets (configured headers, the token, the client certificate) go to the configured host only.
`requests` is imported when the first request is made.
"""

from __future__ import annotations

import base64
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit

from ...outgoing.guard import Guard
from . import failures, transport
from .failures import FetchError

if TYPE_CHECKING:
    import requests

MAX_BYTES = 10 * 1024 * 1024
MAX_REDIRECTS = 5
TIMEOUT = 10.0
"""Seconds for everything: name, connection, redirects, body (semantics 1.2.1)."""

CHUNK = 16 * 1024
REDIRECTS = frozenset({301, 302, 303, 307, 308})
SYSTEM_CA = "/etc/ssl/certs/ca-certificates.crt"


@dataclass(frozen=True, slots=True)
class Access:
    """How to get at a URL; every file is read again when it changes.

    `headers` are sent as given.  `header_file` holds more of them, ``NAME: VALUE`` a line, and
    `token_file` a bearer token, so that secrets stand in no command line.  `ca_file` replaces the
    system's authorities; `client_cert` and `client_key` are PEM files (one may hold both).
    """

    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    header_file: str = ""
    token_file: str = ""
    ca_file: str = ""
    client_cert: str = ""
    client_key: str = ""

    @property
    def tls_files(self) -> tuple[str, ...]:
        """Files that a connection was made with."""
        return tuple(f for f in (self.ca_file, self.client_cert, self.client_key) if f)


PLAIN = Access()
"""Nothing special."""


@dataclass(frozen=True, slots=True)
class Validators:
    """What the server called the version we hold, for a conditional request."""

    etag: str = ""
    modified: str = ""

    def headers(self) -> dict[str, str]:
        """The request headers."""
        named = {"If-None-Match": self.etag, "If-Modified-Since": self.modified}
        return {name: value for name, value in named.items() if value}


@dataclass(frozen=True, slots=True)
class Reply:
    """A good answer. `data` None = 304, what we hold is current.

    `measured` False = the server did not say how long it is, so nobody knows whether it was cut.
    """

    data: bytes | None
    validators: Validators = Validators()
    measured: bool = True


class Fetcher:
    """Requests to one URL, over a connection that is kept. For one thread; `abort` from any."""

    def __init__(self, url: str, access: Access = PLAIN, timeout: float = TIMEOUT) -> None:
        self._url = url
        self._access = access
        self._timeout = timeout
        self._session: requests.Session | None = None
        self._stamps: tuple[object, ...] = ()
        self._guard = Guard()

    def __call__(self, validators: Validators) -> Reply:
        """GET, following redirects. Raises FetchError."""
        with self._guard.deadline(self._timeout), failures.translated(self._guard, self._timeout):
            deadline = time.monotonic() + self._timeout
            headers = {**self._secrets(), **validators.headers()}
            response = self._follow(headers, deadline)
            try:
                return self._reply(response, validators, deadline)
            finally:
                response.close()

    def abort(self) -> None:
        """End a request under way, from another thread."""
        self._guard.cut()

    def close(self) -> None:
        """Give the connection back."""
        if self._session is not None:
            self._session.close()
            self._session = None
        self._guard.cut()

    def _follow(self, headers: dict[str, str], deadline: float) -> requests.Response:
        url = self._url
        for _ in range(MAX_REDIRECTS + 1):
            trusted = _same_host(self._url, url)
            sent = headers if trusted else {}
            response = self._get(url, sent, trusted, deadline)
            location = response.headers.get("Location", "")
            if response.status_code not in REDIRECTS or not location:
                return response
            response.close()
            url = _next(url, location)
        raise FetchError(f"the server redirects more than {MAX_REDIRECTS} times")

    def _get(self, url: str, headers: dict[str, str], trusted: bool, deadline: float) -> requests.Response:
        left = max(0.1, deadline - time.monotonic())
        cert = self._certificate() if trusted and self._access.client_cert else None
        verify = self._authorities()
        return self._current_session().get(
            url, headers=headers, cert=cert, verify=verify, timeout=left, allow_redirects=False, stream=True
        )

    def _reply(self, response: requests.Response, held: Validators, deadline: float) -> Reply:
        if response.status_code == 304:
            if not held.headers():
                raise FetchError("the server answers 304 (not modified) though nothing was asked that way")
            # Read to its end, empty as it is: else the connection, and its TLS handshake, would be thrown away.
            response.raw.read()
            return Reply(None, held)
        if response.status_code != 200:
            raise failures.status(response.status_code, response.reason or "", response.headers)
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind in {"text/html", "application/xhtml+xml"}:
            raise FetchError("the reply is a web page (text/html), not a manifest: a login page or a proxy may answer")
        data = self._body(response, deadline)
        found = Validators(response.headers.get("ETag", ""), response.headers.get("Last-Modified", ""))
        measured = bool(response.headers.get("Content-Length") or response.headers.get("Transfer-Encoding"))
        return Reply(data, found, measured)

    def _body(self, response: requests.Response, deadline: float) -> bytes:
        parts, size = [], 0
        for chunk in response.raw.stream(CHUNK, decode_content=True):
            parts.append(chunk)
            size += len(chunk)
            if size > MAX_BYTES:
                raise FetchError(f"the reply is larger than {MAX_BYTES >> 20} MiB")
            if time.monotonic() > deadline:
                raise FetchError(f"the reply was not complete within {self._timeout:g} s")
        promised = response.headers.get("Content-Length", "")
        if promised.isdigit() and int(promised) != response.raw.tell():
            raise FetchError(f"the reply was cut: {response.raw.tell()} of {promised} bytes arrived")
        return b"".join(parts)

    def _secrets(self) -> dict[str, str]:
        """All configured headers; one that is given twice is sent as one list (RFC 9110 section 5.3)."""
        pairs = [*self._access.headers, *_header_file(self._access.header_file), *_basic(self._url)]
        if self._access.token_file:
            pairs.append(("Authorization", f"Bearer {_text(self._access.token_file).strip()}"))
        headers: dict[str, str] = {}
        for name, value in pairs:
            known = next((n for n in headers if n.lower() == name.lower()), None)
            headers[known or name] = f"{headers[known]}, {value}" if known else value
        return headers

    def _current_session(self) -> requests.Session:
        """A session; a new one when a certificate on disk has changed."""
        stamps = tuple(_stamp(f) for f in self._access.tls_files)
        if self._session is None or stamps != self._stamps:
            self.close()
            self._session = transport.session(self._guard)
            self._stamps = stamps
        return self._session

    def _certificate(self) -> Any:
        key = self._access.client_key
        return (self._access.client_cert, key) if key else self._access.client_cert

    def _authorities(self) -> str | bool:
        if self._access.ca_file:
            return self._access.ca_file
        return SYSTEM_CA if os.path.exists(SYSTEM_CA) else True


def _same_host(configured: str, other: str) -> bool:
    """Whether secrets may go to `other`: the same host, and the same port or the move to https."""
    first, second = urlsplit(configured), urlsplit(other)
    upgraded = (first.scheme, second.scheme) == ("http", "https")
    return first.hostname == second.hostname and (upgraded or _port(first) == _port(second))


def _port(url: Any) -> int:
    return int(url.port or {"http": 80, "https": 443}.get(url.scheme, 0))


def _next(url: str, location: str) -> str:
    target = urljoin(url, location)
    scheme = urlsplit(target).scheme
    if scheme not in {"http", "https"}:
        raise FetchError(f"the server redirects to a {scheme or 'strange'} address, which is not followed")
    if url.startswith("https:") and scheme == "http":
        raise FetchError("the server redirects from https to http, which is not followed: anybody could read it")
    return target


def _basic(url: str) -> list[tuple[str, str]]:
    """Credentials that stand in the URL (RFC 7617)."""
    parts = urlsplit(url)
    if not parts.username:
        return []
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return [("Authorization", "Basic " + base64.b64encode(pair.encode()).decode())]


def _header_file(path: str) -> list[tuple[str, str]]:
    if not path:
        return []
    pairs = []
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise FetchError(f"line {number} of {path} is not NAME: VALUE")
        pairs.append((name.strip(), value.strip()))
    return pairs


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(64 * 1024)
    except (OSError, UnicodeDecodeError) as err:
        raise FetchError(f"{path} cannot be read: {getattr(err, 'strerror', None) or err}") from err


def _stamp(path: str) -> tuple[int, int, int]:
    try:
        info = os.stat(path)
    except OSError as err:
        raise FetchError(f"{path} cannot be read: {err.strerror}") from err
    return info.st_ino, info.st_size, info.st_mtime_ns
