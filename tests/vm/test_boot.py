"""Boots: from the kernel's start to Ready pods, without a network, and a shutdown that lets pods end well."""

from __future__ import annotations

import json

from tests.e2e.manifests import Json, container, exec_probe, pod

from .box import Box

NAMES = ("one", "two", "three")
GRACE = "40s"
BOOT = 900.0
"""Seconds that a shutdown, or a boot until all pods are Ready, may take in emulation on a busy host."""
NOTE = "/var/lib/edgelet/note"
"""On the second disk, which outlives the root disk's caches."""
# A pod whose hook and whose process take their time, and note on the host how far they came.
HOOK = "echo hook >>/note/n; sleep 3; echo hooked >>/note/n"
SLOW = "trap 'echo term >>/note/n; sleep 4; echo done >>/note/n; exit 0' TERM; while :; do sleep 1; done"


def slow() -> Json:
    """Needs seven seconds to end, three of them for its hook."""
    volume = {"name": "note", "hostPath": {"path": NOTE, "type": "DirectoryOrCreate"}}
    mounted = [{"name": "note", "mountPath": "/note"}]
    hook = {"preStop": {"exec": {"command": ["sh", "-c", HOOK]}}}
    one = container(command=["sh", "-c", SLOW], volumeMounts=mounted, lifecycle=hook)
    return pod("slow", one, volumes=[volume], terminationGracePeriodSeconds=30)


def reboot(box: Box) -> float:
    """An orderly reboot; seconds the shutdown took."""
    box.vm.run("sync; systemctl poweroff --no-block")
    off = box.vm.wait_off(BOOT)
    box.vm.boot()
    return off


# The machine has 1 GiB of memory: what pain 62's Raspberry Pi 3 had.
def test_pain_62_178_179_181_182_all_pods_are_back_after_a_boot_without_network_or_route(box: Box) -> None:
    box.write(*(pod(name, container(readinessProbe=exec_probe("true"))) for name in NAMES))
    box.wait_ready(*NAMES)
    assert box.vm.run("ip route show default").out == ""
    box.vm.run("rm -f /etc/resolv.conf")
    reboot(box)
    box.wait_ready(*NAMES, seconds=BOOT)
    ready = box.since_boot()
    lines = box.vm.run("journalctl -b -u edgelet --no-pager -o short-monotonic | grep 'Started: Container'").out
    first = float(lines.split("]")[0].strip("[ "))
    agent = float(box.vm.run("systemctl show -p ActiveEnterTimestampMonotonic --value edgelet").out) / 1e6
    print(f"seconds since the kernel: agent {agent:.1f}, first container {first:.1f}, all Ready {ready:.1f}")
    print(box.vm.run("systemd-analyze", check=False).out.partition("\n")[0])
    assert "network-online" not in box.vm.run("systemctl show -p After -p Wants -p Requires edgelet").out


def test_pain_43_no_sandbox_of_an_earlier_boot_is_used_again(box: Box) -> None:
    before = set(box.running())
    reboot(box)
    box.wait_ready(*NAMES, seconds=BOOT)
    assert not before & set(box.running())


def test_pain_50_poweroff_lets_pods_end_within_the_grace_and_is_no_stop_by_a_person(box: Box) -> None:
    box.vm.put("/etc/edgelet/config.yaml", json.dumps({"shutdownGracePeriod": GRACE}).encode())
    box.vm.run("systemctl restart edgelet", timeout=120)
    box.write(slow())
    box.wait_ready("slow")
    took = reboot(box)
    assert box.vm.run(f"cat {NOTE}/n").out.split() == ["hook", "hooked", "term", "done"]
    print(f"poweroff with a pod whose hook takes 3 s and whose end takes 4 s: {took:.0f} s")
    box.wait_ready("slow", *NAMES, seconds=BOOT)


def test_without_a_shutdown_grace_the_agent_delays_no_shutdown(box: Box) -> None:
    box.vm.put("/etc/edgelet/config.yaml", b"{}")
    box.vm.run("systemctl restart edgelet", timeout=120)
    box.remove("slow")
    box.write(pod("stubborn", container(command=["sh", "-c", "trap '' TERM; while :; do sleep 1; done"])))
    box.wait_ready("stubborn")
    began = box.vm.run("systemctl stop edgelet; echo stopped", timeout=60)
    assert began.out == "stopped\n"
    assert box.running()
