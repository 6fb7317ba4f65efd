"""cgroup v2 with crun: limits, weights, scores and the OOM killer, read where the kernel keeps them."""

from __future__ import annotations

import pytest

from tests.e2e.manifests import Json, container, exec_probe, pod

from .box import Box

LIMITS = {"limits": {"memory": "32Mi", "cpu": "500m"}, "requests": {"memory": "16Mi", "cpu": "250m"}}
EAT = "a=x; while :; do a=$a$a; done"


@pytest.fixture(scope="module")
def limited(box: Box) -> Box:
    """A pod with limits, one without, Ready."""
    box.write(
        pod("limited", container(resources=LIMITS, readinessProbe=exec_probe("true"))),
        pod("besteffort", container()),
    )
    box.wait_ready("limited", "besteffort")
    return box


def group(box: Box, name: str, file: str) -> str:
    """A file of the container's cgroup."""
    pid = box.vm.run(
        f"podman inspect --format '{{{{.State.Pid}}}}' $(podman ps -q --filter name=^{name}-.*_app_)", timeout=120
    ).out.strip()
    return box.vm.run(f"cat /sys/fs/cgroup$(cut -d: -f3 /proc/{pid}/cgroup)/{file}").out.strip()


def score(box: Box, name: str) -> int:
    """oom_score_adj, read inside the container."""
    return int(box.inside(name, "cat /proc/self/oom_score_adj"))


def test_limits_are_the_kernels(limited: Box) -> None:
    assert group(limited, "limited", "memory.max") == str(32 << 20)
    assert group(limited, "limited", "cpu.max") == "50000 100000"
    # 250m are 256 shares (1024 a CPU), by the runtime's formula 1 + ((shares - 2) * 9999) / 262142.
    assert int(group(limited, "limited", "cpu.weight")) == 1 + (256 - 2) * 9999 // 262142
    assert group(limited, "besteffort", "memory.max") == "max"


def test_pain_194_scores_follow_the_class_and_stay_so_after_an_oom_kill(limited: Box) -> None:
    assert score(limited, "besteffort") == 1000
    assert 2 < score(limited, "limited") < 1000


def test_pain_196_a_process_that_eats_memory_is_named_oomkilled(limited: Box) -> None:
    eater: Json = container(resources={"limits": {"memory": "16Mi"}}, command=["sh", "-c", EAT])
    limited.write(pod("eater", eater))

    def killed() -> bool:
        ended = limited.container("eater").get("lastState", {}).get("terminated") or limited.container("eater").get(
            "state", {}
        ).get("terminated", {})
        return bool(ended.get("reason") == "OOMKilled")

    limited.until("the OOM kill to be told", killed)
    ended = limited.container("eater")
    assert "137" in str(ended)
    limited.remove("eater")


def test_the_containers_profile_is_apparmors(limited: Box) -> None:
    said = limited.inside("besteffort", "cat /proc/self/attr/current").strip()
    assert said.startswith("containers-default")
