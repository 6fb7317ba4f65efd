"""The rules of semantics section 7, each with its number, against a fake API server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from edgelet.core import mirror_node
from edgelet.model.node_facts import Pressure
from tests.adapters.apiserver.rig import NODE, Rig, finished, key, pod, pressed, rig, running

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Rig]:
    """A box whose mirror runs."""
    with rig(tmp_path) as made:
        yield made


def test_7_1_the_node_is_registered_with_all_that_a_kubelet_tells(tmp_path: Path) -> None:
    how = mirror_node.Registration({"site": "north"}, (mirror_node.Taint("a", "b", "NoExecute"),), 10250, "0.1.0")
    with rig(tmp_path, registration=how) as box:
        box.wait("the status", lambda: box.condition("Ready").get("status") == "True")
        node = box.node()
        labels = node["metadata"]["labels"]
        assert labels["kubernetes.io/hostname"] == NODE
        assert (labels["kubernetes.io/os"], labels["beta.kubernetes.io/arch"], labels["site"]) == (
            "linux",
            "amd64",
            "north",
        )
        assert node["metadata"]["annotations"]["volumes.kubernetes.io/controller-managed-attach-detach"] == "true"
        assert {"key": "a", "value": "b", "effect": "NoExecute"} in node["spec"]["taints"]
        status = node["status"]
        assert status["addresses"] == [
            {"type": "InternalIP", "address": "192.0.2.9"},
            {"type": "Hostname", "address": NODE},
        ]
        assert status["capacity"]["memory"] == "1Gi"
        assert status["allocatable"]["memory"] == "924Mi"
        assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
        assert status["nodeInfo"]["containerRuntimeVersion"] == "podman://4.3.1"
        reasons = [(c["type"], c["status"], c["reason"]) for c in status["conditions"]]
        assert reasons == [
            ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            ("PIDPressure", "False", "KubeletHasSufficientPID"),
            ("Ready", "True", "KubeletReady"),
        ]


def test_7_1_an_existing_node_is_brought_up_to_date(tmp_path: Path) -> None:
    how = mirror_node.Registration({"site": "north"}, (), 10250, "0.1.0")
    with rig(tmp_path, begin=False, registration=how) as box:
        box.server.create("/api/v1/nodes", {"metadata": {"name": NODE, "labels": {"mine": "kept", "site": "old"}}})
        box.mirror.start()
        box.wait("the labels", lambda: box.node()["metadata"].get("labels", {}).get("site") == "north")
        assert box.node()["metadata"]["labels"]["mine"] == "kept"
        box.wait("the status", lambda: box.condition("Ready").get("status") == "True")


def test_7_1_a_label_that_the_server_refuses_is_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
    how = mirror_node.Registration({"node-restriction.kubernetes.io/x": "y"}, (), 10250, "0.1.0")
    with rig(tmp_path, begin=False, registration=how) as box:
        box.server.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        box.mirror.start()
        box.wait("the status", lambda: box.condition("Ready").get("status") == "True")
        assert any("labels of node" in p for p in box.mirror.report().problems)


def test_7_1_without_registration_a_missing_node_is_reported_and_not_made(tmp_path: Path) -> None:
    with rig(tmp_path, register=False) as box:
        box.wait("the report", lambda: box.mirror.report().problems)
        assert "registerNode is false" in box.mirror.report().problems[0]
        assert box.node() == {}
        box.server.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        box.put(pod("web"))
        box.settle()
        assert box.mirror.report().problems == ()


def test_7_1_conditions_follow_what_is_measured(tmp_path: Path) -> None:
    with rig(tmp_path, update_frequency=0.2) as box:
        box.wait("the status", lambda: box.condition("MemoryPressure").get("status") == "False")
        box.facts = pressed(
            box.facts, memory_pressure=Pressure(True, "9 MiB of memory are available"), ready_message="no Podman"
        )
        box.wait("the pressure", lambda: box.condition("MemoryPressure").get("status") == "True")
        assert box.condition("MemoryPressure")["reason"] == "KubeletHasInsufficientMemory"
        assert box.condition("MemoryPressure")["message"] == "9 MiB of memory are available"
        assert (box.condition("Ready")["status"], box.condition("Ready")["reason"]) == ("False", "KubeletNotReady")
        assert "no Podman" in box.condition("Ready")["message"]
        box.wait("the event", lambda: any(e.reason == "NodeNotReady" for e in box.events.events()))


def test_7_1_a_reboot_is_an_event(box: Rig) -> None:
    box.wait("the node", lambda: box.condition("Ready"))
    box.facts = pressed(box.facts, boot_id="b2")
    box.restart()
    box.wait("the event", lambda: any(e["reason"] == "Rebooted" for e in box.server.list("events")))


def test_7_2_an_unchanged_node_is_written_at_the_report_frequency_only(tmp_path: Path) -> None:
    with rig(tmp_path, update_frequency=0.05, report_frequency=600.0) as box:
        box.wait("the status", lambda: box.condition("Ready"))
        box.wait("quiet", lambda: box.mirror.report().pending == 0)
        before = box.server.requests.count("patch", "nodes/status")
        time.sleep(0.5)  # ten looks
        assert box.server.requests.count("patch", "nodes/status") == before
        first = box.condition("Ready")["lastHeartbeatTime"]
        box.clock.shift += 700.0
        box.wait("a report", lambda: box.condition("Ready")["lastHeartbeatTime"] != first)


def test_7_2_the_lease_is_renewed_four_times_in_its_duration(tmp_path: Path) -> None:
    with rig(tmp_path, lease_duration=4.0) as box:
        box.wait("the lease", box.lease)
        assert box.lease()["spec"]["leaseDurationSeconds"] == 4
        assert box.lease()["spec"]["holderIdentity"] == NODE
        assert box.lease()["metadata"]["ownerReferences"][0]["kind"] == "Node"
        first = box.lease()["spec"]["renewTime"]
        box.wait("a renewal", lambda: box.lease()["spec"]["renewTime"] != first)
        puts = box.server.requests.count("update", "leases")
        took = box.wait("four more", lambda: box.server.requests.count("update", "leases") >= puts + 4)
        assert took > 2.5


def test_7_3_the_box_goes_on_while_the_server_is_away_and_only_the_last_state_counts(box: Rig) -> None:
    web = box.put(pod("web"))
    box.settle()
    box.server.down()
    for restarts in range(1, 30):
        box.put(web, running(web, restarts))
    gone = box.put(pod("gone"))
    box.store.remove(gone.key)
    box.put(pod("new"))
    patches = box.server.requests.count("patch", "pods/status")
    box.server.up()
    box.settle()
    assert box.there("web-n1")["status"]["containerStatuses"][0]["restartCount"] == 29
    # One for each pod, and perhaps one more that began before the last change.
    assert box.server.requests.count("patch", "pods/status") - patches <= 3


def test_7_4_1_a_mirror_is_a_copy_with_its_hash_and_its_node_as_owner(box: Rig) -> None:
    web = box.put(pod("web", metadata={"labels": {"app": "web"}, "annotations": {"note": "x"}}))
    box.settle()
    meta = box.there("web-n1")["metadata"]
    assert meta["annotations"]["kubernetes.io/config.mirror"] == web.config_hash
    assert meta["annotations"]["kubernetes.io/config.hash"] == web.config_hash
    assert (meta["annotations"]["note"], meta["labels"]) == ("x", {"app": "web"})
    (owner,) = meta["ownerReferences"]
    assert {**owner, "blockOwnerDeletion": False} == {
        "apiVersion": "v1", "kind": "Node", "name": NODE, "uid": box.node()["metadata"]["uid"],
        "controller": True, "blockOwnerDeletion": False,
    }  # fmt: skip
    assert meta["uid"] != web.uid


def test_7_4_1_what_a_server_refuses_is_left_out_and_listed_and_no_secret_is_sent(box: Rig) -> None:
    volumes = [
        {"name": "conf", "configMap": {"name": "c"}},
        {"name": "both", "projected": {"sources": [{"secret": {"name": "s"}}, {"downwardAPI": {"items": []}}]}},
        {"name": "data", "emptyDir": {}},
    ]
    mounts = [{"name": v["name"], "mountPath": f"/{v['name']}"} for v in volumes]
    env = [{"name": "A", "value": "1"}, {"name": "P", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    app = {"name": "app", "image": "i", "volumeMounts": mounts, "env": env, "envFrom": [{"secretRef": {"name": "s"}}]}
    document = {
        "serviceAccountName": "robot", "imagePullSecrets": [{"name": "pull"}], "priorityClassName": "high",
        "runtimeClassName": "kata", "volumes": volumes, "containers": [app],
    }  # fmt: skip
    box.put(replace(pod("web"), document=__import__("json").dumps({"metadata": {"name": "web-n1"}, "spec": document})))
    box.wait("the mirror", lambda: box.there("web-n1"))
    found = box.there("web-n1")
    listed = found["metadata"]["annotations"]["edgelet.io/not-mirrored"]
    for part in ("volumes[conf] (configMap)", "volumes[both] (projected secret)", "env[P] (secretKeyRef)", "envFrom",
                 "serviceAccountName", "imagePullSecrets", "priorityClassName", "runtimeClassName"):  # fmt: skip
        assert part in listed
    (container,) = found["spec"]["containers"]
    assert [m["name"] for m in container["volumeMounts"]] == ["both", "data"]
    assert [e["name"] for e in container["env"]] == ["A"]
    assert "secret" not in str(found["spec"]).lower()


def test_7_4_2_a_namespace_that_is_missing_is_reported_and_tried_again(box: Rig) -> None:
    far = box.put(pod("far", metadata={"namespace": "far"}))
    near = box.put(pod("near"))
    box.wait("the report", lambda: box.mirror.report().problems)
    assert 'namespaces "far" not found' in box.mirror.report().problems[0]
    box.wait("the event", lambda: any(e.reason == "FailedMirror" and e.key == far.key for e in box.events.events()))
    box.wait("the others", lambda: box.told(near.name))
    box.server.create("/api/v1/namespaces", {"metadata": {"name": "far"}})
    box.wait("the mirror", lambda: box.there("far-n1", "far").get("status", {}).get("phase") == "Running")
    box.wait("no complaint", lambda: box.mirror.report().problems == ())


def test_7_4_2_a_mirror_whose_making_was_not_answered_is_taken_for_made(box: Rig) -> None:
    box.wait("the node", lambda: box.mirror.report().registered)
    box.server.faults.add("cut_answer", verb="create", resource="pods", times=1)
    box.put(pod("web"))
    box.settle()


def test_7_4_2_a_making_without_an_answer_is_found_also_before_the_authorizer_knows_of_it(box: Rig) -> None:
    box.wait("the node", lambda: box.mirror.report().registered)
    box.server.store.lag = 2.0
    box.server.faults.add("cut_answer", verb="create", resource="pods", times=1)
    box.put(pod("web"))
    box.wait("it to be made", lambda: box.uid("web-n1"))
    first = box.uid("web-n1")
    box.settle()
    assert box.uid("web-n1") == first
    assert box.server.requests.count("create", "pods") <= 5
    assert box.mirror.report().problems == ()


def test_7_4_3_an_edited_pod_gets_a_new_mirror(box: Rig) -> None:
    box.put(pod("web"))
    box.settle()
    first = box.uid("web-n1")
    box.put(pod("web", containers=[{"name": "app", "image": "localhost/demo:2"}]))
    box.settle()
    assert box.uid("web-n1") != first
    assert box.there("web-n1")["spec"]["containers"][0]["image"] == "localhost/demo:2"


def test_7_4_3_a_mirror_follows_an_edit_also_where_the_manifest_has_its_own_uid(box: Rig) -> None:
    box.put(pod("web", uid="mine"))
    box.settle()
    box.put(pod("web", uid="mine", containers=[{"name": "app", "image": "localhost/demo:2"}]))
    box.wait(
        "the edit",
        lambda: box.there("web-n1").get("spec", {}).get("containers", [{}])[0].get("image", "").endswith("2"),
    )


def test_7_4_4_a_mirror_stays_until_its_pod_is_gone(box: Rig) -> None:
    web = box.put(pod("web"))
    box.settle()
    first = box.uid("web-n1")
    box.put(web, replace(running(web), deleting=time.time()))
    time.sleep(0.3)
    assert (box.uid("web-n1"), box.there("web-n1")["status"]["phase"]) == (first, "Running")
    box.store.remove(web.key)
    box.wait("the mirror to go", lambda: not box.there("web-n1"))


def test_7_4_5_what_is_changed_in_a_mirror_is_not_copied(box: Rig) -> None:
    web = box.put(pod("web"))
    box.settle()
    box.server.patch(f"{PODS}/web-n1", {"metadata": {"labels": {"from": "api"}}})
    box.put(web, running(web, 1))
    box.settle()
    entry = box.store.get(web.key)
    assert entry is not None and dict(entry.pod.labels) == {}


def test_7_4_6_a_mirror_without_a_pod_goes_once_that_is_certain(tmp_path: Path) -> None:
    with rig(tmp_path) as box:
        web = box.put(pod("web"))
        box.settle()
        box.mirror.stop()
        box.store.remove(web.key)
        box.settled = False
        box.restart()
        box.wait("a look", lambda: box.mirror.report().up and box.server.requests.count("watch", "pods") >= 2)
        assert box.there("web-n1")
        box.settled = True
        box.clock.shift += 20.0
        box.wait("the orphan to go", lambda: not box.there("web-n1"))


def test_7_5_1_only_what_changed_is_sent(box: Rig) -> None:
    web = box.put(pod("web"))
    box.settle()
    box.wait("the watch", lambda: box.server.requests.count("watch", "pods") >= 1)
    box.server.requests.reset()
    box.put(web, running(web, 1))
    box.wait("the change", lambda: box.told("web-n1"))
    time.sleep(0.3)
    done = box.server.requests
    assert (done.count("get", "pods"), done.count("patch", "pods/status")) == (0, 1)  # nobody else has written


def test_7_5_1_a_status_that_somebody_else_writes_is_put_right(box: Rig) -> None:
    box.put(pod("web"))
    box.settle()
    wrong = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    box.server.patch(f"{PODS}/web-n1/status", wrong, "application/strategic-merge-patch+json")
    box.settle()


def test_7_5_1_what_somebody_wrote_just_before_is_put_right_too(box: Rig) -> None:
    web = box.put(pod("web"))
    box.settle()
    for number in range(30):  # sometimes before the watch has told
        wrong = {"status": {"phase": "Pending", "message": f"{number}"}}
        box.server.patch(f"{PODS}/web-n1/status", wrong)
        box.put(web, running(web, number))
    box.settle()
    assert box.there("web-n1")["status"]["phase"] == "Running"


def test_7_5_2_conditions_of_others_stay(box: Rig) -> None:
    web = box.put(pod("web"))
    box.settle()
    other = {"type": "example.com/gate", "status": "True"}
    box.server.patch(
        f"{PODS}/web-n1/status", {"status": {"conditions": [other]}}, "application/strategic-merge-patch+json"
    )
    box.put(web, running(web, 3))
    box.settle()
    kinds = [c["type"] for c in box.there("web-n1")["status"]["conditions"]]
    assert sorted(kinds) == sorted(["example.com/gate", "Initialized", "Ready", "ContainersReady", "PodScheduled"])


def test_7_5_3_a_finished_pod_that_runs_again_gets_a_new_mirror(box: Rig) -> None:
    job = box.put(pod("job", restartPolicy="Never"), finished(pod("job", restartPolicy="Never")))
    box.settle()
    first = box.uid("job-n1")
    box.put(job, running(job))
    box.settle()
    assert box.uid("job-n1") != first


def test_7_5_4_statuses_never_delete_a_mirror(box: Rig) -> None:
    job = pod("job", restartPolicy="Never")
    box.put(job)
    box.settle()
    first = box.uid("job-n1")
    box.put(job, finished(job, 3))
    box.settle()
    assert (box.uid("job-n1"), box.there("job-n1")["status"]["phase"]) == (first, "Failed")


def test_7_6_events_keep_their_times_and_counts_and_name_what_kubectl_looks_for(box: Rig) -> None:
    web = box.put(pod("web"))
    for _ in range(3):
        box.event(web, "BackOff", "again", "Warning")
    box.settle()
    (found,) = [e for e in box.server.list("events") if e["reason"] == "BackOff"]
    assert found["count"] == 3
    # kubectl describe asks for the uid that stands in the mirror's annotation.
    assert (
        found["involvedObject"]["uid"] == box.there("web-n1")["metadata"]["annotations"]["kubernetes.io/config.mirror"]
    )
    box.restart()
    box.event(web, "BackOff", "again", "Warning")
    box.settle()
    assert [e["count"] for e in box.server.list("events") if e["reason"] == "BackOff"] == [4]


def test_a_submitted_pod_is_mirrored_with_the_nodes_suffix(box: Rig) -> None:
    web = box.put(pod("web", source="api"))
    box.event(web, "Started")
    box.wait("the mirror", lambda: box.there("web-n1").get("status", {}).get("phase") == "Running")
    box.wait("the event", lambda: any(e["involvedObject"]["name"] == "web-n1" for e in box.server.list("events")))
    box.store.remove(key("web"))
    box.wait("the mirror to go", lambda: not box.there("web-n1"))


def test_a_pod_of_the_cluster_that_was_placed_here_is_left_alone_and_let_go_when_deleted(box: Rig) -> None:
    box.wait("the node", lambda: box.mirror.report().registered)
    spec = {"nodeName": NODE, "containers": [{"name": "a", "image": "i"}]}
    box.server.create(PODS, {"metadata": {"name": "theirs"}, "spec": spec})
    box.put(pod("web"))
    box.wait("the mirror", lambda: box.told("web-n1"))
    assert box.there("theirs")
    box.server.delete(f"{PODS}/theirs", gracePeriodSeconds=30)
    box.wait("it to go", lambda: not box.there("theirs"))
