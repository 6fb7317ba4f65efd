"""The command line's side of the agent's API: HTTP over the unix socket, with the standard library."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

from .. import errors

Json = dict[str, Any]
Query = Mapping[str, str | int]

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
TIMEOUT_SECONDS = 30.0
BUSY_PAUSES = (0.02, 0.1, 0.3, 1.0)


class AgentDown(errors.EdgeletError):
    """Nothing answers at the socket; the message says what to do."""


class ApiFailure(errors.EdgeletError):
    """The agent refused; worded as kubectl words it."""

    def __init__(self, status: Json) -> None:
        reason = status.get("reason")
        where = f"Error from server ({reason})" if reason else "Error from server"
        super().__init__(f"{where}: {status.get('message', 'no message')}")
        self.code: int = status.get("code", 0)
        self.status = status


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket file instead of a host."""
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(self.timeout)
        try:
            self._connect(sock)
        except OSError:
            sock.close()
            raise
        self.sock = sock

    def _connect(self, sock: socket.socket) -> None:
        for pause in BUSY_PAUSES:
            try:
                sock.connect(self._path)
                return
            except BlockingIOError:  # its queue of waiting connections is full at this moment
                time.sleep(pause)
        sock.connect(self._path)


class Client:
    """Talks to one agent; one connection per request, as befits a short-lived program."""

    def __init__(self, path: str) -> None:
        self.path = path

    def get(self, path: str, query: Query | None = None, accept: str = "application/json") -> Json:
        """The JSON object at that path. Raises ApiFailure, AgentDown."""
        return self._json("GET", path, query, accept)

    def post(self, path: str, query: Query | None = None) -> Json:
        """Post an order. Raises ApiFailure, AgentDown."""
        return self._json("POST", path, query, "application/json")

    def send(self, method: str, path: str, query: Query | None, body: bytes, kind: str) -> Json:
        """Send a body of that media type. Raises ApiFailure, AgentDown."""
        return self._whole(self._open(method, path, query, "application/json", TIMEOUT_SECONDS, body, kind))

    def lines(self, path: str, query: Query | None = None, accept: str = "application/json") -> Iterator[Json]:
        """The objects of a watch as they come, for as long as the agent sends them."""
        response = self._open("GET", path, query, accept, None)
        try:
            while line := response.readline():
                yield _object(line, self.path)
        except (http.client.HTTPException, ConnectionError) as error:
            raise AgentDown(f"cannot go on watching: the agent at {self.path} went away") from error

    def chunks(self, path: str, query: Query | None = None) -> Iterator[bytes]:
        """A stream of bytes as it comes."""
        response = self._open("GET", path, query, "*/*", None)
        try:
            while chunk := response.read1(65536):
                yield chunk
        except (http.client.HTTPException, ConnectionError) as error:
            raise AgentDown(f"cannot go on reading: the agent at {self.path} went away") from error

    def _json(self, method: str, path: str, query: Query | None, accept: str) -> Json:
        return self._whole(self._open(method, path, query, accept, TIMEOUT_SECONDS))

    def _whole(self, response: http.client.HTTPResponse) -> Json:
        return _object(self._read(response), self.path)

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        try:
            return response.read()
        except (OSError, http.client.HTTPException) as error:
            raise AgentDown(unreachable(self.path, error)) from error

    def _open(
        self,
        method: str,
        path: str,
        query: Query | None,
        accept: str,
        timeout: float | None,
        body: bytes | None = None,
        kind: str = "",
    ) -> http.client.HTTPResponse:
        connection = _UnixConnection(self.path, timeout)
        target = f"{path}?{urllib.parse.urlencode(query)}" if query else path
        try:
            headers = {"Accept": accept, "User-Agent": "edgelet", **({"Content-Type": kind} if kind else {})}
            connection.request(method, target, body, headers)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise AgentDown(unreachable(self.path, error)) from error
        if response.status >= 400:
            raise ApiFailure(status_of(self._read(response), response.status))
        if response.getheader("Server") != "edgelet":
            raise AgentDown(f"cannot use what answers at {self.path}: it is not edgelet; name its socket with --socket")
        return response


def pod_path(namespace: str, name: str = "", group: str = "/api/v1") -> str:
    """The path of a pod, or of the pods of a namespace ("" = of all)."""
    where = f"/namespaces/{quote(namespace)}" if namespace else ""
    return f"{group}{where}/pods" + (f"/{quote(name)}" if name else "")


def quote(name: str) -> str:
    """A name as one segment of a path."""
    return urllib.parse.quote(name, safe="")


def add_socket(parser: argparse.ArgumentParser) -> None:
    """The flag that says which agent to talk to."""
    parser.add_argument("--socket", metavar="PATH", help="the agent's socket (default: EDGELET_SOCKET)")


def socket_path(args: argparse.Namespace) -> str:
    """The socket of the agent meant: flag, environment, default."""
    given = getattr(args, "socket", None) or getattr(args, "global_socket", None)
    return given or os.environ.get("EDGELET_SOCKET") or "/run/edgelet/edgelet.sock"


def connect(args: argparse.Namespace) -> Client:
    """A client of the agent meant by these arguments."""
    return Client(socket_path(args))


def unreachable(path: str, error: Exception) -> str:
    """Why the agent cannot be reached and what to do about it."""
    if isinstance(error, PermissionError):
        return f"cannot reach the agent at {path}: permission denied; be root, or join the group edgelet to look"
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        # A running agent makes a socket that was removed anew within some seconds.
        return (
            f"cannot reach the agent at {path}: it is not running; "
            "start it (systemctl start edgelet, or edgelet run), or name its socket with --socket"
        )
    if isinstance(error, TimeoutError):
        return f"cannot reach the agent at {path}: no answer within {TIMEOUT_SECONDS:.0f} s; see its log"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return f"cannot reach the agent at {path}: it has too many callers, or has just ended; try again"
    return f"cannot reach the agent at {path}: {errors.cause(error)}"


def _object(data: bytes, path: str) -> Json:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise AgentDown(f"cannot understand the answer of {path}: it is no JSON; is it edgelet's?") from error
    if not isinstance(found, dict):
        raise AgentDown(f"cannot understand the answer of {path}: it is no object; is it edgelet's?")
    return found


def status_of(body: bytes, code: int) -> Json:
    """The v1.Status in an answer, or one made of whatever else came."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found
    return {"message": body[:1000].decode(errors="replace").strip(), "code": code}
