"""What becomes of each mirror pod, and what it is made of (semantics 7.4), with values only."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.core import mirror_pods
from edgelet.core.mirror_pods import Local, Remote, Step
from edgelet.model.pod import Container, Pod, PodKey
from edgelet.model.status import PodStatus

Json = dict[str, Any]
WEB = Pod("web-n1", "default", "u" * 32, "1-abc", "file", (Container("app", "i"),), short_name="web")
HERE = Local(WEB, PodStatus("Running"), 5.0)
THERE = Remote(WEB.key, "api-uid", "7", "1-abc", "file", "node-uid")
SEEN = "2023-11-14T22:13:20Z"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def written(meta: Json | None = None, spec: Json | None = None, source: str = "file") -> Local:
    """A pod of this box whose manifest says that."""
    document = json.dumps({"metadata": {"name": "web", **(meta or {})}, "spec": spec or {}})
    return replace(HERE, pod=replace(WEB, document=document, source=source))


def made(local: Local, seen: str | None = SEEN) -> Json:
    """Its mirror."""
    return mirror_pods.body(local, "n1", "node-uid", seen)


def notes(local: Local, seen: str | None = SEEN) -> Json:
    """The annotations of its mirror."""
    return dict(made(local, seen)["metadata"]["annotations"])


# ---- which step ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("local", "there", "gone", "step"),
    [
        (HERE, None, False, Step.CREATE),
        (replace(HERE, status=PodStatus("Running", deleting=3.0)), None, False, Step.NOTHING),
        (HERE, THERE, False, Step.STATUS),
        (HERE, replace(THERE, deleting=True), False, Step.DELETE),
        (HERE, replace(THERE, hash="1-old"), False, Step.DELETE),
        (HERE, replace(THERE, owner="old-node"), False, Step.DELETE),
        (HERE, replace(THERE, hash=None), False, Step.TAKEN),
        (None, THERE, False, Step.NOTHING),
        (None, THERE, True, Step.DELETE),
        (None, None, True, Step.NOTHING),
        (None, replace(THERE, hash=None), True, Step.NOTHING),
        (None, replace(THERE, hash=None, deleting=True), False, Step.DELETE),
        (None, replace(THERE, deleting=True), False, Step.NOTHING),
    ],
)
def test_7_4_what_becomes_of_a_mirror(local: Local | None, there: Remote | None, gone: bool, step: Step) -> None:
    assert mirror_pods.decide(local, there, "node-uid", gone) is step


def test_only_a_submitted_pod_gets_the_nodes_suffix() -> None:
    assert mirror_pods.key_of(WEB, "n1") == WEB.key
    assert mirror_pods.key_of(replace(WEB, name="web", source="api"), "n1") == PodKey("default", "web-n1")


# ---- 7.4.1, what a mirror is made of ---------------------------------------------------------------


def test_7_4_1_a_mirror_is_a_copy_of_the_pod_that_is_bound_to_this_node() -> None:
    spec = {"hostNetwork": True, "containers": [{"name": "app", "image": "i"}]}
    found = made(written({"labels": {"app": "web"}, "annotations": {"note": "x"}}, spec))
    assert (found["apiVersion"], found["kind"]) == ("v1", "Pod")
    assert found["spec"] == {**spec, "nodeName": "n1"}
    assert (found["metadata"]["name"], found["metadata"]["namespace"]) == ("web-n1", "default")
    assert found["metadata"]["labels"] == {"app": "web"}
    assert found["metadata"]["annotations"]["note"] == "x"


def test_7_4_1_a_mirror_has_its_hash_and_source_and_the_time_it_was_seen_as_annotations() -> None:
    assert notes(written()) == {
        "kubernetes.io/config.mirror": "1-abc",
        "kubernetes.io/config.hash": "1-abc",
        "kubernetes.io/config.source": "file",
        "kubernetes.io/config.seen": SEEN,
    }
    assert "kubernetes.io/config.seen" not in notes(written(), seen=None)


def test_7_4_1_its_one_owner_is_the_live_node() -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "node-uid", "controller": True}
    assert made(written())["metadata"]["ownerReferences"] == [owner]


def test_7_4_1_an_uid_or_status_of_the_manifest_is_not_sent_and_no_labels_are_no_labels() -> None:
    found = made(written({"uid": "mine", "labels": {}, "finalizers": ["a"]}))
    assert {*found} == {"apiVersion", "kind", "metadata", "spec"}
    assert {*found["metadata"]} == {"name", "namespace", "annotations", "ownerReferences"}


def test_a_mirror_of_a_pod_from_the_api_has_the_nodes_suffix() -> None:
    local = written(source="api")
    submitted = replace(local, pod=replace(local.pod, name="web"))
    assert made(submitted)["metadata"]["name"] == "web-n1"


def test_what_kubectl_noted_of_the_manifest_is_not_copied() -> None:
    assert LAST_APPLIED not in notes(written({"annotations": {LAST_APPLIED: '{"secrets": "of the manifest"}'}}))


def test_a_manifest_with_nothing_in_it_has_a_mirror_too() -> None:
    empty = replace(HERE, pod=replace(WEB, document='{"metadata": null, "spec": null}'))
    found = made(empty)
    assert (found["spec"], found["metadata"]["name"]) == ({"nodeName": "n1"}, "web-n1")


@given(
    st.dictionaries(
        st.sampled_from(["kubernetes.io/config.mirror", "kubernetes.io/config.hash", "note"]), st.text(max_size=3)
    ),
    st.sampled_from(["file", "http", "api"]),
)
def test_7_4_1_whatever_a_manifest_claims_its_mirror_is_known_for_what_it_is(claims: Json, source: str) -> None:
    """What was created is found again: by its hash, owner and source, so that it is left as it is."""
    local = written({"annotations": claims}, source=source)
    body = made(local)
    there = mirror_pods.remote({"metadata": {**body["metadata"], "uid": "api-uid"}})
    assert there.key == mirror_pods.key_of(local.pod, "n1")
    assert (there.hash, there.source, there.owner) == ("1-abc", source, "node-uid")
    assert mirror_pods.decide(local, there, "node-uid", gone=False) is Step.STATUS


# ---- what it lacks ---------------------------------------------------------------------------------


def test_what_the_server_would_refuse_is_left_out_and_listed_in_an_annotation() -> None:
    local = written(spec={"serviceAccountName": "robot", "priorityClassName": "high", "hostPID": True})
    assert made(local)["spec"] == {"hostPID": True, "nodeName": "n1"}
    assert notes(local)["edgelet.io/not-mirrored"] == "spec.serviceAccountName; spec.priorityClassName"


@pytest.mark.parametrize("length", [4096, 4097])
def test_a_list_that_is_too_long_for_an_annotation_is_cut(length: int) -> None:
    name = "v" * (length - len("spec.volumes[] (csi)"))
    whole = f"spec.volumes[{name}] (csi)"
    listed = notes(written(spec={"volumes": [{"name": name, "csi": {}}]}))["edgelet.io/not-mirrored"]
    assert listed == (whole if length == 4096 else whole[:4093] + "...")


# ---- what is there ---------------------------------------------------------------------------------


def test_a_mirror_is_known_by_its_metadata_alone() -> None:
    owners = [{"kind": "Lease", "uid": "x"}, {"kind": "Node", "uid": "node-uid"}]
    meta = {
        "name": "web-n1", "namespace": "default", "uid": "api-uid", "resourceVersion": "7", "ownerReferences": owners,
        "annotations": {"kubernetes.io/config.mirror": "1-abc", "kubernetes.io/config.source": "file"},
    }  # fmt: skip
    assert mirror_pods.remote({"metadata": meta}) == THERE
    assert mirror_pods.remote({"metadata": {**meta, "deletionTimestamp": SEEN}}) == replace(THERE, deleting=True)


def test_a_pod_without_the_annotation_is_no_mirror_and_one_with_an_empty_one_is() -> None:
    bare = {"name": "p", "uid": "u"}
    assert mirror_pods.remote({"metadata": bare}) == Remote(PodKey("", "p"), "u")
    for nothing in ({"annotations": None, "ownerReferences": None}, {"ownerReferences": [{"kind": "Node"}]}):
        assert mirror_pods.remote({"metadata": {**bare, **nothing}}) == Remote(PodKey("", "p"), "u")
    empty = {"annotations": {"kubernetes.io/config.mirror": ""}}
    assert mirror_pods.remote({"metadata": {**bare, **empty}}).hash == ""


@pytest.mark.parametrize("meta", [None, "text", {}, {"name": "x"}, {"uid": "u"}, {"name": "", "uid": "u"}])
def test_what_is_no_pod_is_refused(meta: object) -> None:
    with pytest.raises(ValueError, match="is no pod"):
        mirror_pods.remote({"metadata": meta})
