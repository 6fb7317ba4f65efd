"""ConfigMaps and Secrets that stand beside pods: everybody sees names and keys, an admin the data."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgelet.adapters.server import peers
from edgelet.adapters.server.cluster import Still
from edgelet.adapters.server.peers import Role, User
from edgelet.cli.client import TABLE, ApiFailure
from edgelet.core import desired
from edgelet.model.objects import LocalObject
from edgelet.ports import Snapshot
from tests.adapters.server.test_submit import ask
from tests.support.serving import Rig, serving

SECRET = "hunter2-very-secret"
OBJECTS = (
    LocalObject("ConfigMap", "default", "settings", {"a.conf": b"x=1\n", "raw": b"\xff\x00"}, {"app": "web"}),
    LocalObject("Secret", "prod", "pull", {"token": SECRET.encode()}, type="example.com/pull"),
    LocalObject("Secret", "default", "plain", {"k": b"v"}),
)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with serving(tmp_path, objects=OBJECTS) as rig:
        yield rig


@pytest.fixture
def viewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "user", lambda sock, group: User("eye", Role.VIEW))


def test_an_admin_sees_the_data(rig: Rig) -> None:
    one = rig.client.get("/api/v1/namespaces/default/configmaps/settings")
    assert (one["data"], one["binaryData"]) == ({"a.conf": "x=1\n"}, {"raw": "/wA="})
    assert one["metadata"]["labels"] == {"app": "web"}
    secret = rig.client.get("/api/v1/namespaces/prod/secrets/pull")
    assert (secret["type"], secret["data"]) == ("example.com/pull", {"token": "aHVudGVyMi12ZXJ5LXNlY3JldA=="})
    assert rig.client.get("/api/v1/namespaces/default/secrets/plain")["type"] == "Opaque"


@pytest.mark.usefixtures("viewer")
def test_a_viewer_sees_names_and_keys_only(rig: Rig) -> None:
    one = rig.client.get("/api/v1/namespaces/default/configmaps/settings")
    assert (one["data"], one["metadata"]["annotations"]) == (
        {"a.conf": "", "raw": ""},
        {"edgelet.io/hidden": "only the role admin sees the data"},
    )
    assert "binaryData" not in one
    assert rig.client.get("/api/v1/namespaces/prod/secrets/pull")["data"] == {"token": None}
    for path in ("/api/v1/secrets", "/api/v1/namespaces/prod/secrets", "/api/v1/secrets?includeObject=Object"):
        for accept in ("application/json", TABLE):
            assert "aHVudGVy" not in str(rig.client.get(path, accept=accept))
            assert SECRET not in str(rig.client.get(path, accept=accept))


def test_lists_and_tables_look_as_in_a_cluster(rig: Rig) -> None:
    assert [i["metadata"]["name"] for i in rig.client.get("/api/v1/secrets")["items"]] == ["pull", "plain"]
    chosen = rig.client.get("/api/v1/secrets", {"fieldSelector": "type=Opaque"})
    assert [i["metadata"]["name"] for i in chosen["items"]] == ["plain"]
    labelled = rig.client.get("/api/v1/configmaps", {"labelSelector": "app=web"})
    assert len(labelled["items"]) == 1
    table = rig.client.get("/api/v1/namespaces/prod/secrets", accept=TABLE)
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Type", "Data", "Age"]
    assert table["rows"][0]["cells"] == ["pull", "example.com/pull", 1, "60m"]
    table = rig.client.get("/api/v1/configmaps", accept=TABLE)
    assert table["rows"][0]["cells"] == ["settings", 2, "60m"]


def test_two_of_one_name_in_two_namespaces_are_two(tmp_path: Path) -> None:
    both = [dataclasses.replace(OBJECTS[2], namespace=n) for n in ("a", "b")]
    with serving(tmp_path, objects=tuple(both)) as rig:
        uids = {i["metadata"]["uid"] for i in rig.client.get("/api/v1/secrets")["items"]}
        assert len(uids) == 2
        spaces = [i["metadata"]["name"] for i in rig.client.get("/api/v1/namespaces")["items"]]
        assert spaces == ["a", "b", "default"]


def test_they_cannot_be_written_or_found_where_they_are_not(rig: Rig) -> None:
    with pytest.raises(ApiFailure) as failure:
        rig.client.get("/api/v1/namespaces/default/secrets/pull")
    assert failure.value.code == 404
    with pytest.raises(ApiFailure) as failure:
        rig.client.post("/api/v1/namespaces/default/secrets", {"kind": "Secret"})
    assert failure.value.code == 405


def test_a_watch_tells_what_comes_changes_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Still, "look_seconds", 0.05)
    have = list(OBJECTS[1:2])
    with serving(tmp_path, objects=lambda: tuple(have)) as rig:
        ticking = threading.Event()
        threading.Thread(target=lambda: _tick(rig, ticking), daemon=True).start()
        watch = rig.client.lines("/api/v1/secrets", {"watch": "1"})
        first = next(watch)
        assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "pull")
        have.append(OBJECTS[2])
        assert next(watch)["type"] == "ADDED"
        have[1] = dataclasses.replace(OBJECTS[2], data={"k": b"new"})
        changed = next(watch)
        assert (changed["type"], changed["object"]["data"]) == ("MODIFIED", {"k": "bmV3"})
        have.pop(0)
        assert next(watch)["type"] == "DELETED"
        ticking.set()


def _tick(rig: Rig, end: threading.Event) -> None:
    """Time goes on."""
    while not end.wait(0.02):
        rig.clock.advance(0.5)


def test_a_watch_of_the_node_is_still_while_only_time_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Still, "look_seconds", 0.05)
    with serving(tmp_path) as rig:
        ticking = threading.Event()
        threading.Thread(target=lambda: _tick(rig, ticking), daemon=True).start()
        told = list(rig.client.lines("/api/v1/nodes", {"watch": "1", "timeoutSeconds": "2"}))
        ticking.set()
    assert [event["type"] for event in told] == ["ADDED"]


def test_of_two_sources_the_stronger_ones_object_counts() -> None:
    weak = dataclasses.replace(OBJECTS[2], data={"k": b"weak"})
    snapshots = {"http:a": Snapshot("http:a", objects=(weak, OBJECTS[0])), "file": Snapshot("file", objects=OBJECTS)}
    found = desired.objects(snapshots, ("file", "http:a", "api"))
    assert found == (OBJECTS[0], OBJECTS[2], OBJECTS[1])
    assert desired.objects(snapshots, ("http:a", "file"))[1] == weak
    assert desired.objects({}, ("file",)) == ()


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/api/v1/namespaces", "none has to be made"),
        ("/api/v1/namespaces/default/configmaps", "beside the pods"),
        ("/api/v1/namespaces/default/secrets", "beside the pods"),
        ("/api/v1/nodes", "edgelet stop POD"),
    ],
)
def test_what_cannot_be_written_says_what_to_do(rig: Rig, path: str, says: str) -> None:
    for method, place in (("POST", path), ("PUT", f"{path}/x"), ("PATCH", f"{path}/x"), ("DELETE", f"{path}/x")):
        answer = ask(rig, method, place, {})
        assert (answer.code, answer.body["reason"]) == (405, "MethodNotAllowed")
        assert says in answer.body["message"]


def test_a_path_that_is_not_there_has_the_empty_details_that_kubectl_looks_into(rig: Rig) -> None:
    answer = ask(rig, "PATCH", "/api/v1/namespaces/default/pods/x/ephemeralcontainers", {})
    assert (answer.code, answer.body["details"]) == (404, {})
