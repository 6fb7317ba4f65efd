"""Times of pods beside a server that hangs, against no server at all: the same, or the mirror is in the way."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.agent import NODE, Agent
from tests.e2e.manifests import pod
from tests.support.apiserver import FakeServer
from tests.support.podman_env import PodmanEnv

ROUNDS = int(os.environ.get("EDGELET_MIRROR_ROUNDS", "0"))
MOST = 1.05
DEADLINE = 120.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FakeServer]:
    """An API server that takes every request and answers none."""
    with FakeServer(tmp_path, node=NODE) as made:
        made.faults.add("hang")
        yield made


def until(condition: Callable[[], object]) -> float:
    """The seconds until it holds, looked at often: a tenth of a second would be a fifth of a start."""
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < DEADLINE, "it does not come"
        time.sleep(0.01)
    return time.monotonic() - begin


def times(agent: Agent, name: str) -> tuple[float, float, float]:
    """Seconds from a manifest to Ready, from kill -9 to the next instance, from its removal to nothing."""
    agent.write(pod(name))
    start = until(lambda: agent.ready(name))
    runs = agent.running_id(name)
    agent.podman("kill", "--signal", "KILL", runs)
    restart = until(lambda: agent.running_id(name) not in ("", runs))
    agent.remove(name)
    return start, restart, until(lambda: name not in agent.pods())


@pytest.mark.slow
@pytest.mark.skipif(
    not ROUNDS, reason="set EDGELET_MIRROR_ROUNDS (20 take some minutes): compares times, so run it alone"
)
@pytest.mark.timeout(3000)
def test_start_restart_and_stop_take_as_long_as_without_a_server(
    make_agent: Callable[[PodmanEnv], Agent], podman_env: PodmanEnv, server: FakeServer
) -> None:
    alone = make_agent(podman_env).start()
    beside = make_agent(podman_env).start(f"--kubeconfig={server.kubeconfig}", "--node-lease-duration-seconds=4")
    found: dict[Agent, list[tuple[float, float, float]]] = {alone: [], beside: []}
    for number in range(ROUNDS):
        for agent in (alone, beside) if number % 2 else (beside, alone):
            name = f"p{number}{'b' if agent is beside else 'a'}"
            found[agent].append(times(agent, name))
    ratios = {}
    for part, words in enumerate(("start", "restart", "stop")):
        # The first quartile: what else the machine does only ever makes a time longer.
        one, two = (statistics.quantiles((t[part] for t in found[a]), n=4)[0] for a in (alone, beside))
        ratios[words] = two / one
        print(f"{words}: {one:.3f} s without a server, {two:.3f} s beside one that hangs, ratio {two / one:.3f}")
    assert all(ratio <= MOST for ratio in ratios.values()), ratios
