"""cgroup v2 with crun: limits, weights, scores and the OOM killer, read where the kernel keeps them."""

from __future__ import annotations

import json
import re

import pytest

from tests.e2e.manifests import SERVE, container, exec_probe, mount, pod

from .box import Box

LIMITS = {"limits": {"memory": "32Mi", "cpu": "500m"}, "requests": {"memory": "16Mi", "cpu": "250m"}}
# Its first process eats until it is killed, the next one serves.
EATS_ONCE = f"[ -e /mem/eaten ] || {{ touch /mem/eaten; exec dd if=/dev/zero of=/dev/null bs=64M count=1; }}; {SERVE}"
NOTICED = 120.0
"""Seconds in which an exit must have been noticed: less than half of the relist through Podman (300 s)."""
PORT = 18090
LINES = 3000


@pytest.fixture(scope="module")
def limited(box: Box) -> Box:
    """A pod with limits, one without, Ready."""
    box.write(
        pod("limited", container(resources=LIMITS, readinessProbe=exec_probe("true"))),
        pod("besteffort", container()),
    )
    box.wait_ready("limited", "besteffort")
    return box


def pid_of(box: Box, name: str) -> int:
    """Process id of the pod's container, on the host."""
    found = box.container(name)["containerID"].removeprefix("podman://")
    return int(box.vm.run(f"podman inspect --format '{{{{.State.Pid}}}}' {found}", timeout=120).out)


def group(box: Box, name: str, file: str) -> str:
    """A file of the container's cgroup."""
    return box.vm.run(f"cat /sys/fs/cgroup$(cut -d: -f3 /proc/{pid_of(box, name)}/cgroup)/{file}").out.strip()


def scores(box: Box, name: str) -> set[int]:
    """oom_score_adj of the container's first process, and of one that `exec` starts in it."""
    own = box.vm.run(f"cat /proc/{pid_of(box, name)}/oom_score_adj").out
    return {int(own), int(box.inside(name, "cat /proc/self/oom_score_adj"))}


def wanted_score(box: Box, request: int) -> int:
    """Semantics 6.1: what the kubelet gives a Burstable container of that memory request, bytes."""
    total = int(re.findall(r"MemTotal: +(\d+) kB", box.vm.run("cat /proc/meminfo").out)[0]) * 1024
    return min(999, max(3, 1000 - 1000 * request // total))


def test_limits_are_the_kernels(limited: Box) -> None:
    assert group(limited, "limited", "memory.max") == str(32 << 20)
    assert group(limited, "limited", "cpu.max") == "50000 100000"
    # 250m are 256 shares (1024 a CPU), by the runtime's formula 1 + ((shares - 2) * 9999) / 262142.
    assert int(group(limited, "limited", "cpu.weight")) == 1 + (256 - 2) * 9999 // 262142
    assert group(limited, "besteffort", "memory.max") == "max"


def test_scores_follow_the_class(limited: Box) -> None:
    assert scores(limited, "besteffort") == {1000}
    assert scores(limited, "limited") == {wanted_score(limited, 16 << 20)}


def test_pain_194_196_an_oom_kill_is_named_and_the_next_process_has_the_same_score(limited: Box) -> None:
    app = container(script=EATS_ONCE, resources={"limits": {"memory": "16Mi"}}, volumeMounts=[mount("mem", "/mem")])
    limited.write(pod("eater", app, volumes=[{"name": "mem", "emptyDir": {}}]))
    limited.until("it to run again", lambda: limited.container("eater")["restartCount"] == 1 and limited.ready("eater"))
    ended = limited.container("eater")["lastState"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
    assert "OOMKilled" in limited.vm.run("edgelet describe pod eater", timeout=120).out
    assert scores(limited, "eater") == {wanted_score(limited, 16 << 20)}
    limited.remove("eater")


def test_the_containers_profile_is_apparmors(limited: Box) -> None:
    said = limited.inside("besteffort", "cat /proc/self/attr/current").strip()
    assert said.startswith("containers-default")


def test_exec_probes_decide_readiness(limited: Box) -> None:
    limited.write(pod("probed", container(readinessProbe=exec_probe("test", "-e", "/tmp/good"))))
    limited.until("it to run", lambda: "running" in limited.container("probed")["state"])
    assert not limited.ready("probed")
    limited.inside("probed", "touch /tmp/good")
    limited.wait_ready("probed")
    limited.inside("probed", "rm /tmp/good")
    limited.until("it to be not Ready", lambda: not limited.ready("probed"))
    assert limited.container("probed")["restartCount"] == 0
    limited.remove("probed")


def test_an_exit_is_noticed_with_no_podman_service_running(limited: Box) -> None:
    first = limited.container("besteffort")["containerID"]
    pid = pid_of(limited, "besteffort")
    limited.until(
        "Podman's service to be gone",
        lambda: limited.vm.run("pgrep -f '[p]odman.*system service'", check=False).code == 1,
    )
    limited.vm.run(f"kill -9 {pid}")
    took = limited.until("a new container", lambda: limited.container("besteffort")["containerID"] != first, NOTICED)
    print(f"kill -9 of a container to its successor: {took:.0f} s")
    limited.wait_ready("besteffort")


def test_a_host_port_leads_into_the_pod(limited: Box) -> None:
    serve = "mkdir /tmp/w; echo hello >/tmp/w/index.html; httpd -f -p 8080 -h /tmp/w & wait"
    limited.write(pod("web", container(script=serve, ports=[{"containerPort": 8080, "hostPort": PORT}])))
    limited.wait_ready("web")
    fetch = f"busybox wget -qO- http://127.0.0.1:{PORT}/"
    limited.until("an answer", lambda: limited.vm.run(fetch, check=False).out == "hello\n")
    limited.remove("web")


def test_pods_find_each_other_by_name(limited: Box) -> None:
    serve = "mkdir /tmp/w; echo hello >/tmp/w/index.html; httpd -f -p 8080 -h /tmp/w & wait"
    limited.write(pod("named", container(script=serve)))
    limited.wait_ready("named")
    fetch = "wget -qO- http://named:8080/"
    limited.until("an answer", lambda: limited.inside("besteffort", fetch) == "hello\n")
    limited.remove("named")


def test_logs_are_rotated_and_no_line_is_lost(limited: Box) -> None:
    settings = {"containerLogMaxSize": "50Ki", "containerLogMaxFiles": 50, "containerLogMonitorInterval": "1s"}
    limited.vm.put("/etc/edgelet/config.yaml", json.dumps(settings).encode())
    limited.vm.run("systemctl restart edgelet", timeout=120)
    pace = "[ $((i % 100)) = 0 ] && sleep 0.2"
    script = f"i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); echo line $i of the load; {pace}; done; echo end; {SERVE}"
    limited.write(pod("load", container(script=script)))
    found = "zcat -f /var/log/pods/default_load-*/app/*.log* | cut -d' ' -f4- | sort -u | grep -c '^line'"
    limited.until("all lines, rotated", lambda: int(limited.vm.run(found, check=False).out) == LINES)
    assert len(limited.vm.run("ls /var/log/pods/default_load-*/app/").out.split()) > 2
    limited.remove("load")
