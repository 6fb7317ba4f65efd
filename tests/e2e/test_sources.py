"""The directory of manifests: what is good runs, what is bad is told, what vanishes by accident ends nothing."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from typing import Any

from tests.e2e.agent import Agent
from tests.e2e.manifests import SERVE, container, mount, pod


def problems(agent: Agent) -> str:
    """What `edgelet get sources` complains about."""
    return agent.cli("get", "sources").stdout


def files(agent: Agent) -> list[dict[str, Any]]:
    """The state of every file in the directory."""
    found: list[dict[str, Any]] = agent.get("/apis/edgelet.io/v1/sources")["items"][0]["files"]
    return found


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
    # A file written in the last moments before a start is read once it has been quiet for a while.
    agent.wait("the complaint again", lambda: "web.yaml" in problems(agent))
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


def test_a_mount_that_comes_late_goes_away_and_comes_back_ends_nothing(agent: Agent) -> None:
    medium = agent.directory / "medium"
    medium.mkdir()
    (medium / "web.yaml").write_text(json.dumps(pod("web")))
    agent.start()
    mounting = ["mount", "--bind", str(medium), str(agent.manifests)]
    subprocess.run(mounting, check=True)
    try:
        agent.wait_ready("web")
        before = agent.running_id("web")
        subprocess.run(["umount", "-l", str(agent.manifests)], check=True)
        agent.wait("the complaint", lambda: "web.yaml" in problems(agent))
        agent.kill()
        agent.start()
        agent.wait("it to be known", lambda: agent.ready("web"))
        assert agent.running_id("web") == before
        subprocess.run(mounting, check=True)
        agent.wait("the source to be good", lambda: not agent.agent_status()["sources"][0]["problems"])
        assert (agent.running_id("web"), agent.restarts("web")) == (before, 0)
        agent.remove("web")
        agent.wait_gone("web")
    finally:
        subprocess.run(["umount", "-l", str(agent.manifests)], check=False)


def test_pain_101_pain_103_edited_while_the_agent_is_down_the_pod_is_replaced_and_never_two(agent: Agent) -> None:
    journal = agent.directory / "journal"
    journal.mkdir()
    volumes = [{"name": "journal", "hostPath": {"path": str(journal)}}]

    def version(number: int) -> dict[str, Any]:
        listen = f"nc -l -p {port} & wait $!; echo clash {number} >> /journal/lines; {SERVE}"
        script = f"echo {number} >> /journal/lines; {listen}"
        return pod("web", container(script=script, volumeMounts=[mount("journal", "/journal")]), **spec)

    with socket.create_server(("0.0.0.0", 0)) as free:
        port = free.getsockname()[1]
    spec: dict[str, Any] = {"hostNetwork": True, "volumes": volumes}
    agent.start().write(version(1))
    agent.wait_ready("web")
    before = agent.running_id("web")
    agent.kill()
    agent.write(version(2))
    agent.start()
    agent.wait("the new version", lambda: agent.running_id("web") not in {"", before} and agent.ready("web"))
    assert len(agent.of_pod("web")) == 1
    agent.wait("its first line", lambda: (journal / "lines").read_text().split() == ["1", "2"])
    agent.write(version(3))
    agent.wait("the next one", lambda: (journal / "lines").read_text().split() == ["1", "2", "3"])
    agent.wait_ready("web")
    assert (journal / "lines").read_text().split() == ["1", "2", "3"]


def test_pain_106_the_same_manifest_taken_away_and_put_back_at_any_moment_runs_again(agent: Agent) -> None:
    document = pod("web", terminationGracePeriodSeconds=1)
    agent.start().write(document)
    agent.wait_ready("web")
    for away in (0.0, 0.2, 0.45, 0.55, 0.7, 1.0):
        agent.remove("web")
        time.sleep(away)
        agent.write(document)
        time.sleep(0.7)
        agent.wait_ready("web")
        assert agent.phase("web") == "Running"
        assert len([c for c in agent.of_pod("web") if c["State"]["Running"]]) == 1
    assert not agent.agent_status()["sources"][0]["problems"]


def test_pain_109_after_a_change_of_a_host_file_the_pod_can_be_restarted(agent: Agent) -> None:
    setting = agent.directory / "setting"
    setting.write_text("first")
    agent.start().write(
        pod(
            "web",
            container(script=f"cat /setting; echo; {SERVE}", volumeMounts=[mount("setting", "/setting")]),
            volumes=[{"name": "setting", "hostPath": {"path": str(setting), "type": "File"}}],
        )
    )
    agent.wait_ready("web")
    before = agent.running_id("web")
    setting.write_text("second")
    agent.cli("restart", "web")
    agent.wait("it to run anew", lambda: agent.running_id("web") not in {"", before} and agent.ready("web"))
    agent.wait("the new setting", lambda: agent.container_log("web") == "second\n")


def test_every_file_is_shown_with_its_state(agent: Agent) -> None:
    agent.start().write(pod("good"))
    agent.write(pod("kept"))
    agent.wait_ready("good", "kept")
    agent.write_text("kind: Pod\nspec: {", "kept")
    agent.write_text("kind: Service\napiVersion: v1\nmetadata: {name: x}\n", "bad")
    (agent.manifests / "good.yaml~").write_text("old")

    def states() -> dict[str, list[str]]:
        lines = agent.cli("get", "sources", "-o", "wide").stdout.partition("\n\n")[2].splitlines()[1:]
        return {words[0]: words[1:3] for words in map(str.split, lines)}

    expected = {
        "bad.yaml": ["Refused", "<none>"],
        "good.yaml": ["Good", "default/good-n1"],
        "good.yaml~": ["Skipped", "<none>"],
        "kept.yaml": ["LastGood", "default/kept-n1"],
    }
    agent.wait("the states", lambda: states() == expected)


def test_two_thousand_bad_files_beside_good_ones_are_told_and_end_nothing(agent: Agent) -> None:
    agent.start().write(pod("web"))
    agent.wait_ready("web")
    before = agent.running_id("web")
    for number in range(2000):
        (agent.manifests / f"m{number}.yaml").write_text("kind: Pod\n")
    agent.write(pod("more"))
    agent.wait_ready("more", seconds=60)
    agent.wait("all to be told", lambda: len(files(agent)) == 2002, 60)
    for path in agent.manifests.glob("m*.yaml"):
        if path.name != "more.yaml":
            path.unlink()
    agent.wait("them to be gone", lambda: len(files(agent)) == 2, 60)
    assert (agent.running_id("web"), agent.ready("more")) == (before, True)
