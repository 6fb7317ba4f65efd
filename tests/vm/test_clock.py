"""A wrong clock: 1970 at the start, then jumps of fifty years both ways while pods run."""

from __future__ import annotations

import time

from tests.e2e.manifests import container, exec_probe, pod

from .box import Box

NAMES = ("steady", "probed")
YEARS = 50 * 365 * 86400
CRASH = "exit 3"


def set_clock(box: Box, epoch: int) -> None:
    """Set the machine's clock."""
    box.vm.run(f"date -s @{epoch} >/dev/null")


def test_time_jumps_restart_nothing_fail_no_probe_and_lose_no_back_off(box: Box) -> None:
    box.vm.run("systemctl stop edgelet systemd-timesyncd 2>/dev/null; true")
    now = int(box.vm.run("date +%s").out)
    set_clock(box, 3600)
    box.vm.run("systemctl start edgelet", timeout=120)
    probe = exec_probe("true", failureThreshold=1)
    box.write(
        pod("steady", container()),
        pod("probed", container(readinessProbe=probe, livenessProbe=exec_probe("true"))),
        pod("crashes", container(command=["sh", "-c", CRASH])),
    )
    box.wait_ready(*NAMES)
    box.until("a back-off", lambda: box.container("crashes").get("restartCount", 0) >= 2)
    before = box.running()
    for epoch in (now, now + YEARS, now, 86400):
        set_clock(box, epoch)
        restarts = box.container("crashes")["restartCount"]
        time.sleep(10)
        assert box.ready(*NAMES)
        # Back-offs are 10, 20, 40 s and more by now: ten seconds allow one restart, a lost back-off many.
        assert box.container("crashes")["restartCount"] <= restarts + 1
    assert before.items() <= box.running().items()
    assert not [e for e in box.events() if e["reason"] in ("Unhealthy", "Killing")]
