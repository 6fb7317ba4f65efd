"""A kernel without the memory controller, as the Raspberry Pi's firmware starts it."""

from __future__ import annotations

from tests.e2e.manifests import container, exec_probe, pod

from .box import Box
from .test_limits import group

KERNEL = "cgroup_disable=memory"


def test_pain_190_191_193_pods_with_limits_run_and_the_missing_limit_is_told(box: Box) -> None:
    assert "memory" not in box.vm.run("cat /sys/fs/cgroup/cgroup.controllers").out.split()
    limited = container(resources={"limits": {"memory": "32Mi", "cpu": "500m"}}, readinessProbe=exec_probe("true"))
    box.write(pod("limited", limited))
    box.wait_ready("limited")
    told = box.events("limited", "LimitNotApplied")
    assert told and told[0]["type"] == "Warning"
    assert "cgroup_enable=memory" in told[0]["message"]
    assert "LimitNotApplied" in box.vm.run("edgelet describe pod limited", timeout=120).out
    assert group(box, "limited", "cpu.max") == "50000 100000", "the limit that can be applied is"
