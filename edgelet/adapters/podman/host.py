"""What this host can do for containers: read once from /proc and /sys, given to pure code as values.

Owns the reading of cgroup mode, controllers, capabilities, limits and the boot id; decides nothing.
"""

from __future__ import annotations

import os
import resource
import shutil
from dataclasses import dataclass

CGROUP_ROOT = "/sys/fs/cgroup"
CAP_SYS_RESOURCE = 24


@dataclass(frozen=True, slots=True)
class Host:
    """`cgroup_v2` False = v1 or hybrid. Limits are this process's hard ones, -1 = unlimited. Memory in bytes."""

    cgroup_v2: bool
    controllers: frozenset[str]
    swap_limit: bool
    systemd: bool
    runtimes: tuple[str, ...]
    can_raise_limits: bool
    nofile: int
    nproc: int
    memory: int
    oom_score_adj: int
    boot_id: str


def read() -> Host:
    """Look at this host; what cannot be read counts as absent."""
    v2 = os.path.exists(f"{CGROUP_ROOT}/cgroup.controllers")
    return Host(
        cgroup_v2=v2,
        controllers=_controllers(v2),
        swap_limit=_swap_limit(v2),
        systemd=_text("/proc/1/comm") == "systemd" and os.path.exists("/run/dbus/system_bus_socket"),
        runtimes=tuple(name for name in ("crun", "runc") if shutil.which(name)),
        can_raise_limits=_has_capability(CAP_SYS_RESOURCE),
        nofile=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        nproc=_nproc(),
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        oom_score_adj=int(_text("/proc/self/oom_score_adj") or 0),
        boot_id=boot_id(),
    )


def boot_id() -> str:
    """This boot's id, "" where the kernel gives none."""
    return _text("/proc/sys/kernel/random/boot_id")


def _nproc() -> int:
    """Podman lowers its own hard limit to the kernel's pid_max, so its containers cannot have more."""
    bounds = [resource.getrlimit(resource.RLIMIT_NPROC)[1], int(_text("/proc/sys/kernel/pid_max") or -1)]
    return min((b for b in bounds if b >= 0), default=-1)


def _controllers(v2: bool) -> frozenset[str]:
    if v2:
        return frozenset(_text(f"{CGROUP_ROOT}/cgroup.controllers").split())
    rows = [line.split() for line in _text("/proc/cgroups").splitlines() if not line.startswith("#")]
    return frozenset(row[0] for row in rows if len(row) == 4 and row[3] == "1" and os.path.isdir(_v1(row[0])))


def _v1(controller: str) -> str:
    return f"{CGROUP_ROOT}/{controller}"


def _swap_limit(v2: bool) -> bool:
    if not v2:
        return os.path.exists(f"{_v1('memory')}/memory.memsw.limit_in_bytes")
    # the root group has no limit files: ask the first group below it
    with os.scandir(CGROUP_ROOT) as entries:
        return any(os.path.exists(f"{e.path}/memory.swap.max") for e in entries if e.is_dir())


def _has_capability(number: int) -> bool:
    for line in _text("/proc/self/status").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""
