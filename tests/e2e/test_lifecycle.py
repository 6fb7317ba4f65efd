"""A pod's life through the real agent on real Podman: start, crash, edit, end."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agent import Agent, alive, at_most
from tests.e2e.manifests import SERVE, container, mount, pod
from tests.support.podman_env import IMAGE

STUBBORN = ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done"]
"""Ignores SIGTERM."""


def test_a_pod_starts_and_says_so(agent: Agent) -> None:
    agent.start().write(pod("web", labels={"app": "web"}))
    agent.wait_ready("web")
    assert agent.phase("web") == "Running"
    (made,) = agent.of_pod("web")
    assert made["State"]["Status"] == "running"
    assert made["Config"]["Labels"]["io.kubernetes.container.name"] == "app"
    assert "web-n1" in agent.podman("pod", "ps", "--format", "{{.Name}}")
    assert {"Created", "Started"} <= {e["reason"] for e in agent.events("web")}
    assert agent.cli("status").stdout.endswith("good\n")


def test_a25_pain_11_a_crash_is_restarted_at_once_and_then_with_a_back_off_that_grows(agent: Agent) -> None:
    agent.start().write(pod("crash", container(script="echo run; exit 3")))
    agent.wait("the first restart", lambda: agent.restarts("crash") >= 1)
    agent.wait("a back-off", lambda: agent.waiting("crash") == "CrashLoopBackOff")
    assert agent.restarts("crash") == 1
    state = agent.container("crash")
    assert "back-off 10s restarting failed container=app" in state["state"]["waiting"]["message"]
    assert state["lastState"]["terminated"]["exitCode"] == 3
    assert "exit code 3" in agent.summary("crash")
    before = datetime.fromisoformat(state["lastState"]["terminated"]["finishedAt"])
    agent.wait("the second restart", lambda: _newest_start(agent.container("crash")) > before)
    assert agent.restarts("crash") >= 2
    took = _newest_start(agent.container("crash")) - before
    assert 9 <= took.total_seconds() < at_most(14)  # ten seconds from the end of the instance before, in whole ones
    agent.wait(
        "a longer back-off",
        lambda: "back-off 20s" in agent.container("crash")["state"].get("waiting", {}).get("message", ""),
    )
    assert agent.events("crash", "BackOff")
    assert agent.phase("crash") == "Running"


def _newest_start(status: dict[str, Any]) -> datetime:
    """When the newest instance began, whether or not it has ended."""
    told = [state for key in ("state", "lastState") for state in status.get(key, {}).values() if "startedAt" in state]
    return datetime.fromisoformat(told[0]["startedAt"])


def test_pain_11_a_crash_costs_one_container_and_is_over_soon(agent: Agent) -> None:
    agent.start().write(pod("two", container("a"), container("b")))
    agent.wait_ready("two")
    first, other = agent.running_id("two", "a"), agent.running_id("two", "b")
    agent.podman("kill", "--signal", "KILL", first)
    took = agent.wait("a new instance", lambda: agent.running_id("two", "a") not in ("", first))
    assert took < at_most(5)
    assert agent.container("two", "a")["lastState"]["terminated"]["exitCode"] == 137
    assert (agent.restarts("two", "a"), agent.restarts("two", "b")) == (1, 0)
    assert agent.running_id("two", "b") == other


@pytest.mark.parametrize(
    ("policy", "restarts", "phase"), [("Always", 2, "Running"), ("OnFailure", 1, "Succeeded"), ("Never", 0, "Failed")]
)
def test_a14_exit_1_then_0_then_run(agent: Agent, policy: str, restarts: int, phase: str) -> None:
    script = f"n=$(cat /data/n || echo 0); echo $((n+1)) > /data/n; [ $n = 0 ] && exit 1; [ $n = 1 ] && exit 0; {SERVE}"
    app = container(script=script, volumeMounts=[mount("data", "/data")])
    agent.start().write(pod("turns", app, restartPolicy=policy, volumes=[{"name": "data", "emptyDir": {}}]))
    agent.wait("the outcome", lambda: (agent.phase("turns"), agent.restarts("turns")) == (phase, restarts))
    if phase == "Running":
        agent.wait_ready("turns")
    else:
        assert agent.condition("turns") == "False"


def test_pain_32_init_containers_run_one_after_the_other_before_the_rest(agent: Agent) -> None:
    log = [mount("log", "/log")]
    write = "date +%s >> /log/{0}; echo {0} >> /log/order; sleep 0.3; echo {0}-end >> /log/order"
    agent.start().write(
        pod(
            "inits",
            container("app", f"echo app >> /log/order; {SERVE}", volumeMounts=log),
            initContainers=[container(n, write.format(n), volumeMounts=log) for n in ("one", "two")],
            volumes=[{"name": "log", "emptyDir": {}}],
        )
    )
    agent.wait_ready("inits")
    order = agent.inside("inits", "cat", "/log/order").split()
    assert order == ["one", "one-end", "two", "two-end", "app"]
    assert agent.condition("inits", "Initialized") == "True"
    assert [agent.container("inits", n)["state"]["terminated"]["exitCode"] for n in ("one", "two")] == [0, 0]


def test_a18_a_failing_init_container_keeps_the_rest_waiting(agent: Agent) -> None:
    agent.start().write(pod("stuck", initContainers=[container("bad", "exit 7"), container("next", "exit 0")]))
    agent.wait("its restart", lambda: agent.restarts("stuck", "bad") >= 1)
    agent.wait("its back-off", lambda: agent.waiting("stuck", "bad") == "CrashLoopBackOff")
    assert agent.phase("stuck") == "Pending"
    assert (agent.waiting("stuck", "next"), agent.waiting("stuck")) == ("PodInitializing", "PodInitializing")
    conditions = agent.status("stuck")["conditions"]
    (initialised,) = [c for c in conditions if c["type"] == "Initialized"]
    assert (initialised["status"], initialised["reason"]) == ("False", "ContainersNotInitialized")
    assert "bad" in initialised["message"]
    assert "exit code 7" in agent.summary("stuck")


@contextlib.contextmanager
def watching(agent: Agent, label: str) -> Iterator[list[set[str]]]:
    """Note again and again which generations (by a label) have a running container."""
    seen: list[set[str]] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            rows = json.loads(agent.podman("ps", "--filter", f"label={label}", "--format", "json"))
            seen.append({r["Labels"]["io.edgelet.config-hash"] for r in rows})

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


def test_an_edit_replaces_the_pod_and_two_generations_never_run_at_once(agent: Agent) -> None:
    agent.start().write(pod("edit", container(script=f"echo v1; {SERVE}")))
    agent.wait_ready("edit")
    before = agent.pod("edit")["metadata"]["uid"]
    with watching(agent, "io.kubernetes.pod.name=edit-n1") as seen:
        agent.write(pod("edit", container(script=f"echo v2; {SERVE}")))
        agent.wait("the new version", lambda: agent.container_log("edit") == "v2\n")
    agent.wait_ready("edit")
    assert agent.pod("edit")["metadata"]["uid"] != before
    assert len(agent.of_pod("edit")) == 1
    assert seen and max(len(s) for s in seen) == 1


def test_an_edit_to_an_image_that_is_not_there_keeps_the_old_version_and_says_so(agent: Agent) -> None:
    agent.start().write(pod("edit", container(script=f"echo v1; {SERVE}")))
    agent.wait_ready("edit")
    running = agent.running_id("edit")
    agent.write(pod("edit", container(image="localhost:1/nowhere/missing:9")))
    agent.wait("the reason", lambda: "localhost:1/nowhere/missing:9" in agent.summary("edit"))
    assert agent.running_id("edit") == running
    assert "missing:9" in agent.cli("describe", "pod", "edit").stdout
    agent.write(pod("edit", container(script=f"echo v3; {SERVE}")))
    agent.wait("the version that can run", lambda: agent.container_log("edit") == "v3\n")


def test_pain_140_a_pod_whose_image_is_missing_is_pending_with_a_reason(agent: Agent) -> None:
    agent.start()
    agent.write(pod("never", container(image="localhost/nowhere:1", imagePullPolicy="Never")))
    agent.write(pod("pull", container(image="localhost:1/nowhere:1")))
    agent.wait("both reasons", lambda: agent.waiting("never") and "ull" in agent.waiting("pull"))
    assert agent.waiting("never") == "ErrImageNeverPull"
    assert agent.waiting("pull") in ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable")
    for name in ("never", "pull"):
        assert agent.phase(name) == "Pending"
        assert "nowhere:1" in agent.summary(name)
        assert "nowhere:1" in agent.cli("get", "pods", name, "-o", "wide").stdout
    assert agent.cli("status", check=False).returncode == 1


def test_pain_140_a_command_that_is_not_there_is_told(agent: Agent) -> None:
    agent.start().write(pod("typo", container(command=["/bin/no-such-thing"])))
    agent.wait("the reason", lambda: "no-such-thing" in agent.summary("typo"))
    assert not agent.ready("typo")
    reasons = ("RunContainerError", "CrashLoopBackOff")
    agent.wait("a waiting reason", lambda: agent.waiting("typo") in reasons)
    assert "no-such-thing" in agent.events("typo", "Failed")[0]["message"]


def refused(agent: Agent, name: str) -> bool:
    """Whether Podman would not make its container, or (Podman 5 with crun, of no command) not start it."""
    last = agent.container(name).get("lastState", {}).get("terminated", {})
    return agent.waiting(name) == "CreateContainerError" or last.get("reason") == "StartError"


def test_pain_140_what_a_pod_asks_in_vain_is_its_own_fault_and_podman_is_left_in_peace(agent: Agent) -> None:
    agent.start()
    agent.write(pod("none", {"name": "app", "image": IMAGE}))  # neither the pod nor the image has a command
    agent.write(pod("cap", container(securityContext={"capabilities": {"add": ["NO_SUCH"]}})))
    agent.write(pod("memory", container(resources={"limits": {"memory": "4Ki"}})))
    value = {"name": "net.ipv4.ip_local_port_range", "value": "nonsense"}
    agent.write(pod("sysctl", securityContext={"sysctls": [value]}))
    for name in ("none", "cap"):
        agent.wait(f"{name} to be refused", partial(refused, agent, name))
    agent.wait("a back-off", lambda: agent.waiting("memory") in ("RunContainerError", "CrashLoopBackOff"))
    agent.wait("the end of a start", lambda: agent.container("memory").get("lastState"))
    last = agent.container("memory")["lastState"]["terminated"]
    if last["reason"] != "OOMKilled":  # crun may start it, and the kernel ends it; runc does not
        assert (last["exitCode"], last["reason"]) == (128, "StartError")
        assert "memory limit" in last["message"]
        assert not last["message"].startswith("cannot")  # the runtime's own words, as in a cluster
    agent.wait("advice", lambda: agent.events("sysctl", "RepairFailed"), seconds=60)
    assert "change its manifest" in agent.events("sysctl", "RepairFailed")[0]["message"]
    assert "ip_local_port_range" in agent.events("sysctl", "FailedCreatePodSandBox")[0]["message"]
    assert not [e for e in agent.events() if "restart the Podman service" in e["message"]]
    assert not [e for name in ("none", "cap", "memory") for e in agent.events(name, "Repairing")]


def test_pain_140_a_host_port_that_is_taken_is_told_and_tried_again(agent: Agent) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        agent.start().write(pod("web", container(ports=[{"containerPort": 80, "hostPort": port}])))
        agent.wait("the reason", lambda: str(port) in agent.summary("web"))
        assert agent.phase("web") == "Pending"
        assert str(port) in agent.cli("get", "pods", "-o", "wide").stdout
    agent.wait_ready("web", seconds=60)


def test_pain_38_sigterm_first_and_the_process_may_use_its_grace(agent: Agent, tmp_path: Path) -> None:
    script = f"trap 'echo term > /out/said; sleep 1; echo done > /out/said; exit 0' TERM; {SERVE}"
    agent.start().write(
        pod(
            "polite",
            container(command=["sh", "-c", script], volumeMounts=[mount("out", "/out")]),
            terminationGracePeriodSeconds=20,
            volumes=[{"name": "out", "hostPath": {"path": str(tmp_path)}}],
        )
    )
    agent.wait_ready("polite")
    agent.remove("polite")
    agent.wait("SIGTERM", (tmp_path / "said").exists)
    took = agent.wait_gone("polite")
    assert (tmp_path / "said").read_text() == "done\n"
    assert 0.5 < took < at_most(8)  # as long as it needed, far from all of its grace


def test_pain_38_sigkill_comes_at_the_end_of_the_grace_and_not_before(agent: Agent) -> None:
    agent.start().write(pod("stubborn", container(command=STUBBORN), terminationGracePeriodSeconds=4))
    agent.wait_ready("stubborn")
    agent.wait("its trap", lambda: agent.container_log("stubborn") == "up\n")
    (made,) = agent.of_pod("stubborn")
    pid = made["State"]["Pid"]
    begin = time.monotonic()
    agent.remove("stubborn")
    agent.wait("the process to end", lambda: not alive(pid))
    took = time.monotonic() - begin
    assert 4 <= took < at_most(8)  # 0.5 s until the deletion counts, 4 s of grace
    agent.wait_gone("stubborn")


def test_a_deleted_pod_leaves_nothing(agent: Agent) -> None:
    agent.start().write(pod("gone", volumes=[{"name": "m", "emptyDir": {"medium": "Memory"}}]))
    agent.wait_ready("gone")
    uid = agent.pod("gone")["metadata"]["uid"]
    agent.note_ids()
    agent.remove("gone")
    agent.wait_gone("gone")
    agent.wait("its leftovers to go", lambda: not agent.leftovers())
    agent.wait("its directory to go", lambda: not (agent.root / "pods" / uid).exists())


def test_pain_145_every_start_and_stop_has_its_cause_on_record(agent: Agent) -> None:
    agent.start().write(
        pod("why", container(livenessProbe={"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}))
    )
    agent.wait("a restart", lambda: agent.restarts("why") >= 1)
    told = agent.cli("events").stdout
    for words in (
        "Created",
        "Started",
        "Unhealthy",
        "Liveness probe failed",
        "Killing",
        "failed liveness probe, will be restarted",
    ):
        assert words in told
    agent.kill()
    agent.start()
    agent.wait("the record from before", lambda: agent.events("why", "Unhealthy"))
