"""A real web server for tests: nginx with TLS, ETag, gzip and a password, on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.certificates import Authority, Pair

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
    {extra}
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
        self._pair = authority.issue("nginx")
        self.www = directory / "www"
        self.www.mkdir()
        self._config = directory / "nginx.conf"
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, extra: str = "", pair: Pair | None = None) -> None:
        """Start it, with further directives of the server and another certificate, and wait until it answers."""
        pair, user = pair or self._pair, "user root;" if os.geteuid() == 0 else ""
        words = {"dir": self._directory, "port": self.port, "cert": pair.cert, "key": pair.key}
        self._config.write_text(CONFIG.format(user=user, extra=extra, **words))
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
