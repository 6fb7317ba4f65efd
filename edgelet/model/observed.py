"""What the runtime was seen to hold: Podman pods and containers that carry our owner label.

Wall-clock times are epoch seconds, shown to people; decisions use the `*_mono` twins, fixed at
first sight, so a clock that jumps changes nothing (a container's age never moves).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from .pod import HookHandler, PodKey


class State(enum.Enum):
    """A container as Podman names it, reduced to what decisions need."""

    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ObservedContainer:
    """One container instance. Infra containers are not listed here, see ObservedPod.

    `partial` = the exit is known from conmon's exit file only (code, no OOM flag, no exact time):
    an inspect is still owed.  `message_file` is the file of the host that the container may leave its termination
    message in ("" = none), `message_policy` the policy for it, `message` what was found there at its end (3.14).
    `pre_stop` is the hook that it was made with, `sidecar` its place among the init containers if it is one of those
    that go on running.
    """

    id: str
    name: str
    state: State
    restart_count: int = 0
    image: str = ""
    image_id: str = ""
    pid: int = 0
    conmon_pid: int = 0
    oci_config: str = ""
    created_at: float = 0.0
    started_at: float = 0.0
    finished_at: float = 0.0
    started_mono: float = 0.0
    finished_mono: float = 0.0
    exit_code: int | None = None
    oom_killed: bool = False
    error: str = ""
    grace: int | None = None
    log_path: str = ""
    stop_signal: str = "SIGTERM"
    message: str = ""
    message_file: str = ""
    message_policy: str = "File"
    pre_stop: HookHandler | None = None
    sidecar: int | None = None
    partial: bool = False

    @property
    def running(self) -> bool:
        """Whether its process was alive at the time of the observation."""
        return self.state is State.RUNNING


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """One Podman pod of ours with its containers, newest instance last per container name.

    `infra_id` "" = no infra container (host network, one container).  `infra_dead` = there is one and
    its process has ended (created but not yet started is not dead).  `boot_id` is the label written at
    creation: another value than the present boot's means that a reboot has happened since.
    """

    key: PodKey
    id: str
    uid: str
    config_hash: str
    source: str = ""
    boot_id: str = ""
    grace: int = 30
    infra_id: str = ""
    infra_dead: bool = False
    infra_pid: int = 0
    created_at: float = 0.0
    ips: tuple[str, ...] = ()
    host_network: bool = False
    attempt: int = 0
    containers: tuple[ObservedContainer, ...] = ()

    def newest(self, name: str) -> ObservedContainer | None:
        """The newest instance of the container called `name`."""
        found = [c for c in self.containers if c.name == name]
        return max(found, key=lambda c: (c.restart_count, c.created_at)) if found else None

    def before(self, instance: ObservedContainer) -> ObservedContainer | None:
        """The instance of the same container that came before `instance`."""
        found = [c for c in self.containers if c.name == instance.name and c.restart_count < instance.restart_count]
        return max(found, key=lambda c: (c.restart_count, c.created_at)) if found else None

    def by_id(self, container_id: str) -> ObservedContainer | None:
        """The instance with that Podman id."""
        return next((c for c in self.containers if c.id == container_id), None)

    def with_container(self, container: ObservedContainer) -> ObservedPod:
        """The pod with one instance added or replaced."""
        others = tuple(c for c in self.containers if c.id != container.id)
        return replace(self, containers=(*others, container))

    def without_container(self, container_id: str) -> ObservedPod:
        """The pod without one instance."""
        return replace(self, containers=tuple(c for c in self.containers if c.id != container_id))

    @property
    def infra_known(self) -> bool:
        """Whether all is known that the first start of a container brings: the infra process and the addresses."""
        return not self.infra_id or bool(self.infra_pid and (self.ips or self.host_network))


@dataclass(frozen=True, slots=True)
class Image:
    """An image in local storage; size in bytes; `layers` are its directories, the uppermost first (() = not known)."""

    id: str
    digest: str = ""
    size: int = 0
    user: str = ""
    stop_signal: str = ""
    layers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bind:
    """One resolved mount of a container: what to bind where.

    `kind` is "dir", "file" (also sockets) or "device" (handed in as a device node).  `no_exec` = no program in it runs.
    """

    source: str
    target: str
    read_only: bool = False
    propagation: str = "None"
    kind: str = "dir"
    no_exec: bool = False
