"""Pods given through the agent's own API, by the commands a person types."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.agent import Agent
from tests.e2e.manifests import SERVE, container, pod

STUBBORN = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]


def write(agent: Agent, *documents: object) -> str:
    """A file outside the manifest directory."""
    path = Path(agent.directory) / "given.yaml"
    path.write_text("\n---\n".join(json.dumps(d) for d in documents))
    return str(path)


def test_a_submitted_pod_runs_outlives_the_agent_and_is_deleted(agent: Agent) -> None:
    agent.start()
    given = write(agent, pod("web"), pod("db"))
    assert agent.cli("apply", "-f", given).stdout == "pod/web created\npod/db created\n"
    agent.wait_ready("web", "db")
    assert "web-n1" not in agent.cli("get", "pods").stdout
    before = agent.status("web")["containerStatuses"][0]["containerID"]
    agent.kill()
    agent.start()
    agent.wait_ready("web", "db")
    assert agent.status("web")["containerStatuses"][0]["containerID"] == before
    assert agent.cli("apply", "-f", given).stdout == "pod/web unchanged\npod/db unchanged\n"
    assert agent.cli("delete", "pod", "web", "db").stdout == 'pod "web" deleted\npod "db" deleted\n'
    assert agent.pods() == {}
    agent.kill()
    agent.start()
    assert agent.cli("get", "pods").stderr == "No resources found in default namespace.\n"


def test_a_changed_submission_replaces_the_pod_from_standard_input(agent: Agent) -> None:
    agent.start()
    first = json.dumps(pod("web", container(env=[{"name": "A", "value": "1"}]))).encode()
    second = json.dumps(pod("web", container(env=[{"name": "A", "value": "2"}]))).encode()
    assert agent.cli("apply", "-f", "-", data=first).stdout == "pod/web created\n"
    agent.wait_ready("web")
    uid = agent.pod("web")["metadata"]["uid"]
    trial = agent.cli("apply", "-f", "-", "--dry-run", data=second)
    assert trial.stdout == "pod/web configured (dry run)\n"
    assert "a running pod cannot change spec.containers[0].env[0].value" in trial.stderr
    assert agent.pod("web")["metadata"]["uid"] == uid
    agent.cli("apply", "-f", "-", data=second)
    agent.wait("the new one to be Ready", lambda: agent.pod("web")["metadata"]["uid"] != uid and agent.ready("web"))
    bad = agent.cli("apply", "-f", "-", data=b"apiVersion: v1\nkind: Pod\nmetadata: {name: A}\n", check=False)
    assert (bad.returncode, "<stdin>:3:18: error: metadata.name: " in bad.stderr) == (1, True)
    agent.cli("delete", "pod/web", "--force")


def test_a_terminating_pod_shows_until_its_last_container_is_gone(agent: Agent) -> None:
    agent.start()
    agent.cli("apply", "-f", write(agent, pod("web", container(command=STUBBORN), terminationGracePeriodSeconds=600)))
    agent.wait_ready("web")
    agent.cli("delete", "pod", "web", "--no-wait")
    meta = agent.pod("web")["metadata"]
    assert (meta["deletionGracePeriodSeconds"], bool(meta["deletionTimestamp"])) == (600, True)
    assert "Terminating" in agent.cli("get", "pods").stdout
    assert agent.get("/pods")["items"] == []
    # A new one of that name waits until the old one is gone, which may be hurried.
    agent.cli("delete", "pod", "web", "--grace-period", "3", "--no-wait")
    assert agent.cli("apply", "-f", write(agent, pod("web"))).stdout == "pod/web created\n"
    agent.wait(
        "the new one to be Ready", lambda: agent.pod("web")["metadata"]["uid"] != meta["uid"] and agent.ready("web")
    )
    agent.cli("delete", "pod", "web", "--force")
    assert agent.cli("delete", "pod", "web", check=False).returncode == 1
    assert agent.cli("delete", "pod", "web", "--ignore-not-found").returncode == 0


def test_pods_of_files_are_read_only_and_the_refusal_names_the_file(agent: Agent) -> None:
    agent.start().write(pod("web", container(script=SERVE)))
    agent.wait_ready("web")
    refused = agent.cli("delete", "pod", "web", check=False)
    file = agent.manifests / "web.yaml"
    said = f'pods "web-n1" is forbidden: it comes from the file {file}; change or remove it there'
    assert refused.stderr == f"Error from server (Forbidden): {said}\n"
    taken = agent.cli("apply", "-f", write(agent, pod("web-n1")), check=False)
    assert taken.returncode == 1
    assert "is given by the source file" in taken.stderr
