"""The URL source against a real web server: nginx with TLS, ETag, gzip and a password."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgelet.adapters.url import Access, UrlSource
from tests.fakes import FakeClock
from tests.support.certificates import Authority
from tests.support.sources import NODE, Sink, manifest

CONFIG = """
daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
{user}
events {{ worker_connections 64; }}
http {{
  access_log {dir}/access.log; client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2;
  fastcgi_temp_path {dir}/t3; uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;
  types {{ application/yaml yaml; text/html html; }}
  server {{
    listen 127.0.0.1:{port} ssl; ssl_certificate {cert}; ssl_certificate_key {key};
    root {dir}/www; gzip on; gzip_types application/yaml; gzip_min_length 1;
    location /moved.yaml {{ return 301 /pods.yaml; }}
    location /loop.yaml {{ return 302 /loop.yaml; }}
    location /busy.yaml {{ add_header Retry-After 300 always; return 503; }}
    location /secret.yaml {{ if ($http_x_token != "secret") {{ return 403; }} try_files /pods.yaml =404; }}
  }}
}}
"""


class Nginx:
    """A server on loopback whose document root is `www`."""

    def __init__(self, directory: Path, authority: Authority) -> None:
        self._program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if self._program is None:
            pytest.skip("needs nginx (Debian package nginx-light)")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        pair = authority.issue("nginx")
        self.www = directory / "www"
        self.www.mkdir()
        self._config = directory / "nginx.conf"
        user = "user root;" if os.geteuid() == 0 else ""
        text = CONFIG.format(dir=directory, port=self.port, cert=pair.cert, key=pair.key, user=user)
        self._config.write_text(text)
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [str(self._program), "-p", str(self._directory), "-c", str(self._config)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert time.monotonic() < deadline and self._process.poll() is None, "nginx did not start"
                time.sleep(0.02)

    def stop(self) -> None:
        """Stop it and wait."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None

    def served(self) -> list[int]:
        """Status codes so far."""
        lines = (self._directory / "access.log").read_text().splitlines()
        return [int(line.split('" ')[1].split()[0]) for line in lines]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


@pytest.fixture
def nginx(tmp_path: Path, authority: Authority) -> Iterator[Nginx]:
    made = Nginx(tmp_path, authority)
    (made.www / "pods.yaml").write_text(manifest("web"))
    made.start()
    yield made
    made.stop()


class Box:
    """One source on one path of nginx."""

    def __init__(self, tmp: Path, nginx: Nginx, ca: str, path: str = "pods.yaml") -> None:
        self.sink, self.clock = Sink(), FakeClock()
        access = Access((("X-Token", "secret"),), ca_file=ca)
        url = f"https://127.0.0.1:{nginx.port}/{path}"
        self.source = UrlSource(url, NODE, self.sink, self.clock, str(tmp / "store"), access=access)
        self.source.begin()

    def poll(self) -> dict[str, str]:
        """The next request; what runs then."""
        self.clock.advance(max(0.0, self.source.wake_at() - self.clock.monotonic()))
        self.source.step()
        return self.sink.images()


def test_content_unchanged_changed_broken_and_restored(tmp_path: Path, nginx: Nginx, authority: Authority) -> None:
    box = Box(tmp_path, nginx, authority.ca)
    assert [box.poll(), box.poll(), box.poll()] == [{"web": "one"}] * 3
    assert nginx.served() == [200, 304, 304]
    (nginx.www / "pods.yaml").write_text(manifest("web", "two") + "# longer\n")
    assert box.poll() == {"web": "two"}
    before = box.sink.last.pods
    for bad in ("", "<html>", manifest("web", "three")[:40]):
        (nginx.www / "pods.yaml").write_text(bad)
        box.poll()
        assert box.sink.last.pods == before and not box.source.state().ok
    os.unlink(nginx.www / "pods.yaml")
    box.poll()
    assert "answers 404" in box.source.state().message and box.sink.last.pods == before
    (nginx.www / "pods.yaml").write_text(manifest("web", "two") + "# longer\n")
    box.poll()
    assert box.sink.last.pods == before and box.source.state().ok


def test_a_server_that_restarts_is_found_again(tmp_path: Path, nginx: Nginx, authority: Authority) -> None:
    box = Box(tmp_path, nginx, authority.ca)
    box.poll()
    nginx.stop()
    assert box.poll() == {"web": "one"} and not box.source.state().ok
    nginx.start()
    assert box.poll() == {"web": "one"} and box.source.state().ok


@pytest.mark.parametrize(
    ("path", "pods", "said"),
    [
        ("moved.yaml", {"web": "one"}, ""),
        ("secret.yaml", {"web": "one"}, ""),
        ("loop.yaml", {}, "redirects more than 5 times"),
        ("busy.yaml", {}, "answers 503"),
        ("missing.yaml", {}, "answers 404"),
    ],
)
def test_answers_of_a_real_server(
    tmp_path: Path, nginx: Nginx, authority: Authority, path: str, pods: dict[str, str], said: str
) -> None:
    box = Box(tmp_path, nginx, authority.ca, path)
    assert box.poll() == pods
    assert said in box.source.state().message
    if path == "busy.yaml":
        assert box.source.wake_at() - box.clock.monotonic() >= 300
