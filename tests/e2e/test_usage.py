"""What is said to be used is what the kernel counts and what Podman says, within 5 %; control groups v1 and v2."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

from tests.e2e.agent import Agent
from tests.e2e.manifests import container, pod

FILLED = 96 << 20
SHARED = 48 << 20
# Busy, then at rest: sums that do not move can be compared without a race. dd holds its one block until it is read.
BUSY = f"""
trap 'exit 0' TERM
mkfifo /tmp/held
dd if=/dev/zero of=/tmp/held bs={FILLED} count=1 &
exec 3</tmp/held
while [ ! -e /tmp/rest ]; do :; done
touch /tmp/rests
while :; do sleep 1000 & wait $!; done"""


class Kernel:
    """What the control groups of a container say."""

    def __init__(self, agent: Agent, name: str) -> None:
        (self.id,) = [agent.running_id(name)]
        (state,) = [c["State"] for c in agent.of_pod(name)]
        lines = Path(f"/proc/{state['Pid']}/cgroup").read_text().splitlines()
        groups = {c: path for line in lines for c in line.split(":")[1].split(",") for path in [line.split(":")[2]]}
        cut = {c: re.sub(rf"(libpod-{self.id}[^/]*).*", r"\1", path) for c, path in groups.items()}
        self.v1 = "memory" in cut
        names = ("memory", "cpuacct") if self.v1 else ("", "")
        tops = [Path("/sys/fs/cgroup", name) for name in names]
        self._memory, self._cpu = (top / cut[name].lstrip("/") for top, name in zip(tops, names, strict=True))

    def memory(self) -> tuple[int, int]:
        """Bytes in use, and without the caches that are not in use."""
        file, inactive = ("memory.usage_in_bytes", "total_inactive_file") if self.v1 else (
            "memory.current", "inactive_file",
        )  # fmt: skip
        used = int((self._memory / file).read_text())
        return used, used - self._stat(inactive)

    def anonymous(self) -> int:
        """Bytes that belong to no file, shared memory neither."""
        return self._stat("total_rss" if self.v1 else "anon")

    def _stat(self, name: str) -> int:
        found = re.search(rf"^{name} (\d+)$", (self._memory / "memory.stat").read_text(), re.MULTILINE)
        return int(found[1] if found else 0)

    def cpu(self) -> float:
        """Seconds of CPU time so far."""
        if self.v1:
            return int((self._cpu / "cpuacct.usage").read_text()) / 1e9
        found = re.search(r"^usage_usec (\d+)$", (self._cpu / "cpu.stat").read_text(), re.MULTILINE)
        return int(found[1] if found else 0) / 1e6


def test_summary_and_top_agree_with_the_kernel_and_podman(agent: Agent) -> None:
    agent.start()
    agent.write(pod("busy", container(command=["sh", "-c", BUSY], resources={"limits": {"cpu": "400m"}})))
    agent.wait_ready("busy")
    agent.wait("it to fill its memory", lambda: _usage(agent)["memory"]["usageBytes"] > FILLED)
    kernel = Kernel(agent, "busy")
    _rate_is_the_kernels(agent, kernel)
    shown = agent.cli("top", "pod", "busy", "--containers", "--no-headers").stdout.split()
    assert shown[:2] == ["busy-n1", "app"]
    assert 0 < int(shown[2].removesuffix("m")) <= 500
    agent.inside("busy", "touch", "/tmp/rest")
    agent.wait("it to rest", lambda: "rests" in agent.inside("busy", "ls", "/tmp"))
    _sums_are_the_kernels(agent, kernel)
    told = _usage(agent)
    memory, seconds = _podman_says(agent, kernel)
    assert _near(told["memory"]["usageBytes"], memory)
    assert _near(told["cpu"]["usageCoreNanoSeconds"] / 1e9, seconds)
    _shared_memory_counts(agent, kernel)
    shown = agent.cli("top", "pod", "busy", "--no-headers").stdout.split()
    assert _near(float(shown[2].removesuffix("Mi")) * (1 << 20), kernel.memory()[1])


def _rate_is_the_kernels(agent: Agent, kernel: Kernel) -> None:
    """A rate is that between two looks of the agent, each of them made while it was asked."""
    time.sleep(1.2)  # a look sooner after another is none to compute from
    begun = kernel.cpu()
    moments = [time.monotonic()]
    first = _usage(agent)["cpu"]
    moments.append(time.monotonic())
    time.sleep(4)
    moments.append(time.monotonic())
    second = _usage(agent)["cpu"]
    moments.append(time.monotonic())
    used = (second["usageCoreNanoSeconds"] - first["usageCoreNanoSeconds"]) / 1e9
    assert 0 < used <= kernel.cpu() - begun + 1e-6
    least, most = used / (moments[3] - moments[0]), used / (moments[2] - moments[1])
    assert least * 0.95 <= second["usageNanoCores"] / 1e9 <= most * 1.05


def _sums_are_the_kernels(agent: Agent, kernel: Kernel) -> None:
    before = kernel.cpu()
    told = _usage(agent)
    seconds = told["cpu"]["usageCoreNanoSeconds"] / 1e9
    assert before - 1e-6 <= seconds <= kernel.cpu() + 1e-6
    used, working = kernel.memory()
    assert _near(told["memory"]["usageBytes"], used)
    assert _near(told["memory"]["workingSetBytes"], working)


def _shared_memory_counts(agent: Agent, kernel: Kernel) -> None:
    """A limit counts it, so we do; Podman leaves it out on v2 (containers/common issue 2454) and not on v1."""
    before = _usage(agent)["memory"]["usageBytes"]
    agent.inside("busy", "sh", "-c", f"head -c {SHARED} /dev/zero > /dev/shm/x")
    _sums_are_the_kernels(agent, kernel)
    after = _usage(agent)["memory"]["usageBytes"]
    assert _near(after - before, SHARED)
    memory, _ = _podman_says(agent, kernel)
    assert _near(memory, after if kernel.v1 else kernel.anonymous())


def _podman_says(agent: Agent, kernel: Kernel) -> tuple[float, float]:
    """Bytes and seconds of CPU time."""
    (row,) = json.loads(agent.podman("stats", "--no-stream", "--format", "json", kernel.id))
    memory, unit = re.match(r"([\d.]+)([kMG]?)B", row["mem_usage"]).groups()  # type: ignore[union-attr]
    factor = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[unit]
    return float(memory) * factor, _go_seconds(row["cpu_time"])


def _go_seconds(text: str) -> float:
    """A duration as Go prints it, such as 1m2.5s or 350.1ms."""
    factors = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "\u00b5s": 1e-6, "ns": 1e-9}
    return sum(float(n) * factors[unit] for n, unit in re.findall(r"([\d.]+)(h|ms|m|s|\u00b5s|ns)", text))


def _near(told: float, truth: float) -> bool:
    return abs(told - truth) <= 0.05 * truth


def _usage(agent: Agent) -> Any:
    """The figures of the one container; an empty one as long as there is none."""
    pods = agent.get("/stats/summary")["pods"]
    return pods[0]["containers"][0] if pods and pods[0]["containers"] else {"memory": {"usageBytes": 0}}
