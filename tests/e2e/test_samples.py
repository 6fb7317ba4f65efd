"""Samples of the Kubernetes documentation behave as their pages say; only their images are others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.agent import NODE, Agent
from tests.support.podman_env import IMAGE

SAMPLES = Path(__file__).parents[3] / "shared" / "data" / "manifests"


def sample(name: str) -> str:
    """The text of a sample, with an image that is here; it ends at once: its shells do not listen to SIGTERM."""
    path = SAMPLES / name
    if not path.exists():
        pytest.skip(f"the sample {name} is not on this machine")
    text = re.sub(r"\bspec: \{", "spec: {terminationGracePeriodSeconds: 1,", path.read_text(), count=1)
    text = re.sub(r"^spec:\n", "spec:\n  terminationGracePeriodSeconds: 1\n", text, count=1, flags=re.MULTILINE)
    return re.sub(r"registry\.k8s\.io/busybox(:[\d.]+)?", IMAGE, text)


def test_startup_coordination_the_sidecar_writes_before_the_application_reads(agent: Agent) -> None:
    agent.start().write_text(sample("131-web-startup-coordination.yaml"), "sample")
    name = "startup-coordination-example"
    agent.wait_ready(name)
    agent.wait("what it read", lambda: agent.container_log(name, "main-app") == "greeting=hello\n")
    assert agent.running_id(name, "config-sidecar")
    assert agent.condition(name, "Initialized") == "True"


def test_dapi_volume_the_pod_reads_its_labels_and_annotations(agent: Agent) -> None:
    agent.start().write_text(sample("133-web-dapi-volume-kyaml.yaml"), "sample")
    name = "kubernetes-downwardapi-volume-example"
    agent.wait_ready(name)
    agent.wait("its output", lambda: "builder=" in agent.container_log(name, "client-container"))
    said = agent.container_log(name, "client-container")
    assert 'cluster="test-cluster1"\nrack="rack-22"\nzone="us-est-coast"' in said
    assert 'build="two"\nbuilder="john-doe"\n' in said


def test_api_env_values_come_from_where_they_are_kept(agent: Agent) -> None:
    beside = """
---
{apiVersion: v1, kind: Secret, metadata: {name: test-secret}, stringData: {key-1: value-1}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: test-configmap}, data: {key-2: value-2}}
"""
    agent.start().write_text(sample("026-hack-pod-with-api-env.yaml") + beside, "sample")
    agent.wait("its end", lambda: agent.phase("env-test-pod") == "Succeeded")
    said = agent.container_log("env-test-pod", "test-container").splitlines()
    assert {"TEST_CMD_1=value-1", "TEST_CMD_2=value-2", f"TEST_CMD_3=env-test-pod-{NODE}"} <= set(said)
