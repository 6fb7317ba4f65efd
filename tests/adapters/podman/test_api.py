"""The transport, against a small server on a unix socket: retries, limits, deadlines. No Podman needed."""

from __future__ import annotations

import contextlib
import http.server
import json
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edgelet import errors
from edgelet.adapters.podman.api import CREATING_AT_ONCE, Api, Fixed
from tests.support.podman_proxy import Proxy


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers every request with what `answer(method, path)` returns: a status and a JSON value."""

    daemon_threads = True
    request_queue_size = 64
    answer: Callable[[str, str], tuple[int, object]] = staticmethod(lambda method, path: (200, {"ok": path}))


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def address_string(self) -> str:
        return "unix"

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def _serve(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, value = self.server.answer(self.command, self.path)
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = _serve


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(str(tmp_path / "s"), _Handler)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def api(server: Server) -> Api:
    return Api(Fixed(str(server.server_address)))


def test_paths_are_libpod_s_of_version_4(api: Api) -> None:
    assert api.get("a/b", {"x": "1 2"}) == {"ok": "/v4.0.0/libpod/a/b?x=1+2"}


def test_no_body_is_none(api: Api, server: Server) -> None:
    server.answer = lambda method, path: (204, None)
    assert api.post("containers/x/start") is None
    assert api.delete("containers/x") is None


def test_an_answer_that_is_no_json_is_temporary(api: Api, server: Server) -> None:
    server.answer = lambda method, path: (500, "plain")
    with pytest.raises(errors.Temporary):
        api.get("x")


def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(errors.Unreachable, match="nothing answers on the Podman socket"):
        Api(Fixed(str(tmp_path / "none"))).get("x")


def test_pain_83_no_answer_within_the_deadline(api: Api, server: Server) -> None:
    release = threading.Event()

    def slow(method: str, path: str) -> tuple[int, object]:
        release.wait(5)
        return 200, None

    server.answer = slow
    begin = time.monotonic()
    with pytest.raises(errors.TimedOut, match="did not answer in time"):
        api.get("x", timeout=0.1)
    assert time.monotonic() - begin < 4
    release.set()


@pytest.mark.parametrize(("method", "asked"), [("get", 2), ("post", 1), ("delete", 1)])
def test_only_reading_is_repeated_when_the_answer_is_lost(
    server: Server, tmp_path: Path, method: str, asked: int
) -> None:
    seen: list[str] = []

    def note(verb: str, path: str) -> tuple[int, object]:
        seen.append(verb)
        return 200, None

    server.answer = note
    proxy = Proxy(str(tmp_path / "p"), Fixed(str(server.server_address)))
    proxy.mode = "after"
    with pytest.raises(errors.Temporary, match="connection to Podman broke"):
        getattr(Api(proxy), method)("x")
    proxy.close()
    assert len(seen) == asked


class _Flaky(Fixed):
    """The first socket handed out is one nobody listens on."""

    def __init__(self, good: str) -> None:
        super().__init__(good + ".gone")
        self._good = good
        self.told: list[str] = []

    def failed(self, error: errors.RuntimeFailure) -> None:
        self.told.append(type(error).__name__)
        self._socket = self._good


def test_a_request_that_reached_nobody_is_sent_again_whatever_it_is(server: Server) -> None:
    connection = _Flaky(str(server.server_address))
    assert Api(connection).post("pods/create", body={}) == {"ok": "/v4.0.0/libpod/pods/create"}
    assert connection.told == ["Unreachable"]


def most_at_once(api: Api, server: Server, calls: int) -> int:
    """The largest number of creating calls that the server had at one moment."""
    lock, inside, most = threading.Lock(), [0], [0]

    def count(method: str, path: str) -> tuple[int, object]:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        time.sleep(0.03)
        with lock:
            inside[0] -= 1
        return 200, {}

    server.answer = count
    threads = [threading.Thread(target=lambda: api.post("pods/create", body={}, creating=True)) for _ in range(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return most[0]


def test_pain_80_88_91_creating_calls_are_limited_and_one_at_a_time_once_the_database_was_locked(
    api: Api, server: Server
) -> None:
    assert 2 <= most_at_once(api, server, 12) <= CREATING_AT_ONCE
    server.answer = lambda method, path: (500, {"cause": "database is locked", "message": "x"})
    with pytest.raises(errors.Temporary):
        api.post("pods/create", body={}, creating=True)
    assert most_at_once(api, server, 6) == 1


def test_other_calls_never_wait_for_creating_ones(api: Api, server: Server) -> None:
    release = threading.Event()

    def answer(method: str, path: str) -> tuple[int, object]:
        if path.endswith("create"):
            release.wait(10)
        return 200, {"path": path}

    server.answer = answer
    threads = [
        threading.Thread(target=lambda: api.post("pods/create", body={}, creating=True))
        for _ in range(CREATING_AT_ONCE + 2)
    ]
    for thread in threads:
        thread.start()
    assert api.post("containers/x/kill")
    release.set()
    for thread in threads:
        thread.join()


def test_clients_are_kept_few(api: Api, server: Server) -> None:
    most_at_once(api, server, 4)
    threads = [threading.Thread(target=api.get, args=("x",)) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(len(kept) for kept in api._clients.values()) <= 8


def test_the_transport_is_loaded_without_the_rest_of_its_package() -> None:
    code = (
        "import sys; from edgelet.adapters.podman import api; api._new_client('/x'); "
        "print([m for m in ('podman.client', 'podman.domain', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class _Lines(_Handler):
    """Long answers on connections that would stay open."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Many lines, of which nobody may read the most."""
        data = b'{"stream": "x"}\n' * 20_000
        self.send_response(500 if "fails" in self.path else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(data)


def test_pain_85_an_answer_that_nobody_read_spoils_no_later_call(tmp_path: Path) -> None:
    server = Server(str(tmp_path / "s"), _Lines)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    api = Api(Fixed(str(server.server_address)))
    try:
        for _ in range(3):
            stream = api.stream("images/pull", {}, silence=20, deadline=20)
            assert next(stream) == {"stream": "x"}
            stream.close()  # type: ignore[attr-defined]
            assert api.get("a") == {"ok": "/v4.0.0/libpod/a"}
            with pytest.raises(errors.Temporary):
                api.post("fails")
            assert api.get("b") == {"ok": "/v4.0.0/libpod/b"}
    finally:
        server.shutdown()
        server.server_close()
