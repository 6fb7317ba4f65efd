"""API objects: what a pod and its status become in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgelet import ports
from edgelet.adapters.server import objects
from edgelet.engine.recorder import EventRing
from edgelet.engine.store import Entry
from edgelet.model.pod import PodKey
from edgelet.model.status import Condition, ContainerStatus, PodStatus, Running, Terminated, Waiting
from tests.fakes import FakeClock
from tests.support.serving import NOW, pod, running

RECORDED = Path(__file__).parents[3].parent / "shared" / "data" / "apiserver-responses" / "list_pods.json"
START = 1_796_047_200.0  # 2026-11-30T14:00:00Z


def test_a_status_is_what_a_real_api_server_holds_for_it() -> None:
    if not RECORDED.is_file():
        pytest.skip("needs the recorded answers in shared/ beside the checkout")
    expected = json.loads(RECORDED.read_text())["items"][0]["status"]
    digest, alive, dead = "b" * 64, f"cri-o://{'c' * 64}", f"cri-o://{'a' * 64}"
    nginx, busybox = "docker.io/library/nginx", "docker.io/library/busybox"
    ended = Terminated(1, "Error", START, START + 5, container_id=dead)
    waiting = Waiting(
        "CrashLoopBackOff",
        "back-off 2m40s restarting failed container=web pod=crash-edge1_default(0123456789abcdef0123456789abcdef)",
    )
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    unready = {"Ready", "ContainersReady"}
    status = PodStatus(
        "Running",
        tuple(
            Condition(t, "False" if t in unready else "True", START, "ContainersNotReady" if t in unready else "")
            for t in types
        ),
        (
            ContainerStatus("web", f"{nginx}:1.27", waiting, ended, False, False, 5, f"{nginx}@sha256:{digest}", alive),
            ContainerStatus(
                "side", f"{busybox}:1.36", Running(START + 5), None, True, True, 0, f"{busybox}@sha256:{digest}", alive
            ),
        ),
        (
            ContainerStatus(
                "init",
                f"{busybox}:1.36",
                Terminated(0, "Completed", START, START + 5, container_id=dead),
                ready=True,
                image_id=f"{busybox}@sha256:{digest}",
                container_id=alive,
            ),
        ),
        start_time=START,
        ips=("10.89.0.5",),
        host_ip="192.0.2.10",
        qos="Burstable",
    )
    assert objects.status(status) == expected


def test_a_pod_carries_its_identity_source_and_reason() -> None:
    value = objects.pod(Entry(pod(app="web"), running(summary="container c: not ready yet"), 7, NOW), "edge1")
    assert value["metadata"] == {
        "name": "web-edge1",
        "namespace": "default",
        "labels": {"app": "web"},
        "uid": "uid-web",
        "resourceVersion": "7",
        "creationTimestamp": objects.timestamp(NOW - 100),
        "annotations": {
            "kubernetes.io/config.hash": "1-web",
            "kubernetes.io/config.source": "file",
            "edgelet.io/summary": "container c: not ready yet",
            "edgelet.io/short-name": "web",
        },
    }
    assert value["spec"]["nodeName"] == "edge1"


def test_a_pod_that_has_not_started_is_as_old_as_its_first_sight() -> None:
    value = objects.pod(Entry(pod(), PodStatus("Pending"), 7, NOW), "edge1")
    assert value["metadata"]["creationTimestamp"] == "2023-11-14T22:13:20Z"


def test_a_terminating_pod_says_when_it_must_be_gone() -> None:
    value = objects.pod(Entry(pod(), running(deleting=NOW), 7, NOW), "edge1")
    assert value["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:50Z"
    assert value["metadata"]["deletionGracePeriodSeconds"] == 30


def test_a_held_pod_is_stopped_once_nothing_runs() -> None:
    ended = ContainerStatus("c", "i", Terminated(0, "Completed", NOW, NOW))
    assert "reason" not in objects.status(running(held=True))
    assert objects.status(running(held=True, containers=(ended,)))["reason"] == "Stopped"
    metadata = objects.pod(Entry(pod(), running(held=True), 1, NOW), "n")["metadata"]
    assert metadata["annotations"]["edgelet.io/held"] == "true"


def test_container_ids_name_the_runtime_once() -> None:
    for given in ("abc", "podman://abc"):
        made = ContainerStatus("c", "i", Terminated(0, "Completed", container_id=given), container_id=given)
        value = objects.status(PodStatus("Running", containers=(made,)))["containerStatuses"][0]
        assert value["containerID"] == "podman://abc"
        assert value["state"]["terminated"]["containerID"] == "podman://abc"
        assert value["state"]["terminated"]["startedAt"] is None


def test_an_event_names_its_object_and_counts() -> None:
    clock = FakeClock(time=NOW)
    ring = EventRing(clock, "edge1")
    ref = ports.EventRef(pod().key, "uid-web", "spec.containers{c}")
    ring.event(ref, "Warning", "BackOff", "Back-off")
    clock.advance(60)
    ring.event(ref, "Warning", "BackOff", "Back-off")
    value = objects.event(ring.events()[0], "edge1")
    assert value["involvedObject"] == {
        "kind": "Pod",
        "namespace": "default",
        "name": "web-edge1",
        "uid": "uid-web",
        "apiVersion": "v1",
        "fieldPath": "spec.containers{c}",
    }
    assert (value["count"], value["firstTimestamp"], value["lastTimestamp"]) == (
        2,
        "2023-11-14T22:13:20Z",
        "2023-11-14T22:14:20Z",
    )


def test_an_event_without_a_namespace_is_about_the_node_and_kept_in_default() -> None:
    ring = EventRing(FakeClock(), "edge1")
    ring.event(ports.EventRef(PodKey("", "edge1"), "edge1"), "Warning", "FailedValidation", "web.yaml:3: error: no")
    made = objects.event(ring.events()[0], "edge1")
    assert made["involvedObject"] == {"kind": "Node", "name": "edge1", "uid": "edge1"}
    assert made["metadata"]["namespace"] == "default"
