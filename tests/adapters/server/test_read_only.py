"""The read-only port: off unless asked for, and then only what the kubelet shows there (semantics 8.2, column R)."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgelet import config
from edgelet.adapters.server.secure import ReadOnly
from edgelet.app.tls import read_only_port
from tests.support.ports import free_port
from tests.support.serving import pod, running, serving


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    number = free_port()
    with serving(tmp_path, read_only=ReadOnly("127.0.0.1", number, ("edge1", "localhost"))) as rig:
        rig.store.put(pod(), running())
        until = time.monotonic() + 30
        with socket.socket() as probe:
            while probe.connect_ex(("127.0.0.1", number)):
                assert time.monotonic() < until
                time.sleep(0.02)
        yield number


def ask(port: int, path: str, method: str = "GET", host: str = "localhost") -> tuple[int, bytes]:
    """Code and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, headers={"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    "path", ["/healthz", "/livez", "/readyz", "/pods", "/stats/summary", "/metrics", "/metrics/cadvisor"]
)
def test_it_shows_what_the_kubelets_shows(port: int, path: str) -> None:
    assert ask(port, path)[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/pods", "/api/v1/secrets", "/apis/edgelet.io/v1/status", "/configz", "/runningpods", "/version",
        "/containerLogs/default/web-edge1/c", "/exec/default/web-edge1/c", "/logs", "/run/default/web-edge1/c",
        "/apis/edgelet.io/v1/kubeconfig", "/openapi/v3", "/apis",
    ],
)  # fmt: skip
def test_it_shows_no_more(port: int, path: str) -> None:
    assert ask(port, path)[0] == 404
    assert ask(port, path, "POST")[0] in (403, 404)


def test_nothing_is_written_there_and_no_foreign_name_is_taken(port: int) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert ask(port, "/pods", method)[0] == 403
    assert ask(port, "/pods", host="evil.example")[0] == 403
    assert ask(port, "/pods", host=f"127.0.0.1:{port}")[0] == 200


def test_it_is_off_unless_asked_for() -> None:
    assert read_only_port(config.Settings(), "edge1") is None
    asked = read_only_port(config.Settings(read_only_port=10255), "edge1")
    assert asked == ReadOnly("127.0.0.1", 10255, ("edge1", "localhost"))


def test_one_that_is_taken_is_told_and_hurts_nobody(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with serving(tmp_path, read_only=ReadOnly("127.0.0.1", number, ())) as rig:
            until = time.monotonic() + 20
            while not (notes := rig.client.get("/apis/edgelet.io/v1/status")["notes"]) and time.monotonic() < until:
                time.sleep(0.02)
    assert notes[0].startswith(f"cannot serve the read-only port on 127.0.0.1:{number}: ")
