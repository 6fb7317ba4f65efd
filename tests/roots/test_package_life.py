"""The package installed, upgraded from the first one there was, removed and purged, while pods run.

`make test-package` runs this in a Debian that is thrown away, without systemd: the test does what the unit would.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.manifests import container, exec_probe, mount, pod
from tests.support.podman_env import IMAGE, image_tar

PACKAGES = os.environ.get("EDGELET_PACKAGES", "")
pytestmark = pytest.mark.skipif(not PACKAGES, reason="it would touch this machine: make test-package")

MANIFESTS = Path("/etc/kubernetes/manifests")
CONTAINERS_CONF = """
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
"""
DEADLINE = 300.0


def run(*words: str, data: bytes | None = None) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(words, input=data, capture_output=True, check=False)
    assert done.returncode == 0, f"{words}: {done.stderr.decode(errors='replace')}"
    return done.stdout.decode()


def until(what: str, condition: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"not in time: {what}"
        time.sleep(0.2)


class Box:
    """The machine: an agent that the test starts as the unit would, and Podman's own view."""

    def __init__(self) -> None:
        self.agent: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with open("/tmp/agent.log", "ab") as log:
            self.agent = subprocess.Popen(["/usr/bin/edgelet", "run", "--node-name=n1"], stdout=log, stderr=log)

    def stop(self) -> None:
        if self.agent is not None:
            self.agent.send_signal(signal.SIGTERM)
            self.agent.wait(60)
            self.agent = None

    def ready(self, count: int) -> bool:
        done = subprocess.run(["edgelet", "get", "pods", "-o", "json"], capture_output=True, check=False)
        if done.returncode:
            return False
        pods = json.loads(done.stdout)["items"]
        conditions = [{c["type"]: c["status"] for c in p["status"].get("conditions", [])} for p in pods]
        return len(pods) == count and all(c.get("Ready") == "True" for c in conditions)

    def running(self) -> list[tuple[str, int, int]]:
        """(id, process, start) of every running container, infra containers too."""
        return sorted((c["Id"], c["Pid"], c["StartedAt"]) for c in json.loads(run("podman", "ps", "--format=json")))


@pytest.fixture
def box() -> Iterator[Box]:
    """A box with an image and no package."""
    Path("/etc/containers/containers.conf").write_text(CONTAINERS_CONF)
    run("podman", "import", "--change", "ENV PATH=/bin", "-", IMAGE, data=image_tar())
    made = Box()
    yield made
    made.stop()
    if os.path.exists("/usr/bin/edgelet") or os.path.exists("/etc/edgelet"):
        run("dpkg", "-P", "edgelet")
    for manifest in MANIFESTS.glob("*.yaml"):
        manifest.unlink()


def fill(box: Box) -> None:
    """Two pods: one with a probe, memory, state and hooks; one on the host's network."""
    volumes = [{"name": "memory", "emptyDir": {"medium": "Memory"}}, {"name": "disk", "emptyDir": {}}]
    app = container(readinessProbe=exec_probe("true"), volumeMounts=[mount("memory", "/m"), mount("disk", "/d")])
    pods = (pod("web", app, container("side"), volumes=volumes), pod("host", hostNetwork=True))
    for each in pods:
        (MANIFESTS / f"{each['metadata']['name']}.yaml").write_text(json.dumps(each))
    box.start()
    until("both pods ready", lambda: box.ready(2))


@pytest.mark.timeout(1200)
def test_upgraded_from_the_first_package_then_removed_and_purged(box: Box) -> None:
    run("dpkg", "-i", f"{PACKAGES}/old.deb")
    fill(box)
    before = box.running()
    assert len(before) == 4

    run("dpkg", "-i", f"{PACKAGES}/new.deb")
    box.stop()  # what the unit does with Restart and KillMode=process
    box.start()
    until("the new agent", lambda: box.ready(2))
    time.sleep(10)  # nor does anything happen once it has looked at everything
    assert box.ready(2)
    assert box.running() == before, "the upgrade touches no container"

    box.stop()
    run("dpkg", "-r", "edgelet")
    assert box.running() == before, "removing the package leaves pods running"

    run("dpkg", "-P", "edgelet")
    assert run("podman", "pod", "ls", "-q") + run("podman", "ps", "-aq") == ""
    left = [p for p in ("/etc/edgelet", "/var/lib/edgelet", "/run/edgelet", "/usr/lib/edgelet") if os.path.exists(p)]
    assert left == []
    points = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    assert not [p for p in points if "edgelet" in p]
    assert not list(Path("/var/log").glob("pods/*"))
    assert "edgelet:" not in Path("/etc/group").read_text()
    assert sorted(p.name for p in MANIFESTS.iterdir()) == ["host.yaml", "web.yaml"], "manifests are the person's own"


@pytest.mark.timeout(1200)
def test_removal_stops_the_pods_where_that_is_configured(box: Box) -> None:
    run("dpkg", "-i", f"{PACKAGES}/new.deb")
    Path("/etc/default/edgelet").write_text("STOP_PODS_ON_REMOVE=yes\n")
    fill(box)
    box.stop()
    run("dpkg", "-r", "edgelet")
    assert run("podman", "pod", "ls", "-q") == ""
