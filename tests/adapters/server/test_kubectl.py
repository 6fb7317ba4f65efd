"""The real kubectl against the server, and our own commands against what kubectl prints."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edgelet import ports
from edgelet.adapters.logs.reader import LogReader
from edgelet.cli.main import main
from edgelet.model.layout import Layout
from edgelet.model.status import PodStatus, Waiting
from tests.support.forward import forward
from tests.support.serving import Rig, pod, running, serving
from tests.support.sessions import LocalExecs

Kubectl = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with serving(tmp_path, LogReader(Layout("", "", "")), LocalExecs()) as rig:
        rig.clock.jump(time.time() - rig.clock.time())  # ages are computed here and in kubectl
        log = tmp_path / "0.log"
        log.write_text("2026-11-30T14:00:00Z stdout F one\n2026-11-30T14:00:01Z stderr F two\n")
        status = running(2)
        container = dataclasses.replace(status.containers[0], log_path=str(log))
        rig.store.put(pod(app="web"), dataclasses.replace(status, containers=(container,)))
        waiting = dataclasses.replace(container, state=Waiting("ImagePullBackOff", "no such image"), ready=False)
        rig.store.put(pod("db"), PodStatus("Pending", containers=(waiting,), start_time=rig.clock.time() - 3600))
        ref = ports.EventRef(pod().key, "uid-web", "spec.containers{c}")
        for _ in range(3):
            rig.events.event(ref, "Warning", "BackOff", "Back-off restarting failed container")
        yield rig


@pytest.fixture
def kubectl(rig: Rig, tmp_path: Path) -> Iterator[Kubectl]:
    with forward(rig.socket) as port:

        def run(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                ["kubectl", f"--server=http://127.0.0.1:{port}", *arguments],
                env={**os.environ, "HOME": str(tmp_path), "KUBECONFIG": "/dev/null"},
                input=given,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )

        yield run


@pytest.mark.parametrize(
    "arguments",
    [
        ("get", "pods"),
        ("get", "pods", "-A"),
        ("get", "pods", "-l", "app=web"),
        ("get", "pods", "-o", "name"),
        ("get", "pod", "web-edge1", "-o", "json"),
        ("get", "pod", "web-edge1", "-o", "yaml"),
        ("get", "pods", "-o", "yaml"),
        ("get", "events"),
        ("get", "events", "-o", "wide"),
        ("get", "pod", "nope"),
        ("get", "pods", "-n", "empty"),
        ("describe", "pod", "web-edge1"),
        ("describe", "pod", "db-edge1"),
        ("logs", "web-edge1"),
        ("logs", "web-edge1", "--tail", "1", "--timestamps"),
        ("logs", "web-edge1", "-c", "nope"),
    ],
    ids=" ".join,
)
def test_edgelet_prints_what_kubectl_prints(
    rig: Rig, kubectl: Kubectl, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    for _ in range(5):  # an age may change between the two
        theirs = kubectl(*arguments)
        code = main(["--socket", rig.socket, *arguments])
        ours = capfd.readouterr()
        if ours.out == theirs.stdout:
            break
    assert (ours.out, code) == (theirs.stdout, theirs.returncode)
    assert ours.err == theirs.stderr.replace("error: ", "Error from server (BadRequest): ")


def test_exec_passes_input_output_and_exit_code(kubectl: Kubectl) -> None:
    done = kubectl("exec", "web-edge1", "--", "sh", "-c", "echo out; echo err >&2; exit 5")
    assert (done.returncode, done.stdout, done.stderr) == (5, "out\n", "err\ncommand terminated with exit code 5\n")
    data = "0123456789" * 100_000
    assert kubectl("exec", "-i", "web-edge1", "--", "cat", given=data).stdout == data
    assert "cannot execute /no/such" in kubectl("exec", "web-edge1", "--", "/no/such").stderr


def test_waiting_for_a_condition_watches(kubectl: Kubectl) -> None:
    done = kubectl("wait", "--for=condition=Ready", "pod/web-edge1", "--timeout=20s")
    assert (done.returncode, done.stdout) == (0, "pod/web-edge1 condition met\n")


def test_resources_are_discovered(kubectl: Kubectl) -> None:
    names = [line.split()[0] for line in kubectl("api-resources").stdout.splitlines()]
    assert names[:7] == ["NAME", "configmaps", "events", "namespaces", "nodes", "pods", "secrets"]


def test_fields_are_explained_from_the_table(kubectl: Kubectl) -> None:
    told = kubectl("explain", "pod.spec.restartPolicy").stdout
    assert "FIELD: restartPolicy <string>" in told
    assert "OnFailure" in told
    assert "-required-" in kubectl("explain", "pod.spec").stdout


@pytest.mark.parametrize("what", ["pods", "secrets"])
def test_a_person_can_ask_what_he_may_do(kubectl: Kubectl, what: str) -> None:
    assert kubectl("auth", "can-i", "create", what).stdout == "yes\n"


def test_nodes_and_namespaces_look_as_in_a_cluster(kubectl: Kubectl) -> None:
    head, row = (line.split() for line in kubectl("get", "nodes").stdout.splitlines())
    assert head == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert row[:3] == ["edge1", "Ready", "<none>"]
    told = kubectl("describe", "node", "edge1").stdout
    assert "Container Runtime Version:  podman://4.3.1" in told
    assert "Non-terminated Pods:          (2 in total)" in told
    assert kubectl("get", "ns", "-o", "name").stdout == "namespace/default\n"
    assert kubectl("get", "cm", "-A").stderr == "No resources found\n"
    assert '"nope" not found' in kubectl("get", "node", "nope").stderr


def test_lists_come_in_pieces(kubectl: Kubectl) -> None:
    assert kubectl("get", "pods", "--chunk-size=1", "-o", "name").stdout == "pod/db-edge1\npod/web-edge1\n"
    assert len(kubectl("get", "pods", "--chunk-size=1").stdout.splitlines()) == 3
