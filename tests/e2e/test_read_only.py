"""A disk that becomes read-only under a running agent, and is mended: as after an error of a flash card."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.agent import Agent
from tests.e2e.manifests import container, exec_probe, mount, pod


@contextlib.contextmanager
def read_only(place: Path) -> Iterator[None]:
    """Nothing below `place` can be written to any more. What is open goes on, as on no real disk."""
    subprocess.run(["mount", "--rbind", place, place], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_with_a_read_only_root_directory_pods_are_restarted_and_all_heals(agent: Agent) -> None:
    scratch = [{"name": "v", "emptyDir": {}}]
    probe, mounts = exec_probe("true"), [mount("v", "/v")]
    agent.start().write(pod("web", container(readinessProbe=probe, volumeMounts=mounts), volumes=scratch))
    agent.wait_ready("web")
    with read_only(agent.root):
        agent.podman("kill", "--signal", "KILL", agent.running_id("web"))
        agent.wait("a restart", lambda: agent.restarts("web") == 1 and agent.ready("web"))
        agent.write(pod("new", container(volumeMounts=mounts), volumes=scratch))
        agent.wait("the words", lambda: "Read-only file system" in agent.summary("new"))
        assert "Errno" not in agent.log_text()
        assert "Read-only file system" in agent.cli("stop", "web", check=False).stderr
        assert "Read-only file system" in agent.cli("get", "sources", "-o", "json").stdout
        agent.kill()
        agent.start()
        agent.wait("the pod to be known", lambda: agent.ready("web"))
        agent.podman("kill", "--signal", "KILL", agent.running_id("web"))
        agent.wait("another restart", lambda: agent.restarts("web") == 2 and agent.ready("web"))
    agent.wait_ready("web", "new")
    agent.wait("the source to be good", lambda: not agent.agent_status()["sources"][0]["problems"])
    assert agent.restarts("web") == 2
    assert "Traceback" not in agent.log_text()


def test_with_read_only_logs_a_container_says_so_and_comes_back(agent: Agent) -> None:
    agent.start().write(pod("web"), pod("other"), name="two")
    agent.wait_ready("web", "other")
    other = agent.running_id("other")
    with read_only(agent.logs):
        agent.podman("kill", "--signal", "KILL", agent.running_id("web"))
        agent.wait("the words", lambda: "1.log: Read-only file system" in agent.summary("web"))
        assert agent.waiting("web") == "CreateContainerConfigError"
    agent.wait_ready("web", seconds=60)
    assert (agent.restarts("web"), agent.restarts("other"), agent.running_id("other")) == (1, 0, other)
    assert not [e for e in agent.events("web") if e["reason"] == "Repairing"]
