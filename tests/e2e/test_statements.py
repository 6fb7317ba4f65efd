"""Statements of the kubelet's own tests that no other file here tells, each with its number."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Iterator

import pytest

from tests.e2e.agent import NODE, Agent
from tests.e2e.manifests import SERVE, container, http_probe, pod


def test_a05_the_kubelets_list_has_a_pod_as_long_as_its_manifest_is_there(agent: Agent) -> None:
    agent.start().write(pod("web"))
    agent.wait_ready("web")
    (listed,) = agent.get("/pods")["items"]
    assert listed["metadata"]["name"] == f"web-{NODE}"
    assert listed["status"]["phase"] == "Running"
    assert {c["type"]: c["status"] for c in listed["status"]["conditions"]}["Ready"] == "True"
    agent.remove("web")
    agent.wait("the pod to leave the list", lambda: not agent.get("/pods")["items"])


def test_a08_an_init_container_that_was_removed_after_its_end_counts_as_completed(agent: Agent) -> None:
    agent.start().write(pod("web", initContainers=[container("init", "exit 0")]))
    agent.wait_ready("web")
    before = agent.running_id("web")
    agent.podman("rm", agent.container_id("web", "init"))
    agent.kill()
    agent.start()
    agent.wait(
        "the message",
        lambda: (
            "Unable to get init container status"
            in agent.container("web", "init").get("state", {}).get("terminated", {}).get("message", "")
        ),
    )
    ended = agent.container("web", "init")["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("Completed", 0)
    time.sleep(1)  # it would have been run again by now
    assert agent.running_id("web") == before
    assert len(agent.of_pod("web")) == 1


@pytest.fixture
def elsewhere() -> Iterator[int]:
    """A server that sends everybody to another host: its port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", "http://elsewhere.invalid/")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def test_a10_a_redirect_to_another_host_is_a_warning_and_no_failure(agent: Agent, elsewhere: int) -> None:
    probe = http_probe(elsewhere)
    probe["httpGet"]["host"] = "127.0.0.1"
    agent.start().write(pod("moved", container(livenessProbe=probe)))
    agent.wait_ready("moved")
    agent.wait("the warnings", lambda: sum(e["count"] for e in agent.events("moved", "ProbeWarning")) >= 2)
    assert agent.restarts("moved") == 0
    assert not agent.events("moved", "Unhealthy")


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (4, "Failed")])
def test_a17_after_two_inits_the_container_decides_how_the_pod_ends(agent: Agent, code: int, phase: str) -> None:
    inits = [container(name, "exit 0") for name in ("one", "two")]
    agent.start().write(pod("once", container(script=f"exit {code}"), initContainers=inits, restartPolicy="Never"))
    agent.wait("its end", lambda: agent.phase("once") == phase)
    assert [agent.container("once", n)["state"]["terminated"]["exitCode"] for n in ("one", "two")] == [0, 0]
    assert agent.condition("once", "Initialized") == "True"


def test_an_edit_with_a_uid_of_its_own_replaces_the_pod_too(agent: Agent) -> None:
    """The kubelet restarts in place what changed (1.5.5); here each version of a manifest is a pod of its own."""
    document = pod("web", labels={"v": "1"})
    document["metadata"]["uid"] = "my-own-uid"
    agent.start().write(document)
    agent.wait_ready("web")
    before = agent.running_id("web")
    document["spec"]["containers"][0]["command"] = ["sh", "-c", f"echo two; {SERVE}"]
    agent.write(document)
    agent.wait("the new version", lambda: agent.running_id("web") not in ("", before))
    agent.wait("its output", lambda: agent.container_log("web").strip() == "two")
