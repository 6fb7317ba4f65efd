"""The kubelet's own paths."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgelet import config
from edgelet.adapters.logs.reader import LogReader
from edgelet.app import configz
from edgelet.cli.client import ApiFailure
from edgelet.model.layout import Layout
from tests.support.serving import Rig, pod, running, serving

LOGS = "/containerLogs/default/web-edge1/c"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with serving(tmp_path, LogReader(Layout("", "", ""))) as rig:
        log = tmp_path / "0.log"
        log.write_text("2026-11-30T14:00:00Z stdout F one\n2026-11-30T14:00:01Z stderr F two\n")
        status = running()
        container = dataclasses.replace(status.containers[0], log_path=str(log))
        rig.store.put(pod(), dataclasses.replace(status, containers=(container,)))
        yield rig


def read(rig: Rig, path: str, **query: str) -> bytes:
    """A whole stream."""
    return b"".join(rig.client.chunks(path, query))


def test_a_containers_log_is_read_as_an_api_server_asks_for_it(rig: Rig) -> None:
    assert read(rig, LOGS) == b"one\ntwo\n"
    assert read(rig, LOGS, tailLines="1") == b"two\n"
    assert read(rig, LOGS, tail="1", timestamps="true") == b"2026-11-30T14:00:01Z two\n"
    assert read(rig, LOGS, tail="all", limitBytes="3") == b"one"
    assert read(rig, "/containerLogs/default/web-edge1/uid-web/c") == b"one\ntwo\n"


@pytest.mark.parametrize(
    ("path", "query", "code"),
    [
        ("/containerLogs/default/none/c", {}, 404),
        ("/containerLogs/default/web-edge1/none", {}, 404),
        ("/containerLogs/default/web-edge1/..%2F..%2Fetc%2Fpasswd", {}, 404),
        ("/containerLogs/..%2f..%2fetc/passwd/c", {}, 404),
        (LOGS, {"tailLines": "x"}, 400),
        (LOGS, {"sinceSeconds": "1", "sinceTime": "2026-01-01T00:00:00Z"}, 422),
        (LOGS, {"stream": "Stdout"}, 422),
        (LOGS, {"previous": "true"}, 400),
        ("/exec/default/web-edge1/c", {"command": "sh"}, 400),
        ("/exec/default/web-edge1/none", {"command": "sh"}, 404),
        ("/logs/", {}, 405),
        ("/logs/syslog", {}, 405),
        ("/run/default/web-edge1/c", {"cmd": "sh"}, 405),
        ("/debug/pprof/heap", {}, 405),
    ],
)
def test_what_is_not_there_or_not_offered_is_refused(rig: Rig, path: str, query: dict[str, str], code: int) -> None:
    with pytest.raises(ApiFailure) as failure:
        rig.client.get(path, query)
    assert failure.value.code == code


def test_what_runs_is_told_briefly(rig: Rig) -> None:
    found = rig.client.get("/runningpods/")["items"]
    assert found[0]["metadata"]["name"] == "web-edge1"
    assert found[0]["spec"]["containers"] == [{"name": "c", "image": "localhost/bb:1", "resources": {}}]


def test_settings_are_shown_without_secrets() -> None:
    settings = config.Settings(
        static_pod_url=("https://user:secret@fleet.example/pods?token=secret",),
        static_pod_url_header=(("Authorization", "Bearer secret"),),
    )
    found = configz.shown(settings)
    assert found["staticPodURL"] == ["https://fleet.example/pods"]
    assert found["fileCheckFrequency"] == "20s"
    assert found["authentication"]["x509"] == {"clientCAFile": ""}
    assert "secret" not in str(found)


def test_configz_is_a_kubelet_configuration(rig: Rig) -> None:
    assert rig.client.get("/configz")["kubeletconfig"]["kind"] == "KubeletConfiguration"
