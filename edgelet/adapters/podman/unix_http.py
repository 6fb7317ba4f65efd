"""One HTTP request on a unix socket, over a connection of its own, by the standard library.

What goes wrong is an OSError, whatever it is: a refused connection, a deadline (TimeoutError), or an
answer that is not HTTP or was cut (ConnectionError).
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import urllib.parse
from collections.abc import Iterator, Mapping

_SAFE = "/!$%&'()*+,:;=@[]~"
"""What a path may hold as it is (RFC 3986 section 3.3); "%" too: names in it are quoted already."""


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("podman", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@contextlib.contextmanager
def answered(
    socket_path: str, method: str, path: str, params: Mapping[str, str] | None, body: str | None, timeout: float
) -> Iterator[http.client.HTTPResponse]:
    """Send a request with a JSON body (None = none); the answer's status and headers are there, its body is to be read.

    `timeout` is the longest silence in seconds: of the connect, of each write and of each read. Raises OSError, also
    from what is done with the answer inside.
    """
    url = urllib.parse.quote(path, safe=_SAFE) + (f"?{urllib.parse.urlencode(params)}" if params else "")
    headers = {"Connection": "close", "User-Agent": "edgelet"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    connection = _Connection(socket_path, timeout)
    try:
        connection.request(method, url, body=None if body is None else body.encode(), headers=headers)
        with connection.getresponse() as response:
            yield response
    except http.client.HTTPException as error:
        if isinstance(error, OSError):  # RemoteDisconnected
            raise
        raise ConnectionError(f"{type(error).__name__}: {error}") from error
    finally:
        connection.close()
