"""Manifest URLs through the real agent and real Podman, against a web server that fails in every way."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agent import Agent, started
from tests.e2e.manifests import pod
from tests.e2e.test_survival import reboot
from tests.support import web
from tests.support.certificates import Authority, Pair
from tests.support.nginx import Nginx
from tests.support.web import WebServer

GOOD = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [pod("far"), pod("away")]})
REBOOTS = int(os.environ.get("EDGELET_REBOOTS", "2"))
"""Of each kind, where reboots are compared."""
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
    reasons = {e["reason"] for e in agent.get("/api/v1/events")["items"]}
    assert {"SourceUnavailable", "SourceRecovered"} <= reasons
    end(agent, server)


def bad_pairs(authority: Authority, tmp_path: Path) -> dict[str, tuple[Pair | None, str]]:
    """Certificates that must not be accepted, and a word of what is said then."""
    return {
        "wrong host name": (authority.issue("other", names="DNS:elsewhere.example"), "not accepted"),
        "unknown authority": (Authority(tmp_path / "stranger").issue("server"), "not accepted"),
        "expired": (authority.issue("old", start="200101", end="210101"), "expired"),
        "not yet valid": (authority.issue("new", start="480101", end="491231"), "not valid yet"),
        "no TLS at all": (None, "TLS"),
    }


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_pain_116_no_bad_certificate_touches_a_container(
    agent: Agent, server: WebServer, authority: Authority, tmp_path: Path
) -> None:
    good, pairs = server.pair, bad_pairs(authority, tmp_path)
    start(agent, server, authority).wait_ready("far", "away")
    before = lives(agent)
    for name, (pair, word) in pairs.items():
        server.pair = pair
        server.hang_up()
        agent.wait(f"a word about {name}", lambda: not source(agent)["ok"], 60)
        agent.wait(f"{word!r} in it", lambda word=word: word in source(agent)["message"], 60)  # type: ignore[misc]
        assert lives(agent) == before, name
        server.pair = good
        agent.wait(f"recovery from {name}", lambda: source(agent)["ok"], 90)
        assert lives(agent) == before, name
    end(agent, server)


def test_pain_116_unchanged_replies_cost_a_304_and_touch_nothing(
    agent: Agent, server: WebServer, authority: Authority
) -> None:
    same = web.answer(GOOD, ETag='"1"')
    server.script = lambda r: web.answer(status="304 Not Modified") if "if-none-match" in r.headers else same
    start(agent, server, authority).wait_ready("far", "away")
    before, asked = lives(agent), len(server.requests)
    agent.wait("five more requests", lambda: len(server.requests) >= asked + 5)
    assert all(r.headers.get("if-none-match") == '"1"' for r in server.requests[asked:])
    assert (lives(agent), source(agent)["ok"]) == (before, True)
    end(agent, server)


LOCATIONS = {
    "401": 'location = /pods.yaml { auth_basic "box"; auth_basic_user_file /nonexistent; }',
    "404": "location = /pods.yaml { return 404; }",
    "429": "location = /pods.yaml { add_header Retry-After 1 always; return 429; }",
    "500": "location = /pods.yaml { return 500; }",
    "503": "location = /pods.yaml { add_header Retry-After 1 always; return 503; }",
    "redirect loop": "location = /pods.yaml { return 302 /pods.yaml; }",
    "https to http": "location = /pods.yaml { return 302 http://127.0.0.1:9/; }",
    "closed without a word": "location = /pods.yaml { return 444; }",
}
BODIES = {
    "empty": "",
    "HTML": "<html>log in here</html>",
    "cut": GOOD[:300],
    "huge": "#" * (11 * 1024 * 1024),
}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_pain_116_nothing_that_nginx_does_touches_a_container(
    agent: Agent, authority: Authority, tmp_path: Path
) -> None:
    """Also: a reboot of the server, the wrong certificate, changed and then restored content."""
    nginx = Nginx(tmp_path, authority)
    body = nginx.www / "pods.yaml"
    body.write_text(GOOD)
    nginx.start()
    try:
        url = f"https://127.0.0.1:{nginx.port}/pods.yaml"
        agent.start(f"--manifest-url={url}", f"--manifest-url-ca-file={authority.ca}", "--http-check-frequency=1s")
        agent.wait_ready("far", "away")
        before = lives(agent)
        agent.wait("three 304s", lambda: nginx.served().count(304) >= 3)
        for name, location in LOCATIONS.items():
            nginx.stop()
            nginx.start(location)
            bad_for_a_while(agent, before, name)
            nginx.stop()
            nginx.start()
            good_again(agent, before, name)
        nginx.stop()
        bad_for_a_while(agent, before, "no server")
        nginx.start(pair=authority.issue("elsewhere", names="DNS:elsewhere.example"))
        agent.wait("the wrong name to be seen", lambda: "not accepted" in source(agent)["message"], 60)
        assert lives(agent) == before
        nginx.stop()
        nginx.start()
        good_again(agent, before, "wrong host name")
        for name, text in BODIES.items():
            body.write_text(text)
            bad_for_a_while(agent, before, name)
            body.write_text(GOOD)
            good_again(agent, before, name)
        body.write_text(NONE)
        agent.wait_gone("far", "away", seconds=90)
        body.write_text(GOOD)
        agent.wait_ready("far", "away", seconds=90)
        body.write_text(NONE)
        agent.wait_gone("far", "away", seconds=90)
    finally:
        nginx.stop()


def bad_for_a_while(agent: Agent, before: list[tuple[Any, ...]], name: str) -> None:
    """The source complains, and all goes on."""
    agent.wait(f"a word about {name}", lambda: not source(agent)["ok"], 60)
    assert lives(agent) == before, name


def good_again(agent: Agent, before: list[tuple[Any, ...]], name: str) -> None:
    """The source is read again, and nothing has happened."""
    agent.wait(f"recovery from {name}", lambda: source(agent)["ok"], 90)
    assert lives(agent) == before, name


def test_pain_220_after_a_reboot_without_link_the_pods_run(
    lone_agent: Agent, server: WebServer, authority: Authority
) -> None:
    start(lone_agent, server, authority).wait_ready("far", "away")
    server.script = lambda _: web.NOTHING
    reboot(lone_agent)
    lone_agent.start().wait_ready("far", "away", seconds=90)
    assert not source(lone_agent)["ok"] and source(lone_agent)["pods"] == 2
    end(lone_agent, server)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_pain_220_the_first_container_comes_as_soon_without_link_as_with_it(
    lone_agent: Agent, server: WebServer, authority: Authority
) -> None:
    """Reboots with the link and with a server that never answers, in turn; each begins with the agent's start."""
    start(lone_agent, server, authority).wait_ready("far", "away")
    times: dict[str, list[float]] = {"link": [], "none": []}
    for _ in range(REBOOTS):
        for name, reply in {"link": web.answer(GOOD), "none": web.HANG}.items():
            server.script = lambda _, reply=reply: reply  # type: ignore[misc]
            reboot(lone_agent)
            server.hang_up()
            begin = time.time()
            lone_agent.start(wait=False)
            lone_agent.wait_ready("far", "away", seconds=90)
            times[name].append(min(started(c) for c in lone_agent.containers()) - begin)
    server.script = lambda _: web.answer(GOOD)
    best, medians = [{n: of(t) for n, t in times.items()} for of in (min, statistics.median)]
    print(f"\nstart of the agent to the first container, s: {times}; median {medians}, best {best}")
    assert best["none"] <= 1.1 * best["link"] + 0.5  # half a second for a busy machine
    end(lone_agent, server)


def test_a_changed_reply_changes_the_pods_and_no_others(agent: Agent, server: WebServer, authority: Authority) -> None:
    start(agent, server, authority).wait_ready("far", "away")
    before = agent.running_id("far"), agent.running_id("away")
    changed = {"apiVersion": "v1", "kind": "PodList", "items": [pod("far"), pod("away", labels={"new": "yes"})]}
    server.script = lambda _: web.answer(json.dumps(changed))
    agent.wait("the new version", lambda: agent.running_id("away") not in {"", before[1]}, 60)
    assert agent.running_id("far") == before[0]
    end(agent, server)
