"""The official Python client against an agent: list, watch, create, patch, delete, logs, exec."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.agent import Agent
from tests.e2e.kubectl import serve
from tests.e2e.manifests import container, pod

kubernetes: Any = pytest.importorskip("kubernetes", reason="needs the kubernetes client (pip)")


def core(agent: Agent) -> Any:
    """CoreV1Api with the kubeconfig that the agent makes."""
    path = Path(agent.directory) / "config.yaml"
    path.write_text(agent.cli("kubeconfig", "--role", "admin").stdout)
    assert yaml.safe_load(path.read_text())["kind"] == "Config"
    return kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(str(path)))


@pytest.mark.timeout(300)  # on a busy machine its import alone takes minutes
def test_the_official_client_works(agent: Agent) -> None:
    stream: Any = pytest.importorskip("kubernetes.stream")
    watch: Any = pytest.importorskip("kubernetes.watch")
    serve(agent)
    api = core(agent)
    script = "echo one; trap 'exit 0' TERM; while :; do sleep 1; done"
    made = api.create_namespaced_pod("default", pod("web", container(script=script), labels={"app": "web"}))
    assert (made.metadata.name, made.status.phase) == ("web", "Pending")
    seen = watch.Watch().stream(api.list_namespaced_pod, "default", timeout_seconds=60)
    phases = itertools.takewhile(lambda p: p != "Running", (e["object"].status.phase for e in seen))
    assert set(phases) <= {"Pending"}
    agent.wait_ready("web")
    assert [p.metadata.name for p in api.list_pod_for_all_namespaces(label_selector="app=web").items] == ["web"]
    assert api.read_namespaced_pod_log("web", "default") == "one\n"
    command = ["sh", "-c", "echo out; echo err >&2"]
    told = stream.stream(
        api.connect_get_namespaced_pod_exec, "web", "default", command=command, stdout=True, stderr=True, stdin=False
    )
    assert sorted(told.split()) == ["err", "out"]
    changed = api.patch_namespaced_pod("web", "default", {"metadata": {"labels": {"tier": "x"}}})
    assert changed.metadata.labels == {"app": "web", "tier": "x"}
    assert [n.metadata.name for n in api.list_node().items] == ["n1"]
    assert api.list_namespace().items[0].metadata.name == "default"
    with pytest.raises(kubernetes.client.ApiException) as failure:
        api.create_namespaced_pod("default", pod("web"))
    assert failure.value.status == 409
    api.delete_namespaced_pod("web", "default", grace_period_seconds=0)
    agent.wait_gone("web")
