"""Others on the same Podman: containers and pods of other people, and a second agent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.e2e.agent import DEADLINE, Agent, at_most
from tests.e2e.manifests import container, pod
from tests.support.podman_env import IMAGE, PodmanEnv


def facts(env: PodmanEnv, *names: str) -> list[Any]:
    """What must not change about other people's containers."""
    found = json.loads(env.run("inspect", *names))
    return [(c["Id"], c["State"]["Pid"], c["State"]["StartedAt"], c["RestartCount"]) for c in found]


def test_foreign_pods_containers_and_images_are_left_alone(
    lone_agent: Agent,
) -> None:
    """Also one that carries the kubelet's labels and one that has the very name that ours would have."""
    env = lone_agent.env
    run = ("run", "-d", "--network", "none")
    env.add_image("localhost/foreign:1", "LABEL x=y")
    env.run("pod", "create", "--name", "theirs", "--network", "none")
    env.run("run", "-d", "--name", "in-pod", "--pod", "theirs", IMAGE, "sleep", "1000")
    env.run(*run, "--name", "alone", IMAGE, "sleep", "1000")
    labels = ("--label", "io.kubernetes.pod.name=web-n1", "--label", "io.kubernetes.pod.namespace=default")
    env.run(*run, "--name", "cri", *labels, "--label", "io.kubernetes.container.name=app", IMAGE, "sleep", "1000")
    before = facts(env, "in-pod", "alone", "cri")
    agent = lone_agent.start()
    agent.write(pod("web"))
    agent.write(pod("crash", container(script="exit 1")))
    agent.wait_ready("web")
    agent.wait("a restart", lambda: agent.restarts("crash") >= 1)
    agent.kill()
    agent.start()
    agent.wait_ready("web")
    agent.write(pod("web", container("renamed")))
    agent.wait("the new version", lambda: agent.running_id("web", "renamed"))
    for name in ("web", "crash"):
        agent.remove(name)
    agent.wait_gone("web", "crash")
    agent.wait("ours to be gone", lambda: not agent.containers())
    agent.stop()
    assert facts(env, "in-pod", "alone", "cri") == before
    assert env.run("pod", "ps", "--format", "{{.Name}}").split() == ["theirs"]
    assert "localhost/foreign" in env.run("images", "--format", "{{.Repository}}")


def test_two_agents_on_one_podman_never_touch_each_others_pods(
    make_agent: Callable[[PodmanEnv], Agent], podman_env: PodmanEnv
) -> None:
    one, two = make_agent(podman_env).start(), make_agent(podman_env).start()
    for agent in (one, two):
        agent.write(pod("same", container(script="echo $X; trap 'exit 0' TERM; while :; do sleep 1; done")))
    one.write(pod("only-one"))
    for agent in (one, two):
        agent.wait_ready("same")
    one.wait_ready("only-one")
    ids = one.running_id("same"), two.running_id("same")
    assert ids[0] != ids[1]
    assert "only-one" not in two.pods()
    two.remove("same")
    two.wait_gone("same")
    two.kill()
    two.start()
    two.wait("it to have listed", lambda: two.agent_status()["podman"]["ok"])
    assert (one.running_id("same"), one.restarts("same")) == (ids[0], 0)
    assert [c["Id"] for c in one.of_pod("same")] == [ids[0]]
    assert not two.of_pod("same")


def test_a_second_agent_with_the_same_root_is_refused(agent: Agent) -> None:
    agent.start().write(pod("web"))
    agent.wait_ready("web")
    told = agent.cli(
        "run",
        f"--root-dir={agent.root}",
        f"--run-dir={agent.directory}/run2",
        f"--pod-manifest-path={agent.manifests}",
        f"--pod-logs-dir={agent.logs}",
        f"--socket={agent.directory}/second.sock",
        check=False,
    )
    assert told.returncode == 1
    assert "another edgelet runs with it" in told.stderr
    assert agent.ready("web")


def test_an_agent_whose_socket_another_one_has_ends_before_it_runs_a_pod(
    make_agent: Callable[[PodmanEnv], Agent], podman_env: PodmanEnv
) -> None:
    one, two = make_agent(podman_env).start(), make_agent(podman_env)
    two.write(pod("web"))
    two.start(f"--socket={one.socket}", wait=False)
    assert two.process is not None
    assert two.process.wait(at_most(DEADLINE)) == 1
    assert "another agent answers there; give another --socket" in two.log_text()
    assert two.rows("pods") == []
    assert one.cli("status").returncode == 0
