"""What a Podman that was killed, or lied, leaves behind on a real box, and how the agent gets itself out of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.e2e.agent import Agent, alive, end_services, inspect
from tests.e2e.manifests import SERVE, container, exec_probe, pod


def status(agent: Agent, container_id: str) -> str:
    """Podman's word for the state of a container, "" when it is gone."""
    found = inspect(agent.env, container_id)
    return str(found[0]["State"]["Status"]) if found else ""


def cut_short(agent: Agent, *words: str, until: str, container_id: str) -> None:
    """Run a podman command and kill it as soon as Podman calls the container `until`."""
    child = subprocess.Popen(
        agent.env.service.command_line(*words), env=agent.env.service.environment(), stderr=subprocess.DEVNULL
    )
    agent.wait(f"state {until}", lambda: status(agent, container_id) == until)
    child.kill()
    child.wait()


def test_pain_44_46_a_container_that_podman_calls_stopping_for_ever_is_ended(agent: Agent) -> None:
    deaf = {**container(), "command": ["sh", "-c", f"trap '' TERM; {SERVE}"]}
    agent.start().write(pod("web", deaf))
    agent.wait_ready("web")
    stuck = agent.running_id("web")
    (made,) = agent.of_pod("web")
    cut_short(agent, "stop", "--time", "300", stuck, until="stopping", container_id=stuck)
    assert alive(made["State"]["Pid"])
    agent.remove("web")
    agent.wait_gone("web", seconds=90)
    assert not alive(made["State"]["Pid"])
    assert not agent.of_pod("web")


def test_pain_52_65_a_phantom_that_podman_calls_running_is_seen_for_what_it_is(agent: Agent) -> None:
    agent.start().write(pod("web"))
    agent.wait_ready("web")
    first = agent.running_id("web")
    (made,) = agent.of_pod("web")
    agent.kill()
    conmon = int(Path(made["ConmonPidFile"]).read_text())
    for pid in (conmon, made["State"]["Pid"]):
        os.kill(pid, signal.SIGKILL)
    agent.start()
    agent.wait("a new instance", lambda: agent.running_id("web") not in ("", first), seconds=60)
    agent.wait_ready("web")
    agent.remove("web")
    agent.wait_gone("web")
    assert not agent.of_pod("web")


def test_a_completed_pod_whose_infra_container_lost_its_conmon_leaves_no_phantom(agent: Agent) -> None:
    agent.start().write(pod("job", container(script="sleep 2"), restartPolicy="Never"))
    agent.wait("the job to run", lambda: agent.running_id("job"))
    agent.kill()
    agent.wait("the job to end", lambda: not any(c["State"]["Running"] for c in agent.of_pod("job")))
    (made,) = _infra(agent)
    os.kill(int(Path(made["ConmonPidFile"]).read_text()), signal.SIGKILL)
    agent.start()
    agent.wait("its infra container to have ended", lambda: not _infra(agent)[0]["State"]["Running"])
    assert not alive(made["State"]["Pid"])
    agent.remove("job")
    agent.wait_gone("job")


def _infra(agent: Agent) -> list[dict[str, Any]]:
    """`podman inspect` of the infra containers."""
    return [c for r in agent.rows("containers") if r["IsInfra"] for c in inspect(agent.env, r["Id"])]


def test_pain_61_made_and_never_started_by_a_podman_that_was_killed(agent: Agent) -> None:
    agent.start().write(pod("before"))
    agent.wait_ready("before")
    before = agent.running_id("before")
    for round_ in range(4):
        agent.write(pod("web", container(env=[{"name": "N", "value": str(round_)}])))
        time.sleep(0.1 * round_)
        end_services(agent.run_dir)
    agent.wait_ready("web", seconds=90)
    agent.wait("its old containers to go", lambda: len(agent.of_pod("web")) == 1)
    assert agent.running_id("before") == before


def test_a_name_that_a_foreign_pod_has_is_told_with_advice_and_the_pod_is_left_alone(agent: Agent) -> None:
    agent.start().write(pod("probe"))
    agent.wait_ready("probe")
    (row,) = agent.rows("pods")
    name = str(row["Name"]).replace("probe", "web")
    foreign = agent.podman("pod", "create", "--name", name).strip()
    try:
        agent.write(pod("web"))
        agent.wait("the advice", lambda: agent.events("web", "RepairFailed"), seconds=60)
        (event,) = agent.events("web", "RepairFailed")
        assert "rename or remove one of them" in event["message"]
        assert foreign in agent.podman("pod", "ps", "-q", "--no-trunc").split()
    finally:
        agent.podman("pod", "rm", "--force", "--time", "0", foreign)
    agent.wait_ready("web", seconds=60)


def test_layers_that_are_gone_are_pulled_again(agent: Agent) -> None:
    """The image comes back by hand here: no registry is asked in this test, only that the damaged one goes."""
    reference = "localhost/damaged:1"
    # of this test alone: equal content is one layer, which other tests would find damaged
    agent.env.add_image(reference, extra={"damaged": b"here"})
    (image,) = json.loads(agent.podman("image", "inspect", reference))
    for layer in _layers(image):
        (Path(layer) / "diff").rename(Path(layer) / "gone")
    agent.start().write(pod("web", {**container(), "image": reference}))
    agent.wait("the image to be dropped", lambda: agent.events("web", "Repairing"), seconds=60)
    assert "its layers are damaged" in agent.events("web", "Repairing")[-1]["message"]
    agent.wait("it to be gone", lambda: reference not in agent.podman("images", "--format", "{{.Repository}}:{{.Tag}}"))
    agent.env.add_image(reference)
    agent.wait_ready("web", seconds=90)


def test_a_container_whose_storage_was_taken_away_with_its_image_holds_nobody_up(lone_agent: Agent) -> None:
    """`podman rmi --force` under running pods: what Podman cannot be asked any more must not fail every list."""
    agent = lone_agent
    agent.start().write(pod("web"))
    agent.write(pod("net", hostNetwork=True))
    agent.wait_ready("web", "net")
    pids = [c["State"]["Pid"] for c in agent.containers()]
    forget_storage(agent, agent.running_id("net"))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    agent.wait("two new containers", lambda: agent.restarts("web") and agent.restarts("net"), seconds=60)
    agent.wait_ready("web", "net", seconds=60)
    assert "not known" not in agent.cli("status").stdout


def forget_storage(agent: Agent, container_id: str) -> None:
    """Take a container out of the storage's own record; its process and Podman's record stay."""
    agent.env.service.renew()  # it may know the record by heart
    end_services(agent.run_dir)
    record = Path(agent.env.storage.root, "overlay-containers", "containers.json")
    record.write_text(json.dumps([c for c in json.loads(record.read_text()) if c["id"] != container_id]))


def test_exec_probes_go_on_when_the_run_directory_was_emptied(agent: Agent) -> None:
    agent.start().write(pod("web", container(readinessProbe=exec_probe("true"))))
    agent.wait_ready("web")
    shutil.rmtree(agent.run_dir)
    before = agent.probes_run()
    agent.wait("more probes", lambda: agent.probes_run() > before + 2)
    agent.wait_ready("web")
    (made,) = agent.of_pod("web")
    os.kill(made["State"]["Pid"], signal.SIGKILL)
    agent.wait("a new container", lambda: agent.restarts("web") == 1, seconds=60)
    agent.wait_ready("web", seconds=60)


def _layers(image: dict[str, object]) -> list[str]:
    """The directories of an image's own layers."""
    data = image["GraphDriver"]["Data"]  # type: ignore[index]
    return [str(Path(part).parent) for part in str(data["UpperDir"]).split(":")]


def test_pain_25_26_28_probes_leave_no_event_of_podman_and_no_conmon(agent: Agent) -> None:
    agent.start().write(pod("web", container(livenessProbe=exec_probe("true"), readinessProbe=exec_probe("true"))))
    agent.wait_ready("web")
    made = agent.running_id("web")

    def events() -> list[str]:
        words = ("--stream=false", "--format", "{{.Time}} {{.Status}}", "--filter", f"container={made}")
        return agent.podman("events", *words).splitlines()

    def conmons() -> int:
        return sum("conmon" in p for p in agent.processes())

    agent.note_ids()
    before = events(), conmons(), agent.probes_run()
    agent.wait("ten more probes", lambda: agent.probes_run() >= before[2] + 10, seconds=90)
    assert (events(), conmons()) == before[:2]
