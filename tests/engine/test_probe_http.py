"""httpGet and tcpSocket against real loopback servers, well-behaved and not."""

from __future__ import annotations

import gc
import os
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest

from edgelet.core.probe_request import Url
from edgelet.core.probes import Outcome
from edgelet.engine import probe_http, probe_io
from edgelet.engine.probe_io import Answer
from tests.engine import probing

OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
AWAITING = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
BROKEN = "net/http: HTTP/1.x transport connection broken: malformed HTTP response"


@pytest.fixture(autouse=True)
def no_descriptor_is_left() -> object:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert len(os.listdir("/proc/self/fd")) <= before


def get(port: int, path: str = "/", timeout: float = 20.0, scheme: str = "http", host: str = "127.0.0.1") -> Answer:
    return probing.run(probe_http.get(Url(scheme, host, port, path), ()), timeout)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, Answer(Outcome.SUCCESS)),
        (204, Answer(Outcome.SUCCESS)),
        (299, Answer(Outcome.SUCCESS)),
        (304, Answer(Outcome.SUCCESS, "Probe terminated redirects, Response body: ", warning=True)),
        (399, Answer(Outcome.SUCCESS, "Probe terminated redirects, Response body: ok", warning=True)),
        (400, Answer(Outcome.FAILURE, "HTTP probe failed with statuscode: 400")),
        (404, Answer(Outcome.FAILURE, "HTTP probe failed with statuscode: 404")),
        (500, Answer(Outcome.FAILURE, "HTTP probe failed with statuscode: 500")),
        (101, Answer(Outcome.FAILURE, "HTTP probe failed with statuscode: 101")),
    ],
)
def test_the_status_decides(status: int, expected: Answer) -> None:
    with probing.server(probing.replies(f"HTTP/1.1 {status} Text\r\nContent-Length: 2\r\n\r\nok")) as port:
        assert get(port) == expected


@pytest.mark.parametrize(
    "reply",
    [
        OK,
        "HTTP/1.0 200 OK\r\n\r\nok",
        "HTTP/1.1 200\r\n\r\n",
        "HTTP/1.1 200 OK\n\nok",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + OK,
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncut off",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense",
        "HTTP/1.1 200 OK\r\n\r\n" + "x" * 1_000_000,
    ],
    ids=["length", "old", "no-reason", "bare-newlines", "informational", "short", "chunked", "bad-chunk", "endless"],
)
def test_answers_that_are_good_enough(reply: str) -> None:
    with probing.server(probing.replies(reply)) as port:
        assert get(port) == Answer(Outcome.SUCCESS)


@pytest.mark.parametrize(
    "framing", ["Content-Length: 2\r\n\r\nok", "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"]
)
def test_a_server_that_keeps_the_connection_open_is_not_waited_for(framing: str) -> None:
    def serve(conn: socket.socket) -> None:
        probing.request_of(conn)
        conn.sendall(f"HTTP/1.1 200 OK\r\n{framing}".encode())
        probing.silent(conn)

    with probing.server(serve) as port:
        began = time.monotonic()
        assert get(port, timeout=30) == Answer(Outcome.SUCCESS)
        assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("SSH-2.0-OpenSSH_9\r\n", f'{BROKEN} "SSH-2.0-OpenSSH_9"'),
        ("HTTP/1.1 abc\r\n\r\n", f'{BROKEN} "HTTP/1.1 abc"'),
        ("", "EOF"),
        ("HTTP/1.1 200 OK\r\nX: y\r\n", "unexpected EOF"),
        (
            "HTTP/1.1 200 OK\r\n" + "X: y\r\n" * 60_000,
            "net/http: HTTP/1.x transport connection broken: server response headers exceeded 262144 bytes; aborted",
        ),
    ],
    ids=["ssh", "no-status", "hangs-up", "cut-head", "endless-head"],
)
def test_no_http_answer(reply: str, text: str) -> None:
    with probing.server(probing.replies(reply)) as port:
        assert get(port) == Answer(Outcome.FAILURE, f'Get "http://127.0.0.1:{port}/": {text}')


def test_texts_of_a_refused_connection() -> None:
    port = closed_port()
    text = f"dial tcp 127.0.0.1:{port}: connect: connection refused"
    assert get(port) == Answer(Outcome.FAILURE, f'Get "http://127.0.0.1:{port}/": {text}')
    assert probing.run(probe_io.tcp("127.0.0.1", port)) == Answer(Outcome.FAILURE, text)


def test_a_server_that_never_answers_costs_the_timeout_and_no_more() -> None:
    with probing.server(probing.silent) as port:
        began = time.monotonic()
        answer = get(port, timeout=0.3)
        assert 0.29 < time.monotonic() - began < 10
        assert answer == Answer(Outcome.FAILURE, f'Get "http://127.0.0.1:{port}/": {AWAITING}', timed_out=True)


@pytest.mark.parametrize(
    "head", ["HTTP/1.1 2", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"], ids=["head", "body"]
)
def test_a_slow_drip_does_not_extend_the_time(head: str) -> None:
    def drip(conn: socket.socket) -> None:
        probing.request_of(conn)
        conn.sendall(head.encode())
        while True:
            conn.sendall(b"0")
            time.sleep(0.02)

    with probing.server(drip) as port:
        began = time.monotonic()
        answer = get(port, timeout=0.3)
        assert time.monotonic() - began < 10
        assert answer.outcome is Outcome.FAILURE and answer.timed_out
        assert "context deadline exceeded (Client.Timeout" in answer.text


def test_pain_5_the_request_goes_out_from_the_agent_as_from_a_kubelet() -> None:
    seen: list[str] = []
    with probing.server(probing.replies(OK, seen=seen)) as port:
        probing.run(probe_http.get(Url("http", "127.0.0.1", port, "/healthz?a=1"), (("X-Probe", "yes"),)))
    assert seen == [
        f"GET /healthz?a=1 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUser-Agent: kube-probe/1.36\r\nAccept: */*\r\n"
        "X-Probe: yes\r\nConnection: close\r\n\r\n"
    ]


def test_redirects_on_the_same_host_are_followed() -> None:
    seen: list[str] = []
    moved = "HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n"
    with probing.server(probing.replies(moved, OK, seen=seen)) as port:
        assert get(port) == Answer(Outcome.SUCCESS)
    assert [r.split("\r\n")[0] for r in seen] == ["GET / HTTP/1.1", "GET /login HTTP/1.1"]


def test_the_end_of_a_redirect_chain_is_judged() -> None:
    moved = "HTTP/1.1 307 Moved\r\nLocation: /x\r\n\r\n"
    with probing.server(probing.replies(moved, "HTTP/1.1 503 No\r\n\r\n")) as port:
        assert get(port) == Answer(Outcome.FAILURE, "HTTP probe failed with statuscode: 503")


def test_a10_a_redirect_to_another_host_is_a_warning_and_success() -> None:
    moved = "HTTP/1.1 302 Found\r\nLocation: http://0.0.0.0/\r\nContent-Length: 5\r\n\r\nmoved"
    with probing.server(probing.replies(moved)) as port:
        expected = "Probe terminated redirects, Response body: moved"
        assert get(port) == Answer(Outcome.SUCCESS, expected, warning=True)


def test_a_redirect_loop_ends_after_ten() -> None:
    seen: list[str] = []
    moved = "HTTP/1.1 301 Moved\r\nLocation: /again\r\n\r\n"
    with probing.server(probing.replies(moved, seen=seen)) as port:
        assert get(port, timeout=20) == Answer(Outcome.FAILURE, 'Get "/again": stopped after 10 redirects')
    assert len(seen) == 10


def test_a_redirect_without_a_place_is_a_warning() -> None:
    with probing.server(probing.replies("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n")) as port:
        assert get(port).warning


def tls(context: ssl.SSLContext, inner: probing.Serve) -> probing.Serve:
    def serve(conn: socket.socket) -> None:
        with context.wrap_socket(conn, server_side=True) as secured:
            inner(secured)

    return serve


def test_https_whatever_the_certificate(tmp_path: Path) -> None:
    context = probing.certificate(tmp_path)
    with probing.server(tls(context, probing.replies(OK))) as port:
        assert get(port, scheme="https") == Answer(Outcome.SUCCESS)
        assert get(port, scheme="https", host="localhost") == Answer(Outcome.SUCCESS)
    with probing.server(tls(context, probing.silent)) as port:
        assert get(port, scheme="https", timeout=0.3).text == f'Get "https://127.0.0.1:{port}/": {AWAITING}'


def test_https_asked_of_something_else() -> None:
    def plain(conn: socket.socket) -> None:
        conn.recv(4096)
        conn.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with probing.server(plain) as port:
        assert get(port, scheme="https").text == (
            f'Get "https://127.0.0.1:{port}/": http: server gave HTTP response to HTTPS client'
        )
    with probing.server(probing.silent) as port:
        answer = get(port, scheme="https", timeout=0.3)
        assert answer.timed_out and answer.text.endswith(AWAITING)
    with probing.server(lambda conn: None) as port:
        assert get(port, scheme="https").outcome is Outcome.FAILURE


def test_ipv6() -> None:
    with probing.server(probing.replies(OK), socket.AF_INET6) as port:
        assert get(port, host="::1") == Answer(Outcome.SUCCESS)
        assert probing.run(probe_io.tcp("::1", port)) == Answer(Outcome.SUCCESS)
    assert get(port, host="::1").text == (
        f'Get "http://[::1]:{port}/": dial tcp [::1]:{port}: connect: connection refused'
    )


def test_tcp_connects_and_goes() -> None:
    got: list[bytes] = []
    with probing.server(lambda conn: got.append(conn.recv(10))) as port:
        assert probing.run(probe_io.tcp("localhost", port)) == Answer(Outcome.SUCCESS)
        probing.wait_until(lambda: got == [b""])


def test_tcp_to_a_full_backlog_times_out() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        answer = probing.run(probe_io.tcp("127.0.0.1", port), 0.2)
        for filler in fillers:
            filler.close()
    assert answer == Answer(Outcome.FAILURE, f"dial tcp 127.0.0.1:{port}: i/o timeout", timed_out=True)


def test_a_name_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror("no")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    answer = probing.run(probe_io.tcp("nowhere.example", 80))
    assert answer == Answer(Outcome.FAILURE, "dial tcp: lookup nowhere.example: no such host")


def test_slow_name_lookups_are_bounded_and_delay_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: release.wait(20) and [])
    try:
        tries = [probing.run(probe_io.tcp("slow.example", 80), 0.02) for _ in range(probe_io.MAX_LOOKUPS + 1)]
        assert [t.timed_out for t in tries] == [True] * probe_io.MAX_LOOKUPS + [False]
        assert tries[-1].text.endswith("too many lookups under way")
    finally:
        release.set()
        probing.wait_until(lambda: not any(t.name.startswith("lookup") for t in threading.enumerate()))
