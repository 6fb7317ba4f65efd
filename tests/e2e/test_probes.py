"""Probes and what they do, through the real agent on real Podman."""

from __future__ import annotations

import os
import time
from datetime import datetime
from pathlib import Path

import pytest

from tests.e2e.agent import Agent, at_most
from tests.e2e.manifests import SERVE, container, exec_probe, http_probe, pod, tcp_probe
from tests.support.podman_env import IMAGE

HTTPD = "mkdir -p /tmp/w; echo hello > /tmp/w/index.html; touch /tmp/w/ok; httpd -f -p 8080 -h /tmp/w & wait"


def test_pain_1_exec_liveness_kills_and_restarts(agent: Agent) -> None:
    app = container(script=f"touch /tmp/ok; {SERVE}", livenessProbe=exec_probe("cat", "/tmp/ok"))
    agent.start().write(pod("live", app, container("other")))
    agent.wait_ready("live")
    other = agent.running_id("live", "other")
    agent.inside("live", "rm", "/tmp/ok")
    agent.wait("a restart", lambda: agent.restarts("live") == 1 and agent.running_id("live"))
    assert agent.running_id("live", "other") == other
    assert [e["message"] for e in agent.events("live", "Killing")] == [
        "Container app failed liveness probe, will be restarted"
    ]
    (unhealthy,) = agent.events("live", "Unhealthy")
    assert unhealthy["message"].startswith("Liveness probe failed: ")


def test_pain_19_http_liveness_on_a_lone_box(agent: Agent) -> None:
    app = container(
        script=HTTPD, livenessProbe=http_probe(8080, "/ok"), startupProbe=http_probe(8080, "/ok", failureThreshold=30)
    )
    agent.start().write(pod("live", app))
    agent.wait_ready("live")
    first = agent.running_id("live")
    agent.inside("live", "rm", "/tmp/w/ok")
    agent.wait("a restart", lambda: agent.running_id("live") not in ("", first))
    assert agent.restarts("live") == 1
    said = [e["message"] for e in agent.events("live", "Unhealthy")]
    assert "Liveness probe failed: HTTP probe failed with statuscode: 404" in said


def _seconds(begin: datetime, end: str) -> float:
    """Between two whole seconds: never less than the whole seconds of what they were cut from."""
    return (datetime.fromisoformat(end) - begin).total_seconds()


def _killed(agent: Agent, name: str, begin: datetime) -> float:
    """Waits for the first decision to kill one of its containers; how long after `begin` it was made."""
    agent.wait("the kill decision", lambda: agent.events(name, "Killing"))
    return _seconds(begin, agent.events(name, "Killing")[0]["firstTimestamp"])


def test_a09_pain_2_the_stock_exec_liveness_example_scaled_down(agent: Agent) -> None:
    """The stock example: file gone after 30 s, delay 5, period 5, threshold 3. Here 3 s, 1, 1, 3: kill at 5-6 s."""
    app = container(
        "liveness",
        f"touch /tmp/healthy; sleep 3 & wait $!; rm -f /tmp/healthy; {SERVE}",
        livenessProbe=exec_probe("cat", "/tmp/healthy", initialDelaySeconds=1, failureThreshold=3),
    )
    agent.start().write(pod("liveness-exec", app, container("other")))
    begin = agent.running_since("liveness-exec", "liveness")
    assert 5 <= _killed(agent, "liveness-exec", begin) < at_most(10)
    agent.wait("the restart", lambda: agent.restarts("liveness-exec", "liveness") == 1)
    assert agent.restarts("liveness-exec", "other") == 0
    assert sum(e["count"] for e in agent.events("liveness-exec", "Unhealthy")) == 3


def test_pain_7_readiness_is_shown_and_restarts_nothing(agent: Agent) -> None:
    app = container(script=f"touch /tmp/ok; {SERVE}", readinessProbe=exec_probe("cat", "/tmp/ok"))
    agent.start().write(pod("ready", app, container("other")))
    agent.wait_ready("ready")
    running = agent.running_id("ready")
    assert "2/2" in agent.cli("get", "pods", "ready").stdout
    agent.inside("ready", "rm", "/tmp/ok")
    agent.wait("it to be not Ready", lambda: agent.condition("ready") == "False")
    assert "1/2" in agent.cli("get", "pods", "ready").stdout
    assert (agent.phase("ready"), agent.running_id("ready"), agent.restarts("ready")) == ("Running", running, 0)
    (condition,) = [c for c in agent.status("ready")["conditions"] if c["type"] == "Ready"]
    assert (condition["reason"], condition["message"]) == (
        "ContainersNotReady",
        "containers with unready status: [app]",
    )
    agent.inside("ready", "touch", "/tmp/ok")
    agent.wait_ready("ready")
    assert agent.running_id("ready") == running


def test_a11_startup_holds_back_the_other_probes(agent: Agent) -> None:
    app = container(
        startupProbe=exec_probe("test", "-e", "/tmp/started", failureThreshold=60),
        livenessProbe=exec_probe("test", "-e", "/tmp/alive"),
        readinessProbe=exec_probe("true"),
    )
    agent.start().write(pod("slow", app))
    agent.wait("three failed startup tries", lambda: sum(e["count"] for e in agent.events("slow", "Unhealthy")) >= 3)
    assert all(e["message"].startswith("Startup probe failed") for e in agent.events("slow", "Unhealthy"))
    assert (agent.restarts("slow"), agent.container("slow")["started"], agent.condition("slow")) == (0, False, "False")
    assert "startup probe" in agent.summary("slow")
    agent.inside("slow", "touch", "/tmp/alive", "/tmp/started")
    agent.wait_ready("slow")
    assert agent.restarts("slow") == 0


def test_a_startup_probe_that_never_succeeds_restarts_the_container(agent: Agent) -> None:
    agent.start().write(pod("slow", container(startupProbe=exec_probe("false", failureThreshold=2))))
    agent.wait("a restart", lambda: agent.restarts("slow") >= 1)
    assert agent.events("slow", "Killing")[0]["message"] == "Container app failed startup probe, will be restarted"


def test_pain_5_network_probes_need_no_tool_in_the_image(agent: Agent) -> None:
    """The command is busybox by its path, and nothing else of the image is used: no shell, no wget, no nc."""
    server = container(
        command=["/bin/busybox", "httpd", "-f", "-p", "8080"],
        ports=[{"name": "http", "containerPort": 8080}],
        startupProbe=tcp_probe("http", failureThreshold=30),
        livenessProbe=tcp_probe(8080),
        readinessProbe=http_probe("http", "/etc/passwd"),
    )
    agent.start().write(pod("net", server))
    agent.write(pod("closed", container(readinessProbe=tcp_probe(8080))))
    agent.wait_ready("net")
    agent.wait("a refused connection", lambda: agent.events("closed", "Unhealthy"))
    assert agent.condition("closed") == "False"
    assert agent.restarts("net") == 0


def test_a13_pain_22_a_hanging_exec_probe_times_out_and_leaves_no_process(agent: Agent, tmp_path: Path) -> None:
    """`sleep 20` with a time-out of 1 s fails, three times, then the container restarts; its children die too."""
    mark = unusual()
    hang = f"sleep {mark} & sleep {mark} & (sleep {mark}; true) & sleep {mark}"
    app = container(livenessProbe=exec_probe("sh", "-c", hang, timeoutSeconds=1, failureThreshold=3))
    agent.start().write(pod("hang", app, container("other")))
    begin = agent.running_since("hang")
    assert 3 <= _killed(agent, "hang", begin) < at_most(9)  # three tries of one second
    assert sum(e["count"] for e in agent.events("hang", "Unhealthy")) == 3
    agent.wait("a restart", lambda: agent.restarts("hang") == 1)
    agent.remove("hang")
    agent.wait_gone("hang")
    assert not hanging(mark)


def test_pain_22_no_process_is_left_while_the_container_goes_on(agent: Agent) -> None:
    """The first try hangs with a child, the next ones succeed: nothing of the first one may live on."""
    mark = unusual()
    once = f"[ -e /tmp/hung ] || {{ touch /tmp/hung; sleep {mark} & sleep {mark}; }}"
    seconds = round(at_most(1))  # so long that the first try gets as far as its child, on a slow machine too
    agent.start().write(pod("hang", container(readinessProbe=exec_probe("sh", "-c", once, timeoutSeconds=seconds))))
    agent.wait("the first try to hang", lambda: len(hanging(mark)) == 2)
    agent.wait("its failure", lambda: agent.events("hang", "Unhealthy"))
    agent.wait("its processes to end", lambda: not hanging(mark), 5)
    agent.wait_ready("hang")
    assert agent.restarts("hang") == 0


def unusual() -> str:
    """Seconds that nobody else sleeps."""
    return str(7_000_000 + os.getpid())


def hanging(mark: str) -> list[str]:
    """Processes on this machine with that mark on their command line."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark.encode() in words:
                found.append(entry)
    return found


def test_pain_10_no_health_timer_of_podman_is_used(agent: Agent) -> None:
    recipe = f'FROM {IMAGE}\nHEALTHCHECK --interval=1s CMD ["false"]\n'
    agent.podman_with(recipe, "build", "--format", "docker", "--tag", "localhost/checked:1", "-")
    app = container(image="localhost/checked:1", livenessProbe=exec_probe("test", "!", "-e", "/tmp/bad"))
    agent.start().write(pod("own", app))
    agent.wait_ready("own")
    (made,) = agent.of_pod("own")
    assert made["Config"].get("Healthcheck", {"Test": ["NONE"]}).get("Test") == ["NONE"]
    assert not made["State"].get("Health", {}).get("Status")
    first = agent.running_id("own")
    agent.inside("own", "touch", "/tmp/bad")
    agent.wait("a restart", lambda: agent.running_id("own") not in ("", first))


def test_pain_13_probes_need_no_init_system(agent: Agent) -> None:
    """Whatever is asked of systemd fails here, and is noted."""
    asked = agent.directory / "asked"
    for name in ("systemctl", "systemd-run", "systemd-notify", "rc-service", "dinitctl"):
        stub = agent.directory / "bin" / name
        stub.write_text(f'#!/bin/sh\necho {name} "$@" >> {asked}\nexit 1\n')
        stub.chmod(0o755)
    nowhere = {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere", "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nowhere"}
    with agent.env.service.connected() as listener:  # Podman itself may need systemd, for control groups
        agent.start(f"--podman-socket={listener}", env=nowhere)
        agent.write(pod("live", container(livenessProbe=exec_probe("test", "!", "-e", "/tmp/bad"))))
        agent.wait_ready("live")
        first = agent.running_id("live")
        agent.inside("live", "touch", "/tmp/bad")
        agent.wait("a restart", lambda: agent.running_id("live") not in ("", first))
        assert not asked.exists()
        agent.clean()


def test_pain_14_exec_probes_run_by_the_containers_own_runtime(agent: Agent) -> None:
    """Through the container's runtime and not Podman's API: Podman has no exec session, and its events tell of none."""
    app = container(livenessProbe=exec_probe("true"), readinessProbe=exec_probe("true"))
    agent.start().write(pod("own", app))
    agent.wait_ready("own")
    (made,) = agent.of_pod("own")
    begin = time.monotonic()
    agent.wait("some rounds of probes", lambda: time.monotonic() - begin > 2.5)
    assert not agent.of_pod("own")[0].get("ExecIDs")
    events = ("events", "--stream=false", "--since", "5m", "--filter", f"container={made['Id']}")
    told = agent.podman(*events, "--format", "{{.Status}}").split()
    assert "start" in told
    assert not [word for word in told if word.startswith("exec")]


def test_a12_ready_no_earlier_than_the_initial_delay(agent: Agent) -> None:
    agent.start().write(pod("late", container(readinessProbe=exec_probe("true", initialDelaySeconds=3))))
    begin = agent.running_since("late")
    agent.wait_ready("late")
    (ready,) = [c for c in agent.status("late")["conditions"] if c["type"] == "Ready"]
    assert 3 <= _seconds(begin, ready["lastTransitionTime"]) < at_most(8)
    assert agent.restarts("late") == 0


@pytest.mark.parametrize("kind", ["exec", "tcp"])
def test_probes_of_a_host_network_pod(agent: Agent, kind: str) -> None:
    port = 28080 + os.getpid() % 1000
    probe = (
        exec_probe("true") if kind == "exec" else {"tcpSocket": {"port": port, "host": "127.0.0.1"}, "periodSeconds": 1}
    )
    app = container(command=["httpd", "-f", "-p", f"127.0.0.1:{port}"], readinessProbe=probe)
    agent.start().write(pod("host", app, hostNetwork=True))
    agent.wait_ready("host")
