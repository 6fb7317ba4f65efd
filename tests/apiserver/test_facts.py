"""What a real API server allows a node to do, sentence by sentence, asked of the fake one and of a real one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apiserver.client import APPLY, MERGE, STRATEGIC, Answer
from tests.apiserver.conftest import PODS, Server

Json = dict[str, Any]
LABEL = "example.com/box"


# ---- the Node object --------------------------------------------------------------------------------


def test_own_node_with_taints_and_own_labels_can_be_created(server: Server) -> None:
    server.admin.delete(server.path)
    node = {
        "metadata": {"name": server.name, "labels": {LABEL: "7", "kubernetes.io/hostname": server.name}},
        "spec": {"taints": [{"key": "edge", "effect": "NoSchedule"}]},
    }
    made = server.node.post("/api/v1/nodes", node)
    assert made.code == 201 and made.body["metadata"]["labels"][LABEL] == "7"
    assert {"key": "edge", "effect": "NoSchedule"} in made.body["spec"]["taints"]


def test_the_server_adds_the_taint_not_ready_at_creation(server: Server) -> None:
    server.admin.delete(server.path)
    made = server.node.post("/api/v1/nodes", {"metadata": {"name": server.name}})
    assert made.body["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC])
def test_the_nodes_status_can_be_patched(server: Server, kind: str) -> None:
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    answer = server.node.patch(f"{server.path}/status", {"status": {"conditions": [condition]}}, kind)
    assert answer.code == 200 and condition.items() <= answer.body["status"]["conditions"][0].items()


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"labels": {LABEL: "8"}}},
        {"metadata": {"annotations": {LABEL: "8"}}},
        {"spec": {"unschedulable": True}},
    ],
    ids=["labels", "annotations", "unschedulable"],
)
def test_own_labels_annotations_and_unschedulable_can_be_patched(server: Server, change: Json) -> None:
    assert server.node.patch(server.path, change).code == 200


def test_a_node_of_another_name_is_refused(server: Server) -> None:
    assert server.node.post("/api/v1/nodes", {"metadata": {"name": "another"}}).code == 403
    server.admin.post("/api/v1/nodes", {"metadata": {"name": "another"}})
    assert server.node.patch("/api/v1/nodes/another/status", {"status": {"phase": ""}}).code == 403


@pytest.mark.parametrize(
    "label", ["node-restriction.kubernetes.io/x", "unknown.kubernetes.io/x", "node-role.kubernetes.io/edge"]
)
def test_labels_of_kubernetes_are_refused_on_update(server: Server, label: str) -> None:
    answer = server.node.patch(server.path, {"metadata": {"labels": {label: "1"}}})
    assert (answer.code, answer.body["reason"]) == (
        403,
        "Forbidden",
    ) and "is not allowed to modify labels" in answer.message


@pytest.mark.parametrize("label", ["node-restriction.kubernetes.io/x", "unknown.kubernetes.io/x"])
def test_labels_of_kubernetes_are_refused_at_creation(server: Server, label: str) -> None:
    server.admin.delete(server.path)
    answer = server.node.post("/api/v1/nodes", {"metadata": {"name": server.name, "labels": {label: "1"}}})
    assert answer.code == 403 and f"is not allowed to set the following labels: {label}" in answer.message


def test_taints_are_not_changed_by_the_node(server: Server) -> None:
    answer = server.node.patch(server.path, {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})
    assert answer.code == 403 and "is not allowed to modify taints" in answer.message


def test_no_node_is_deleted_by_a_node(server: Server) -> None:
    assert server.node.delete(server.path).code == 403
    assert server.node.delete("/api/v1/nodes/another").code == 403


def test_other_nodes_are_not_read(server: Server) -> None:
    answer = server.node.get("/api/v1/nodes/another")
    assert (
        answer.code == 403 and f"node '{server.name}' cannot read 'another', only its own Node object" in answer.message
    )


def test_nodes_are_listed_with_the_own_name_only(server: Server) -> None:
    assert server.node.get("/api/v1/nodes").code == 403
    listed = server.node.get(f"/api/v1/nodes?fieldSelector=metadata.name%3D{server.name}")
    assert listed.code == 200 and [n["metadata"]["name"] for n in listed.body["items"]] == [server.name]


def test_the_own_node_can_be_watched(server: Server) -> None:
    query = f"watch=true&fieldSelector=metadata.name%3D{server.name}&timeoutSeconds=1"
    assert server.node.get(f"/api/v1/nodes?{query}").code == 200
    assert server.node.get("/api/v1/nodes?watch=true&timeoutSeconds=1").code == 403


def test_the_own_node_is_read_before_it_is_there(server: Server) -> None:
    server.admin.delete(server.path)
    assert server.node.get(server.path).code == 404


# ---- creation of mirror pods ------------------------------------------------------------------------


def test_a_mirror_pod_can_be_created(server: Server) -> None:
    assert server.create(server.mirror()).code == 201


def test_the_mirror_annotation_may_be_empty_but_must_be_there(server: Server) -> None:
    pod = server.mirror()
    pod["metadata"]["annotations"] = {"kubernetes.io/config.mirror": ""}
    assert server.create(pod).code == 201
    bare = server.mirror()
    bare["metadata"]["annotations"] = {}
    assert _refused(server.create(bare), "annotation")


def test_the_node_name_must_be_the_own_one(server: Server) -> None:
    assert _refused(server.create(server.mirror(nodeName="another")), "spec.nodeName set to itself")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"apiVersion": "apps/v1"}, "an owner reference set to itself"),
        ({"kind": "Pod"}, "an owner reference set to itself"),
        ({"name": "another"}, "an owner reference set to itself"),
        ({"controller": False}, "a controller owner reference set to itself"),
        ({"blockOwnerDeletion": True}, "must not set blockOwnerDeletion"),
        ({"uid": "833a0fb1-3375-423c-be35-94a52cf0f1f3"}, "UID mismatch"),
    ],
)
def test_the_owner_must_be_the_node(server: Server, change: Json, why: str) -> None:
    pod = server.mirror()
    pod["metadata"]["ownerReferences"][0] |= change
    assert _refused(server.create(pod), why)


@pytest.mark.parametrize("count", [0, 2])
def test_there_must_be_exactly_one_owner(server: Server, count: int) -> None:
    pod = server.mirror()
    owner = pod["metadata"]["ownerReferences"][0]
    pod["metadata"]["ownerReferences"] = [owner, owner | {"uid": "833a0fb1-3375-423c-be35-94a52cf0f1f3"}][:count]
    assert _refused(server.create(pod), "owner reference set to itself")


def test_the_same_owner_twice_counts_once(server: Server) -> None:
    pod = server.mirror()
    pod["metadata"]["ownerReferences"] *= 2
    assert len(server.create(pod).body["metadata"]["ownerReferences"]) == 1


def test_after_the_node_was_made_anew_its_old_uid_is_refused(server: Server) -> None:
    old = server.mirror()
    server.admin.delete(server.path)
    server.register()
    assert _refused(server.create(old), "UID mismatch")
    assert server.create(server.mirror()).code == 201


def test_the_name_must_be_free_and_needs_no_suffix(server: Server) -> None:
    pod = server.mirror()
    assert server.create(pod).code == 201
    again = server.create(pod)
    assert (again.code, again.body["reason"]) == (409, "AlreadyExists")


def test_without_a_node_the_answer_is_404(server: Server) -> None:
    server.admin.delete(server.path)
    pod = server.mirror()
    answer = server.until(lambda: server.node.post(PODS, pod), lambda a: a.code == 404)
    assert answer.code == 404 and f'node "{server.name}" not found' in answer.message


def test_a_namespace_that_is_ending_takes_nothing_new(server: Server) -> None:
    name = server.new_name()
    path = f"/api/v1/namespaces/{name}"
    assert server.admin.post("/api/v1/namespaces", {"metadata": {"name": name}}).code == 201
    server.until(lambda: server.admin.delete(path), lambda a: a.code == 200)
    pod = server.mirror()
    pod["metadata"]["namespace"] = name
    assert _refused(server.node.post(f"{path}/pods", pod), "because it is being terminated")
    assert server.node.post(f"{path}/events", _event("e", "Pod", name, "x")).code == 403
    server.admin.put(f"{path}/finalize", {"metadata": {"name": name}, "spec": {"finalizers": []}})
    assert server.until(lambda: server.admin.get(path), lambda a: a.code == 404).code == 404


def test_without_the_namespace_the_answer_is_404(server: Server) -> None:
    pod = server.mirror()
    pod["metadata"]["namespace"] = "nowhere"
    answer = server.node.post("/api/v1/namespaces/nowhere/pods", pod)
    assert answer.code == 404 and "namespaces" in answer.message
    event = server.node.post("/api/v1/namespaces/nowhere/events", _event("e", "Pod", "nowhere", "x"))
    assert event.code == 404 and "namespaces" in event.message


CONFIG, SECRET = {"name": "v", "configMap": {"name": "x"}}, {"name": "v", "secret": {"secretName": "x"}}
CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "x"}}
TEMPLATE = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
REFUSED: dict[str, Json] = {
    "configMap": {"volumes": [CONFIG]},
    "secret": {"volumes": [SECRET]},
    "claim": {"volumes": [CLAIM]},
    "ephemeral": {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": TEMPLATE}}]},
    "csi": {"volumes": [{"name": "v", "csi": {"driver": "x.example.com"}}]},
    "token": {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
    "projected-configMap": {"volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "x"}}]}}]},
    "serviceAccountName": {"serviceAccountName": "default"},
    "imagePullSecrets": {"imagePullSecrets": [{"name": "x"}]},
    "resourceClaims": {"resourceClaims": [{"name": "a", "resourceClaimName": "b"}]},
    "priorityClass": {"priorityClassName": "unknown"},
    "runtimeClass": {"runtimeClassName": "unknown"},
    "priority": {"priority": 5},
}


@pytest.mark.parametrize("spec", REFUSED.values(), ids=list(REFUSED))
def test_a_mirror_does_not_use_other_objects(server: Server, spec: Json) -> None:
    answer = server.create(server.mirror(**spec))
    assert (answer.code, answer.body["reason"]) == (403, "Forbidden"), answer


@pytest.mark.parametrize("source", ["configMapKeyRef", "secretKeyRef"])
def test_env_of_a_mirror_does_not_come_from_other_objects(server: Server, source: str) -> None:
    env = [{"name": "A", "valueFrom": {source: {"name": "x", "key": "k"}}}]
    assert server.create(server.mirror(containers=[{"name": "c", "image": "i", "env": env}])).code == 403


@pytest.mark.parametrize("source", ["configMapRef", "secretRef"])
def test_env_from_of_a_mirror_does_not_come_from_other_objects(server: Server, source: str) -> None:
    container = {"name": "c", "image": "i", "envFrom": [{source: {"name": "x"}}]}
    assert server.create(server.mirror(containers=[container])).code == 403


def test_ephemeral_containers_are_refused_with_422(server: Server) -> None:
    assert server.create(server.mirror(ephemeralContainers=[{"name": "d", "image": "i"}])).code == 422


FIELD = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}
DOWNWARD = {"downwardAPI": {"items": [{"path": "n", **FIELD}]}}
ACCEPTED: dict[str, Json] = {
    "hostPath": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]},
    "emptyDir": {"volumes": [{"name": "v", "emptyDir": {}}]},
    "nfs": {"volumes": [{"name": "v", "nfs": {"server": "x", "path": "/x"}}]},
    "image": {"volumes": [{"name": "v", "image": {"reference": "docker.io/library/busybox:1"}}]},
    "projected-downwardAPI": {"volumes": [{"name": "v", "projected": {"sources": [DOWNWARD]}}]},
    "fieldRef": {"containers": [{"name": "c", "image": "i", "env": [{"name": "A", "valueFrom": FIELD}]}]},
    "hostNetwork": {"hostNetwork": True},
    "privileged": {"containers": [{"name": "c", "image": "i", "securityContext": {"privileged": True}}]},
    "initContainers": {"initContainers": [{"name": "i", "image": "i"}]},
    "critical": {"priorityClassName": "system-node-critical"},
}


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=list(ACCEPTED))
def test_what_needs_no_other_object_is_accepted(server: Server, spec: Json) -> None:
    answer = server.create(server.mirror(**spec))
    assert answer.code == 201, answer


def test_finalizers_are_accepted(server: Server) -> None:
    pod = server.mirror()
    pod["metadata"]["finalizers"] = ["example.com/wait"]
    assert server.create(pod).body["metadata"]["finalizers"] == ["example.com/wait"]


def test_unknown_fields_are_dropped_silently(server: Server) -> None:
    answer = server.create(server.mirror(colour="red"))
    assert answer.code == 201 and "colour" not in answer.body["spec"]


def test_uid_deletion_time_and_status_of_the_body_are_ignored(server: Server) -> None:
    pod = server.mirror()
    pod["metadata"] |= {"uid": "0123456789abcdef0123456789abcdef", "deletionTimestamp": "2020-01-01T00:00:00Z"}
    pod["status"] = {"phase": "Running"}
    made = server.create(pod).body
    assert made["metadata"]["uid"] != pod["metadata"]["uid"]
    assert "deletionTimestamp" not in made["metadata"] and made["status"]["phase"] == "Pending"


# ---- the status of pods -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [STRATEGIC, MERGE, APPLY])
def test_a_status_can_be_patched(server: Server, kind: str) -> None:
    path, name = _status_path(server)
    change: Json = {"status": {"phase": "Running"}}
    if kind == APPLY:
        path += "?fieldManager=edgelet"
        change |= {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
    answer = server.node.patch(path, change, kind)
    assert answer.code == 200 and answer.body["status"]["phase"] == "Running"


def test_a_status_can_be_put_without_a_version(server: Server) -> None:
    pod = server.made()
    pod["status"]["phase"] = "Running"
    del pod["metadata"]["resourceVersion"]
    assert server.node.put(f"{PODS}/{pod['metadata']['name']}/status", pod).code == 200


def test_a_status_with_an_old_version_is_a_conflict(server: Server) -> None:
    pod = server.made()
    path = f"{PODS}/{pod['metadata']['name']}/status"
    server.node.patch(path, {"status": {"phase": "Running"}})
    assert server.node.put(path, pod).code == 409


def test_the_uid_of_another_pod_is_refused_with_422(server: Server) -> None:
    pod = server.made()
    path, change = f"{PODS}/{pod['metadata']['name']}/status", {"status": {"phase": "Running"}}
    wrong = {"metadata": {"uid": "833a0fb1-3375-423c-be35-94a52cf0f1f3"}, **change}
    assert server.node.patch(path, wrong, STRATEGIC).code == 422
    assert server.node.patch(path, {"metadata": {"uid": pod["metadata"]["uid"]}, **change}, STRATEGIC).code == 200


def test_labels_are_not_changed_through_the_status(server: Server) -> None:
    path, _ = _status_path(server)
    assert _refused(server.node.patch(path, {"metadata": {"labels": {"a": "b"}}}), "cannot update labels")


def test_the_status_of_pods_of_other_nodes_is_refused(server: Server) -> None:
    name = _of_another(server)
    answer = server.node.patch(f"{PODS}/{name}/status", {"status": {"phase": "Failed"}})
    assert answer.code == 403


@pytest.mark.parametrize(
    "status",
    [
        {"qosClass": "Guaranteed"},
        {"podIP": "999.1.1.1", "podIPs": [{"ip": "999.1.1.1"}]},
        {"hostIP": "192.0.2.1", "hostIPs": [{"ip": "192.0.2.2"}]},
    ],
    ids=["qosClass", "malformed-ip", "host-ips"],
)
def test_a_status_that_cannot_be_is_refused_with_422(server: Server, status: Json) -> None:
    path, _ = _status_path(server)
    assert server.node.patch(path, {"status": status}).code == 422


def _container(name: str, restarts: int) -> Json:
    return {"name": name, "image": "i", "imageID": "", "ready": False, "restartCount": restarts}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"phase": "Bogus"}),
        ({}, {"containerStatuses": [_container("unknown", 0)]}),
        ({"containerStatuses": [_container("c", 5)]}, {"containerStatuses": [_container("c", 1)]}),
        ({"phase": "Failed"}, {"phase": "Running"}),
    ],
    ids=["phase", "container-name", "restart-count", "failed-runs"],
)
def test_much_of_a_status_is_accepted_unchecked(server: Server, before: Json, after: Json) -> None:
    path, _ = _status_path(server)
    assert server.node.patch(path, {"status": before}).code == 200
    assert server.node.patch(path, {"status": after}).code == 200


def test_a_new_address_by_strategic_merge_stands_beside_the_old_one(server: Server) -> None:
    path, _ = _status_path(server)
    first, second = ({"status": {"podIP": ip, "podIPs": [{"ip": ip}]}} for ip in ("10.0.0.1", "10.0.0.2"))
    assert server.node.patch(path, first, STRATEGIC).code == 200
    assert server.node.patch(path, second, STRATEGIC).code == 422, "two addresses of one family"
    second["status"]["podIPs"] = [{"$patch": "replace"}, {"ip": "10.0.0.2"}]
    answer = server.node.patch(path, second, STRATEGIC)
    assert (answer.code, answer.body["status"]["podIPs"]) == (200, [{"ip": "10.0.0.2"}])


def test_what_ended_for_good_does_not_run_again(server: Server) -> None:
    name = server.made(restartPolicy="Never")["metadata"]["name"]
    path, ended = f"{PODS}/{name}/status", _container("c", 0) | {"state": {"terminated": {"exitCode": 0}}}
    assert server.node.patch(path, {"status": {"containerStatuses": [ended]}}).code == 200
    runs = _container("c", 0) | {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    assert server.node.patch(path, {"status": {"containerStatuses": [runs]}}).code == 422


def test_a_mount_of_a_volume_that_is_not_there_is_refused_with_422(server: Server) -> None:
    container = {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    answer = server.create(server.mirror(containers=[container]))
    assert answer.code == 422 and "spec.containers[0].volumeMounts[0].name" in answer.message


def test_annotations_are_accepted_through_the_status(server: Server) -> None:
    path, _ = _status_path(server)
    answer = server.node.patch(path, {"metadata": {"annotations": {"a": "b"}}})
    assert answer.code == 200 and answer.body["metadata"]["annotations"]["a"] == "b"


def test_the_pod_itself_is_not_changed_by_the_node(server: Server) -> None:
    pod = server.made()
    path = f"{PODS}/{pod['metadata']['name']}"
    assert server.node.patch(path, {"metadata": {"labels": {"a": "b"}}}).code == 403
    assert server.node.put(path, pod).code == 403


def test_the_status_alone_is_not_read_by_the_node(server: Server) -> None:
    path, _ = _status_path(server)
    assert server.node.get(path).code == 403


# ---- deletion ---------------------------------------------------------------------------------------


def test_with_the_default_grace_a_pod_only_gets_a_time_of_deletion(server: Server) -> None:
    pod = server.made()
    path = f"{PODS}/{pod['metadata']['name']}"
    assert server.node.delete(path).code == 200
    found = server.node.get(path)
    assert found.code == 200 and found.body["metadata"]["deletionTimestamp"]
    again = server.node.post(PODS, server.mirror(pod["metadata"]["name"]))
    assert again.code == 409 and "object is being deleted" in again.message


def test_with_grace_0_a_pod_is_removed_at_once(server: Server) -> None:
    pod = server.made()
    path = f"{PODS}/{pod['metadata']['name']}"
    answer = server.node.delete(path, gracePeriodSeconds=0)
    assert (answer.code, answer.body["kind"]) == (200, "Pod")
    assert server.admin.get(path).code == 404
    assert server.create(server.mirror(pod["metadata"]["name"])).code == 201


def test_a_pod_that_is_going_goes_at_once_with_grace_0(server: Server) -> None:
    pod = server.made()
    path, uid = f"{PODS}/{pod['metadata']['name']}", pod["metadata"]["uid"]
    server.admin.delete(path)
    assert server.node.delete(path, gracePeriodSeconds=0, preconditions={"uid": uid}).code == 200
    assert server.admin.get(path).code == 404


def test_a_wrong_uid_precondition_is_a_conflict(server: Server) -> None:
    pod = server.made()
    wrong = {"uid": "833a0fb1-3375-423c-be35-94a52cf0f1f3"}
    answer = server.node.delete(f"{PODS}/{pod['metadata']['name']}", gracePeriodSeconds=0, preconditions=wrong)
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")


def test_a_failed_pod_goes_at_once(server: Server) -> None:
    pod = server.made()
    path = f"{PODS}/{pod['metadata']['name']}"
    server.node.patch(f"{path}/status", {"status": {"phase": "Failed"}})
    server.node.delete(path)
    assert server.admin.get(path).code == 404


def test_pods_are_not_deleted_together(server: Server) -> None:
    assert server.node.send("DELETE", PODS).code == 403


def test_nobody_changes_the_mirror_annotation(server: Server) -> None:
    pod = server.made()
    path = f"{PODS}/{pod['metadata']['name']}"
    for value in (None, "other"):
        change = {"metadata": {"annotations": {"kubernetes.io/config.mirror": value}}}
        assert server.admin.patch(path, change).code == 422
        assert server.node.patch(f"{path}/status", change).code == 422


# ---- reads ------------------------------------------------------------------------------------------


def test_pods_are_read_by_name_or_with_the_own_node_name(server: Server) -> None:
    pod = server.made()
    assert server.node.get(f"{PODS}/{pod['metadata']['name']}").code == 200
    assert server.node.get("/api/v1/pods").code == 403 and server.node.get(PODS).code == 403
    listed = server.node.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{server.name}")
    assert listed.code == 200 and {p["spec"]["nodeName"] for p in listed.body["items"]} == {server.name}
    assert pod["metadata"]["name"] in [p["metadata"]["name"] for p in listed.body["items"]]


def test_pods_of_other_nodes_are_not_read(server: Server) -> None:
    assert _refused(server.node.get(f"{PODS}/{_of_another(server)}"), "no relationship found between node")


def test_a_deleted_pod_is_403_and_not_404(server: Server) -> None:
    pod = server.made()
    path = f"{PODS}/{pod['metadata']['name']}"
    server.node.delete(path, gracePeriodSeconds=0)
    answer = server.until(lambda: server.node.get(path), lambda a: a.code == 403)
    assert _refused(answer, "no relationship found between node")


# ---- events and leases ------------------------------------------------------------------------------


def _event(name: str, kind: str, namespace: str, about: str) -> Json:
    about_it = {"kind": kind, "name": about, "apiVersion": "v1", **({"namespace": namespace} if kind == "Pod" else {})}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": about_it,
        "reason": "Started",
        "message": "m",
        "type": "Normal",
        "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "source": {"component": "kubelet"},
    }


def test_events_are_created_patched_and_put(server: Server) -> None:
    path, name = "/api/v1/namespaces/default/events", server.new_name()
    made = server.node.post(path, _event(name, "Pod", "default", "x"))
    assert made.code == 201
    assert server.node.patch(f"{path}/{name}", {"count": 2}, STRATEGIC).code == 200
    assert server.node.put(f"{path}/{name}", _event(name, "Pod", "default", "x")).code == 200
    server.admin.delete(f"{path}/{name}")


def test_an_event_of_a_name_is_created_once(server: Server) -> None:
    path, event = "/api/v1/namespaces/default/events", _event(server.new_name(), "Pod", "default", "x")
    assert server.node.post(path, event).code == 201
    again = server.node.post(path, event)
    assert (again.code, again.body["reason"]) == (409, "AlreadyExists")
    server.admin.delete(f"{path}/{event['metadata']['name']}")


def test_events_are_not_read_nor_deleted_by_the_node(server: Server) -> None:
    path, name = "/api/v1/namespaces/default/events", server.new_name()
    server.node.post(path, _event(name, "Pod", "default", "x"))
    assert server.node.get(f"{path}/{name}").code == 403 and server.node.get(path).code == 403
    assert server.node.delete(f"{path}/{name}").code == 403
    server.admin.delete(f"{path}/{name}")


def test_events_about_the_node_are_in_the_namespace_default(server: Server) -> None:
    name = server.new_name()
    assert (
        server.node.post("/api/v1/namespaces/default/events", _event(name, "Node", "default", server.name)).code == 201
    )
    other = server.node.post("/api/v1/namespaces/kube-system/events", _event(name, "Node", "kube-system", server.name))
    assert other.code == 422
    server.admin.delete(f"/api/v1/namespaces/default/events/{name}")


LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def _lease(name: str) -> Json:
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": spec,
    }


def test_the_own_lease_is_created_read_changed_and_deleted(server: Server) -> None:
    path = f"{LEASES}/{server.name}"
    server.admin.delete(path)
    made = server.node.post(LEASES, _lease(server.name))
    assert made.code == 201 and server.node.get(path).code == 200
    assert (
        server.node.put(path, made.body | {"spec": _lease(server.name)["spec"] | {"leaseDurationSeconds": 30}}).code
        == 200
    )
    assert server.node.patch(path, {"spec": {"leaseDurationSeconds": 40}}).code == 200
    assert server.node.delete(path).code == 200


def test_a_lease_that_changed_meanwhile_is_a_conflict(server: Server) -> None:
    path = f"{LEASES}/{server.name}"
    server.admin.delete(path)
    made = server.node.post(LEASES, _lease(server.name)).body
    assert server.node.put(path, made | {"spec": made["spec"] | {"holderIdentity": "other"}}).code == 200
    assert server.node.put(path, made).code == 409


def test_a_lease_that_is_gone_can_be_put_back_but_not_as_the_one_it_was(server: Server) -> None:
    path = f"{LEASES}/{server.name}"
    server.admin.delete(path)
    made = server.node.post(LEASES, _lease(server.name)).body
    server.admin.delete(path)
    assert server.node.put(path, made).code == 409
    del made["metadata"]["uid"]
    assert server.node.put(path, made).code == 201


def test_a_lease_time_has_six_decimals(server: Server) -> None:
    path = f"{LEASES}/{server.name}"
    server.admin.delete(path)
    lease = _lease(server.name)
    lease["spec"]["renewTime"] = "2026-01-01T00:00:00Z"
    assert server.node.post(LEASES, lease).code == 400


def test_leases_are_not_listed(server: Server) -> None:
    assert server.node.get(LEASES).code == 403


def test_other_leases_are_refused(server: Server) -> None:
    assert server.node.get(f"{LEASES}/another").code == 403
    assert server.node.post(LEASES, _lease("another")).code == 403
    elsewhere = _lease(server.name)
    elsewhere["metadata"]["namespace"] = "default"
    assert server.node.post(LEASES.replace("kube-node-lease", "default"), elsewhere).code == 403


# ---- helpers ----------------------------------------------------------------------------------------


def _refused(answer: Answer, why: str) -> bool:
    """Whether it is a 403 that says `why`."""
    assert (answer.code, answer.body.get("reason")) == (403, "Forbidden"), answer
    assert why in answer.message, answer.message
    return True


def _status_path(server: Server) -> tuple[str, str]:
    name = server.made()["metadata"]["name"]
    return f"{PODS}/{name}/status", name


def _of_another(server: Server) -> str:
    """The name of a pod on another node."""
    name = server.new_name()
    spec = {"nodeName": "another", "containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False}
    made = server.admin.post(PODS, {"metadata": {"name": name}, "spec": spec})
    assert made.code == 201, made
    return name


# ---- lists and watches of metadata ------------------------------------------------------------------

METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


def test_metadata_alone_can_be_listed_and_watched(server: Server) -> None:
    mine = f"fieldSelector=spec.nodeName%3D{server.name}"
    name = server.made()["metadata"]["name"]
    listed = json.loads(server.node.text(f"/api/v1/pods?{mine}", METADATA_LIST))
    assert listed["kind"] == "PartialObjectMetadataList"
    assert [i.keys() - {"kind", "apiVersion"} for i in listed["items"] if i["metadata"]["name"] == name] == [
        {"metadata"}
    ]
    server.node.delete(f"{PODS}/{name}", gracePeriodSeconds=0)
    query = f"{mine}&watch=1&timeoutSeconds=1&resourceVersion={listed['metadata']['resourceVersion']}"
    events = [json.loads(line) for line in server.node.text(f"/api/v1/pods?{query}", METADATA).splitlines()]
    kind = "PartialObjectMetadata"
    assert [(e["type"], e["object"]["kind"]) for e in events] == [("MODIFIED", kind), ("DELETED", kind)]
    assert all("spec" not in e["object"] and e["object"]["metadata"]["name"] == name for e in events)
    assert events[0]["object"]["metadata"]["deletionGracePeriodSeconds"] == 0, "ending for a moment, then gone"


# ---- how objects are written ------------------------------------------------------------------------


def test_empty_fields_are_written_as_go_writes_them(server: Server) -> None:
    server.admin.delete(server.path)
    node = server.node.post("/api/v1/nodes", {"metadata": {"name": server.name}}).body
    assert node["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    assert node["status"]["nodeInfo"]["bootID"] == "" and "conditions" not in node["status"]
    path, name = "/api/v1/namespaces/default/events", server.new_name()
    about = {"kind": "Pod", "name": "a", "namespace": "default"}
    event = server.node.post(path, {"metadata": {"name": name}, "involvedObject": about}).body
    server.admin.delete(f"{path}/{name}")
    assert (event["source"], event["firstTimestamp"], event["eventTime"]) == ({}, None, None)
    server.register()
    path, _ = _status_path(server)
    status = {"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [_container("c", 0)]}
    shown = server.node.patch(path, {"status": status}).body["status"]
    assert shown["conditions"][0]["lastProbeTime"] is None and shown["containerStatuses"][0]["lastState"] == {}


def test_who_wrote_which_field_is_noted(server: Server) -> None:
    name = server.made()["metadata"]["name"]
    server.node.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running"}})
    entries = server.node.get(f"{PODS}/{name}").body["metadata"]["managedFields"]
    assert [e.get("subresource", "") for e in entries] == ["", "status"]
    assert "f:phase" in entries[1]["fieldsV1"]["f:status"] and entries[1]["fieldsType"] == "FieldsV1"


def test_a_patch_that_changes_nothing_keeps_the_version(server: Server) -> None:
    path, _ = _status_path(server)
    first, second = (server.node.patch(path, {"status": {"phase": "Running"}}) for _ in range(2))
    assert first.body["metadata"]["resourceVersion"] == second.body["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("1048576Ki", "1Gi"), ("1536Mi", "1536Mi"), ("1.5Gi", "1536Mi"), ("1000Ki", "1000Ki"),
        ("1073741824", "1073741824"), ("0.5Ki", "512"), ("1023", "1023"), ("0.1", "100m"), ("1000m", "1"),
        ("2000", "2k"), ("27k", "27k"), ("1e3", "1e3"), ("100e1", "1e3"), ("0", "0"), ("0Ki", "0"),
        ("1.0000001", "1001m"),
    ],
)  # fmt: skip
def test_quantities_are_kept_in_one_form(server: Server, given: str, kept: str) -> None:
    answer = server.node.patch(f"{server.path}/status", {"status": {"capacity": {"memory": given}}})
    assert (answer.code, answer.body["status"]["capacity"]["memory"]) == (200, kept)
