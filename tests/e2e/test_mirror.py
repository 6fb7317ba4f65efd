"""The mirror through the real agent: a box with real pods, and an API server that is as strict as a real one."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agent import NODE, Agent, at_most
from tests.e2e.manifests import SERVE, container, pod
from tests.support.apiserver import FakeServer
from tests.support.apiserver.real import either
from tests.support.ports import free_port

Json = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
STUBBORN = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
PROMPT = 20.0
"""Seconds in which a pod has to start or end; one that waited for a server that hangs would take longer."""


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


def image(server: FakeServer, name: str) -> str:
    """Which image it shows."""
    return str(mirror(server, name).get("spec", {}).get("containers", [{}])[0].get("image", ""))


def link(agent: Agent) -> Json:
    """The link as the agent tells it."""
    found: Json = agent.agent_status().get("link") or {}
    return found


def start(agent: Agent, server: FakeServer, *flags: str) -> Agent:
    """The agent with that server."""
    return agent.start(f"--kubeconfig={server.kubeconfig}", *flags)


def show(agent: Agent, server: FakeServer, name: str, *containers: Json, **spec: Any) -> str:
    """A pod that is Running here and there; the uid of its mirror."""
    start(agent, server).write(pod(name, *containers, **spec))
    agent.wait_ready(name)
    agent.wait("the mirror to be Running", lambda: phase(server, name) == "Running")
    return uid(server, name)


def test_a01_an_edited_manifest_gets_a_new_mirror_with_the_new_image(agent: Agent, server: FakeServer) -> None:
    first = show(agent, server, "web")
    other = container()
    agent.podman("tag", other["image"], "localhost/edgelet-test:other")
    agent.write(pod("web", {**other, "image": "localhost/edgelet-test:other"}))
    agent.wait("a new mirror", lambda: uid(server, "web") not in ("", first), 120.0)
    agent.wait(
        "it to run", lambda: phase(server, "web") == "Running" and image(server, "web").endswith(":other"), 120.0
    )


def test_a02_a_mirror_that_is_deleted_comes_back_and_the_containers_never_notice(
    agent: Agent, server: FakeServer
) -> None:
    first = show(agent, server, "web")
    runs = agent.running_id("web")
    server.delete(f"{PODS}/web-{NODE}", gracePeriodSeconds=30)
    agent.wait("a new mirror", lambda: uid(server, "web") not in ("", first))
    agent.wait("it to be Running", lambda: phase(server, "web") == "Running")
    assert (agent.running_id("web"), agent.restarts("web")) == (runs, 0)


def test_a04_a_mirror_stays_running_until_its_pod_has_ended(agent: Agent, server: FakeServer) -> None:
    grace = 20
    stubborn = container(command=STUBBORN)
    first = show(agent, server, "web", stubborn, terminationGracePeriodSeconds=grace)
    agent.remove("web")
    begin = time.monotonic()
    agent.wait("the end to begin", lambda: agent.pod("web").get("metadata", {}).get("deletionTimestamp"))
    while agent.pod("web"):
        seen = (uid(server, "web"), phase(server, "web"))
        assert seen == (first, "Running") or not agent.pod("web")
        time.sleep(0.1)
    assert time.monotonic() - begin > grace - 1
    agent.wait("the mirror to go", lambda: not mirror(server, "web"))


def test_a07_a_manifest_removed_while_the_agent_was_down_takes_its_mirror_along(
    agent: Agent, server: FakeServer
) -> None:
    show(agent, server, "web")
    agent.stop()
    agent.remove("web")
    agent.start()
    agent.wait("the mirror to go", lambda: not mirror(server, "web"))
    agent.wait_gone("web")


@pytest.mark.parametrize("grace", [0, 30])
def test_pain_121_a_deleted_mirror_never_stays_terminating(agent: Agent, server: FakeServer, grace: int) -> None:
    first = show(agent, server, "web")
    server.delete(f"{PODS}/web-{NODE}", gracePeriodSeconds=grace)
    agent.wait("a mirror that is not ending", lambda: uid(server, "web") not in ("", first))
    assert "deletionTimestamp" not in mirror(server, "web")["metadata"]


def test_pain_122_a_pod_that_has_finished_keeps_a_mirror(agent: Agent, server: FakeServer) -> None:
    start(agent, server).write(pod("job", container(script="exit 0"), restartPolicy="Never"))
    agent.wait("the end", lambda: phase(server, "job") == "Succeeded")
    first = uid(server, "job")
    server.delete(f"{PODS}/job-{NODE}", gracePeriodSeconds=0)
    agent.wait("a new mirror", lambda: uid(server, "job") not in ("", first) and phase(server, "job") == "Succeeded")


def test_pain_124_a_pod_that_failed_is_shown_so_and_its_mirror_is_replaced_when_it_runs_again(
    agent: Agent, server: FakeServer
) -> None:
    script = f"[ -e /data/again ] && {{ {SERVE}; }}; touch /data/again; exit 3"
    job = container(script=script, volumeMounts=[{"name": "data", "mountPath": "/data"}])
    spec: Json = {"restartPolicy": "Never", "volumes": [{"name": "data", "emptyDir": {}}]}
    start(agent, server).write(pod("job", job, **spec))
    agent.wait("the failure", lambda: phase(server, "job") == "Failed")
    first = uid(server, "job")
    agent.cli("restart", "job")
    agent.wait("a new mirror", lambda: uid(server, "job") not in ("", first))
    agent.wait("it to follow", lambda: phase(server, "job") == agent.phase("job"))


def test_pain_128_nothing_on_the_box_waits_for_a_server_that_hangs(agent: Agent, server: FakeServer) -> None:
    show(agent, server, "web")
    server.faults.add("hang")
    runs = agent.running_id("web")
    agent.podman("kill", "--signal", "KILL", runs)
    took = agent.wait("a restart", lambda: agent.running_id("web") not in ("", runs))
    agent.write(pod("new"))
    took = max(took, agent.wait_ready("new"))
    agent.remove("web")
    took = max(took, agent.wait_gone("web"))
    assert took < at_most(PROMPT)
    server.faults.clear()
    agent.wait("the server to know", lambda: phase(server, "new") == "Running" and not mirror(server, "web"), 60.0)


def test_pain_130_and_134_pods_start_and_come_back_without_the_server(agent: Agent, server: FakeServer) -> None:
    server.down()
    start(agent, server).write(pod("web"))
    agent.wait_ready("web", seconds=PROMPT)
    assert not link(agent)["up"] and not link(agent)["registered"]
    assert "cannot" in link(agent)["message"]
    agent.kill()
    agent.start()
    agent.wait_ready("web", seconds=PROMPT)
    server.up()
    agent.wait("the mirror", lambda: phase(server, "web") == "Running", 60.0)


def test_pain_131_a_container_that_ends_without_a_link_is_brought_back(agent: Agent, server: FakeServer) -> None:
    show(agent, server, "web")
    server.down()
    for restarts in (1, 2):
        runs = agent.running_id("web")
        agent.podman("kill", "--signal", "KILL", runs)
        agent.wait("a restart", lambda: agent.running_id("web") not in ("", runs), 60.0)  # noqa: B023
        assert agent.restarts("web") == restarts
    server.up()
    agent.wait("the server to know", lambda: restart_count(server, "web") == 2, 60.0)


def restart_count(server: FakeServer, name: str) -> int:
    """How often the server thinks that the pod's container was restarted."""
    found = mirror(server, name).get("status", {}).get("containerStatuses") or [{}]
    return int(found[0].get("restartCount", -1))


def test_pain_133_after_a_reboot_all_conditions_are_told_anew(agent: Agent, server: FakeServer) -> None:
    show(agent, server, "web")
    agent.stop()
    wrong = {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}}
    server.patch(f"/api/v1/nodes/{NODE}/status", wrong, "application/strategic-merge-patch+json")
    agent.start()
    agent.wait("the node to be Ready", lambda: node_ready(server) == "True")


def node_ready(server: FakeServer) -> str:
    """Status of the Node's condition Ready."""
    node = server.find(f"/api/v1/nodes/{NODE}") or {}
    found = node.get("status", {}).get("conditions") or []
    return next((str(c["status"]) for c in found if c["type"] == "Ready"), "")


def test_pain_136_a_lost_link_is_told_within_a_heartbeat_by_status_metric_and_event(
    agent: Agent, server: FakeServer
) -> None:
    start(agent, server, "--node-lease-duration-seconds=8")
    agent.wait("the link", lambda: link(agent).get("up") and link(agent)["lastHeartbeatTime"])
    assert "API server:" in agent.cli("status").stdout
    server.faults.add("hang")
    took = agent.wait("the loss", lambda: not link(agent)["up"])
    assert took < at_most(8 / 4 * 2 + 4)  # a heartbeat, its time limit, and a slow machine
    done = agent.cli("status", check=False)
    assert done.returncode == 1 and "no complete answer" in done.stdout
    agent.wait("the event", lambda: any(e["reason"] == "APIServerUnreachable" for e in agent.events()))
    assert "edgelet_link_up 0" in agent.text("/metrics")
    assert agent.cli("get", "pods").returncode == 0
    server.faults.clear()
    agent.wait("the link", lambda: link(agent)["up"], 60.0)
    assert "edgelet_link_up 1" in agent.text("/metrics")


def test_health_never_speaks_of_the_link(agent: Agent, server: FakeServer) -> None:
    server.down()
    start(agent, server)
    agent.wait("a try", lambda: link(agent).get("message"))
    assert agent.text("/healthz") == "ok"


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_logs_of_a_mirror_come_from_the_agent(agent: Agent, server: FakeServer) -> None:
    port = free_port()
    flags = ("--address=0.0.0.0", f"--port={port}", f"--client-ca-file={server.authority.ca}", "--node-ip=127.0.0.1")
    start(agent, server, *flags).write(pod("web", container(script=f"echo hello from the box; {SERVE}")))
    agent.wait("the mirror", lambda: phase(server, "web") == "Running")

    def read() -> str:
        done = subprocess.run(
            ["kubectl", f"--kubeconfig={server.admin_kubeconfig}", "logs", f"web-{NODE}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.stdout

    agent.wait("the log", lambda: read() == "hello from the box\n")


def test_7_5_5_without_a_kubeconfig_nothing_is_sent_and_the_status_is_shown_here(agent: Agent) -> None:
    agent.start()
    agent.write(pod("alone"))
    agent.wait_ready("alone")
    assert [p["status"]["phase"] for p in agent.get("/pods")["items"]] == ["Running"]
    assert link(agent) == {}
    assert "API server:" not in agent.cli("status", check=False).stdout
