"""The service under systemd: whatever happens to the agent, it comes back, and no container notices."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from tests.e2e.manifests import Json, container, exec_probe, http_probe, pod

from .box import Box

WATCHDOG = 30.0
"""Seconds: WatchdogSec of the unit."""
SLACK = 10.0
"""Seconds that systemd may be late on a busy host."""

# Stops one thread of another process and nothing else, as a deadlock would; its parent learns of its end from us.
FREEZE = """
import ctypes, os, sys
libc, tid = ctypes.CDLL(None, use_errno=True), int(sys.argv[1])
SEIZE, INTERRUPT = 0x4206, 0x4207
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
if libc.ptrace(SEIZE, tid, None, None) or libc.ptrace(INTERRUPT, tid, None, None):
    sys.exit("ptrace failed")
print("frozen", flush=True)
WALL, status = 0x40000000, 0x7F
while not (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
    status = os.waitpid(tid, WALL)[1]
"""

# A file system whose server never answers: whoever looks at it waits for ever.
DEAD_MOUNT = """
import ctypes, os, time
libc, fuse = ctypes.CDLL(None, use_errno=True), os.open("/dev/fuse", os.O_RDWR)
os.makedirs("/mnt/dead", exist_ok=True)
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
if libc.mount(b"dead", b"/mnt/dead", b"fuse", 0, options):
    raise OSError(ctypes.get_errno(), "mount")
print("mounted", flush=True)
time.sleep(1200)
"""

PODS = ("host", "bridge", "memory")


def serve(port: int) -> str:
    """A web server that answers every path."""
    return f"mkdir -p /tmp/www; echo ok >/tmp/www/index.html; httpd -f -p {port} -h /tmp/www & wait"


def pods() -> list[Json]:
    """One on the host's network, one on the bridge, one with a volume in memory; each with a probe."""
    memory = {"name": "mem", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}}
    mounted = container(volumeMounts=[{"name": "mem", "mountPath": "/mem"}], readinessProbe=exec_probe("true"))
    return [
        pod("host", container(script=serve(18081), readinessProbe=http_probe(18081)), hostNetwork=True),
        pod("bridge", container(script=serve(8080), readinessProbe=http_probe(8080))),
        pod("memory", mounted, volumes=[memory]),
    ]


@pytest.fixture(scope="module")
def served(box: Box) -> Box:
    """The three pods, Ready."""
    box.write(*pods())
    box.wait_ready(*PODS)
    return box


@pytest.fixture
def untouched(served: Box) -> Iterator[Box]:
    """Whatever the test does: the same containers run since the same moment, and the pods are Ready."""
    served.wait_ready(*PODS)
    before = served.running()
    assert len(before) >= len(PODS)
    yield served
    served.wait_ready(*PODS)
    assert served.running() == before


def back(box: Box, pid: int) -> float:
    """Until another agent than `pid` answers; seconds it took."""
    return box.until("a new agent", lambda: box.pid() not in (0, pid) and bool(box.vm.ask("/version")))


def bitten(box: Box, began: float) -> float:
    """Seconds from `began` (since boot) to the end that systemd's watchdog gave the agent, by the journal's clock."""
    lines = box.vm.run("journalctl -b -u edgelet --no-pager -o short-monotonic", timeout=120).out.splitlines()
    found = [float(line.split("]")[0].strip("[ ")) for line in lines if "Watchdog timeout" in line]
    return next(at - began for at in found if at > began)


def test_the_package_alone_starts_an_agent_that_comes_with_the_boot(served: Box) -> None:
    assert served.vm.run("systemctl is-active edgelet; systemctl is-enabled edgelet").out.split() == [
        "active",
        "enabled",
    ]
    assert served.vm.run("edgelet status", timeout=120).code == 0
    assert served.vm.run("stat -c %a /etc/kubernetes/manifests").out.strip() == "700"


def test_this_is_the_real_target(served: Box) -> None:
    assert served.vm.run("stat -fc %T /sys/fs/cgroup").out.strip() == "cgroup2fs"
    facts = served.vm.run("podman info --format '{{.Host.OCIRuntime.Name}} {{.Host.CgroupManager}}'", timeout=120).out
    assert facts.split() == ["crun", "systemd"]


def test_a_memory_volume_is_memory_inside_the_container(served: Box) -> None:
    assert served.inside("memory", "stat -fc %T /mem").strip() == "tmpfs"


def test_restart(untouched: Box) -> None:
    pid = untouched.pid()
    untouched.vm.run("systemctl restart edgelet", timeout=120)
    assert untouched.pid() not in (0, pid)


def test_stop_and_start(untouched: Box) -> None:
    untouched.vm.run("systemctl stop edgelet", timeout=120)
    assert untouched.pid() == 0
    assert len(untouched.running()) >= len(PODS)
    untouched.vm.run("systemctl start edgelet", timeout=120)


def test_reload_looks_again_and_keeps_the_process(untouched: Box) -> None:
    pid = untouched.pid()
    untouched.vm.run("systemctl reload edgelet", timeout=120)
    assert untouched.pid() == pid
    said = untouched.vm.run("journalctl -u edgelet --no-pager -n 40").out
    assert "looking at everything again" in said


def test_kill_9(untouched: Box) -> None:
    pid = untouched.pid()
    untouched.vm.run(f"kill -9 {pid}")
    print(f"kill -9 to a new agent's answer: {back(untouched, pid):.0f} s")


def test_an_agent_that_was_stopped_is_replaced_by_the_watchdog(untouched: Box) -> None:
    pid = untouched.pid()
    began = untouched.since_boot()
    untouched.vm.run(f"kill -STOP {pid}")
    answered = back(untouched, pid)
    ended = bitten(untouched, began)
    print(f"SIGSTOP to the watchdog: {ended:.1f} s, to a new agent's answer: {answered:.0f} s")
    assert ended <= WATCHDOG + SLACK


def test_a_deadlocked_main_thread_is_replaced_by_the_watchdog(untouched: Box) -> None:
    pid = untouched.pid()
    untouched.vm.put("/root/freeze.py", FREEZE.encode())
    began = untouched.since_boot()
    untouched.vm.run(f"systemd-run --unit=freeze --collect python3 /root/freeze.py {pid}")
    untouched.vm.wait_for("journalctl -u freeze --no-pager | grep -q frozen", 60)
    frozen = untouched.since_boot()
    answered = back(untouched, pid)
    ended = bitten(untouched, began)
    print(f"deadlock to the watchdog: {ended:.1f} s, to a new agent's answer: {answered:.0f} s")
    assert ended <= frozen - began + WATCHDOG + SLACK
    untouched.vm.run("systemctl stop freeze", check=False)


def test_a_worker_stuck_on_a_dead_mount_costs_its_pod_alone(untouched: Box) -> None:
    pid = untouched.pid()
    vm = untouched.vm
    vm.put("/root/dead.py", DEAD_MOUNT.encode())
    vm.run("modprobe fuse; systemd-run --unit=dead --collect python3 /root/dead.py")
    vm.wait_for("grep -q /mnt/dead /proc/mounts", 60)
    volume = {"name": "dead", "hostPath": {"path": "/mnt/dead/below", "type": "Directory"}}
    stuck = pod("stuck", container(volumeMounts=[{"name": "dead", "mountPath": "/dead"}]), volumes=[volume])
    untouched.write(stuck)
    untouched.until("the worker to be stuck", lambda: "stuck" in untouched.pods())
    time.sleep(WATCHDOG + 10)
    assert untouched.pid() == pid
    untouched.write(pod("beside", container(readinessProbe=exec_probe("true"))))
    untouched.wait_ready("beside")
    vm.run("systemctl kill -s KILL dead; umount -l /mnt/dead; rm -f /etc/kubernetes/manifests/stuck.yaml", check=False)
    untouched.remove("beside", "stuck")


def test_podmans_service_killed(untouched: Box) -> None:
    untouched.vm.run("systemctl kill -s KILL podman.service", check=False)
    untouched.vm.run("pkill -9 -f 'podman system service'", check=False)
    untouched.write(pod("after", container()))
    untouched.wait_ready("after")
    untouched.remove("after")


def test_pain_16_readiness_is_the_agents_own_and_no_business_of_podmans_or_systemds(untouched: Box) -> None:
    vm = untouched.vm
    untouched.write(pod("toggle", container(readinessProbe=exec_probe("test", "-e", "/tmp/good"))))
    untouched.until("it to run", lambda: "running" in untouched.container("toggle").get("state", {}))
    vm.run("systemctl stop podman.socket podman.service; mv /usr/bin/podman /usr/bin/podman.away")
    try:
        untouched.inside("toggle", "touch /tmp/good")
        untouched.wait_ready("toggle")
        untouched.inside("toggle", "rm /tmp/good")
        untouched.until("it to be not Ready", lambda: not untouched.ready("toggle"))
    finally:
        vm.run("mv /usr/bin/podman.away /usr/bin/podman; systemctl start podman.socket")
    timers = vm.run("systemctl list-timers --all --no-legend --no-pager").out
    assert not re.search(r"[0-9a-f]{64}", timers), "a timer of Podman's health checks"
    untouched.remove("toggle")
