"""Fixtures of the end-to-end tests: one Podman for the whole run, one agent per test, nothing left behind."""

from __future__ import annotations

import contextlib
import fcntl
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.agent import Agent
from tests.support.podman_env import PodmanEnv, why_not

REPORTED = 200
"""Lines of the agent's log that a failure shows."""

IDLE = 600.0
"""Seconds: the Podman service that the tests ask stays for the whole run."""
_PASSED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is end to end."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.e2e)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A failure shows what the agents of the test said."""
    report = yield
    if call.when == "call":
        item.stash[_PASSED] = call.excinfo is None
    if report.failed:  # type: ignore[attr-defined]
        for agent in getattr(item, "agents", []):
            report.sections.append((f"agent in {agent.directory.name}", _story(agent)))  # type: ignore[attr-defined]
    return report


def _story(agent: Agent) -> str:
    try:
        events = "\n".join(
            f"{e['lastTimestamp']} x{e['count']} {e['involvedObject']['name']} {e['reason']}: {e['message']}"
            for e in agent.events()
        )
        states = json.dumps({n: (agent.summary(n), p["status"]) for n, p in agent.pods().items()}, indent=1)
    except OSError:
        events, states = "the agent does not answer", ""
    lines = [line for line in agent.log_text().splitlines() if " D api: " not in line][-REPORTED:]
    return "\n".join([events, states, *lines])


@pytest.fixture(scope="session")
def podman_env(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[PodmanEnv]:
    """One Podman for all end-to-end tests of the run, also where several processes share them (pytest -n)."""
    if reason := why_not():
        pytest.skip(reason)
    if not hasattr(request.config, "workerinput"):
        with _podman() as env:
            yield env
        return
    shared = tmp_path_factory.getbasetemp().parent / "e2e"
    with _users(shared) as users:
        env = PodmanEnv(users[0], idle=IDLE, attach=True) if users else PodmanEnv(_short_directory(), idle=IDLE)
        users.append(env.directory)
    yield env
    with _users(shared) as users:
        users.pop()
        if users:
            env.service.stop()
        else:
            env.close()


@contextlib.contextmanager
def _podman() -> Iterator[PodmanEnv]:
    env = PodmanEnv(_short_directory(), idle=IDLE)
    try:
        yield env
    finally:
        env.close()


def _short_directory() -> str:
    """Podman refuses a run root of more than 50 characters, and pytest's own directories come near that."""
    return tempfile.mkdtemp(prefix="edge-")


@contextlib.contextmanager
def _users(shared: Path) -> Iterator[list[str]]:
    """The processes that use the shared Podman, to be changed under a lock."""
    shared.mkdir(exist_ok=True)
    with open(shared / "users", "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        users = file.read().splitlines()
        yield users
        file.truncate(0)
        file.write("".join(f"{user}\n" for user in users))


@pytest.fixture
def _own_podman() -> Iterator[PodmanEnv]:
    """A Podman for one test alone: one that reboots, or breaks, or is switched off."""
    if reason := why_not():
        pytest.skip(reason)
    with _podman() as env:
        yield env


@pytest.fixture
def make_agent(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[PodmanEnv], Agent]]:
    """Makes agents; at the end each takes its pods away, and nothing of it may be left."""
    agents: list[Agent] = []
    request.node.agents = agents

    def make(env: PodmanEnv) -> Agent:
        agents.append(Agent(env, tmp_path_factory.mktemp("a")))
        return agents[-1]

    yield make
    failures = [f for agent in agents for f in _end(agent, request.node.stash.get(_PASSED, False))]
    assert not failures, "\n".join(failures)


@pytest.fixture
def agent(make_agent: Callable[[PodmanEnv], Agent], podman_env: PodmanEnv) -> Agent:
    """An agent on the shared Podman, not started yet."""
    return make_agent(podman_env)


@pytest.fixture
def lone_agent(_own_podman: PodmanEnv, make_agent: Callable[[PodmanEnv], Agent]) -> Agent:
    """An agent on a Podman that no other test sees, not started yet."""
    return make_agent(_own_podman)


def _end(agent: Agent, passed: bool) -> list[str]:
    """End an agent; after a good test, through the agent itself, and then look what is left."""
    try:
        if not passed:
            return []
        agent.clean()
        return agent.leftovers()
    except AssertionError as error:
        return [str(error), *agent.leftovers(), _story(agent)]
    finally:
        agent.force()
