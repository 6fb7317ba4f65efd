"""How much containers, pods and the node use: counters and gauges as read at one moment, as values."""

from __future__ import annotations

from dataclasses import dataclass, field

from .pod import PodKey


@dataclass(frozen=True, slots=True)
class Usage:
    """Figures of one control group. CPU in seconds since its start, memory in bytes; limits None = none."""

    cpu: float = 0.0
    cpu_user: float = 0.0
    cpu_system: float = 0.0
    periods: int = 0
    throttled_periods: int = 0
    throttled: float = 0.0
    memory: int = 0
    working_set: int = 0
    rss: int = 0
    cache: int = 0
    mapped: int = 0
    swap: int = 0
    memory_limit: int | None = None
    memory_peak: int = 0
    memory_failures: int = 0
    page_faults: int = 0
    major_faults: int = 0
    oom_kills: int = 0
    processes: int = 0


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface of a pod, as /proc/net/dev counts it."""

    name: str
    rx_bytes: int = 0
    rx_packets: int = 0
    rx_errors: int = 0
    rx_dropped: int = 0
    tx_bytes: int = 0
    tx_packets: int = 0
    tx_errors: int = 0
    tx_dropped: int = 0


@dataclass(frozen=True, slots=True)
class ContainerUsage:
    """One running container; `rate` is its CPU in cores since the look before (None = there was none)."""

    name: str
    id: str
    image: str
    started_at: float
    at: float
    usage: Usage
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class PodUsage:
    """The running containers of a pod (infra container apart) and its network (empty with the host's)."""

    key: PodKey
    uid: str
    created_at: float
    containers: tuple[ContainerUsage, ...] = ()
    interfaces: tuple[Interface, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """The machine as a whole."""

    at: float = 0.0
    booted: float = 0.0
    cpu: float = 0.0
    rate: float | None = None
    memory_total: int = 0
    working_set: int = 0
    available: int = 0
    rss: int = 0
    swap: int = 0
    swap_total: int = 0
    processes: int = 0
    max_pid: int = 0
    disk: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Bytes in all and free, inodes in all and free, of the file system of the root directory."""
    interfaces: tuple[Interface, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """One look at everything; `failed` = containers whose figures could not be read."""

    node: NodeUsage = NodeUsage()
    pods: tuple[PodUsage, ...] = field(default=())
    failed: int = 0
