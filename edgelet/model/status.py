"""Status of a pod in the API's terms (v1.PodStatus), as frozen values; times are epoch seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not running yet, or between two runs."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """The process is alive."""

    started_at: float


@dataclass(frozen=True, slots=True)
class Terminated:
    """The process has ended."""

    exit_code: int
    reason: str
    started_at: float = 0.0
    finished_at: float = 0.0
    message: str = ""
    container_id: str = ""
    signal: int = 0


ContainerState = Waiting | Running | Terminated


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """v1.ContainerStatus."""

    name: str
    image: str
    state: ContainerState
    last_state: Terminated | None = None
    ready: bool = False
    started: bool = False
    restart_count: int = 0
    image_id: str = ""
    container_id: str = ""
    log_path: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """v1.PodCondition; status "True" | "False" | "Unknown"."""

    type: str
    status: str
    last_transition: float
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class PodStatus:
    """v1.PodStatus, plus `summary`: one line that says why the pod is not Ready ("" = Ready).

    `deleting` is the epoch second at which termination began (0 = not terminating), `deletion_grace`
    the seconds allowed by whoever deleted the pod (None = the pod's own).
    """

    phase: str
    conditions: tuple[Condition, ...] = ()
    containers: tuple[ContainerStatus, ...] = ()
    init_containers: tuple[ContainerStatus, ...] = ()
    reason: str = ""
    message: str = ""
    start_time: float = 0.0
    ips: tuple[str, ...] = ()
    host_ip: str = ""
    qos: str = "BestEffort"
    summary: str = ""
    deleting: float = 0.0
    deletion_grace: int | None = None
    held: bool = False
