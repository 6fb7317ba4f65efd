"""Pods that this node does not take, and pods that wait for others, on a real box."""

from __future__ import annotations

import contextlib
import random
import socket
from typing import Any

from tests.e2e.agent import Agent
from tests.e2e.manifests import container, exec_probe, pod

AFTER, TIMEOUT = "edgelet.io/after", "edgelet.io/after-timeout"


def free_port() -> int:
    """A port of the host's that nobody has, and that no outgoing connection is given."""
    while True:
        with contextlib.suppress(OSError), socket.create_server(("0.0.0.0", random.randrange(20000, 30000))) as found:
            return int(found.getsockname()[1])


def test_pain_187_188_a_host_port_that_another_pod_holds_names_it_and_is_given_when_it_is_free(agent: Agent) -> None:
    port = free_port()
    ported = container(ports=[{"containerPort": 80, "hostPort": port}])
    agent.start().write(pod("first", ported))
    agent.wait_ready("first")
    agent.write(pod("second", ported))
    agent.wait("the refusal", lambda: agent.phase("second") == "Failed")
    status = agent.status("second")
    assert status["reason"] == "NodePorts"
    assert status["message"].startswith("Pod was rejected: Predicate NodePorts failed")
    assert f"pod default/first-n1 holds host port TCP {port}" in status["message"]
    assert f"TCP {port}" in agent.cli("get", "pods", "-o", "wide").stdout
    (event,) = agent.events("second", "NodePorts")
    assert event["type"] == "Warning"
    assert not agent.of_pod("second")
    agent.remove("first")
    agent.wait_ready("second", seconds=60)
    assert agent.restarts("second") == 0


def test_a06_an_edit_of_a_pod_with_a_host_port_is_not_refused(agent: Agent) -> None:
    port = free_port()
    agent.start().write(pod("web", container("one", ports=[{"containerPort": port}]), hostNetwork=True))
    agent.wait_ready("web")
    agent.write(pod("web", container("two", ports=[{"containerPort": port}]), hostNetwork=True))
    agent.wait("the new container", lambda: agent.running_id("web", "two"))
    agent.wait_ready("web")


def test_resources_that_do_not_fit_are_refused_and_taken_once_they_do(agent: Agent) -> None:
    """More memory than any machine has, then an amount that it has."""
    agent.start().write(pod("huge", container(resources={"requests": {"memory": "900Ti"}})))
    agent.write(pod("small"))
    agent.wait_ready("small")
    agent.wait("the refusal", lambda: agent.status("huge").get("reason") == "OutOfmemory")
    assert "Node didn't have enough resource: memory, requested: " in agent.status("huge")["message"]
    agent.write(pod("huge", container(resources={"requests": {"memory": "1Mi"}})))
    agent.wait_ready("huge")


def test_more_pods_than_allowed_wait_for_a_place(agent: Agent) -> None:
    for name in ("a", "b", "c"):
        agent.write(pod(name))
    agent.start("--max-pods=2")
    agent.wait_ready("a", "b")
    agent.wait("the refusal", lambda: agent.status("c").get("reason") == "OutOfpods")
    agent.remove("a")
    agent.wait_ready("b", "c")


def test_a_pod_waits_at_boot_for_those_it_names_and_no_more_once_it_has_begun(agent: Agent) -> None:
    slow = container("app", "sleep 3; touch /tmp/up; sleep 1000", readinessProbe=exec_probe("test", "-e", "/tmp/up"))
    web = pod("a-web")
    web["metadata"]["annotations"] = {AFTER: "db"}
    agent.write(web)
    agent.write(pod("db", slow))
    agent.start()
    agent.wait("the reason", lambda: "waits for pod db to be Ready" in agent.summary("a-web"))
    agent.wait_ready("a-web", "db")
    started = [agent.container(n)["state"]["running"]["startedAt"] for n in ("db", "a-web")]
    assert started == sorted(started)
    before = agent.running_id("a-web")
    agent.remove("db")
    agent.wait_gone("db")
    agent.kill()
    agent.start()
    agent.wait_ready("a-web")
    assert agent.running_id("a-web") == before


def test_a_wait_ends_at_its_timeout_and_a_circle_is_named(agent: Agent) -> None:
    notes = {"late": {AFTER: "never", TIMEOUT: "3s"}, "x": {AFTER: "y"}, "y": {AFTER: "x"}}
    for name, said in notes.items():
        made = pod(name)
        made["metadata"]["annotations"] = said
        agent.write(made)
    agent.start()
    agent.wait("the circle", lambda: agent.status("x").get("reason") == "DependencyCycle")
    assert "default/x-n1 -> default/y-n1 -> default/x-n1" in agent.status("x")["message"]
    agent.wait_ready("late")
    agent.write(pod("y"))
    agent.wait_ready("x", "y")


def test_a_pod_of_higher_priority_gets_the_place_of_another_and_gives_it_back(agent: Agent) -> None:
    with open("/proc/meminfo", encoding="ascii") as file:
        memory = int(file.readline().split()[1])
    half = container(resources={"requests": {"memory": f"{memory * 6 // 10}Ki"}})
    agent.start().write(pod("low", half))
    agent.wait_ready("low")
    agent.write(pod("high", half, priority=1000))
    agent.wait_ready("high", seconds=60)
    agent.wait("the other to have left", lambda: agent.phase("low") == "Failed" and not agent.of_pod("low"))
    (event,) = agent.events("low", "Preempting")
    assert (event["type"], event["message"]) == ("Warning", "Preempted in order to admit critical pod")
    agent.remove("high")
    agent.wait_ready("low", seconds=60)


def test_kernel_settings_are_made_and_unsafe_ones_refused_unless_they_are_allowed(agent: Agent) -> None:
    name, key = "net.ipv4.ip_local_port_range", "net.ipv4.tcp_tw_reuse"

    def asking(title: str, setting: str, value: str) -> dict[str, Any]:
        return pod(title, securityContext={"sysctls": [{"name": setting, "value": value}]})

    agent.start().write(asking("safe", name, "20000 20100"))
    agent.write(asking("unsafe", key, "1"))
    agent.wait_ready("safe")
    assert agent.inside("safe", "cat", f"/proc/sys/{name.replace('.', '/')}").split() == ["20000", "20100"]
    agent.wait("the refusal", lambda: agent.status("unsafe").get("reason") == "SysctlForbidden")
    assert agent.status("unsafe")["message"] == f'Pod was rejected: forbidden sysctl: "{key}" not allowlisted'
    assert agent.stop() == 0
    agent.start("--allowed-unsafe-sysctls=net.ipv4.tcp_tw_*")
    agent.wait_ready("unsafe")
    assert agent.inside("unsafe", "cat", f"/proc/sys/{key.replace('.', '/')}").strip() == "1"
