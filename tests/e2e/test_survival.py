"""What happens around a running pod and must not end it: agent, Podman, conmon and machine fail in turn."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agent import Agent, alive, end_services, inspect, mounts_below, services
from tests.e2e.manifests import SERVE, container, exec_probe, mount, pod


def identity(agent: Agent, *names: str) -> dict[str, Any]:
    """What must not change when nothing is restarted: ids, start times and process ids as Podman knows them."""
    made = [c for name in names for c in agent.of_pod(name)]
    return {c["Id"]: (c["State"]["StartedAt"], c["State"]["Pid"], c["State"]["Status"]) for c in made}


@pytest.mark.parametrize("how", ["kill -9", "stop"])
def test_no_container_is_restarted_with_the_agent(agent: Agent, how: str) -> None:
    probed = container("probed", livenessProbe=exec_probe("true"), readinessProbe=exec_probe("true"))
    agent.start()
    agent.write(pod("one", container(), probed))
    agent.write(pod("two", volumes=[{"name": "m", "emptyDir": {"medium": "Memory"}}]))
    agent.wait_ready("one", "two")
    agent.podman("kill", "--signal", "KILL", agent.running_id("one"))
    agent.wait("a restart", lambda: agent.restarts("one") == 1 and agent.ready("one"))
    before, uid = identity(agent, "one", "two"), agent.pod("one")["metadata"]["uid"]
    started = agent.container("one")["state"]["running"]["startedAt"]
    agent.kill() if how == "kill -9" else agent.stop()
    assert identity(agent, "one", "two") == before
    agent.start()
    agent.wait_ready("one", "two")
    assert identity(agent, "one", "two") == before
    assert (agent.restarts("one"), agent.restarts("one", "probed"), agent.restarts("two")) == (1, 0, 0)
    assert agent.pod("one")["metadata"]["uid"] == uid
    assert agent.container("one")["state"]["running"]["startedAt"] == started
    assert agent.container("one")["lastState"]["terminated"]["exitCode"] == 137


@pytest.mark.parametrize("grace", ["", "20s"])
def test_a_machine_that_goes_down_ends_pods_only_within_a_shutdown_grace(agent: Agent, grace: str) -> None:
    """`systemctl` says what it says while systemd ends all services; the machine itself stays up."""
    systemctl = agent.directory / "bin" / "systemctl"
    systemctl.write_text("#!/bin/sh\necho stopping\n")
    systemctl.chmod(0o755)
    agent.start(*([f"--shutdown-grace-period={grace}"] if grace else [])).write(pod("web"))
    agent.wait_ready("web")
    made = agent.running_id("web")
    agent.stop()
    ended = ("exited", "stopped")  # the second becomes the first when Podman has cleaned up
    assert inspect(agent.env, made)[0]["State"]["Status"] in (ended if grace else ("running",))
    agent.start()
    agent.wait_ready("web")
    assert agent.restarts("web") == (1 if grace else 0)


def test_what_crashed_while_the_agent_was_down_is_restarted_and_counted(agent: Agent) -> None:
    agent.start().write(pod("web"))
    agent.wait_ready("web")
    first = agent.running_id("web")
    agent.kill()
    agent.podman("kill", "--signal", "KILL", first)
    agent.start()
    agent.wait("a new instance", lambda: agent.running_id("web") not in ("", first))
    assert agent.restarts("web") == 1
    assert agent.container("web")["lastState"]["terminated"]["exitCode"] == 137


def test_a07_what_was_deleted_while_the_agent_was_down_ends(agent: Agent) -> None:
    agent.start().write(pod("web"))
    agent.write(pod("stays"))
    agent.wait_ready("web", "stays")
    agent.stop()
    agent.remove("web")
    agent.start()
    agent.wait("its containers to go", lambda: not agent.of_pod("web"))
    agent.wait_ready("stays")
    assert agent.restarts("stays") == 0


def test_pain_104_killed_again_and_again_while_it_starts_pods_it_makes_no_duplicate(agent: Agent) -> None:
    names = ["a", "b", "c"]
    for name in names:
        agent.write(pod(name, container("x"), container("y")))
    agent.start()
    for _ in range(3):
        agent.wait("some container", agent.pods)
        agent.kill()
        agent.start()
    agent.wait_ready(*names, seconds=60)
    rows = agent.podman("ps", "--filter", f"label=io.edgelet.owner={agent.owner}", "--format", "{{.Names}}").split()
    running = [r.rsplit("_", 2)[0] for r in rows if not r.endswith("-infra")]
    assert len(running) == len(set(running)) == 6
    assert len(agent.podman("pod", "ps", "-q", "--filter", f"label=io.edgelet.owner={agent.owner}").split()) == 3


# ---- Podman --------------------------------------------------------------------------------------


def test_podmans_service_killed_again_and_again_while_pods_are_made(agent: Agent) -> None:
    names = [f"p{n}" for n in range(5)]
    agent.start().write(pod("before"))
    agent.wait_ready("before")
    before = identity(agent, "before")
    done = threading.Event()

    def murder() -> None:
        while not done.wait(0.35):
            end_services(agent.run_dir)

    thread = threading.Thread(target=murder)
    thread.start()
    try:
        for name in names:
            agent.write(pod(name, container("x"), container("y")))
        agent.wait("some trouble", lambda: "is started again" in agent.log_text())
    finally:
        done.wait(2)
        done.set()
        thread.join()
    agent.wait_ready(*names, seconds=60)
    assert identity(agent, "before") == before
    assert [len([c for c in agent.of_pod(n) if c["State"]["Running"]]) for n in names] == [2] * 5


def test_pain_47_a_half_made_pod_is_replaced(agent: Agent) -> None:
    """As a power cut leaves it: the agent's pod, by its labels, without the infra container it was to have."""
    agent.start().write(pod("web"))
    agent.wait_ready("web")
    (row,) = [r for r in agent.rows("pods") if r["Name"].startswith("web-n1")]
    agent.kill()
    agent.podman("pod", "rm", "--force", "--time", "0", row["Id"])
    labels = [word for name, value in row["Labels"].items() for word in ("--label", f"{name}={value}")]
    half = agent.podman("pod", "create", "--infra=false", "--name", row["Name"], *labels).strip()
    agent.start()
    agent.wait_ready("web")
    (new,) = agent.rows("pods")
    assert new["Id"] != half
    assert new["InfraId"]


def test_podman_that_cannot_be_reached_is_told_and_recovers(agent: Agent) -> None:
    podman = agent.directory / "bin" / "podman"
    podman.rename(podman.with_name("hidden"))
    shutil.copy("/bin/false", podman)
    agent.write(pod("web"))
    agent.start()
    agent.wait("the trouble in the status", lambda: not agent.agent_status()["podman"]["ok"])
    told = agent.cli("status", check=False)
    assert told.returncode == 1
    assert "cannot start the Podman service" in told.stdout
    podman.with_name("hidden").replace(podman)
    agent.wait_ready("web", seconds=60)
    assert agent.cli("status").returncode == 0


def test_podman_that_goes_away_under_running_pods_ends_none_and_is_told(agent: Agent) -> None:
    agent.start().write(pod("web", container(readinessProbe=exec_probe("true"))))
    agent.wait_ready("web")
    before = identity(agent, "web")
    podman = agent.directory / "bin" / "podman"
    podman.rename(podman.with_name("hidden"))
    shutil.copy("/bin/false", podman)
    end_services(agent.run_dir)
    agent.write(pod("more"))
    agent.wait("the reason", lambda: "Podman" in agent.summary("more"))
    assert agent.phase("more") == "Pending"
    assert agent.ready("web")
    podman.with_name("hidden").replace(podman)
    agent.wait_ready("more", seconds=60)
    assert identity(agent, "web") == before


def test_pain_143_conmon_killed_nothing_phantom_is_shown_and_the_pod_comes_back(agent: Agent) -> None:
    agent.start().write(pod("web"))
    agent.write(pod("other"))
    agent.wait_ready("web", "other")
    (made,) = agent.of_pod("web")
    first, conmon, process = made["Id"], conmon_of(made), made["State"]["Pid"]
    os.kill(conmon, signal.SIGKILL)
    os.kill(process, signal.SIGKILL)
    agent.wait("a new instance", lambda: agent.running_id("web") not in ("", first))
    agent.wait_ready("web")
    assert agent.restarts("other") == 0
    agent.remove("web")
    agent.wait_gone("web")
    assert not agent.of_pod("web")


def test_conmon_killed_while_its_process_lives(agent: Agent) -> None:
    agent.start().write(pod("web", container(), container("other")))
    agent.wait_ready("web")
    first = agent.running_id("web")
    (made,) = [c for c in agent.of_pod("web") if c["Id"] == first]
    os.kill(conmon_of(made), signal.SIGKILL)
    agent.wait("the agent to notice", lambda: "conmon" in agent.log_text())
    if alive(made["State"]["Pid"]):
        os.kill(made["State"]["Pid"], signal.SIGKILL)
    agent.wait("a new instance", lambda: agent.running_id("web") not in ("", first))
    agent.wait_ready("web")
    assert not alive(made["State"]["Pid"])


def conmon_of(made: dict[str, Any]) -> int:
    """Process id of a container's conmon."""
    return int(Path(made["ConmonPidFile"]).read_text())


def test_pain_49_containers_are_no_children_of_the_agent(agent: Agent) -> None:
    agent.start().write(pod("web"))
    agent.wait_ready("web")
    (made,) = agent.of_pod("web")
    conmon = conmon_of(made)
    own = os.getsid(agent.pid)
    assert os.getsid(conmon) != own
    assert int(Path(f"/proc/{conmon}/stat").read_text().rpartition(")")[2].split()[1]) not in (
        agent.pid,
        *services(agent.run_dir),
    )
    os.killpg(agent.pid, signal.SIGKILL)
    end_services(agent.run_dir)
    agent.kill()
    assert alive(made["State"]["Pid"])
    agent.start()
    agent.wait_ready("web")
    assert agent.restarts("web") == 0


# ---- reboot --------------------------------------------------------------------------------------


def reboot(agent: Agent) -> None:
    """A power cut: no process is left, nothing that lives in memory, another boot id. The agent is not started."""
    env = agent.env
    made = agent.containers()
    infra = [c for i in env.run("ps", "-aq", "--no-trunc").split() for c in inspect(env, i)]
    agent.kill()
    end_services(agent.run_dir)
    for c in infra:
        for pid in _pids(c):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    for c in infra:
        agent.wait(f"process of {c['Name']} to end", lambda c=c: not any(alive(p) for p in _pids(c)))  # type: ignore[misc]
        if key := (c.get("NetworkSettings") or {}).get("SandboxKey"):
            while key in Path("/proc/self/mountinfo").read_text():
                subprocess.run(["umount", "-l", key], check=True)
            Path(key).unlink(missing_ok=True)
    for place in (Path(env.directory), agent.directory):
        for mounted in reversed(mounts_below(place)):
            subprocess.run(["umount", "-l", mounted], check=False)  # one may have gone meanwhile
    for lost in (env.storage.runroot, env.storage.tmpdir, str(agent.run_dir)):
        shutil.rmtree(lost)
    for c in infra:
        shutil.rmtree(f"/run/runc/{c['Id']}", ignore_errors=True)
    agent.seen_ids |= {c["Id"] for c in made}
    agent.boot = "boot-" + str(int(agent.boot.rpartition("-")[2]) + 1)


def _pids(made: dict[str, Any]) -> list[int]:
    found = [made["State"]["Pid"]]
    with contextlib.suppress(OSError, ValueError):
        found.append(int(Path(made["ConmonPidFile"]).read_text()))
    return [p for p in found if p > 0]


def test_pain_47_after_a_reboot_everything_runs_again_in_fresh_sandboxes(lone_agent: Agent) -> None:
    agent = lone_agent.start()
    data = [{"name": "data", "emptyDir": {}}, {"name": "mem", "emptyDir": {"medium": "Memory"}}]
    log = [mount("data", "/data"), mount("mem", "/mem")]
    agent.write(
        pod(
            "web",
            container("app", f"echo app >> /data/order; {SERVE}", volumeMounts=log),
            initContainers=[container("init", "echo init >> /data/order", volumeMounts=log)],
            volumes=data,
        )
    )
    agent.write(pod("never", restartPolicy="Never"))
    agent.write(pod("done", container(script="echo ran; exit 0"), restartPolicy="OnFailure"))
    agent.wait_ready("web", "never")
    agent.wait("the job to be done", lambda: agent.phase("done") == "Succeeded")
    before = agent.pod("web")["metadata"]["uid"], agent.container_id("web")
    reboot(agent)
    agent.start()
    agent.wait_ready("web", seconds=60)
    assert agent.pod("web")["metadata"]["uid"] == before[0]
    assert agent.container_id("web") != before[1]
    assert (agent.restarts("web"), agent.restarts("web", "init")) == (1, 1)
    assert agent.inside("web", "cat", "/data/order").split() == ["init", "app"] * 2
    agent.wait("the one that never restarts", lambda: agent.phase("never") == "Failed")
    assert agent.phase("done") == "Succeeded"
    assert (agent.restarts("never"), agent.restarts("done")) == (0, 0)
    assert not [c for n in ("never", "done") for c in agent.of_pod(n) if c["State"]["Running"]]


def test_pain_142_a_pod_can_be_deleted_after_a_reboot(lone_agent: Agent) -> None:
    agent = lone_agent.start()
    agent.write(pod("web"))
    agent.write(pod("while-off"))
    agent.write(pod("held"))
    agent.wait_ready("web", "while-off", "held")
    agent.cli("stop", "held")
    agent.wait("it to stop", lambda: not agent.running_id("held"))
    reboot(agent)
    agent.remove("while-off")
    agent.start()
    agent.wait_ready("web", seconds=60)
    agent.wait("the deleted one to go", lambda: not agent.of_pod("while-off"))
    assert not agent.running_id("held")
    agent.remove("web")
    agent.wait_gone("web", "while-off")
    agent.cli("start", "held")
    agent.wait_ready("held")
    agent.wait("nothing of them to be left", lambda: len(agent.containers()) == 1)


def test_a_hold_survives_the_agent(agent: Agent) -> None:
    agent.start().write(pod("web"))
    agent.wait_ready("web")
    agent.cli("stop", "web")
    agent.wait("it to stop", lambda: not [c for c in agent.of_pod("web") if c["State"]["Running"]])
    agent.kill()
    agent.start()
    agent.wait("it to be shown", lambda: "stopped by a person" in agent.summary("web"))
    assert "edgelet start web" in agent.cli("get", "pods", "-o", "wide").stdout
    assert not [c for c in agent.of_pod("web") if c["State"]["Running"]]
    agent.cli("start", "web")
    agent.wait_ready("web")


def test_the_machine_goes_down_and_critical_pods_end_last(agent: Agent) -> None:
    """As systemd says it to the agent; each pod notes on the host when it ends."""
    systemctl = agent.directory / "bin" / "systemctl"
    systemctl.write_text("#!/bin/sh\necho stopping\n")
    systemctl.chmod(0o755)
    note = agent.directory / "note"
    note.mkdir()
    volumes = [{"name": "n", "hostPath": {"path": str(note)}}]

    def slow(name: str, **spec: Any) -> dict[str, Any]:
        script = f"trap 'echo {name} >> /n/order; sleep 1; echo {name} >> /n/order; exit 0' TERM; {SERVE}"
        one = {**container(volumeMounts=[mount("n", "/n")]), "command": ["sh", "-c", script]}
        return pod(name, one, volumes=volumes, terminationGracePeriodSeconds=20, **spec)

    agent.start("--shutdown-grace-period=40s", "--shutdown-grace-period-critical-pods=20s")
    agent.write(slow("critical", priority=2_000_001_000))
    agent.write(slow("usual"))
    agent.wait_ready("critical", "usual")
    assert agent.process is not None
    agent.process.terminate()
    assert agent.process.wait(120) == 0
    assert (note / "order").read_text().split() == ["usual", "usual", "critical", "critical"]
    systemctl.unlink()
    agent.start()
    agent.wait_ready("critical", "usual", seconds=60)
