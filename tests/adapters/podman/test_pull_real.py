"""Pulling through real Podman from a registry of three files on loopback."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgelet import errors
from edgelet.adapters import podman
from tests.support.podman_env import PodmanEnv, SystemClock, image_tar

pytestmark = pytest.mark.podman
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def image_files() -> dict[str, bytes]:
    """A registry's answers by path, for localhost:PORT/demo/app:1."""
    tar = image_tar()
    layer = gzip.compress(tar, mtime=0)
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"User": "1000", "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [digest(tar)]},
        }
    ).encode()
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": _blob("application/vnd.docker.container.image.v1+json", config),
            "layers": [_blob("application/vnd.docker.image.rootfs.diff.tar.gzip", layer)],
        }
    ).encode()
    manifests = {f"/v2/demo/app/manifests/{name}": manifest for name in ("1", digest(manifest))}
    return {"/v2/": b"{}", **manifests, **{f"/v2/demo/app/blobs/{digest(b)}": b for b in (config, layer)}}


def _blob(kind: str, data: bytes) -> dict[str, object]:
    return {"mediaType": kind, "size": len(data), "digest": digest(data)}


class Registry(http.server.ThreadingHTTPServer):
    """Serves `files`; what is in `refuse` gets 401."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = image_files()
        self.name = f"localhost:{self.server_address[1]}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Registry

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        data = self.server.files.get(self.path)
        self.send_response(200 if data is not None else 404)
        self.send_header("Content-Type", MANIFEST if "manifests" in self.path else "application/octet-stream")
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        if body and data:
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def registry() -> Iterator[Registry]:
    server = Registry()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def runtime(podman_env: PodmanEnv, registry: Registry, tmp_path: Path) -> Iterator[podman.Podman]:
    conf = tmp_path / "registries.conf"
    conf.write_text(f'[[registry]]\nlocation = "{registry.name}"\ninsecure = true\n')
    environ = {**os.environ, "CONTAINERS_REGISTRIES_CONF": str(conf)}
    service = podman.Service(None, str(tmp_path / "run"), storage=podman_env.storage, environ=environ)
    yield podman.Podman(service, "pull", podman_env.layout, SystemClock(), boot_id="b")
    service.stop()


def test_an_image_is_pulled_and_known(runtime: podman.Podman, registry: Registry) -> None:
    reference = f"{registry.name}/demo/app:1"
    assert runtime.image(reference) is None
    pulled = runtime.pull(reference)
    assert pulled.user == "1000"
    assert pulled.digest == f"{registry.name}/demo/app@{digest(registry.files['/v2/demo/app/manifests/1'])}"
    assert runtime.image(reference) == pulled


def test_a_tag_that_is_not_there(runtime: podman.Podman, registry: Registry) -> None:
    with pytest.raises(errors.PullFailed, match=f"cannot pull {registry.name}/demo/app:2: .*manifest") as caught:
        runtime.pull(f"{registry.name}/demo/app:2")
    assert caught.value.reason == "ErrImagePull"


def test_a_blob_that_is_broken_is_not_taken(runtime: podman.Podman, registry: Registry) -> None:
    broken = {p: b[:-1] + b"x" for p, b in registry.files.items() if "blobs" in p}
    registry.files.update(broken)
    with pytest.raises(errors.PullFailed):
        runtime.pull(f"{registry.name}/demo/app@{digest(registry.files['/v2/demo/app/manifests/1'])}")


def test_a_registry_that_is_down(runtime: podman.Podman, registry: Registry) -> None:
    registry.shutdown()
    registry.server_close()
    with pytest.raises(errors.PullFailed, match="connection refused") as caught:
        runtime.pull(f"{registry.name}/demo/app:1")
    assert caught.value.reason == "RegistryUnavailable"


def test_a_name_that_is_none(runtime: podman.Podman) -> None:
    with pytest.raises(errors.PullFailed) as caught:
        runtime.pull("localhost/UPPER:1")
    assert caught.value.reason == "InvalidImageName"
