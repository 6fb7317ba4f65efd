"""Reads what a process's control groups count, cgroup v1, v2 and mixed, and a network namespace's interfaces.

Pure file reading: no Podman call.  `proc` and `mounts` are parameters so that recorded trees can be read.
The names of v1 files: kernel Documentation/admin-guide/cgroup-v1; of v2: cgroup-v2.rst.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from ..model.usage import Interface, Usage

UNLIMITED = 1 << 60
"""v1 writes a number near 2**63 for "no limit"."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted hierarchy: `root` is the group that stands at `point`."""

    root: str
    point: str


class Cgroups:
    """The hierarchies of this machine, found once."""

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._mounts = _mounts(_read(f"{proc}/self/mountinfo"))
        self._ticks = os.sysconf("SC_CLK_TCK")

    @property
    def version(self) -> int:
        """2 where the unified hierarchy has the memory controller, else 1."""
        return 1 if "memory" in self._mounts else 2

    def usage(self, pid: int) -> Usage | None:
        """What the groups of that process use; None when it is gone."""
        try:
            groups = self._groups(pid)
            return self._v1(groups) if self.version == 1 else self._v2(groups[""])
        except (OSError, KeyError, ValueError):
            return None

    def interfaces(self, pid: int) -> tuple[Interface, ...]:
        """The interfaces of that process's network namespace, the loopback one apart."""
        try:
            text = _read(f"{self._proc}/{pid}/net/dev")
        except OSError:
            return ()
        return tuple(_interface(line) for line in text.splitlines()[2:] if not line.lstrip().startswith("lo:"))

    def _groups(self, pid: int) -> dict[str, str]:
        """Controller -> directory; "" is the unified hierarchy."""
        found = {}
        for line in _read(f"{self._proc}/{pid}/cgroup").splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in controllers.split(","):
                mount = self._mounts.get(controller)
                if mount is not None:
                    found[controller] = mount.point + _container(path).removeprefix(mount.root.rstrip("/"))
        return found

    def _v1(self, groups: Mapping[str, str]) -> Usage:
        memory, cpu = groups["memory"], groups["cpuacct"]
        stat = _table(f"{memory}/memory.stat")
        ticks = _table(f"{cpu}/cpuacct.stat")
        limits = _table(f"{groups['cpu']}/cpu.stat") if "cpu" in groups else {}
        used, limit = _number(f"{memory}/memory.usage_in_bytes"), _number(f"{memory}/memory.limit_in_bytes")
        return Usage(
            cpu=_number(f"{cpu}/cpuacct.usage") / 1e9,
            cpu_user=ticks.get("user", 0) / self._ticks,
            cpu_system=ticks.get("system", 0) / self._ticks,
            periods=limits.get("nr_periods", 0),
            throttled_periods=limits.get("nr_throttled", 0),
            throttled=limits.get("throttled_time", 0) / 1e9,
            memory=used,
            working_set=max(0, used - stat.get("total_inactive_file", 0)),
            rss=stat.get("total_rss", 0),
            cache=stat.get("total_cache", 0),
            mapped=stat.get("total_mapped_file", 0),
            swap=stat.get("total_swap", 0),
            memory_limit=limit if limit < UNLIMITED else None,
            memory_peak=_number(f"{memory}/memory.max_usage_in_bytes"),
            memory_failures=_number(f"{memory}/memory.failcnt"),
            page_faults=stat.get("total_pgfault", 0),
            major_faults=stat.get("total_pgmajfault", 0),
            oom_kills=_table(f"{memory}/memory.oom_control").get("oom_kill", 0),
            processes=_optional(f"{groups.get('pids', '')}/pids.current"),
        )

    def _v2(self, group: str) -> Usage:
        cpu, stat = _table(f"{group}/cpu.stat"), _table(f"{group}/memory.stat")
        events = _table(f"{group}/memory.events")
        used = _number(f"{group}/memory.current")
        limit = _read(f"{group}/memory.max").strip()
        return Usage(
            cpu=cpu.get("usage_usec", 0) / 1e6,
            cpu_user=cpu.get("user_usec", 0) / 1e6,
            cpu_system=cpu.get("system_usec", 0) / 1e6,
            periods=cpu.get("nr_periods", 0),
            throttled_periods=cpu.get("nr_throttled", 0),
            throttled=cpu.get("throttled_usec", 0) / 1e6,
            memory=used,
            working_set=max(0, used - stat.get("inactive_file", 0)),
            rss=stat.get("anon", 0),
            cache=stat.get("file", 0),
            mapped=stat.get("file_mapped", 0),
            swap=_optional(f"{group}/memory.swap.current"),
            memory_limit=None if limit == "max" else int(limit),
            memory_peak=_optional(f"{group}/memory.peak"),
            memory_failures=events.get("max", 0),
            page_faults=stat.get("pgfault", 0),
            major_faults=stat.get("pgmajfault", 0),
            oom_kills=events.get("oom_kill", 0),
            processes=_optional(f"{group}/pids.current"),
        )


def _container(path: str) -> str:
    """The group that Podman made, where limits and sums are: the process may be in one below it.

    crun puts it into ``libpod-ID.scope/container`` on v2 (crun(1), run.oci.systemd.subgroup), systemd as first
    process makes more.
    """
    names = path.split("/")
    last = max((n for n, name in enumerate(names) if name.startswith("libpod-")), default=len(names) - 1)
    return "/".join(names[: last + 1])


def _mounts(text: str) -> dict[str, Mount]:
    """Controller -> mount; "" is the unified hierarchy (proc_pid_mountinfo(5))."""
    found: dict[str, Mount] = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        words, kind = before.split(), after.split()
        if len(words) < 5 or len(kind) < 3:
            continue
        mount = Mount(words[3], words[4])
        if kind[0] == "cgroup2":
            found.setdefault("", mount)
        elif kind[0] == "cgroup":
            for option in kind[2].split(","):
                if option not in ("rw", "ro"):
                    found.setdefault(option, mount)
    return found


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _number(path: str) -> int:
    return int(_read(path))


def _optional(path: str) -> int:
    try:
        return _number(path)
    except (OSError, ValueError):
        return 0


def _table(path: str) -> dict[str, int]:
    """A file of NAME NUMBER lines; {} where the controller is off."""
    try:
        text = _read(path)
    except FileNotFoundError:
        return {}
    rows = (line.split() for line in text.splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def _interface(line: str) -> Interface:
    name, _, rest = line.partition(":")
    n = [int(word) for word in rest.split()]
    return Interface(name.strip(), n[0], n[1], n[2], n[3], n[8], n[9], n[10], n[11])
