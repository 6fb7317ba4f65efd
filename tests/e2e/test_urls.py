"""Manifest URLs through the real agent and real Podman, against a web server that fails in every way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import pod
from tests.e2e.test_survival import reboot
from tests.support import web
from tests.support.certificates import Authority
from tests.support.web import WebServer

GOOD = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [pod("far"), pod("away")]})
NONE = '{"apiVersion": "v1", "kind": "PodList", "items": []}'

BAD = {
    "401": web.answer(status="401 Unauthorized"),
    "404": web.answer("nothing", status="404 Not Found"),
    "429": web.answer(status="429 Too Many Requests", Retry_After="1"),
    "500": web.answer(status="500 Oops"),
    "cut": web.cut(GOOD, 300),
    "empty": web.answer(""),
    "HTML": web.answer("<html>log in here</html>"),
    "huge": web.answer("#" * (11 * 1024 * 1024)),
    "half valid": web.answer(json.dumps([]) + "\n" + GOOD[:-40]),
    "nothing": web.NOTHING,
    "redirect loop": web.answer(status="302 Found", Location="/pods"),
    "https to http": web.answer(status="302 Found", Location="http://127.0.0.1:9/"),
    "slow drip": web.drip(web.answer(GOOD), 0.2),
    "hang": web.HANG,
}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


@pytest.fixture
def server(authority: Authority) -> Iterator[WebServer]:
    with WebServer(lambda _: web.answer(GOOD), authority.issue("server")) as made:
        yield made


def start(agent: Agent, server: WebServer, authority: Authority) -> Agent:
    flags = (f"--manifest-url={server.url}", f"--manifest-url-ca-file={authority.ca}", "--http-check-frequency=1s")
    return agent.start(*flags)


def lives(agent: Agent) -> list[tuple[Any, ...]]:
    """Which containers there are, and since when they run."""
    return sorted((c["Id"], c["State"]["StartedAt"], c["State"]["Status"]) for c in agent.containers())


def source(agent: Agent) -> dict[str, Any]:
    """The URL's row of `edgelet status`."""
    found: dict[str, Any] = next(s for s in agent.agent_status()["sources"] if s["name"].startswith("http:"))
    return found


def end(agent: Agent, server: WebServer) -> None:
    """The one way to end pods of a URL."""
    server.script = lambda _: web.answer(NONE)
    agent.wait_gone("far", "away", seconds=90)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_pain_116_no_bad_reply_touches_a_container(agent: Agent, server: WebServer, authority: Authority) -> None:
    start(agent, server, authority).wait_ready("far", "away")
    before = lives(agent)
    assert len(before) == 2
    for name, reply in BAD.items():
        server.script = lambda _, reply=reply: reply  # type: ignore[misc]
        agent.wait(f"a word about {name}", lambda: not source(agent)["ok"], 60)
        assert lives(agent) == before, name
        server.script = lambda _: web.answer(GOOD)
        agent.wait(f"recovery from {name}", lambda: source(agent)["ok"], 90)
        assert lives(agent) == before, name
    end(agent, server)


def test_pain_220_after_a_reboot_without_link_the_pods_run(
    lone_agent: Agent, server: WebServer, authority: Authority
) -> None:
    start(lone_agent, server, authority).wait_ready("far", "away")
    server.script = lambda _: web.NOTHING
    reboot(lone_agent)
    lone_agent.start().wait_ready("far", "away", seconds=90)
    assert not source(lone_agent)["ok"] and source(lone_agent)["pods"] == 2
    end(lone_agent, server)


def test_a_changed_reply_changes_the_pods_and_no_others(agent: Agent, server: WebServer, authority: Authority) -> None:
    start(agent, server, authority).wait_ready("far", "away")
    before = agent.running_id("far"), agent.running_id("away")
    changed = {"apiVersion": "v1", "kind": "PodList", "items": [pod("far"), pod("away", labels={"new": "yes"})]}
    server.script = lambda _: web.answer(json.dumps(changed))
    agent.wait("the new version", lambda: agent.running_id("away") not in {"", before[1]}, 60)
    assert agent.running_id("far") == before[0]
    end(agent, server)
