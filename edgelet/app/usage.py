"""Looks at what everything uses, from /proc and the control groups: two looks make a rate."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from .. import ports
from ..adapters.cgroups import Cgroups
from ..model.observed import ObservedContainer, ObservedPod
from ..model.pod import PodKey
from ..model.usage import ContainerUsage, NodeUsage, PodUsage, Report

WINDOW_SECONDS = 1.0
"""A rate needs two looks at least so far apart."""
OLD_SECONDS = 120.0
"""A look older than that says nothing about now."""

Pods = Callable[[], Mapping[PodKey, ObservedPod]]
Seen = dict[str, tuple[float, float]]
"""Container id ("" = the node) -> monotonic second and CPU seconds of an earlier look."""


class Looks:
    """Thread-safe; keeps one earlier look, no history."""

    def __init__(self, pods: Pods, clock: ports.Clock, root_dir: str, cgroups: Cgroups | None = None) -> None:
        self._pods = pods
        self._clock = clock
        self._root = root_dir
        self._cgroups = cgroups or Cgroups()
        self._lock = threading.Lock()
        self._before: Seen = {}
        self._latest: Seen = {}

    @property
    def cgroup_version(self) -> int:
        """1 or 2."""
        return self._cgroups.version

    def now(self) -> Report:
        """One look, some 0.2 ms per container; rates where there was a look before."""
        with self._lock:
            pods = self._pods()
            failed = [0]
            found = tuple(self._pod(pods[key], failed) for key in sorted(pods))
            report = Report(self._node(), found, failed[0])
            self._remember(report)
            return report

    def rates(self) -> Report:
        """One look with rates: waits a second when there was none before. Not for the server's loop."""
        report = self.now()
        if report.node.rate is not None and all(c.rate is not None for p in report.pods for c in p.containers):
            return report
        time.sleep(WINDOW_SECONDS + 0.05)
        return self.now()

    def _remember(self, report: Report) -> None:
        """Keep what is seen as the base of later rates, once the window has passed."""
        mono = self._clock.monotonic()
        seen = {"": (mono, report.node.cpu)}
        seen |= {c.id: (mono, c.usage.cpu) for p in report.pods for c in p.containers}
        if not self._latest or mono - max(at for at, _ in self._latest.values()) >= WINDOW_SECONDS:
            self._before = self._latest
            self._latest = seen
        else:
            self._latest = {**seen, **{k: v for k, v in self._latest.items() if k in seen}}

    def _rate(self, name: str, cpu: float) -> float | None:
        mono = self._clock.monotonic()
        for seen in (self._latest, self._before):
            at, before = seen.get(name, (-OLD_SECONDS * 2, 0.0))
            if WINDOW_SECONDS <= mono - at <= OLD_SECONDS:
                return max(0.0, cpu - before) / (mono - at)
        return None

    def _pod(self, pod: ObservedPod, failed: list[int]) -> PodUsage:
        running = [c for c in _newest(pod.containers) if c.running and c.pid]
        found = []
        for container in running:
            usage = self._cgroups.usage(container.pid)
            if usage is None:
                failed[0] += 1
                continue
            rate = self._rate(container.id, usage.cpu)
            at = self._clock.time()
            found.append(
                ContainerUsage(container.name, container.id, container.image, container.started_at, at, usage, rate)
            )
        pid = pod.infra_pid or next((c.pid for c in running), 0)
        interfaces = self._cgroups.interfaces(pid) if pid and not pod.host_network else ()
        return PodUsage(pod.key, pod.uid, pod.created_at, tuple(found), interfaces)

    def _node(self) -> NodeUsage:
        memory, cpu, booted = _meminfo(), 0.0, 0.0
        with open("/proc/stat", encoding="ascii") as file:
            for line in file:
                if line.startswith("cpu "):
                    ticks = [int(word) for word in line.split()[1:9]]
                    cpu = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")  # less idle and iowait
                elif line.startswith("btime "):
                    booted = float(line.split()[1])
        disk = os.statvfs(self._root)
        total, available = memory.get("MemTotal", 0), memory.get("MemAvailable", 0)
        return NodeUsage(
            at=self._clock.time(),
            booted=booted,
            cpu=cpu,
            rate=self._rate("", cpu),
            memory_total=total,
            working_set=total - available,
            available=available,
            rss=memory.get("AnonPages", 0),
            swap=memory.get("SwapTotal", 0) - memory.get("SwapFree", 0),
            swap_total=memory.get("SwapTotal", 0),
            processes=_threads(),
            max_pid=_number("/proc/sys/kernel/pid_max"),
            disk=(disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize, disk.f_files, disk.f_favail),
            interfaces=self._cgroups.interfaces(os.getpid()),
        )


def _newest(containers: Iterable[ObservedContainer]) -> list[ObservedContainer]:
    found: dict[str, ObservedContainer] = {}
    for container in containers:
        before = found.get(container.name)
        if before is None or container.restart_count >= before.restart_count:
            found[container.name] = container
    return list(found.values())


def _meminfo() -> dict[str, int]:
    found = {}
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            name, _, rest = line.partition(":")
            found[name] = int(rest.split()[0]) * 1024
    return found


def _threads() -> int:
    with open("/proc/loadavg", encoding="ascii") as file:
        return int(file.read().split()[3].partition("/")[2])


def _number(path: str) -> int:
    with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
        return int(file.read())
    return 0
