"""What a mirror's spec keeps and lacks: an API server refuses all that refers to other objects (semantics 7.4.1)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.core import mirror_spec

Json = dict[str, Any]

_SOURCES: list[Json] = [
    {"configMap": {"name": "c"}}, {"secret": {"secretName": "s"}}, {"emptyDir": {}}, {"hostPath": {"path": "/x"}},
    {"persistentVolumeClaim": {"claimName": "p"}}, {"csi": {"driver": "d"}}, {"ephemeral": {}},
    {"nfs": {"server": "n"}},
    {"projected": {"sources": [{"secret": {}}, {"downwardAPI": {}}]}},
    {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
]  # fmt: skip


def pod(volumes: list[Json], **container: Any) -> Json:
    """A spec of one container "app" that mounts all of the volumes."""
    mounts = [{"name": v["name"], "mountPath": f"/{v['name']}"} for v in volumes]
    return {"volumes": volumes, "containers": [{"name": "app", "volumeMounts": mounts, **container}]}


def kept(spec: Json) -> tuple[Json, Json]:
    """What is left of such a spec, and of its container."""
    found = mirror_spec.acceptable(spec)[0]
    return found, found["containers"][0]


@given(st.lists(st.sampled_from(_SOURCES), max_size=6))
def test_no_mount_is_left_without_its_volume_and_nothing_refused_remains(sources: list[Json]) -> None:
    volumes = [{"name": f"v{i}", **copy.deepcopy(s)} for i, s in enumerate(sources)]
    spec = pod(volumes)
    before = copy.deepcopy(spec)
    found, out = mirror_spec.acceptable(spec)
    assert spec == before
    names = {v["name"] for v in found.get("volumes", ())}
    assert {m["name"] for m in found["containers"][0].get("volumeMounts", ())} == names
    text = json.dumps(found)
    assert not any(word in text for word in ("onfigMap", "secret", "Claim", "csi", "ephemeral", "serviceAccount"))
    assert all(any(f"[{v['name']}]" in o for o in out) for v in volumes if v["name"] not in names)


# ---- fields of the pod -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "serviceAccountName", "serviceAccount", "imagePullSecrets", "resourceClaims", "runtimeClassName", "overhead",
        "preemptionPolicy", "priority", "schedulingGates", "ephemeralContainers",
    ],
)  # fmt: skip
def test_a_field_that_means_another_object_is_left_out_and_listed_once_it_says_something(name: str) -> None:
    assert mirror_spec.acceptable({name: "x", "hostNetwork": True}) == ({"hostNetwork": True}, (f"spec.{name}",))
    assert mirror_spec.acceptable({name: [], "hostNetwork": True}) == ({"hostNetwork": True}, ())


def test_a_priority_class_that_every_server_has_stays_and_its_number_goes() -> None:
    for name in ("system-node-critical", "system-cluster-critical"):
        spec = {"priorityClassName": name, "priority": 2_000_001_000}
        assert mirror_spec.acceptable(spec) == ({"priorityClassName": name}, ("spec.priority",))


def test_a_priority_class_of_somebodys_own_is_left_out_and_listed() -> None:
    assert mirror_spec.acceptable({"priorityClassName": "mine"}) == ({}, ("spec.priorityClassName",))
    assert mirror_spec.acceptable({"priorityClassName": ""}) == ({}, ())


ACCEPTED: Json = {
    "hostNetwork": True,
    "terminationGracePeriodSeconds": 0,
    "enableServiceLinks": False,
    "volumes": [
        {"name": "host", "hostPath": {"path": "/x"}},
        {"name": "own", "emptyDir": {}},
        {"name": "net", "nfs": {"server": "n", "path": "/"}},
        {"name": "image", "image": {"reference": "i"}},
        {"name": "down", "projected": {"defaultMode": 420, "sources": [{"downwardAPI": {"items": []}}]}},
    ],
    "initContainers": [{"name": "init", "image": "i", "volumeMounts": [{"name": "own", "mountPath": "/o"}]}],
    "containers": [
        {
            "name": "app",
            "image": "i",
            "securityContext": {"privileged": True},
            "env": [{"name": "A", "value": ""}, {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "a"}}}],
            "resources": {"limits": {"memory": "1Gi"}},
            "volumeMounts": [{"name": "host", "mountPath": "/h"}],
            "volumeDevices": [{"name": "net", "devicePath": "/d"}],
        }
    ],
}
"""All that a server was seen to accept."""


@given(st.sets(st.sampled_from(sorted(ACCEPTED))))
def test_what_a_server_accepts_is_shown_as_it_is_written(fields: set[str]) -> None:
    spec = {name: ACCEPTED[name] for name in fields}
    assert mirror_spec.acceptable(spec) == (spec, ())


# ---- volumes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["configMap", "secret", "persistentVolumeClaim", "ephemeral", "csi"])
def test_a_volume_of_another_object_goes_with_its_mounts_and_is_listed_with_its_kind(kind: str) -> None:
    spec = pod([{"name": "v", kind: {"name": "x"}}, {"name": "own", "emptyDir": {}}], volumeDevices=[{"name": "v"}])
    found, container = kept(spec)
    assert [v["name"] for v in found["volumes"]] == ["own"]
    assert container == {"name": "app", "volumeMounts": [{"name": "own", "mountPath": "/own"}]}
    assert mirror_spec.acceptable(spec)[1] == (f"spec.volumes[v] ({kind})",)


@pytest.mark.parametrize("kind", ["serviceAccountToken", "configMap", "secret", "clusterTrustBundle", "podCertificate"])
def test_a_projected_volume_loses_the_sources_that_are_refused_and_stays_while_one_is_left(kind: str) -> None:
    sources = [{kind: {"name": "x"}}, {"downwardAPI": {"items": []}}]
    spec = pod([{"name": "v", "projected": {"defaultMode": 420, "sources": sources}}])
    found, container = kept(spec)
    assert found["volumes"] == [{"name": "v", "projected": {"defaultMode": 420, "sources": sources[1:]}}]
    assert [m["name"] for m in container["volumeMounts"]] == ["v"]
    assert mirror_spec.acceptable(spec)[1] == (f"spec.volumes[v] (projected {kind})",)


def test_a_projected_volume_of_which_nothing_is_left_goes_with_its_mounts() -> None:
    sources: list[Json] = [{"secret": {}}, {"configMap": {}}, {"secret": {}}]
    spec = pod([{"name": "v", "projected": {"sources": sources}}])
    assert kept(spec) == ({"containers": [{"name": "app"}]}, {"name": "app"})
    assert mirror_spec.acceptable(spec)[1] == ("spec.volumes[v] (projected configMap, secret)",)


@pytest.mark.parametrize("projected", [{}, {"sources": None}, None, "no object"])
def test_a_projected_volume_without_sources_is_left_to_the_server_to_judge(projected: object) -> None:
    spec = pod([{"name": "v", "projected": projected}])
    assert mirror_spec.acceptable(spec) == (spec, ())


def test_a_volume_without_a_name_is_listed_without_one() -> None:
    assert mirror_spec.acceptable({"volumes": [{"csi": {}}]}) == ({}, ("spec.volumes[] (csi)",))


# ---- containers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["initContainers", "containers"])
@pytest.mark.parametrize("kind", ["configMapKeyRef", "secretKeyRef"])
def test_a_variable_from_another_object_goes_and_its_place_is_listed(where: str, kind: str) -> None:
    env = [{"name": "P", "valueFrom": {kind: {"name": "s", "key": "k"}}}, {"name": "A", "value": "1"}]
    found, out = mirror_spec.acceptable({where: [{"name": "app", "env": env}]})
    assert found == {where: [{"name": "app", "env": env[1:]}]}
    assert out == (f"spec.{where}[app].env[P] ({kind})",)


def test_a_container_whose_variables_all_go_has_no_list_of_them() -> None:
    env: list[Json] = [{"valueFrom": {"secretKeyRef": {}, "configMapKeyRef": {}}}]
    assert mirror_spec.acceptable({"containers": [{"image": "i", "env": env}]}) == (
        {"containers": [{"image": "i"}]},
        ("spec.containers[].env[] (configMapKeyRef, secretKeyRef)",),
    )


def test_all_of_env_from_goes() -> None:
    app = {"name": "app", "envFrom": [{"secretRef": {"name": "s"}}]}
    assert mirror_spec.acceptable({"containers": [app]}) == (
        {"containers": [{"name": "app"}]},
        ("spec.containers[app].envFrom",),
    )


def test_claims_go_and_the_other_resources_stay() -> None:
    app = {"name": "app", "resources": {"claims": [{"name": "gpu"}], "limits": {"cpu": "1"}}}
    assert mirror_spec.acceptable({"containers": [app]}) == (
        {"containers": [{"name": "app", "resources": {"limits": {"cpu": "1"}}}]},
        ("spec.containers[app].resources.claims",),
    )


def test_the_manifest_itself_is_never_changed() -> None:
    env: list[Json] = [{"name": "P", "valueFrom": {"secretKeyRef": {}}}]
    app = {"env": env, "envFrom": [{}], "resources": {"claims": [{"name": "gpu"}]}}
    spec = pod([{"name": "v", "projected": {"sources": [{"secret": {}}, {"downwardAPI": {}}]}}], **app)
    before = copy.deepcopy(spec)
    mirror_spec.acceptable(spec)
    assert spec == before


def test_a_document_is_read_into_an_object_of_its_own() -> None:
    one, two = mirror_spec.parse('{"spec": {}}'), mirror_spec.parse('{"spec": {}}')
    assert one == two == {"spec": {}} and one is not two
