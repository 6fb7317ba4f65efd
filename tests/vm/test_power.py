"""Power cuts at random moments: everything is back after each boot, without a hand.

EDGELET_VM_SEED chooses the moments, EDGELET_VM_CUTS how many; each cut prints both, so a run can be resumed
with EDGELET_VM_CUT=N.
"""

from __future__ import annotations

import os
import random
import time

import pytest

from tests.e2e.manifests import container, exec_probe, pod

from .box import Box
from .test_service import PODS, pods

SEED = int(os.environ.get("EDGELET_VM_SEED", "1"))
CUTS = int(os.environ.get("EDGELET_VM_CUTS", "5"))
FIRST = int(os.environ.get("EDGELET_VM_CUT", "0"))
BOOT = 900.0


@pytest.mark.timeout(7200)
def test_all_pods_are_ready_after_each_of_five_power_cuts(box: Box) -> None:
    box.write(*pods())
    box.wait_ready(*PODS)
    box.vm.run("sync")
    for cut in range(FIRST, FIRST + CUTS):
        chance = random.Random(f"{SEED}/{cut}")
        delay, busy = chance.uniform(0, 20), chance.choice(["idle", "changing", "starting"])
        print(f"power cut {cut} of seed {SEED}: {busy}, after {delay:.1f} s", flush=True)
        if busy == "changing":
            box.write(pod("bridge", container(script=f"echo {cut}; while :; do sleep 1; done")))
            box.write(pod(f"new{cut}", container(readinessProbe=exec_probe("true"))))
        if busy == "starting":
            box.vm.run("systemctl restart --no-block edgelet; podman kill -a", check=False, timeout=120)
        time.sleep(delay)
        box.vm.power_cut()
        box.vm.boot(BOOT)
        took = box.wait_ready(*PODS, seconds=BOOT)
        print(f"power cut {cut}: all Ready {took:.0f} s after the guest answered", flush=True)
