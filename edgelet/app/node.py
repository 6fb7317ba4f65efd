"""The machine as a Node: read from /proc, /etc and the file system each time it is asked for."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Callable

from ..core.admission import Capacity
from ..model.node_facts import NodeFacts, Pressure

MEMORY_LEAST = 100 * 2**20
"""Available memory below this is pressure (kubelet's evictionHard default memory.available)."""
DISK_LEAST, INODES_LEAST = 0.10, 0.05
"""Free parts of the file system below these are pressure (nodefs.available, nodefs.inodesFree)."""
PIDS_MOST = 0.9

_GO_NAMES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "armv6l": "arm", "i686": "386"}


class Node:
    """Callable: the facts now."""

    def __init__(
        self,
        name: str,
        root_dir: str,
        pods: int,
        address: Callable[[], str],
        runtime: Callable[[], str],
        trouble: Callable[[], str],
    ) -> None:
        self._name, self._root, self._pods = name, root_dir, pods
        self._address, self._runtime, self._trouble = address, runtime, trouble

    def __call__(self) -> NodeFacts:
        """One look; some hundred microseconds."""
        memory = _meminfo()
        disk = os.statvfs(self._root)
        return NodeFacts(
            name=self._name,
            address=self._address(),
            created=_born(self._root),
            booted=_booted(),
            cpus=os.cpu_count() or 1,
            memory=memory.get("MemTotal", 0),
            storage=disk.f_blocks * disk.f_frsize,
            pods=self._pods,
            memory_pressure=_memory(memory),
            disk_pressure=_disk(disk),
            pid_pressure=_pids(),
            ready_message=self._trouble(),
            machine_id=_line("/etc/machine-id"),
            system_uuid=_line("/sys/class/dmi/id/product_uuid"),
            boot_id=_line("/proc/sys/kernel/random/boot_id"),
            kernel=platform.release(),
            os_image=_os_image(),
            architecture=_GO_NAMES.get(platform.machine(), platform.machine()),
            runtime=f"podman://{self._runtime()}",
        )


def capacity(pods: int, root_dir: str, sysctls: tuple[str, ...]) -> Capacity:
    """What pods may ask for, all together: the whole machine, and the file system of `root_dir`."""
    disk = os.statvfs(root_dir)
    memory = _meminfo().get("MemTotal", 0)
    return Capacity((os.cpu_count() or 1) * 1000, memory, pods, disk.f_blocks * disk.f_frsize, sysctls)


def _meminfo() -> dict[str, int]:
    found = {}
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if name in ("MemTotal", "MemAvailable"):
                found[name] = int(rest.split()[0]) * 1024
    return found


def _memory(memory: dict[str, int]) -> Pressure:
    available = memory.get("MemAvailable", MEMORY_LEAST)
    return Pressure(available < MEMORY_LEAST, f"{available >> 20} MiB of memory are available")


def _disk(disk: os.statvfs_result) -> Pressure:
    free = disk.f_bavail / disk.f_blocks if disk.f_blocks else 1.0
    inodes = disk.f_favail / disk.f_files if disk.f_files else 1.0
    low = free < DISK_LEAST or inodes < INODES_LEAST
    return Pressure(low, f"{free:.0%} of the disk and {inodes:.0%} of its inodes are free")


def _pids() -> Pressure:
    most = int(_line("/proc/sys/kernel/pid_max") or 0)
    _, _, threads = _line("/proc/loadavg").rpartition(" ")[0].rpartition("/")
    used = int(threads or 0)
    return Pressure(bool(most) and used > most * PIDS_MOST, f"{used} of {most} process ids are used")


def _booted() -> float:
    with open("/proc/stat", encoding="ascii") as file:
        for line in file:
            if line.startswith("btime "):
                return float(line.split()[1])
    return 0.0


def _born(root_dir: str) -> float:
    """The lock file is made at the very first start, and never again."""
    with contextlib.suppress(OSError):
        return os.stat(os.path.join(root_dir, "lock")).st_mtime
    return 0.0


def _line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def _os_image() -> str:
    with contextlib.suppress(OSError), open("/etc/os-release", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("PRETTY_NAME="):
                return line.partition("=")[2].strip().strip('"')
    return "Linux"
