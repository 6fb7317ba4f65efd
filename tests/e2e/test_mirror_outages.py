"""Trouble between the agent and its API server: afterwards the server shows exactly what is here, each event once.

    EDGELET_OUTAGE_SECONDS=600 EDGELET_OUTAGE_STATE=FILE make outages    ten minutes; begun again, it goes on

A round of a seed always makes the same troubles, so a find can be repeated: EDGELET_OUTAGE_SEED=N.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.client import Client
from tests.e2e.agent import NODE, Agent
from tests.e2e.manifests import container, env, pod
from tests.e2e.mirrored import PATIENCE, wait_equal
from tests.support.apiserver import FakeServer, Rule

SECONDS = float(os.environ.get("EDGELET_OUTAGE_SECONDS", "20"))
SEED = int(os.environ.get("EDGELET_OUTAGE_SEED", "8"))
STATE = os.environ.get("EDGELET_OUTAGE_STATE", "")
"""File that keeps the seed of the next round until the seconds are over."""
ROUND = 20.0
"""Seconds of trouble in one round."""
FAST = ("--node-lease-duration-seconds=8", "--node-status-update-frequency=2s")
"""A heartbeat every 2 s: requests then give up after 2 s."""
KINDS = (
    ("get", "nodes"), ("create", "nodes"), ("patch", "nodes/status"),
    ("get", "leases"), ("create", "leases"), ("update", "leases"),
    ("list", "pods"), ("watch", "pods"), ("create", "pods"), ("get", "pods"), ("patch", "pods/status"),
    ("delete", "pods"), ("create", "events"), ("patch", "events"),
)  # fmt: skip
"""Every kind of request that a mirror makes."""
CODES = (500, 429, 401, 403, 409)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FakeServer]:
    """An API server for the agent's node; whatever it was sent must have been right."""
    with FakeServer(tmp_path, node=NODE) as made:
        yield made
    assert made.violations == []


def start(agent: Agent, server: FakeServer) -> Client:
    """The agent with that server; the administrator who looks at it."""
    agent.start(f"--kubeconfig={server.kubeconfig}", *FAST)
    return Client(server.admin_kubeconfig)


def version(number: int) -> list[dict[str, str]]:
    """What makes a manifest another one."""
    return env(VERSION=str(number))


def test_a_server_that_is_down_at_the_start(agent: Agent, server: FakeServer) -> None:
    server.down()
    admin = start(agent, server)
    agent.write(pod("web"))
    agent.wait_ready("web")
    server.up()
    wait_equal(agent, admin)


def test_a_server_that_is_lost_while_pods_change(agent: Agent, server: FakeServer) -> None:
    admin = start(agent, server)
    agent.write(pod("stays"))
    agent.write(pod("changes", container(env=version(1))))
    agent.write(pod("goes"))
    agent.wait_ready("stays", "changes", "goes")
    wait_equal(agent, admin)
    server.down()
    agent.remove("goes")
    agent.write(pod("changes", container(env=version(2))))
    agent.write(pod("comes"))
    agent.wait_gone("goes")
    agent.wait_ready("stays", "changes", "comes")
    server.up()
    wait_equal(agent, admin)


@pytest.mark.parametrize("action", ["cut_request", "cut_answer", "cut_half"])
def test_every_kind_of_request_is_lost_once(agent: Agent, server: FakeServer, action: str) -> None:
    rules = [server.faults.add(action, verb=verb, resource=resource, times=1) for verb, resource in KINDS]
    admin = start(agent, server)
    agent.write(pod("web", container(env=version(1))))
    agent.write(pod("fails", container(script="exit 3")))
    agent.wait_ready("web")
    agent.wait("the mirror to be there", lambda: server.find(f"/api/v1/namespaces/default/pods/web-{NODE}"))
    agent.write(pod("web", container(env=version(2))))
    left = [r for r in rules if (r.verb, r.resource) not in (("get", "leases"), ("get", "pods"))]
    agent.wait("every kind of request", lambda: all(r.used for r in left), 60)
    agent.remove("fails")
    wait_equal(agent, admin)


def test_a_server_that_hangs(agent: Agent, server: FakeServer) -> None:
    admin = start(agent, server)
    agent.write(pod("before"))
    agent.wait_ready("before")
    wait_equal(agent, admin)
    for resource in ("", "connect"):
        rule = server.faults.add("hang", resource=resource)
        _wait_used(agent, rule)
        agent.write(pod(f"while-{resource}x"))
        agent.wait_ready(f"while-{resource}x")
        server.faults.remove(rule)
    wait_equal(agent, admin)


def _wait_used(agent: Agent, rule: Rule) -> None:
    agent.wait("a request to be hit", lambda: rule.used)


def test_a_slow_server(agent: Agent, server: FakeServer) -> None:
    server.faults.add("slow", seconds=0.4)
    admin = start(agent, server)
    agent.write(pod("web"))
    agent.wait_ready("web")
    wait_equal(agent, admin)


def test_a_server_that_is_wiped_and_replaced(agent: Agent, server: FakeServer) -> None:
    admin = start(agent, server)
    agent.write(pod("web"))
    agent.wait_ready("web")
    wait_equal(agent, admin)
    server.wipe()
    wait_equal(agent, admin)


def test_a_killed_agent_tells_no_repeat_that_it_forgets(agent: Agent, server: FakeServer) -> None:
    admin = start(agent, server)
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1000}
    agent.write(pod("ill", container(livenessProbe=probe)))
    chance = random.Random(SEED)
    for _ in range(5):
        agent.wait("a repeat to be told", lambda: _repeats(server), 60)
        time.sleep(chance.uniform(0.0, 1.5))
        agent.kill()
        agent.start()
    agent.remove("ill")
    agent.wait_gone("ill")
    wait_equal(agent, admin)
    here = {e["metadata"]["name"] for e in agent.get("/api/v1/events")["items"]}
    assert {e["metadata"]["name"] for e in server.list("events")} == here


def _repeats(server: FakeServer) -> bool:
    return any(e["reason"] == "Unhealthy" and e["count"] > 1 for e in server.list("events"))


@pytest.mark.timeout(SECONDS * 8 + 2 * PATIENCE)
def test_trouble_at_random(agent: Agent, server: FakeServer) -> None:
    admin = start(agent, server)
    agent.write(pod("stays"))
    agent.wait_ready("stays")
    rounds = max(1, round(SECONDS / ROUND))
    for seed in _seeds(rounds):
        _trouble(agent, server, random.Random(seed), seed, SECONDS / rounds)
        wait_equal(agent, admin)
        print(f"seed {seed}: {server.requests.count()} requests, all is equal")
    if STATE:
        Path(STATE).unlink(missing_ok=True)


def _seeds(rounds: int) -> Iterator[int]:
    """The seeds that are still to be tried; what is done is kept in the state file."""
    first = SEED
    with contextlib.suppress(OSError, ValueError):
        first = int(Path(STATE).read_text()) if STATE else SEED
    for seed in range(first, SEED + rounds):
        yield seed
        if STATE:
            Path(STATE).write_text(str(seed + 1))


def _trouble(agent: Agent, server: FakeServer, chance: random.Random, seed: int, seconds: float) -> None:
    """Answers of every bad kind, now and then no server, an empty one, or no agent, while pods come, change and go."""
    server.faults.seed(seed)
    ends = time.monotonic() + seconds
    names = {"a": 0, "b": 0}
    while time.monotonic() < ends:
        _change(agent, chance, names)
        _disturb(agent, server, chance)
        time.sleep(chance.uniform(0.5, 2.0))
        server.faults.clear()
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            agent.remove(name)


def _change(agent: Agent, chance: random.Random, names: dict[str, int]) -> None:
    name = chance.choice(list(names))
    names[name] += 1
    if chance.random() < 0.3:
        with contextlib.suppress(FileNotFoundError):
            agent.remove(name)
    else:
        script = chance.choice(["exit 1", "sleep 1", "while :; do sleep 1000 & wait $!; done"])
        agent.write(pod(name, container(script=script, env=version(names[name]))))


def _disturb(agent: Agent, server: FakeServer, chance: random.Random) -> None:
    match chance.choice(["code", "code", "code", "cut", "slow", "hang", "down", "wipe", "kill"]):
        case "code":
            for code in CODES:
                server.faults.add("refuse", code=code, chance=0.12, retry_after=1 if code == 429 else 0)
        case "cut":
            for action in ("cut_request", "cut_answer", "cut_half"):
                server.faults.add(action, chance=0.2)
        case "slow":
            server.faults.add("slow", seconds=0.3)
        case "hang":
            server.faults.add("hang", chance=0.3)
        case "down":
            server.down()
            time.sleep(chance.uniform(0.1, 2.0))
            server.up()
        case "wipe":
            server.wipe()
        case "kill":
            server.faults.add("cut_answer", chance=0.3)
            agent.kill()
            agent.start()
