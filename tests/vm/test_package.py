"""The package's life: installed, upgraded, removed and purged, and what happens to pods in each."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.manifests import container, exec_probe, pod
from tests.test_package import build

from .box import MANIFESTS, Box
from .machine import Machine

VOLUME = {"name": "mem", "emptyDir": {"medium": "Memory"}}
MOUNT = {"name": "mem", "mountPath": "/mem"}


def test_upgrade_removal_and_purge(blank: Machine, vm_package: bytes, tmp_path: Path) -> None:
    box = Box(blank)
    blank.put("/root/old.deb", build(tmp_path).read_bytes())
    blank.put("/root/new.deb", vm_package)
    blank.run("dpkg -i /root/old.deb", timeout=300)
    box.write(pod("web", container(readinessProbe=exec_probe("true"), volumeMounts=[MOUNT]), volumes=[VOLUME]))
    box.wait_ready("web")
    before, pid = box.running(), box.pid()

    blank.run("dpkg -i /root/new.deb", timeout=300)
    box.until("the new agent", lambda: box.pid() not in (0, pid) and box.ready("web"))
    assert box.running() == before
    assert len(box.events("web", "Started")) == 1

    blank.run("dpkg -r edgelet", timeout=300)
    assert box.running() == before, "removing the package leaves pods running"
    assert blank.run(f"ls {MANIFESTS}").out.split() == ["web.yaml"]

    blank.run("dpkg -P edgelet", timeout=300)
    made = "podman pod ls -q; podman ps -aq; podman network ls -q | grep -vx podman"
    # The state's directory itself is a mount point here, and stays.
    left = blank.run(f"{made}; find /var/lib/edgelet /etc/edgelet /run/edgelet -mindepth 1", check=False)
    assert left.out == ""
    assert "edgelet" not in blank.run(
        "cat /proc/mounts; ls /var/log/pods; getent group edgelet", check=False
    ).out.replace("/var/lib/edgelet ext4", "")
    assert blank.run(f"ls {MANIFESTS}").out.split() == ["web.yaml"], "manifests are the person's own"
