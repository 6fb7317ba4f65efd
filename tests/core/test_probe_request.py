"""What a probe sends: URLs, requests, addresses, argv and the kubelet's texts, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.core import probe_request
from edgelet.core.probe_request import BadRequest, Url
from edgelet.model.pod import Container, EnvVar, Exec, HttpGet, Port, TcpSocket

BOX = Container("web", "i", ports=(Port(8080, name="http"), Port(9443, name="tls")), env=(EnvVar("WHO", "me"),))


@pytest.mark.parametrize(
    ("action", "ip", "text"),
    [
        (HttpGet(80), "10.88.0.2", "http://10.88.0.2:80/"),
        (HttpGet(80), "", "http://127.0.0.1:80/"),
        (HttpGet("http", "/healthz?full=1&x=a b"), "10.0.0.1", "http://10.0.0.1:8080/healthz?full=1&x=a%20b"),
        (HttpGet("tls", "ready", "HTTPS"), "fd00::2", "https://[fd00::2]:9443/ready"),
        (HttpGet(80, host="example.com"), "10.0.0.1", "http://example.com:80/"),
        (HttpGet(80, host="[::1]"), "10.0.0.1", "http://[::1]:80/"),
        (HttpGet("8081"), "10.0.0.1", "http://10.0.0.1:8081/"),
        (HttpGet(80, "/a%20b#part"), "10.0.0.1", "http://10.0.0.1:80/a%20b"),
    ],
)
def test_url(action: HttpGet, ip: str, text: str) -> None:
    assert str(probe_request.http_url(action, BOX, ip)) == text


def test_tcp_address() -> None:
    assert probe_request.tcp_address(TcpSocket("http"), BOX, "10.0.0.1") == ("10.0.0.1", 8080)
    assert probe_request.tcp_address(TcpSocket(22, "10.9.9.9"), BOX, "10.0.0.1") == ("10.9.9.9", 22)
    assert probe_request.tcp_address(TcpSocket(22, "[::1]"), BOX, "10.0.0.1") == ("::1", 22)
    assert probe_request.tcp_address(TcpSocket(22), BOX, "") == ("127.0.0.1", 22)


@pytest.mark.parametrize(
    ("port", "text"),
    [
        ("nope", 'couldn\'t find port "nope"'),
        (0, "invalid port number: 0"),
        (65536, "invalid port number: 65536"),
        (-1, "invalid port number: -1"),
    ],
)
def test_a_port_that_is_none(port: int | str, text: str) -> None:
    with pytest.raises(BadRequest, match=text):
        probe_request.port_number(port, BOX)


def test_the_ends_of_the_port_range() -> None:
    assert [probe_request.port_number(port, BOX) for port in (1, "1", 65535)] == [1, 1, 65535]


def sent(headers: tuple[tuple[str, str], ...]) -> list[str]:
    host = probe_request.host_header(headers)
    data = probe_request.http_bytes(Url("http", "10.0.0.1", 80, "/x"), headers, host)
    assert data.endswith(b"\r\n\r\n")
    return data.decode().split("\r\n")[:-2]


DEFAULTS = ["GET /x HTTP/1.1", "Host: 10.0.0.1:80", "User-Agent: kube-probe/1.36", "Accept: */*", "Connection: close"]


@pytest.mark.parametrize(
    ("headers", "change"),
    [
        ((), {}),
        ((("Host", "shop.example"),), {1: "Host: shop.example"}),
        ((("user-agent", "me"),), {2: "User-Agent: me"}),
        ((("User-Agent", ""),), {2: None}),
        ((("Accept", ""),), {3: None}),
        ((("accept", "text/html"),), {3: "Accept: text/html"}),
        ((("content-length", "5"), ("Transfer-Encoding", "chunked")), {}),
        ((("Connection", "close"),), {}),
    ],
    ids=["defaults", "host", "agent", "no-agent", "no-accept", "accept", "no-smuggling", "close-once"],
)
def test_request_headers(headers: tuple[tuple[str, str], ...], change: dict[int, str | None]) -> None:
    expected = [change.get(at, line) for at, line in enumerate(DEFAULTS)]
    assert sent(headers) == [line for line in expected if line is not None]


def test_other_headers_are_sorted_canonical_and_may_come_twice() -> None:
    lines = sent((("x-token", "b"), ("Authorization", "Basic x"), ("X-TOKEN", "c")))
    assert lines[3:-1] == ["Accept: */*", "Authorization: Basic x", "X-Token: b", "X-Token: c"]


@pytest.mark.parametrize("header", [("X", "a\r\nEvil: 1"), ("X Y", "a"), ("", "a"), ("X:", "a"), ("X", "a\nb")])
def test_a_header_cannot_break_out(header: tuple[str, str]) -> None:
    with pytest.raises(BadRequest, match="net/http: invalid header field"):
        sent((header,))


@given(st.text(max_size=40))
def test_no_path_can_break_the_request_line(path: str) -> None:
    url = probe_request.http_url(HttpGet(80, path), BOX, "10.0.0.1")
    lines = probe_request.http_bytes(url, ()).decode().split("\r\n")
    assert len(lines) == 7 and lines[0].split(" ") == ["GET", url.path, "HTTP/1.1"]


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/login", "http://10.0.0.1:8080/login"),
        ("next?a=1", "http://10.0.0.1:8080/dir/next?a=1"),
        ("http://10.0.0.1/", "http://10.0.0.1:80/"),
        ("https://10.0.0.1:8443/x", "https://10.0.0.1:8443/x"),
        ("https://10.0.0.1", "https://10.0.0.1:443/"),
        ("//10.0.0.1:81/y", "http://10.0.0.1:81/y"),
        ("http://elsewhere/", None),
        ("http://10.0.0.2:8080/", None),
    ],
)
def test_redirects_stay_on_the_host_name(location: str, expected: str | None) -> None:
    target = probe_request.redirected(Url("http", "10.0.0.1", 8080, "/dir/page"), location)
    assert (str(target) if target else None) == expected


@pytest.mark.parametrize("location", ["ftp://10.0.0.1/", "http://10.0.0.1:99999999/", "http://[::1/"])
def test_a_redirect_to_nowhere(location: str) -> None:
    with pytest.raises(BadRequest):
        probe_request.redirected(Url("http", "10.0.0.1", 8080, "/"), location)


def test_redirect_on_an_ipv6_host() -> None:
    assert str(probe_request.redirected(Url("http", "fd00::2", 80, "/"), "/x")) == "http://[fd00::2]:80/x"


def test_command_expands_from_literal_env_only() -> None:
    assert probe_request.command(Exec(("sh", "-c", "echo $(WHO) $(PATH) $$(WHO)")), BOX)[2] == "echo me $(PATH) $(WHO)"
    plain = ("true",)
    assert probe_request.command(Exec(plain), BOX) is plain


@pytest.mark.parametrize(
    ("seconds", "text"), [(1, "1s"), (59, "59s"), (60, "1m0s"), (90, "1m30s"), (3600, "1h0m0s"), (3725, "1h2m5s")]
)
def test_durations_as_go_writes_them(seconds: int, text: str) -> None:
    assert probe_request.duration(seconds) == text


def test_pain_22_text_of_a_command_that_took_too_long() -> None:
    assert probe_request.exec_timeout(("sleep", "20"), 2) == 'command timed out: "sleep 20" timed out after 2s'
    assert probe_request.quoted("a\r\tb") == '"a\\r\\tb"'
    assert probe_request.quoted('a"b\\\n\x01é') == '"a\\"b\\\\\\n\\x01é"'
