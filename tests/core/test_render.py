"""Statuses, events and the node in the words of the API, field by field; when a client certificate is renewed."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from edgelet.core import mirror_certs, render, render_node
from edgelet.model.events import Event
from edgelet.model.node_facts import NodeFacts, Pressure
from edgelet.model.pod import PodKey
from edgelet.model.status import Condition, ContainerStatus, PodStatus, Running, Terminated, Waiting

T = 1_700_000_000.0
AT = "2023-11-14T22:13:20Z"
LATER = "2023-11-14T22:13:25Z"
EVENT = Event(
    "web.1", PodKey("shop", "web"), "u", "spec.containers{app}", "Warning", "BackOff", "why", T, T + 5.9, 3, 12
)


def test_an_event_of_a_container() -> None:
    assert render.event(EVENT, "n1") == {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": "web.1", "namespace": "shop", "resourceVersion": "12", "creationTimestamp": AT},
        "involvedObject": {
            "kind": "Pod",
            "namespace": "shop",
            "name": "web",
            "uid": "u",
            "apiVersion": "v1",
            "fieldPath": "spec.containers{app}",
        },
        "reason": "BackOff",
        "message": "why",
        "source": {"component": "kubelet", "host": "n1"},
        "firstTimestamp": AT,
        "lastTimestamp": LATER,
        "count": 3,
        "type": "Warning",
        "eventTime": None,
        "reportingComponent": "kubelet",
        "reportingInstance": "n1",
    }


def test_an_event_of_a_pod_and_of_the_node() -> None:
    assert "fieldPath" not in render.event(replace(EVENT, field_path=""), "n1")["involvedObject"]
    of_node = render.event(replace(EVENT, key=PodKey("", "n1")), "n1")
    assert of_node["metadata"]["namespace"] == "default"
    assert of_node["involvedObject"] == {"kind": "Node", "name": "n1", "uid": "u"}


APP = ContainerStatus("app", "demo:1", Running(T), Terminated(137, "Error", T, T + 5, "bye", "old", 9), True, True, 4)
INIT = ContainerStatus("init", "demo", Waiting("ErrImagePull", "no"))
STATUS = PodStatus(
    phase="Running",
    conditions=(Condition("Ready", "False", T, "ContainersNotReady", "app"), Condition("PodScheduled", "True", T)),
    containers=(replace(APP, image_id="sha256:1", container_id="podman://new"),),
    init_containers=(INIT,),
    reason="Evicted",
    message="too much",
    start_time=T,
    ips=("10.0.0.2", "fd00::2"),
    host_ip="192.0.2.1",
    qos="Burstable",
)


def test_a_status_in_full() -> None:
    assert render.status(STATUS) == {
        "phase": "Running",
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": AT,
                "reason": "ContainersNotReady",
                "message": "app",
            },
            {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": AT},
        ],
        "message": "too much",
        "reason": "Evicted",
        "hostIP": "192.0.2.1",
        "hostIPs": [{"ip": "192.0.2.1"}],
        "podIP": "10.0.0.2",
        "podIPs": [{"ip": "10.0.0.2"}, {"ip": "fd00::2"}],
        "startTime": AT,
        "initContainerStatuses": [
            {
                "name": "init",
                "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}},
                "lastState": {},
                "ready": False,
                "restartCount": 0,
                "image": "demo",
                "imageID": "",
                "started": False,
            }
        ],
        "containerStatuses": [
            {
                "name": "app",
                "state": {"running": {"startedAt": AT}},
                "lastState": {
                    "terminated": {
                        "exitCode": 137,
                        "signal": 9,
                        "reason": "Error",
                        "message": "bye",
                        "startedAt": AT,
                        "finishedAt": LATER,
                        "containerID": "podman://old",
                    }
                },
                "ready": True,
                "restartCount": 4,
                "image": "demo:1",
                "imageID": "sha256:1",
                "containerID": "podman://new",
                "started": True,
            }
        ],
        "qosClass": "Burstable",
    }


def test_what_is_not_known_is_left_out() -> None:
    assert render.status(PodStatus("Pending")) == {"phase": "Pending", "qosClass": "BestEffort"}
    end = render.status(PodStatus("Failed", containers=(replace(APP, state=Terminated(0, "Completed")),)))
    assert end["containerStatuses"][0]["state"] == {
        "terminated": {"exitCode": 0, "reason": "Completed", "startedAt": None, "finishedAt": None}
    }
    assert "containerID" not in end["containerStatuses"][0]
    assert (render.timestamp(0), render.timestamp(-1), render.timestamp(0.5)) == (None, None, "1970-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("held", "containers", "reason"),
    [(True, (INIT,), "Stopped"), (True, (INIT, APP), ""), (False, (INIT,), "")],
)
def test_a_pod_that_a_person_stopped_says_so_once_nothing_runs(
    held: bool, containers: tuple[ContainerStatus, ...], reason: str
) -> None:
    assert render.status(PodStatus("Pending", containers=containers, held=held)).get("reason", "") == reason
    assert render.status(PodStatus("Pending", init_containers=containers, held=held)).get("reason", "") == reason


FACTS = NodeFacts(
    "n1",
    address="192.0.2.1",
    cpus=4,
    memory=(1 << 30) + 1023,
    storage=1 << 31,
    pods=7,
    memory_pressure=Pressure(True, "1 MiB is left"),
    machine_id="m",
    system_uuid="s",
    boot_id="b",
    kernel="6.1",
    os_image="Debian",
    architecture="arm64",
    runtime="podman://4.3.1",
)


def test_a_node() -> None:
    assert render_node.labels(FACTS) == {
        "kubernetes.io/arch": "arm64",
        "kubernetes.io/hostname": "n1",
        "kubernetes.io/os": "linux",
    }
    made = render_node.status(FACTS, T + 5, T, 10250, "2.0")
    conditions = {c["type"]: (c["status"], c["reason"], c["message"]) for c in made.pop("conditions")}
    assert conditions == {
        "MemoryPressure": ("True", "KubeletHasInsufficientMemory", "1 MiB is left"),
        "DiskPressure": ("False", "KubeletHasNoDiskPressure", ""),
        "PIDPressure": ("False", "KubeletHasSufficientPID", ""),
        "Ready": ("True", "KubeletReady", "edgelet runs pods"),
    }
    room = {"cpu": "4", "ephemeral-storage": "2Gi", "memory": "1Gi", "pods": "7"}
    assert made == {
        "capacity": room,
        "allocatable": room,
        "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}, {"type": "Hostname", "address": "n1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "machineID": "m",
            "systemUUID": "s",
            "bootID": "b",
            "kernelVersion": "6.1",
            "osImage": "Debian",
            "containerRuntimeVersion": "podman://4.3.1",
            "kubeletVersion": "v1.36.0+edgelet.2.0",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "arm64",
        },
    }


def test_a_node_that_cannot_run_pods() -> None:
    bad = replace(FACTS, address="", ready_message="Podman is away", pid_pressure=Pressure(True, "full"))
    made = render_node.status(bad, T + 5, T, 1, "2")
    assert made["addresses"] == [{"type": "Hostname", "address": "n1"}]
    assert made["conditions"][2]["reason"] == "KubeletHasInsufficientPID"
    assert made["conditions"][3] == {
        "type": "Ready",
        "status": "False",
        "lastHeartbeatTime": LATER,
        "lastTransitionTime": AT,
        "reason": "KubeletNotReady",
        "message": "Podman is away",
    }
    full = render_node.status(replace(FACTS, disk_pressure=Pressure(True, "full")), T, T, 1, "2")
    assert full["conditions"][1]["reason"] == "KubeletHasDiskPressure"


def test_a_certificate_is_renewed_between_seven_and_nine_tenths_of_its_life() -> None:
    assert mirror_certs.renew_at(100, 1100, 0) == pytest.approx(800)
    assert mirror_certs.renew_at(100, 1100, 1) == pytest.approx(1000)


def test_a_request_for_a_certificate() -> None:
    assert mirror_certs.body(b"csr") == {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "node-csr-c27338c453067b437471afbce792704d"},
        "spec": {
            "request": "Y3Ny",
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "usages": ["digital signature", "client auth"],
        },
    }


REFUSED = "the request for a client certificate was "


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (None, (b"", "")),
        ({"conditions": [{"type": "Approved", "status": "True"}]}, (b"", "")),
        ({"certificate": base64.b64encode(b"pem").decode()}, (b"pem", "")),
        ({"certificate": "a"}, (b"", "the certificate in the answer is not base64")),
        ({"conditions": [{"type": "Denied", "message": "not you"}]}, (b"", f"{REFUSED}denied: not you")),
        ({"conditions": [{"type": "Failed", "status": "True", "reason": "Bad"}]}, (b"", f"{REFUSED}failed: Bad")),
        ({"conditions": [{"type": "Denied", "status": "True"}]}, (b"", f"{REFUSED}denied: no reason given")),
        ({"conditions": [{"type": "Denied", "status": "False"}]}, (b"", "")),
    ],
)
def test_what_an_answer_to_it_means(status: object, expected: tuple[bytes, str]) -> None:
    assert mirror_certs.answer({"status": status}) == expected
