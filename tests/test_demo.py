"""`make run` and `make clean`: what they make, that it works, and that nothing of it stays behind."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edgelet import config_values, demo
from edgelet.model import decode, labels

ROOT = Path(__file__).parents[1]
MANIFESTS = sorted((ROOT / "manifests").glob("*.yaml"))
PROGRAM = Path(sys.executable).parent / "edgelet"


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda p: p.stem)
def test_an_example_pod_decodes_without_a_remark_and_runs_on_the_demo_image(path: Path) -> None:
    decoded = decode.decode(path.read_bytes(), decode.Origin(path.name, "file", "edge", strict=True))
    assert decoded.problems == ()
    assert {c.image for pod in decoded.pods for c in pod.all_containers} == {demo.IMAGE}


def test_the_examples_show_what_people_want() -> None:
    pods = {
        pod.short_name or pod.name: pod
        for path in MANIFESTS
        for pod in decode.decode(path.read_bytes(), decode.Origin(path.name, "file", "edge")).pods
    }
    assert set(pods) == {"web", "shared-volume", "host-network", "host-device"}
    server = pods["web"].container("server")
    assert server and server.startup and server.liveness and server.readiness
    assert len(pods["shared-volume"].containers) == 2
    assert pods["host-network"].host_network
    assert [getattr(v.source, "type", "") for v in pods["host-device"].volumes] == ["CharDevice"]


def test_everything_the_demo_makes_is_below_the_tree_or_in_one_directory_of_run() -> None:
    places = demo.Places(Path("/some/tree"))
    values = [flag.split("=", 1)[1] for flag in demo.flags(places)]
    assert values[0] == "/some/tree/manifests"
    assert all(v.startswith(("/some/tree/.run/", f"/run/edgelet-demo-{places.owner}")) for v in values[1:])


def test_a_tree_with_a_long_path_gets_its_socket_elsewhere() -> None:
    places = demo.Places(Path("/" + "x" * 150))
    assert config_values.socket(str(places.socket)) == str(places.socket)


@pytest.mark.skipif(not os.path.exists(demo.BUSYBOX), reason="needs /bin/busybox: run make setup as root")
def test_the_image_holds_a_busybox_and_its_commands() -> None:
    with tarfile.open(fileobj=io.BytesIO(demo.root_file_system())) as tar:
        assert tar.getmember("bin/busybox").mode == 0o755
        assert tar.getmember("bin/httpd").linkname == "busybox"
        assert tar.getmember("tmp").mode == 0o1777
    assert demo.root_file_system() == demo.root_file_system()


@pytest.mark.parametrize("arguments", [[], ["walk"], ["run", "fast"]])
def test_another_word_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(arguments) == 2
    assert "run|clean" in capsys.readouterr().err


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    """A tree with the example pods on free ports; whatever happens, cleaned at the end."""
    shutil.copytree(ROOT / "manifests", tmp_path / "manifests")
    for path in (tmp_path / "manifests").iterdir():
        path.write_text(re.sub(r"\b1808\d\b", lambda _: str(free_port()), path.read_text()))
    yield tmp_path
    assert call(tree=tmp_path, words=["clean"]).returncode == 0


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def call(tree: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the demo's module to its end."""
    command = [sys.executable, "-m", "edgelet.demo", *words]
    return subprocess.run(command, cwd=tree, env=environment(), capture_output=True, text=True, timeout=60, check=False)


def environment() -> dict[str, str]:
    """The tests' own, with this tree's package."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def eventually(look: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait for something that happens in another process."""
    deadline = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def client(tree: Path, *words: str) -> str:
    """What `edgelet WORDS` prints about the demo."""
    command = [str(PROGRAM), "--socket", str(demo.Places(tree).socket), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout


def answers(url: str) -> str:
    """The body at the URL, "" if there is none."""
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return str(reply.read().decode())
    except (urllib.error.URLError, OSError):
        return ""


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.skipif(not PROGRAM.exists(), reason="needs the installed program: run make setup")
def test_a_first_look_from_run_over_a_look_and_ctrl_c_to_clean(tree: Path) -> None:
    places = demo.Places(tree)
    port = re.search(r"hostPort: (\d+)", (tree / "manifests" / "web.yaml").read_text())
    assert port
    log = tree / "log"
    with log.open("w") as output:
        command = [sys.executable, "-m", "edgelet.demo", "run"]
        process = subprocess.Popen(command, cwd=tree, env=environment(), stdout=output, stderr=output, process_group=0)
    try:
        eventually(
            lambda: len(re.findall(r"(\d)/\1 +Running", client(tree, "get", "pods"))) == 4, 60, "four pods are ready"
        )
        assert "hello from web" in answers(f"http://127.0.0.1:{port[1]}/")
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(30)
    said = log.read_text()
    assert "get pods" in said and "make clean" in said and "Traceback" not in said
    assert process.returncode == 0
    assert "hello from web" in answers(f"http://127.0.0.1:{port[1]}/"), "the pods outlive the agent"

    assert call(tree, ["clean"]).returncode == 0
    assert not places.state.exists() and not places.run.exists()
    assert not [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(tree) in line]
    service = demo.Places(tree).service()
    left = subprocess.run(
        service.command_line("ps", "--all", "--quiet", "--filter", f"label={labels.OWNER}={places.owner}"),
        env=service.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert left.stdout == ""
