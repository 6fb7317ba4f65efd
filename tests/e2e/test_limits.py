"""What the kernel allows the agent runs out, and comes back."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.e2e.agent import Agent
from tests.e2e.manifests import container, exec_probe, pod


@contextmanager
def no_files(agent: Agent) -> Iterator[None]:
    """The agent may open nothing more, even if it closes a few."""
    before = resource.prlimit(agent.pid, resource.RLIMIT_NOFILE)
    now = len(os.listdir(f"/proc/{agent.pid}/fd"))
    resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, (now - 10, before[1]))
    try:
        yield
    finally:
        resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, before)


def in_trouble(agent: Agent, name: str) -> bool:
    """Whether its worker has said what it lacks."""
    rows = [row for row in agent.log_text().splitlines() if f" W pod default/{name}-n1: " in row]
    return any("Too many open files" in row for row in rows)


def test_the_soft_limit_of_open_files_is_raised_to_the_hard_one(agent: Agent) -> None:
    agent.start()
    soft, hard = resource.prlimit(agent.pid, resource.RLIMIT_NOFILE)
    assert soft in (hard, 65536)


def test_without_descriptors_no_pod_ends_nothing_spins_and_all_heals(agent: Agent) -> None:
    probe = exec_probe("true", failureThreshold=3)
    agent.start().write(
        pod("web", container(readinessProbe=probe, livenessProbe=probe)),
        pod("other", container(readinessProbe=probe)),
        name="two",
    )
    agent.wait_ready("web", "other")
    web, other = agent.running_id("web"), agent.running_id("other")
    with ExitStack() as callers, no_files(agent):
        for _ in range(8):
            callers.enter_context(socket.socket(socket.AF_UNIX)).connect(str(agent.socket))
        agent.wait("the words", lambda: "cannot take connections: Too many open files" in agent.log_text())
        agent.podman("kill", "--signal", "KILL", web)
        agent.wait("trouble", lambda: in_trouble(agent, "web"))
        agent.wait("probes that cannot be run", lambda: agent.log_text().count("default/other-n1 Unhealthy") > 2)
        assert agent.running
    agent.wait_ready("web", "other")
    assert (agent.restarts("web"), agent.restarts("other"), agent.running_id("other")) == (1, 0, other)
    text = agent.log_text()
    assert text.count("cannot take connections") < 20  # once per time without any; a busy loop writes thousands
    assert "Traceback" not in text
    assert len(text) < 300_000
