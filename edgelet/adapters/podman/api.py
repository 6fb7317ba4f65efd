"""Transport to Podman's REST API: one call, one answer, one error of ours.

Uses the podman package's `APIClient`.  Every call opens its own connection on the unix socket and
closes it (0.1 ms): an idle connection would either keep an on-demand service alive or be reset
under a call when that service idles out.  Every call has a deadline and every body is read to its
end.  Which error type a failure becomes is decided in `refusals`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from ... import errors
from . import refusals

log = logging.getLogger(__name__)

T = TypeVar("T")
API_VERSION = "4.0.0"
KEPT_CLIENTS = 8
CREATING_AT_ONCE = 4


class Connection(Protocol):
    """Where Podman answers: `adapters.podman_service.Service`, or anything with these two."""

    def connected(self) -> AbstractContextManager[str]:
        """A socket path that answers, for the time of one call. Raises errors.Unreachable."""
        ...

    def failed(self, error: errors.RuntimeFailure) -> None:
        """A call did not get an answer: whatever was known of the service may be wrong."""
        ...


class Fixed:
    """A Connection to a socket that somebody else serves."""

    def __init__(self, socket: str) -> None:
        self._socket = socket

    @contextlib.contextmanager
    def connected(self) -> Iterator[str]:
        """See Connection."""
        yield self._socket

    def failed(self, error: errors.RuntimeFailure) -> None:
        """See Connection."""


class Api:
    """Calls below ``/libpod/``; thread-safe; keeps at most eight clients.

    Deadlines are seconds without a byte from Podman.  Creating calls (`creating=True`) go four at
    a time, one at a time for good once Podman said that its database was locked.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._clients: dict[str, list[Any]] = {}
        self._lock = threading.Lock()
        self._gate = _Gate(CREATING_AT_ONCE)
        self.version = ""
        """Podman's version as its newest answer told it: GET /version costs 0.4 s on 4.3."""

    def get(self, path: str, params: Mapping[str, str] | None = None, *, timeout: float = 20.0) -> Any:
        """GET, decoded JSON. Asked again once if the connection broke: reading twice harms nothing."""
        try:
            return _something(self._call("GET", path, params, None, timeout), path)
        except errors.Temporary as error:
            if isinstance(error, (errors.Unreachable, errors.TimedOut)) or not isinstance(error.__cause__, OSError):
                raise
            return _something(self._call("GET", path, params, None, timeout), path)

    def post(
        self,
        path: str,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        *,
        timeout: float = 20.0,
        creating: bool = False,
    ) -> Any:
        """POST a JSON body, decoded JSON or None."""
        if not creating:
            return self._call("POST", path, params, body, timeout)
        with self._gate.entered():
            try:
                return self._call("POST", path, params, body, timeout)
            except errors.Temporary as error:
                if "database is locked" in str(error):
                    self._gate.narrow()
                raise

    def delete(self, path: str, params: Mapping[str, str] | None = None, *, timeout: float = 60.0) -> Any:
        """DELETE, decoded JSON or None."""
        return self._call("DELETE", path, params, None, timeout)

    def stream(
        self, path: str, params: Mapping[str, str], *, silence: float, deadline: float
    ) -> Iterator[Mapping[str, Any]]:
        """POST and yield the JSON lines of the answer as they come.

        Raises Temporary when nothing comes for `silence` seconds or the whole takes longer than `deadline` seconds.
        """
        with self._told(), self._client() as client, translated(refusals.deed("POST", path)):
            response = client.post(path, params=params, data="", timeout=silence, headers=_CLOSE, stream=True)
            try:
                _raise_for(response, refusals.deed("POST", path))
                yield from _lines(response, refusals.deed("POST", path), deadline)
            finally:
                response.close()

    def _call(
        self, method: str, path: str, params: Mapping[str, str] | None, body: Mapping[str, Any] | None, timeout: float
    ) -> Any:
        """One call; asked again once when nothing was listening: such a request has had no effect."""
        try:
            return self._try(method, path, params, body, timeout)
        except errors.Unreachable as error:
            if not isinstance(error.__cause__, OSError):
                raise
            return self._try(method, path, params, body, timeout)

    def _try(
        self, method: str, path: str, params: Mapping[str, str] | None, body: Mapping[str, Any] | None, timeout: float
    ) -> Any:
        what = refusals.deed(method, path)
        data = None if body is None else json.dumps(body, separators=(",", ":"))
        headers = _CLOSE if body is None else {**_CLOSE, "Content-Type": "application/json"}
        with self._told(), self._client() as client, translated(what):
            response = client.request(
                method, _url(client, path), params=params, data=data, headers=headers, timeout=timeout
            )
            self.version = response.headers.get("Server", "").removeprefix("Libpod/").partition(" ")[0] or self.version
            _raise_for(response, what)
            # .content: .text would guess the character set of every body
            return json.loads(response.content) if response.content else None

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Tell the connection of a call that broke."""
        try:
            yield
        except errors.Temporary as error:
            if isinstance(error.__cause__, OSError):
                self._connection.failed(error)
            raise

    @contextlib.contextmanager
    def _client(self) -> Iterator[Any]:
        """A client of the socket that answers now, alone in this thread's hands."""
        with self._connection.connected() as socket:
            with self._lock:
                idle = self._clients.setdefault(socket, [])
                client = idle.pop() if idle else None
            client = client or _new_client(socket)
            yield client
            client.close()  # a connection that an answer left open may be cut under the next call
            with self._lock:
                if len(idle) < KEPT_CLIENTS:
                    idle.append(client)


def _something(answer: Any, path: str) -> Any:
    """An answer whose body was lost is none."""
    if answer is None:
        raise errors.Temporary(f"cannot {refusals.deed('GET', path)}: Podman's answer is empty")
    return answer


class _Gate:
    """Lets a few in at once; `narrow` makes that one for good."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._inside = 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: self._inside < self._width)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify()

    def narrow(self) -> None:
        with self._changed:
            if self._width > 1:
                log.warning("Podman's database was locked: from now on one creating call at a time")
            self._width = 1


_CLOSE = {"Connection": "close"}


_importing = threading.Lock()


def _new_client(socket: str) -> Any:
    """Imported here: the package brings 15 MB, which `edgelet --version` has no use for."""
    with _importing:
        _bare_package()
        from podman.api.client import APIClient

    return APIClient(base_url=f"unix://{socket}", version=API_VERSION)


def _bare_package() -> None:
    """Let `podman.api` be imported without `podman/__init__.py`.

    That would load the package's object model and the progress bars of `rich`: 4 MB and 0.2 s, of
    which the transport uses nothing.
    """
    if "podman" in sys.modules:
        return
    found = importlib.util.find_spec("podman")
    if found is not None:
        sys.modules["podman"] = importlib.util.module_from_spec(found)


def _url(client: Any, path: str) -> str:
    return f"http://{client.base_url.netloc}{client.path_prefix}{path}"


@contextlib.contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn what the transport raises into our errors."""
    try:
        yield
    except OSError as error:  # requests' and the podman package's errors are all OSError
        raise _transport_error(what, error) from error
    except ValueError as error:
        raise errors.Temporary(f"cannot {what}: Podman's answer is not JSON: {error}") from error


def _transport_error(what: str, error: OSError) -> errors.RuntimeFailure:
    chain = list(_chain(error))
    if any(isinstance(e, (ConnectionRefusedError, FileNotFoundError, PermissionError)) for e in chain):
        return errors.Unreachable(f"cannot {what}: nothing answers on the Podman socket: {chain[-1]}")
    if any(isinstance(e, TimeoutError) or "timed out" in str(e) for e in chain):
        return errors.TimedOut(f"cannot {what}: Podman did not answer in time")
    return errors.Temporary(f"cannot {what}: the connection to Podman broke: {chain[-1]}")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen = 0
    while error is not None and seen < 20:
        yield error
        error = error.__cause__ or error.__context__
        seen += 1


def _lines(response: Any, what: str, deadline: float) -> Iterator[Mapping[str, Any]]:
    end = time.monotonic() + deadline
    for line in response.iter_lines():
        if time.monotonic() > end:
            raise errors.Temporary(f"cannot {what}: not done after {deadline:.0f} s")
        if line:
            yield json.loads(line)


def _raise_for(response: Any, what: str) -> None:
    """Raise our error for a bad answer; 304 (nothing to do) counts as good."""
    if response.status_code >= 400:
        cause, message = _reason(response.content.decode(errors="replace"))
        raise refusals.failure(response.status_code, cause, message, what)


def _reason(text: str) -> tuple[str, str]:
    try:
        body = json.loads(text)
        return str(body.get("cause", "")), str(body.get("message", text))
    except (ValueError, AttributeError):
        return "", text.strip()
