"""One kept connection to the API server: requests with a deadline, made anew when what it stands on changes.

Raises errors.LinkError when there is no usable answer; any answer about an object is returned.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import logging
import os
import socket
import ssl
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import LinkError
from ...outgoing import failures
from ...outgoing.guard import Guard, pools
from . import kubeconfig
from .credentials import Credentials, Proof, Stamp, stamp

if TYPE_CHECKING:
    import urllib3

log = logging.getLogger(__name__)
Json = dict[str, Any]

MAX_BYTES = 32 * 2**20
CHUNK = 64 * 1024
LINK_CODES = frozenset((401, 429, 502, 503, 504))
"""Answers that say nothing about the object asked for: the server, or what stands before it, has trouble."""
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: HTTP status and the object in it ({} = none)."""

    code: int
    document: Json

    @property
    def message(self) -> str:
        """What a v1.Status says, else the code."""
        return str(self.document.get("message") or f"the server answers {self.code}")

    @property
    def reason(self) -> str:
        """The reason of a v1.Status."""
        return str(self.document.get("reason") or "")


class Connection:
    """To the server of one kubeconfig. For one thread; `cut` from any. `timeout` in seconds for a whole request."""

    def __init__(self, path: str, timeout: float, wall: Callable[[], float] = time.time) -> None:
        self._path = path
        self._timeout = timeout
        self._wall = wall
        self._guard = Guard()
        self._access: kubeconfig.Access | None = None
        self._credentials = Credentials(kubeconfig.Access(""))
        self._stamps: tuple[Stamp, ...] = ()
        self._proof = Proof()
        self._pool: urllib3.PoolManager | None = None
        self._used = False
        self.requests = 0

    @property
    def server(self) -> str:
        """The server's URL, "" until the kubeconfig has been read."""
        return self._access.server if self._access else ""

    def request(
        self, method: str, path: str, body: Json | None = None, kind: str = "application/json", accept: str = ""
    ) -> Reply:
        """Send it and read the answer whole. Raises LinkError."""
        self._refresh()
        try:
            return self._once(method, path, body, kind, accept)
        except failures.FetchError as error:
            if not self._used or self._guard.expired:
                raise self._told(error) from error
        # A kept connection may have been closed while it was idle. Every request of ours may be repeated.
        self._close()
        self._refresh()
        try:
            return self._once(method, path, body, kind, accept)
        except failures.FetchError as error:
            raise self._told(error) from error

    def stream(self, path: str, accept: str) -> Iterator[Json]:
        """The objects of a watch until the server ends it. Raises LinkError."""
        self._refresh()
        try:
            with (
                failures.translated(self._guard, self._timeout),
                self._opened("GET", path, None, "", accept, None) as answer,
            ):
                self._weigh(answer.status, answer.headers, b"" if answer.status == 200 else answer.read(CHUNK))
                yield from _lines(answer)
        except failures.FetchError as error:
            raise self._told(error) from error

    def cut(self) -> None:
        """End what is under way; from any thread."""
        self._guard.cut()

    def close(self) -> None:
        """Give the connection back."""
        self._close()

    # -- one request ------------------------------------------------------------------------------

    def _once(self, method: str, path: str, body: Json | None, kind: str, accept: str) -> Reply:
        with (
            self._guard.deadline(self._timeout),
            failures.translated(self._guard, self._timeout),
            self._opened(method, path, body, kind, accept, self._timeout) as answer,
        ):
            data = _whole(answer)
            self._weigh(answer.status, answer.headers, data)
            self._used = True
            return Reply(answer.status, _document(data, answer.status))

    @contextmanager
    def _opened(
        self, method: str, path: str, body: Json | None, kind: str, accept: str, timeout: float | None
    ) -> Iterator[Any]:
        import urllib3

        headers = {"Accept": accept or "application/json", "User-Agent": "edgelet"}
        if body is not None:
            headers["Content-Type"] = kind
        if self._proof.authorization:
            headers["Authorization"] = self._proof.authorization
        self.requests += 1
        answer = self._manager().request(
            method,
            self.server + path,
            body=json.dumps(body, separators=(",", ":")).encode() if body is not None else None,
            headers=headers,
            timeout=urllib3.Timeout(connect=self._timeout, read=timeout),
            retries=False,
            redirect=False,
            preload_content=False,
        )
        try:
            yield answer
        finally:
            answer.close()  # read to its end, it has given the connection back by itself

    def _weigh(self, code: int, headers: Mapping[str, str], data: bytes) -> None:
        """Raises LinkError for an answer of the server's own trouble."""
        wish = failures.retry_after(headers) if code in LINK_CODES or code >= 500 else None
        if code not in LINK_CODES and wish is None:
            return
        if code == 401:
            self._credentials.refused()
            self._stamps = ()
        reply = Reply(code, _document(data, code))
        text = (
            "the server does not accept these credentials (401)"
            if code == 401
            else f"the server answers {code}: {reply.message}"
        )
        raise LinkError(text, wish, answered=True)

    def _told(self, error: failures.FetchError) -> LinkError:
        self._close()
        return LinkError(str(error), error.retry_after, clock=error.clock)

    # -- what it stands on ------------------------------------------------------------------------

    def _refresh(self) -> None:
        """Read what changed on disk; a file that is being replaced leaves the old connection in place."""
        access = self._access
        try:
            stamps = tuple(stamp(f) for f in (self._path, *(access.files if access else ())))
        except OSError as error:
            if access is None:
                raise LinkError(f"cannot read kubeconfig {self._path}: {error.strerror}") from error
            stamps = self._stamps
        if access is None or stamps != self._stamps:
            access = self._read(access)
            with contextlib.suppress(OSError):
                self._stamps = tuple(stamp(f) for f in (self._path, *access.files))
        proof = self._credentials.proof(self._wall())
        if proof != self._proof:
            self._proof = proof
            self._close()

    def _read(self, before: kubeconfig.Access | None) -> kubeconfig.Access:
        self._close()
        try:
            self._access = kubeconfig.read(self._path)
        except LinkError as error:
            if before is None:
                raise
            log.warning("%s; going on with what was read before", error)
            return before
        if self._access != before:
            self._credentials = Credentials(self._access)
        return self._access

    def _manager(self) -> urllib3.PoolManager:
        if self._pool is None:
            if self._access is None:
                raise LinkError(f"kubeconfig {self._path} has not been read")
            self._pool = _manager(self._access, self._proof, self._guard)
        return self._pool

    def _close(self) -> None:
        if self._pool is not None:
            self._pool.clear()
            self._pool = None
        self._used = False


def _manager(access: kubeconfig.Access, proof: Proof, guard: Guard) -> urllib3.PoolManager:
    import urllib3
    from urllib3.connection import HTTPConnection

    options: dict[str, Any] = {
        "num_pools": 1,
        "maxsize": 1,
        "socket_options": [*HTTPConnection.default_socket_options, *_KEEPALIVE],
    }
    if access.server.startswith("https:"):
        options["ssl_context"] = _context(access, proof)
        if access.insecure:
            options["assert_hostname"] = False
        elif access.tls_server_name:
            options["assert_hostname"] = access.tls_server_name
        if access.tls_server_name:
            options["server_hostname"] = access.tls_server_name
    proxy = access.proxy_url or _proxy_of_environment(access.server)
    made = urllib3.ProxyManager(proxy, **options) if proxy else urllib3.PoolManager(**options)
    made.pool_classes_by_scheme = pools(guard)
    return made


def _proxy_of_environment(server: str) -> str:
    """HTTPS_PROXY and its kin, as kubectl honours them."""
    split = urllib.parse.urlsplit(server)
    if urllib.request.proxy_bypass_environment(split.hostname or ""):  # type: ignore[attr-defined]
        return ""
    return str(urllib.request.getproxies_environment().get(split.scheme, ""))


def _context(access: kubeconfig.Access, proof: Proof) -> ssl.SSLContext:
    """Raises LinkError when a certificate or key cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = not access.insecure and not _is_address(access)
    if access.insecure:
        context.verify_mode = ssl.CERT_NONE
    try:
        _trust(context, access)
        with contextlib.ExitStack() as stack:
            cert, key = _pair(access, proof, stack)
            if cert:
                context.load_cert_chain(cert, key or None)
    except (ssl.SSLError, OSError, ValueError) as error:
        cause = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        where = " ".join(access.files) or "the kubeconfig"
        raise LinkError(f"cannot use the certificates or key in {where}: {cause}") from error
    return context


def _is_address(access: kubeconfig.Access) -> bool:
    """Whether the certificate is to be an address's: urllib3 itself checks that one.

    1.26, which Debian 12 has, tells the context no name then, and OpenSSL refuses to check none.
    """
    try:
        ipaddress.ip_address(access.tls_server_name or urllib.parse.urlsplit(access.server).hostname or "")
    except ValueError:
        return False
    return True


def _trust(context: ssl.SSLContext, access: kubeconfig.Access) -> None:
    if access.ca_data:
        context.load_verify_locations(cadata=access.ca_data.decode("ascii"))
    elif access.ca_file:
        context.load_verify_locations(cafile=access.ca_file)
    else:
        context.load_default_certs()


def _pair(access: kubeconfig.Access, proof: Proof, stack: contextlib.ExitStack) -> tuple[str, str]:
    """Paths of certificate and key; data are shown as files in memory, never written to a disk."""
    cert, key = proof.cert or access.cert_data, proof.key or access.key_data
    return (
        stack.enter_context(_in_memory(cert)) if cert else access.cert_file,
        stack.enter_context(_in_memory(key)) if key else access.key_file,
    )


@contextmanager
def _in_memory(data: bytes) -> Iterator[str]:
    descriptor = os.memfd_create("edgelet-pem", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _whole(answer: Any) -> bytes:
    parts, size = [], 0
    for chunk in answer.stream(CHUNK, decode_content=True):
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_BYTES:
            raise LinkError(f"an answer of the server is larger than {MAX_BYTES >> 20} MiB")
    return b"".join(parts)


def _document(data: bytes, code: int) -> Json:
    """Raises LinkError when a good answer is not JSON: a proxy's login page, most likely."""
    try:
        found = json.loads(data) if data else {}
    except ValueError as error:
        if code < 300:
            raise LinkError(
                "the answer is not JSON: a login page or a proxy may answer in the server's place"
            ) from error
        return {}
    return found if isinstance(found, dict) else {}


def _lines(answer: Any) -> Iterator[Json]:
    rest = b""
    for chunk in answer.stream(CHUNK, decode_content=True):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield _document(line, 200)
        if len(rest) > MAX_BYTES:
            raise LinkError(f"one object of a watch is larger than {MAX_BYTES >> 20} MiB")
