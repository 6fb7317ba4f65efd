"""Sidecars through the real agent on real Podman: order of start and end (semantics 3.3, 3.4.4)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.e2e.agent import Agent, at_most
from tests.e2e.manifests import container, exec_probe, mount, pod

Json = dict[str, Any]
SERVE = "while :; do sleep 1000 & wait $!; done"


def noting(name: str, script: str, **fields: Any) -> Json:
    """A container that notes its begin, and its end on SIGTERM, in /s/log."""
    words = f"trap 'sleep 0.2; echo {name}-end >> /s/log; exit 0' TERM; echo {name} >> /s/log; {script}"
    made = container(name, volumeMounts=[mount("s", "/s")], **fields)
    return {**made, "command": ["sh", "-c", words]}


def sidecar(name: str, script: str = SERVE, **fields: Any) -> Json:
    """An init container that stays."""
    return noting(name, script, restartPolicy="Always", **fields)


def short(name: str) -> Json:
    """An init container that takes a moment."""
    return noting(name, f"sleep 0.3; echo {name}-end >> /s/log")


def volumes(directory: Path) -> list[Json]:
    """The volume `s` on the host."""
    return [{"name": "s", "hostPath": {"path": str(directory)}}]


def notes(directory: Path) -> list[str]:
    """What was noted."""
    file = directory / "log"
    return file.read_text().split() if file.exists() else []


def test_a19_inits_and_sidecars_start_in_order_and_sidecars_stay(agent: Agent, tmp_path: Path) -> None:
    inits = [short("init1"), sidecar("side1"), short("init2"), sidecar("side2"), short("init3")]
    agent.start().write(pod("mixed", noting("app", SERVE), initContainers=inits, volumes=volumes(tmp_path)))
    agent.wait_ready("mixed")
    agent.wait("the last note", lambda: "app" in notes(tmp_path))
    order = [n for n in notes(tmp_path) if not n.startswith("side")]
    assert order == ["init1", "init1-end", "init2", "init2-end", "init3", "init3-end", "app"]
    assert [agent.container("mixed", n)["restartCount"] for n in ("side1", "side2")] == [0, 0]
    for name in ("side1", "side2"):
        begun = agent.container("mixed", name)["state"]["running"]["startedAt"]
        assert begun <= agent.container("mixed", "init3")["state"]["terminated"]["startedAt"]


def test_a20_pain_35_sidecars_end_in_reverse_order_after_the_regular_container(agent: Agent, tmp_path: Path) -> None:
    sidecars = [sidecar(f"side{n}") for n in (1, 2, 3)]
    app = noting("app", "while [ ! -e /s/done ]; do sleep 0.1; done; echo app-end >> /s/log")
    agent.start().write(
        pod("batch", app, initContainers=sidecars, volumes=volumes(tmp_path), restartPolicy="Never",
            terminationGracePeriodSeconds=60)
    )  # fmt: skip
    agent.wait_ready("batch")
    (tmp_path / "done").touch()
    agent.wait("the end", lambda: agent.phase("batch") == "Succeeded")
    agent.wait("all ends", lambda: len([n for n in notes(tmp_path) if n.endswith("-end")]) == 4)
    assert [n for n in notes(tmp_path) if n.endswith("-end")] == ["app-end", "side3-end", "side2-end", "side1-end"]
    agent.wait(
        "their states",
        lambda: all("terminated" in agent.container("batch", n)["state"] for n in ("app", "side1", "side2", "side3")),
    )
    for name in ("app", "side1", "side2", "side3"):
        end = agent.container("batch", name)["state"]["terminated"]
        assert (end["exitCode"], end["reason"]) == (0, "Completed")
        assert agent.restarts("batch", name) == 0


def test_a_removed_pod_ends_its_sidecars_last(agent: Agent, tmp_path: Path) -> None:
    app = noting("app", SERVE)
    sidecars = [sidecar("side1"), sidecar("side2")]
    agent.start().write(
        pod("web", app, initContainers=sidecars, volumes=volumes(tmp_path), terminationGracePeriodSeconds=60)
    )
    agent.wait_ready("web")
    agent.remove("web")
    took = agent.wait_gone("web")
    assert [n for n in notes(tmp_path) if n.endswith("-end")] == ["app-end", "side2-end", "side1-end"]
    assert took < at_most(30)
    assert {e["message"] for e in agent.events("web", "Killing")} == {
        f"Stopping container {name}" for name in ("app", "side1", "side2")
    }


def test_a_sidecar_that_ends_is_started_again_and_keeps_no_pod_alive(agent: Agent, tmp_path: Path) -> None:
    agent.start().write(
        pod("short", noting("app", "while [ ! -e /s/done ]; do sleep 0.1; done"), initContainers=[
            sidecar("side", "while [ ! -e /s/sick ]; do sleep 0.1; done; rm /s/sick; exit 0")
        ], volumes=volumes(tmp_path), restartPolicy="Never")
    )  # fmt: skip
    agent.wait_ready("short")
    (tmp_path / "sick").touch()
    agent.wait("the sidecar's restart", lambda: agent.restarts("short", "side") == 1 and agent.ready("short"))
    (tmp_path / "done").touch()
    agent.wait("the end", lambda: agent.phase("short") == "Succeeded")


def test_a_startup_probe_of_a_sidecar_holds_back_the_next_container(agent: Agent, tmp_path: Path) -> None:
    side = sidecar("side", startupProbe={**exec_probe("test", "-e", "/s/go"), "failureThreshold": 1000})
    agent.start().write(pod("gate", noting("app", SERVE), initContainers=[side], volumes=volumes(tmp_path)))
    agent.wait("the sidecar", lambda: agent.running_id("gate", "side"))
    time.sleep(1.5)  # a probe or two
    assert agent.waiting("gate") == "PodInitializing"
    assert agent.condition("gate", "Initialized") == "False"
    (tmp_path / "go").touch()
    agent.wait_ready("gate")
    assert agent.condition("gate", "Initialized") == "True"


def test_a_stop_under_way_goes_on_when_the_agent_comes_back(agent: Agent, tmp_path: Path) -> None:
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "echo hook >> /s/log; sleep 1000"]}}}
    app = {**noting("app", SERVE, lifecycle=hook), "command": ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]}
    agent.start().write(pod("slow", app, volumes=volumes(tmp_path), terminationGracePeriodSeconds=12))
    agent.wait_ready("slow")
    agent.remove("slow")
    agent.wait("the hook", lambda: notes(tmp_path) == ["hook"])
    begin = time.monotonic()
    agent.kill()
    time.sleep(4)
    agent.start()
    agent.wait("its end", lambda: not agent.of_pod("slow"), 60)
    took = time.monotonic() - begin
    assert notes(tmp_path) == ["hook"]  # it is not run again
    assert 9 < took < at_most(19)  # and the grace of 12 s goes on from where it was: 2 s for the signal come on top
