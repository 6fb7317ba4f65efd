"""kubectl prints the recorded objects, served by us, as it printed them from a real API server; ages apart."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator

import pytest
import yaml

from tests.support import recorded
from tests.support.forward import forward
from tests.support.serving import serving

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")

Kubectl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    home = tmp_path_factory.mktemp("home")
    with serving(tmp_path_factory.mktemp("s")) as rig, forward(rig.socket) as port:
        rig.clock.jump(1_796_050_267 - rig.clock.time())  # 2026-11-30T14:51:07Z, when they were recorded
        for pod, status in recorded.pods():
            rig.store.put(pod, status)

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                ["kubectl", f"--server=http://127.0.0.1:{port}", *words],
                env={**os.environ, "HOME": str(home), "KUBECONFIG": "/dev/null"},
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )

        yield run


def expected(name: str) -> str:
    """What kubectl printed then."""
    return (recorded.folder() / "kubectl-output" / f"{name}.txt").read_text()


def ageless(text: str) -> str:
    """Without the last column of ages, whose width is that of the longest age."""
    return re.sub(r" {2,}(\d+[smhd])+(?=\s|$)", "  AGE", re.sub(r"AGE *", "AGE  ", text))


@pytest.mark.parametrize(
    "words",
    [("get", "pods"), ("get", "pods", "-A"), ("get", "pods", "-l", "app=web"), ("get", "pods", "-o", "wide")],
    ids=" ".join,
)
def test_lists_are_printed_as_then(kubectl: Kubectl, words: tuple[str, ...]) -> None:
    name = "_".join(words).replace("=", "_")
    squeeze = re.compile(r" +(?=\n)")
    told = squeeze.sub("", ageless(kubectl(*words).stdout))
    assert re.sub(r"AGE +", "AGE ", told) == re.sub(r"AGE +", "AGE ", squeeze.sub("", ageless(expected(name))))


def test_names_and_a_missing_pod_are_printed_as_then(kubectl: Kubectl) -> None:
    assert kubectl("get", "pods", "-o", "name").stdout == expected("get_pods_-o_name")
    done = kubectl("get", "pod", "nope")
    assert done.stdout + done.stderr == expected("get_pod_nope")


@pytest.mark.parametrize("name", ["crash-edge1", "initfail-edge1", "pending-edge1", "web-edge1"])
def test_descriptions_are_printed_as_then(kubectl: Kubectl, name: str) -> None:
    told, then = kubectl("describe", "pod", name).stdout, expected(f"describe_pod_{name}")
    assert told.partition("Events:")[0] == then.partition("Events:")[0]


def test_a_pod_is_the_same_object_but_for_what_only_a_cluster_keeps(kubectl: Kubectl) -> None:
    told = yaml.safe_load(kubectl("get", "pod", "web-edge1", "-o", "yaml").stdout)
    then = yaml.safe_load(expected("get_pod_web-edge1_-o_yaml"))
    for item in (told, then):
        for field in ("resourceVersion", "creationTimestamp", "generation"):
            item["metadata"].pop(field, None)
    assert told == then
