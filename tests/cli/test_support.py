"""The archive to send home: complete, readable, and without a secret."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from edgelet.cli import support
from edgelet.cli.main import main
from tests.support.serving import pod, running, serving

SECRET = "hunter2-very-secret"


def files(path: Path) -> dict[str, str]:
    """What is in the archive, without the outer directory."""
    with tarfile.open(path) as tar:
        found = {}
        for member in tar.getmembers():
            file = tar.extractfile(member)
            assert file is not None
            assert member.mode == 0o600
            found[member.name.partition("/")[2]] = file.read().decode()
        return found


def test_the_archive_holds_what_a_helper_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "COMMANDS", {"echo.txt": ("echo", "hello"), "none.txt": ("/no/such/command",)})
    out = tmp_path / "out.tar.gz"
    with serving(tmp_path) as rig:
        rig.store.put(pod(), running())
        assert main(["--socket", rig.socket, "support", "--file", str(out)]) == 0
    assert out.stat().st_mode & 0o777 == 0o600
    found = files(out)
    assert json.loads(found["pods.json"])["items"][0]["metadata"]["name"] == "web-edge1"
    assert set(support.ANSWERS) <= set(found)
    assert found["echo.txt"] == "hello\n"
    assert found["none.txt"].startswith("could not be had: ")
    assert "kubelet_running_pods" in found["metrics.txt"]


def test_without_an_agent_the_rest_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "COMMANDS", {})
    out = tmp_path / "out.tar.gz"
    assert main(["--socket", str(tmp_path / "none"), "support", "--file", str(out)]) == 0
    found = files(out)
    assert "it is not running" in found["status.json"]
    assert "Linux" in found["files/proc/version"]


@pytest.mark.parametrize(
    "value",
    [
        {"env": [{"name": "DB", "value": SECRET}]},
        {"httpHeaders": [{"name": "X", "value": SECRET}]},
        {"data": {"a": SECRET}},
        {"stringData": {"a": SECRET}},
        {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": SECRET}}},
        {"metadata": {"annotations": {"example.com/api-token": SECRET}}},
        {"command": ["sh", "-c", f"login --password={SECRET}"]},
        {"message": f"cannot get https://user:{SECRET}@fleet.example/pods"},
        {"message": f"Authorization: Bearer {SECRET}"},
        [{"x": [f"token: {SECRET}"]}],
    ],
    ids=str,
)
def test_secrets_are_hidden_and_the_rest_stays(value: object) -> None:
    found = support.redacted({"kept": "visible", "value": value})
    assert SECRET not in json.dumps(found)
    assert found["kept"] == "visible"


def test_keys_are_hidden_in_texts() -> None:
    text = f"before -----BEGIN EC PRIVATE KEY-----\n{SECRET}\n-----END EC PRIVATE KEY----- after"
    assert support.hidden(text) == "before (hidden) after"


def test_long_files_are_cut_at_their_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "MOST_BYTES", 10)
    with tarfile.open(fileobj=io.BytesIO(support.archive("x", iter([("a", "0123456789abcdef")])))) as tar:
        file = tar.extractfile("x/a")
        assert file is not None
        assert file.read() == b"6789abcdef"
