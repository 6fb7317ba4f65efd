"""An HTTP proxy that only knows CONNECT (RFC 9110 section 9.3.6), and remembers who was asked for."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class ConnectProxy(socketserver.ThreadingTCPServer):
    """`asked`: the HOST:PORTs of all requests. `refusing` = it answers 503 from now on."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self.refusing = False
        self._open: set[socket.socket] = set()

    @property
    def url(self) -> str:
        """For a kubeconfig's proxy-url."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def cut(self) -> None:
        """End all that goes through it."""
        for one in tuple(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def tunnel(self, client: socket.socket, target: str) -> None:
        """Carry bytes both ways until one side ends."""
        host, _, port = target.rpartition(":")
        with socket.create_connection((host, int(port)), 10) as server:
            server.settimeout(None)
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            both = {client, server}
            self._open |= both
            back = threading.Thread(target=_carry, args=(server, client), daemon=True)
            back.start()
            _carry(client, server)
            back.join(10)
            self._open -= both


class _Handler(socketserver.StreamRequestHandler):
    server: ConnectProxy

    def handle(self) -> None:
        method, target = self.rfile.readline().decode().split()[:2]
        while self.rfile.readline().strip():
            pass
        self.server.asked.append(target)
        if self.server.refusing or method != "CONNECT":
            self.wfile.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
            return
        with suppress(OSError):
            self.server.tunnel(self.connection, target)


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextmanager
def connect_proxy() -> Iterator[ConnectProxy]:
    """One that runs."""
    with ConnectProxy() as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            proxy.cut()
            thread.join()
