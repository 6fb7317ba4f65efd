"""What the agent asks Podman for, seen from a proxy between: no streams, no waits, nothing while all is well."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator

import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import container, exec_probe, http_probe, pod
from tests.support.podman_proxy import Proxy

STREAMS = ("/events", "/wait", "/exec", "/attach", "/stats", "/logs", "/top", "/healthcheck", "/info", "/system/df")


class Listener:
    """The paths of all requests, in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paths: list[str] = []

    def __call__(self, request: bytes) -> str:
        line = request.split(b"\r\n", 1)[0].decode(errors="replace")
        with self._lock:
            self._paths.append(line)
        return "pass"

    @property
    def paths(self) -> list[str]:
        """So far."""
        with self._lock:
            return list(self._paths)


@pytest.fixture
def listened(agent: Agent) -> Iterator[Listener]:
    """What the agent asks for; it is running."""
    path = str(agent.directory / "proxy.sock")
    proxy = Proxy(path, agent.env.service)
    listener = Listener()
    proxy.choose = listener
    agent.start(f"--podman-socket={path}")
    yield listener
    if agent.running:
        agent.clean()
    proxy.close()


def _still(listened: Listener) -> bool:
    """Whether nothing is asked for a second."""
    before = listened.paths
    time.sleep(1)
    return listened.paths == before


def test_pain_28_31_73_74_76_77_79_82_86_94_podman_is_asked_for_no_streams_and_for_nothing_when_all_is_well(
    agent: Agent, listened: Listener
) -> None:
    hook = {"preStop": {"exec": {"command": ["true"]}}}
    app = container(livenessProbe=exec_probe("true"), readinessProbe=exec_probe("true"), lifecycle=hook)
    agent.write(pod("busy", app, terminationGracePeriodSeconds=5))
    agent.write(pod("crash", container(script="sleep 1; exit 3")))
    agent.wait_ready("busy")
    agent.wait("a restart", lambda: agent.restarts("crash") >= 1)
    agent.remove("crash")
    agent.wait_gone("crash")
    agent.wait("the pods of Podman to be one", lambda: len(agent.rows("pods")) == 1)
    agent.wait("what follows an end to be over", lambda: _still(listened))
    before, run = listened.paths, agent.probes_run()
    agent.wait("four probes of each kind", lambda: agent.probes_run() >= run + 8)
    assert listened.paths == before
    assert agent.ready("busy")
    agent.remove("busy")
    agent.wait_gone("busy")
    agent.wait("all to be taken away", lambda: not agent.rows("pods"))
    asked = listened.paths
    assert len(asked) < 80  # two pods, a restart, two ends
    assert [p for p in asked if any(word in p for word in STREAMS)] == []
    assert any(re.search(r"POST /v[\d.]+/libpod/containers/create", p) for p in asked)


def test_pain_23_a_slow_starter_has_all_the_time_its_startup_probe_gives(agent: Agent) -> None:
    """Its liveness probe would have killed it long ago; a fixed delay is not needed."""
    script = "sleep 4 & wait $!; mkdir /w; echo ok > /w/index.html; exec httpd -f -p 8080 -h /w"
    slow = container(
        script=script,
        startupProbe={**http_probe(8080), "failureThreshold": 60},
        livenessProbe=http_probe(8080),
    )
    agent.start().write(pod("slow", slow))
    agent.wait("its first failures", lambda: agent.events("slow", "Unhealthy"))
    assert agent.condition("slow") == "False"
    agent.wait_ready("slow")
    assert agent.restarts("slow") == 0


def test_pain_34_a_failing_init_container_fails_a_pod_that_is_never_restarted(agent: Agent) -> None:
    agent.start().write(pod("once", initContainers=[container("bad", "exit 7")], restartPolicy="Never"))
    agent.wait("its end", lambda: agent.phase("once") == "Failed")
    assert agent.container("once", "bad")["state"]["terminated"]["exitCode"] == 7
    assert agent.restarts("once", "bad") == 0
    assert not agent.container_id("once")


def test_pain_148_a_container_waits_until_its_database_in_the_pod_is_healthy(agent: Agent) -> None:
    ready = "sleep 2 & wait $!; touch /tmp/up; while :; do sleep 1000 & wait $!; done"
    database = container("db", ready, restartPolicy="Always", startupProbe={**exec_probe("test", "-e", "/tmp/up")})
    database["startupProbe"]["failureThreshold"] = 60
    agent.start().write(pod("pair", initContainers=[database]))
    agent.wait("the database to run", lambda: agent.running_id("pair", "db"))
    assert agent.waiting("pair") == "PodInitializing"
    agent.wait_ready("pair")
    assert agent.container("pair", "db")["restartCount"] == 0
