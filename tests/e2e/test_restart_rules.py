"""Restart policies and rules of single containers, and the pod's deadline, on real Podman (semantics 3.5, 3.10)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agent import Agent, at_most
from tests.e2e.manifests import SERVE, container, exec_probe, mount, pod

Json = dict[str, Any]
TURNS = "n=$(cat /s/{0} 2>/dev/null || echo 0); echo $((n+1)) > /s/{0}; "
"""Counts the runs of a container in /s/<name>; `$n` were there before."""


def counted(name: str, script: str, **fields: Any) -> Json:
    """A container that counts its runs."""
    return container(name, TURNS.format(name) + script, volumeMounts=[mount("s", "/s")], **fields)


def runs(directory: Path, name: str) -> int:
    """How often a container has run."""
    file = directory / name
    return int(file.read_text() or 0) if file.exists() else 0


def on_host(directory: Path) -> dict[str, Any]:
    """The fields of a pod with the volume `s` on the host."""
    return {"volumes": [{"name": "s", "hostPath": {"path": str(directory)}}]}


@pytest.mark.parametrize(
    ("policy", "own", "script", "restarts", "phase"),
    [
        ("Always", "Never", "exit 3", 0, "Failed"),
        ("Always", "OnFailure", "exit 0", 0, "Succeeded"),
        ("Never", "OnFailure", "exit $((1-n))", 1, "Succeeded"),
        ("Never", "Always", f"[ $n = 0 ] && exit 0; {SERVE}", 1, "Running"),
    ],
)
def test_a_containers_own_policy_takes_the_place_of_the_pods(
    agent: Agent, tmp_path: Path, policy: str, own: str, script: str, restarts: int, phase: str
) -> None:
    app = counted("app", script, restartPolicy=own)
    agent.start().write(pod("own", app, restartPolicy=policy, **on_host(tmp_path)))
    agent.wait("the outcome", lambda: (agent.phase("own"), agent.restarts("own")) == (phase, restarts))
    agent.wait("its runs", lambda: runs(tmp_path, "app") == restarts + 1)


def test_a_rule_about_an_exit_code_restarts_and_others_do_not(agent: Agent, tmp_path: Path) -> None:
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
    app = counted("app", "[ $n = 0 ] && exit 42; exit 7", restartPolicy="Never", restartPolicyRules=rules)
    agent.start().write(pod("ruled", app, **on_host(tmp_path)))
    agent.wait("the outcome", lambda: agent.phase("ruled") == "Failed")
    assert (agent.restarts("ruled"), runs(tmp_path, "app")) == (1, 2)
    status = agent.container("ruled")
    assert status["state"]["terminated"]["exitCode"] == 7


def test_one_exit_code_has_all_containers_run_again_in_the_same_sandbox(agent: Agent, tmp_path: Path) -> None:
    rules = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [88]}}]
    app = counted("app", f"[ $n = 0 ] && while [ ! -e /s/go ]; do sleep 0.1; done && exit 88; {SERVE}",
                  restartPolicy="Never", restartPolicyRules=rules)  # fmt: skip
    side = counted("side", "echo kept >> /e/file; " + SERVE)
    side["volumeMounts"].append(mount("e", "/e"))
    spec = on_host(tmp_path)
    spec["volumes"].append({"name": "e", "emptyDir": {}})
    agent.start().write(pod("again", app, side, initContainers=[counted("init", "exit 0")], **spec))
    agent.wait_ready("again")
    sandboxes = [row["Id"] for row in agent.rows("pods")]
    (tmp_path / "go").touch()
    agent.wait("all to run again", lambda: runs(tmp_path, "side") == 2 and agent.ready("again"))
    assert [runs(tmp_path, n) for n in ("init", "app", "side")] == [2, 2, 2]
    assert [agent.restarts("again", n) for n in ("init", "app", "side")] == [1, 1, 1]
    assert [row["Id"] for row in agent.rows("pods")] == sandboxes
    for name in ("app", "side"):
        last = agent.container("again", name)["lastState"]["terminated"]
        assert (last["exitCode"], last["reason"]) == (137, "RestartingAllContainers")
    assert agent.inside("again", "cat", "/e/file", container="side").split() == ["kept", "kept"]
    assert agent.condition("again", "AllContainersRestarting") == "False"
    assert len(agent.of_pod("again")) == 3  # nothing of the first round is left
    assert "exit code 88" in agent.events("again", "RestartingAllContainers")[0]["message"]


def test_a_liveness_kill_follows_the_policy_and_not_the_rules(agent: Agent, tmp_path: Path) -> None:
    rules = [{"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [0]}}]
    app = {
        **counted("app", "", restartPolicy="Never", restartPolicyRules=rules),
        "command": ["sh", "-c", "trap 'exit 9' TERM; while :; do sleep 0.1; done"],
        "livenessProbe": exec_probe("test", "!", "-e", "/s/sick"),
    }
    agent.start().write(pod("killed", app, **on_host(tmp_path)))
    agent.wait_ready("killed")
    (tmp_path / "sick").touch()
    agent.wait("its end", lambda: agent.phase("killed") == "Failed")
    assert agent.restarts("killed") == 0
    assert agent.container("killed")["state"]["terminated"]["exitCode"] == 9


def test_a_pod_that_is_active_for_too_long_fails_and_stays_so(agent: Agent) -> None:
    agent.start().write(pod("late", activeDeadlineSeconds=round(at_most(3))))
    agent.wait_ready("late")
    agent.wait("the deadline", lambda: agent.phase("late") == "Failed")
    status = agent.status("late")
    assert status["reason"] == "DeadlineExceeded"
    assert status["message"] == "Pod was active on the node longer than the specified deadline"
    agent.wait("the end of its container", lambda: not any(c["State"]["Running"] for c in agent.of_pod("late")))
    (event,) = agent.events("late", "DeadlineExceeded")
    assert (event["type"], event["message"]) == ("Normal", status["message"])
    agent.kill()
    agent.start()
    agent.wait("its status after a restart", lambda: agent.status("late").get("reason") == "DeadlineExceeded")
    assert agent.restarts("late") == 0
    assert agent.summary("late").startswith("DeadlineExceeded: ")
