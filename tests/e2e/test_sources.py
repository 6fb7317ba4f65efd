"""The directory of manifests: what is good runs, what is bad is told, what vanishes by accident ends nothing."""

from __future__ import annotations

import shutil
import time

from tests.e2e.agent import Agent
from tests.e2e.manifests import SERVE, container, pod


def problems(agent: Agent) -> str:
    """What `edgelet get sources` complains about."""
    return agent.cli("get", "sources").stdout


def test_a_bad_manifest_costs_nothing_but_itself(agent: Agent) -> None:
    agent.write(pod("good"))
    agent.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {containers: [{name: x}]}\n", "bad")
    agent.write_text("apiVersion: v1\n kind: [", "broken")
    agent.write_text("", "empty")
    agent.start()
    agent.wait_ready("good")
    assert set(agent.pods()) == {"good"}
    told = problems(agent)
    assert "bad.yaml" in told
    assert "spec.containers[0].image" in told
    assert "broken.yaml:2" in told
    status = agent.cli("status", check=False)
    assert (status.returncode, "bad.yaml" in status.stdout) == (1, True)


def test_an_invalid_edit_keeps_the_last_good_version_also_over_an_agent_restart(agent: Agent) -> None:
    agent.start().write(pod("web", container(script=f"echo v1; {SERVE}")))
    agent.wait_ready("web")
    before = agent.running_id("web")
    agent.write_text("kind: Pod\nspec: {", "web")
    agent.wait("the complaint", lambda: "web.yaml" in str(agent.agent_status()["sources"][0]["problems"]))
    assert agent.running_id("web") == before
    agent.kill()
    agent.start()
    agent.wait_ready("web")
    assert agent.running_id("web") == before
    assert "web.yaml" in problems(agent)
    agent.podman("kill", "--signal", "KILL", before)
    agent.wait("the last good version to run again", lambda: agent.running_id("web") not in ("", before))
    agent.write(pod("web", container(script=f"echo v2; {SERVE}")))
    agent.wait("the next good version", lambda: agent.container_log("web") == "v2\n")
    assert not agent.agent_status()["sources"][0]["problems"]


def test_a_directory_that_vanishes_ends_nothing(agent: Agent) -> None:
    agent.start().write(pod("web"))
    agent.wait_ready("web")
    before = agent.running_id("web")
    kept = agent.directory / "kept"
    agent.manifests.rename(kept)
    agent.wait("the complaint", lambda: not agent.agent_status()["sources"][0]["ok"])
    agent.kill()
    agent.start()
    agent.wait("it to be known", lambda: agent.ready("web"))
    assert agent.running_id("web") == before
    told = agent.cli("status", check=False)
    assert told.returncode == 1
    assert "manifests" in told.stdout
    kept.rename(agent.manifests)
    agent.wait("the source to be good", lambda: agent.agent_status()["sources"][0]["ok"])
    agent.write(pod("more"))
    agent.wait_ready("web", "more")
    assert agent.running_id("web") == before


def test_a_file_replaced_the_way_editors_do_restarts_nothing(agent: Agent) -> None:
    document = pod("web")
    path = agent.start().write(document)
    agent.wait_ready("web")
    before = agent.running_id("web")
    text = path.read_text()
    path.rename(path.with_name("web.yaml~"))
    path.write_text(text)
    path.with_name("web.yaml~").unlink()
    agent.write(pod("mark"))
    agent.wait_ready("mark")
    begin = time.monotonic()
    agent.wait("a second", lambda: time.monotonic() - begin > 1)
    assert (agent.running_id("web"), agent.restarts("web")) == (before, 0)


def test_a03_deleted_and_written_back_after_a_while_it_runs_again(agent: Agent) -> None:
    document = pod("web")
    agent.start().write(document)
    agent.wait_ready("web")
    before = agent.running_id("web")
    agent.remove("web")
    agent.wait("its end to begin", lambda: agent.running_id("web") != before)
    agent.write(document)
    agent.wait("it to run again", lambda: agent.running_id("web") not in ("", before) and agent.ready("web"))


def test_several_documents_in_one_file(agent: Agent) -> None:
    agent.start().write(pod("one"), pod("two"), name="both")
    agent.wait_ready("one", "two")
    agent.write(pod("two"), name="both")
    agent.wait_gone("one")
    assert (agent.ready("two"), agent.restarts("two")) == (True, 0)


def test_pain_139_a_deployment_is_never_shown_running_without_its_containers(agent: Agent) -> None:
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [container()]}}
    agent.start().write(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "dep"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "d"}}, "template": template},
        }
    )
    agent.write(pod("web"))
    agent.wait_ready("web")
    agent.wait("a word about it", lambda: "Deployment" in str(agent.agent_status()) or "dep" in agent.pods())
    if "dep" in agent.pods():
        agent.wait_ready("dep")
        assert agent.running_id("dep")
    else:
        assert "dep.yaml" in problems(agent)


def test_pain_139_an_infra_container_alone_is_pending(agent: Agent) -> None:
    agent.start().write(pod("infra", container(image="localhost/nowhere:1", imagePullPolicy="Never")))
    agent.wait(
        "the sandbox", lambda: agent.condition("infra", "PodReadyToStartContainers") == "True" or agent.waiting("infra")
    )
    assert agent.phase("infra") == "Pending"
    assert agent.condition("infra") == "False"


def test_the_directory_may_come_later(agent: Agent) -> None:
    shutil.rmtree(agent.manifests)
    agent.start()
    agent.wait("the complaint", lambda: not agent.agent_status()["sources"][0]["ok"])
    agent.manifests.mkdir()
    agent.write(pod("web"))
    agent.wait_ready("web")
    assert agent.agent_status()["sources"][0]["ok"]
