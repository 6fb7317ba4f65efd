"""Pods through the API: create, replace, patch, delete; refusals as a real API server words them."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from edgelet.adapters.server import peers
from edgelet.adapters.server.peers import Role, User
from edgelet.model.pod import PodKey
from tests.support.serving import Rig, pod, running, serving

Json = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with serving(tmp_path) as rig:
        yield rig


@dataclass
class Answer:
    """What came back."""

    code: int
    body: Json
    warnings: list[str] = field(default_factory=list)

    @property
    def message(self) -> str:
        """Of a Status."""
        return str(self.body["message"])


def ask(rig: Rig, method: str, path: str, body: Any = None, kind: str = "application/json") -> Answer:
    """One request; a body that is not bytes is sent as JSON."""
    connection = http.client.HTTPConnection("localhost", timeout=20)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(rig.socket)
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
    connection.request(method, path, data, {"Content-Type": kind})
    response = connection.getresponse()
    found = json.loads(response.read())
    warnings = response.headers.get_all("Warning") or []
    connection.close()
    return Answer(response.status, found, warnings)


def manifest(name: str = "web", image: str = "localhost/bb:1", **meta: Any) -> Json:
    """A pod as a person writes it."""
    spec = {"containers": [{"name": "c", "image": image}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **meta}, "spec": spec}


def test_a_created_pod_is_answered_with_its_defaults_and_listed(rig: Rig) -> None:
    made = ask(rig, "POST", PODS, manifest(labels={"app": "web"}))
    assert (made.code, made.body["kind"], made.body["metadata"]["name"]) == (201, "Pod", "web")
    assert made.body["spec"]["restartPolicy"] == "Always"
    assert made.body["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    got = ask(rig, "GET", f"{PODS}/web")
    assert (got.code, got.body) == (200, made.body)


def test_a_name_can_be_left_to_the_server(rig: Rig) -> None:
    given = manifest()
    given["metadata"] = {"generateName": "job-"}
    names = {ask(rig, "POST", PODS, given).body["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("job-") and len(name) == 9 for name in names)


def test_what_exists_is_not_created_again(rig: Rig) -> None:
    ask(rig, "POST", PODS, manifest())
    again = ask(rig, "POST", PODS, manifest())
    assert (again.code, again.body["reason"], again.message) == (409, "AlreadyExists", 'pods "web" already exists')
    assert again.body["details"] == {"name": "web", "kind": "pods"}


def test_dry_run_changes_nothing(rig: Rig) -> None:
    made = ask(rig, "POST", f"{PODS}?dryRun=All", manifest())
    assert (made.code, made.body["spec"]["restartPolicy"]) == (201, "Always")
    assert ask(rig, "GET", f"{PODS}/web").code == 404
    ask(rig, "POST", PODS, manifest())
    changed = ask(rig, "PUT", f"{PODS}/web?dryRun=All", manifest(image="localhost/other:1"))
    assert changed.body["spec"]["containers"][0]["image"] == "localhost/other:1"
    assert ask(rig, "DELETE", f"{PODS}/web", {"dryRun": ["All"]}).code == 200
    assert ask(rig, "GET", f"{PODS}/web").body["spec"]["containers"][0]["image"] == "localhost/bb:1"
    assert ask(rig, "POST", f"{PODS}?dryRun=Some", manifest("x")).code == 400


def test_unknown_fields_are_refused_warned_about_or_ignored(rig: Rig) -> None:
    given = manifest()
    given["spec"]["containers"][0]["livnessProbe"] = {}
    strict = ask(rig, "POST", f"{PODS}?fieldValidation=Strict", given)
    said = 'unknown field "spec.containers[0].livnessProbe"'
    assert (strict.code, strict.body["reason"]) == (400, "BadRequest")
    assert strict.message.startswith(
        f'Pod in version "v1" cannot be handled as a Pod: strict decoding error: {said}; did you mean'
    )
    assert ask(rig, "GET", f"{PODS}/web").code == 404
    warned = ask(rig, "POST", f"{PODS}?fieldValidation=Warn", given)
    quoted = said.replace('"', '\\"')
    assert warned.code == 201
    assert [w.partition(";")[0] for w in warned.warnings] == [f'299 - "{quoted}']
    given["metadata"]["name"] = "other"
    ignored = ask(rig, "POST", f"{PODS}?fieldValidation=Ignore", given)
    assert (ignored.code, ignored.warnings) == (201, [])
    given["metadata"]["name"] = "third"
    assert ask(rig, "POST", f"{PODS}?fieldValidation=Maybe", given).code == 400


def test_fields_that_are_not_honoured_are_warned_about_and_pass_strict_validation(rig: Rig) -> None:
    given = manifest()
    given["spec"]["priorityClassName"] = "system-node-critical"
    made = ask(rig, "POST", f"{PODS}?fieldValidation=Strict", given)
    assert made.code == 201
    assert [w.split(":")[0] for w in made.warnings] == ['299 - "spec.priorityClassName']


def test_mistakes_are_answered_with_their_fields(rig: Rig) -> None:
    wrong = ask(rig, "POST", PODS, manifest("Web_1"))
    assert (wrong.code, wrong.body["reason"]) == (422, "Invalid")
    assert wrong.message.startswith('Pod "Web_1" is invalid: metadata.name: ')
    assert wrong.body["details"]["causes"][0]["field"] == "metadata.name"
    none = manifest()
    none["spec"] = {"containers": [], "restartPolicy": "Sometimes"}
    fields = [c["field"] for c in ask(rig, "POST", PODS, none).body["details"]["causes"]]
    assert sorted(fields) == ["spec.containers", "spec.restartPolicy"]


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        (b"{", 400, "cannot read the body"),
        (b"", 400, "must hold one object"),
        (b"[]", 400, "must hold one object"),
        (b'{"kind":"Pod"}\n{"kind":"Pod"}', 400, "must hold one object"),
        (b'{"apiVersion":"apps/v1","kind":"Deployment"}', 400, "is the place of v1 Pod"),
        (b'{"metadata":{"name":"x","namespace":"other"}}', 400, "does not match the namespace"),
        (b'{"metadata":7}', 400, "metadata must be a mapping"),
        (b'{"metadata":{"name":"x"}}', 422, "spec"),
        (b"\xff\xfe\x00", 400, "cannot read"),
    ],
    ids=str,
)
def test_bodies_that_are_no_pod_are_refused(rig: Rig, body: bytes, code: int, said: str) -> None:
    answer = ask(rig, "POST", PODS, body)
    assert answer.code == code
    assert said in answer.message


def test_other_media_types_and_verbs_are_refused(rig: Rig) -> None:
    assert ask(rig, "POST", PODS, b"x", "application/vnd.kubernetes.protobuf").code == 415
    assert ask(rig, "PATCH", f"{PODS}/web", {}, "application/json").code == 415
    for method, path in (("PUT", PODS), ("PATCH", PODS), ("DELETE", PODS), ("POST", f"{PODS}/web"), ("POST", "/pods")):
        kind = STRATEGIC if method == "PATCH" else "application/json"
        assert (method, ask(rig, method, path, {}, kind).code) == (method, 405)


def test_replacing_changes_the_pod_and_says_what_a_cluster_would_refuse(rig: Rig) -> None:
    first = ask(rig, "POST", PODS, manifest()).body
    second = ask(rig, "PUT", f"{PODS}/web", manifest(image="localhost/other:1"))
    assert (second.code, second.warnings) == (200, [])
    assert second.body["metadata"]["uid"] != first["metadata"]["uid"]
    given = manifest(image="localhost/other:1")
    given["spec"]["restartPolicy"] = "Never"
    third = ask(rig, "PUT", f"{PODS}/web", given)
    assert third.warnings == ['299 - "the pod is replaced: a running pod cannot change spec.restartPolicy"']
    assert ask(rig, "PUT", f"{PODS}/none", manifest("none")).code == 404


def test_what_was_read_can_be_written_back_and_nothing_changes(rig: Rig) -> None:
    ask(rig, "POST", PODS, manifest(annotations={"a": "b"}))
    seen = ask(rig, "GET", f"{PODS}/web").body
    back = ask(rig, "PUT", f"{PODS}/web", seen)
    assert (back.code, back.body) == (200, seen)


def test_a_stale_version_or_another_uid_is_a_conflict(rig: Rig) -> None:
    ask(rig, "POST", PODS, manifest())
    stale = ask(rig, "PUT", f"{PODS}/web", manifest(resourceVersion="1"))
    assert (stale.code, stale.body["reason"]) == (409, "Conflict")
    assert "the object has been modified" in stale.message
    assert ask(rig, "PUT", f"{PODS}/web", manifest(uid="another")).code == 409
    assert ask(rig, "DELETE", f"{PODS}/web", {"preconditions": {"uid": "another"}}).code == 409
    assert ask(rig, "GET", f"{PODS}/web").code == 200


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        (STRATEGIC, {"spec": {"containers": [{"name": "c", "image": "localhost/other:1"}]}}),
        (MERGE, {"spec": {"containers": [{"name": "c", "image": "localhost/other:1"}]}}),
        (JSON_PATCH, [{"op": "replace", "path": "/spec/containers/0/image", "value": "localhost/other:1"}]),
        (APPLY, manifest(image="localhost/other:1")),
    ],
)
def test_patches_change_the_manifest(rig: Rig, kind: str, patch: Any) -> None:
    ask(rig, "POST", PODS, manifest(labels={"app": "web"}))
    changed = ask(rig, "PATCH", f"{PODS}/web", patch, kind)
    assert (changed.code, changed.body["spec"]["containers"][0]["image"]) == (200, "localhost/other:1")
    assert ("labels" in changed.body["metadata"]) is (kind != APPLY)


def test_a_pointer_into_the_defaults_finds_them(rig: Rig) -> None:
    ask(rig, "POST", PODS, manifest())
    operation = {"op": "replace", "path": "/spec/restartPolicy", "value": "OnFailure"}
    changed = ask(rig, "PATCH", f"{PODS}/web", [operation], JSON_PATCH)
    assert (changed.code, changed.body["spec"]["restartPolicy"]) == (200, "OnFailure")
    missing = ask(rig, "PATCH", f"{PODS}/web", [{"op": "remove", "path": "/spec/none"}], JSON_PATCH)
    assert (missing.code, missing.message) == (422, "the patch cannot be applied: nothing stands at /spec/none")


def test_a_patch_that_says_what_is_there_changes_nothing(rig: Rig) -> None:
    made = ask(rig, "POST", PODS, manifest()).body
    same = ask(rig, "PATCH", f"{PODS}/web", {"spec": {"restartPolicy": "Always"}}, MERGE).body
    assert same == made


def test_server_side_apply_creates_what_is_not_there(rig: Rig) -> None:
    assert ask(rig, "PATCH", f"{PODS}/web?fieldManager=kubectl&force=true", manifest(), APPLY).code == 201
    assert ask(rig, "PATCH", f"{PODS}/none", {"spec": {}}, STRATEGIC).code == 404


def test_a_deleted_pod_is_answered_as_ending(rig: Rig) -> None:
    ask(rig, "POST", PODS, manifest())
    gone = ask(rig, "DELETE", f"{PODS}/web", {"propagationPolicy": "Background", "gracePeriodSeconds": 5})
    meta = gone.body["metadata"]
    assert (gone.code, meta["deletionGracePeriodSeconds"], bool(meta["deletionTimestamp"])) == (200, 5, True)
    assert rig.takers.graces == {PodKey("default", "web"): 5}
    assert ask(rig, "GET", f"{PODS}/web").code == 404
    assert ask(rig, "DELETE", f"{PODS}/web").code == 404
    assert ask(rig, "DELETE", f"{PODS}/web?gracePeriodSeconds=-1").code == 400


def test_an_ending_pod_can_be_hurried_and_its_name_is_taken_until_it_is_gone(rig: Rig) -> None:
    rig.store.put(pod("web"), running(deleting=rig.clock.time()))
    assert ask(rig, "DELETE", f"{PODS}/web-edge1", {"gracePeriodSeconds": 0}).code == 200
    assert rig.takers.graces == {PodKey("default", "web-edge1"): 0}
    taken = ask(rig, "POST", PODS, manifest("web-edge1"))
    assert taken.message == 'object is being deleted: pods "web-edge1" already exists'
    assert ask(rig, "PUT", f"{PODS}/web-edge1", manifest("web-edge1")).code == 409


def test_pods_of_other_sources_are_read_only_and_the_refusal_says_where_to_change_them(rig: Rig) -> None:
    rig.store.put(pod("web"), running())
    said = 'pods "web-edge1" is forbidden: it comes from the source file; change or remove it there'
    for method, body, kind in (
        ("PUT", manifest("web-edge1"), "application/json"),
        ("PATCH", {}, MERGE),
        ("PATCH", manifest("web-edge1"), APPLY),
        ("DELETE", None, "application/json"),
    ):
        answer = ask(rig, method, f"{PODS}/web-edge1", body, kind)
        assert (answer.code, answer.message) == (403, said)
    assert "it comes from the source file" in ask(rig, "POST", PODS, manifest("web-edge1")).message


def test_a_viewer_may_not_write(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "user", lambda _sock, _group: User("uid:1000", Role.VIEW))
    refused = ask(rig, "POST", PODS, manifest())
    assert (refused.code, refused.message) == (
        403,
        'pods is forbidden: User "uid:1000" cannot create resource "pods" in API group "" in the namespace "default"',
    )
    assert "cannot delete" in ask(rig, "DELETE", f"{PODS}/web").message
    assert ask(rig, "POST", "/apis/edgelet.io/v1/apply", manifest()).code == 403
    assert ask(rig, "GET", PODS).code == 200


def test_a_whole_file_is_taken_in_or_nothing_of_it(rig: Rig) -> None:
    text = "\n---\n".join(json.dumps(m) for m in (manifest("a"), manifest("b")))
    done = ask(rig, "POST", "/apis/edgelet.io/v1/apply", text.encode(), "application/yaml")
    assert [(i["name"], i["verb"]) for i in done.body["items"]] == [("a", "created"), ("b", "created")]
    bad = "\n---\n".join(json.dumps(m) for m in (manifest("c"), manifest("D")))
    refused = ask(rig, "POST", "/apis/edgelet.io/v1/apply", bad.encode(), "application/yaml")
    problem = refused.body["details"]["problems"][0]
    assert (refused.code, problem["path"], problem["document"]) == (422, "metadata.name", 2)
    assert ask(rig, "GET", f"{PODS}/c").code == 404


def test_the_answer_does_not_wait_for_ever_for_the_status(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgelet.adapters.server.submit.SHOWN_SECONDS", 0.05)
    monkeypatch.setattr(rig.store, "put", lambda pod, status: None)
    made = ask(rig, "POST", PODS, manifest())
    assert (made.code, made.body["status"]["phase"]) == (201, "Pending")
