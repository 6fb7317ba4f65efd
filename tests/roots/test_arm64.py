"""edgelet on arm64, emulated: installed, asked, and started before a stand-in for Podman (`make test-arm64`)."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from edgelet import __version__

ROOT = os.environ.get("EDGELET_ARM64_ROOT", "")
pytestmark = [
    pytest.mark.skipif(not ROOT, reason="needs a Debian for arm64: make test-arm64"),
    pytest.mark.timeout(1800),
]

TOP = Path(__file__).parents[2]
MANIFEST = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: 'x:1'}]}\n"
WITHOUT = "podman,netavark,aardvark-dns,catatonit"
"""Dependencies that would have to be emulated too."""
INSTALL = f"dpkg -i --ignore-depends={WITHOUT} /src/edgelet.deb >/dev/null 2>&1"
START = """
cp /src/web.yaml /etc/kubernetes/manifests
edgelet run --podman-socket=/src/podman.sock --node-name=n1 >/tmp/agent.log 2>&1 &
agent=$!
trap "kill $agent 2>/dev/null || true; cat /tmp/agent.log >&2" EXIT
for i in $(seq 300); do
    grep -q "no room" /tmp/agent.log && edgelet get pods -o json >/tmp/pods.json && break
    kill -0 $agent || break
    sleep 1
done
kill $agent || true
wait $agent || true
cat /tmp/pods.json
"""


class StandIn(BaseHTTPRequestHandler):
    """Answers as a Podman that has nothing and can make nothing; notes what it was asked."""

    protocol_version = "HTTP/1.1"
    asked: list[str]

    def do_GET(self) -> None:
        if self.path.split("?")[0].endswith(("pods/json", "containers/json", "networks/json")):
            self._answer(200, [])
        else:
            kind = "image" if "/images/" in self.path else "network"
            self._answer(404, {"cause": f"no such {kind}", "message": f"no such {kind}", "response": 404})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.split("?")[0].endswith("pods/create"):
            self._answer(500, {"cause": "no room", "message": "no room", "response": 500})
        else:
            self._answer(200, {"name": "edgelet", "id": "0" * 64, "error": ""})

    def _answer(self, status: int, body: object) -> None:
        self.asked.append(f"{self.command} {self.path.split('?')[0]}")
        data = json.dumps(body).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def address_string(self) -> str:
        return "unix"

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


@contextlib.contextmanager
def stand_in(path: Path) -> Iterator[list[str]]:
    """A listening stand-in; gives what it was asked so far."""
    asked: list[str] = []
    handler = type("Handler", (StandIn,), {"asked": asked})
    with Server(str(path), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield asked
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the root sees at /src."""
    place = tmp_path_factory.mktemp("src")
    shutil.copy(max((TOP / "dist").glob("edgelet_*_all.deb"), key=lambda p: p.stat().st_mtime), place / "edgelet.deb")
    (place / "web.yaml").write_text(MANIFEST)
    return place


def inside(shared: Path, script: str) -> str:
    """What a shell script said, run in a fresh copy of the root with the package in it."""
    command = ["bash", "-euc", '. "$1"; shift; enter "$@"', "inside", str(TOP / "tests/roots/root.sh"), ROOT]
    words = ["timeout", "1200", *command, str(shared), "sh", "-euc", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_installs_tells_its_version_and_validates(shared: Path) -> None:
    said = inside(shared, f"{INSTALL}; uname -m; edgelet --version; edgelet validate /src/web.yaml")
    assert said.splitlines() == ["aarch64", f"edgelet {__version__}", "1 file, 1 pod: 0 errors, 0 warnings"]


def test_the_agent_starts_and_asks_podman(shared: Path) -> None:
    with stand_in(shared / "podman.sock") as asked:
        said = inside(shared, INSTALL + START)
    (web,) = json.loads(said)["items"]
    assert (web["metadata"]["name"], web["status"]["phase"]) == ("web-n1", "Pending")
    assert {"GET /v4.0.0/libpod/pods/json", "POST /v4.0.0/libpod/pods/create"} <= set(asked)


@pytest.mark.skipif(not (TOP / "dist/edgelet.pyz").exists(), reason="make binary has not been run")
def test_the_archive_runs_without_the_package(shared: Path) -> None:
    shutil.copy(TOP / "dist" / "edgelet.pyz", shared)
    script = "uname -m; python3 -I /src/edgelet.pyz --version; python3 -I /src/edgelet.pyz validate /src/web.yaml"
    said = inside(shared, script)
    assert said.splitlines() == ["aarch64", f"edgelet {__version__}", "1 file, 1 pod: 0 errors, 0 warnings"]
