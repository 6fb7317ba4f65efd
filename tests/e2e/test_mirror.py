"""The mirror through the real agent: a box with real pods, and an API server that is as strict as a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agent import NODE, Agent
from tests.e2e.manifests import pod
from tests.support.apiserver import FakeServer
from tests.support.apiserver.real import either

Json = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FakeServer]:
    """An API server for the agent's node; whatever it was sent must have been right."""
    with either(tmp_path, NODE) as made:
        yield made
    assert made.violations == []


def mirror(server: FakeServer, name: str) -> Json:
    """The mirror of the pod of that short name, {} if there is none."""
    return server.find(f"{PODS}/{name}-{NODE}") or {}


def uid(server: FakeServer, name: str) -> str:
    """Its uid."""
    return str(mirror(server, name).get("metadata", {}).get("uid", ""))


def phase(server: FakeServer, name: str) -> str:
    """Its phase."""
    return str(mirror(server, name).get("status", {}).get("phase", ""))


def link(agent: Agent) -> Json:
    """The link as the agent tells it."""
    found: Json = agent.agent_status().get("link") or {}
    return found


def start(agent: Agent, server: FakeServer, *flags: str) -> Agent:
    """The agent with that server."""
    return agent.start(f"--kubeconfig={server.kubeconfig}", *flags)


def test_a_pod_is_shown_with_its_status(agent: Agent, server: FakeServer) -> None:
    start(agent, server).write(pod("web", labels={"app": "web"}))
    agent.wait_ready("web")
    agent.wait("the mirror to be Running", lambda: phase(server, "web") == "Running")
    found = mirror(server, "web")
    assert found["metadata"]["labels"] == {"app": "web"}
    assert found["spec"]["nodeName"] == NODE
    agent.wait("the statuses to be equal", lambda: same(agent, server, "web"))
    assert agent.cli("status").stdout.endswith("good\n")


def same(agent: Agent, server: FakeServer, name: str) -> bool:
    """Whether the server shows the status that the box has."""
    here, there = agent.status(name), mirror(server, name).get("status", {})
    return all(there.get(part) == value for part, value in here.items() if part not in ("conditions", "qosClass"))
