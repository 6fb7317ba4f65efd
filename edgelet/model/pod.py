"""The Pod as edgelet honours it: typed, frozen, defaulted, valid by construction.

Made by `model.decode` only (tests may build values by hand).  Attribute names are the Kubernetes
field names in snake_case.  Numbers are plain ints in the unit of the field (seconds, bytes,
milli-CPU); what the manifest left out carries the API default (semantics 2.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .references import EnvFrom, EnvSource, Files, KeyRef, ObjectFiles


class PodKey(NamedTuple):
    """What makes a pod unique on a node: its namespace and full name (node suffix included)."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Exec:
    """Run argv inside the container, no shell."""

    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HttpGet:
    """GET scheme://host:port/path; host "" means the pod's IP."""

    port: int | str
    path: str = "/"
    scheme: str = "HTTP"
    host: str = ""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TcpSocket:
    """Connect to host:port; host "" means the pod's IP."""

    port: int | str
    host: str = ""


@dataclass(frozen=True, slots=True)
class Grpc:
    """grpc.health.v1 Check on the pod's IP."""

    port: int
    service: str = ""


@dataclass(frozen=True, slots=True)
class Sleep:
    """A hook that waits."""

    seconds: int


Handler = Exec | HttpGet | TcpSocket | Grpc
HookHandler = Exec | HttpGet | TcpSocket | Sleep


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe of one kind; all times in seconds (semantics 2.1, 4)."""

    handler: Handler
    initial_delay: int = 0
    timeout: int = 1
    period: int = 10
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace: int | None = None


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """Hooks of a container."""

    post_start: HookHandler | None = None
    pre_stop: HookHandler | None = None


@dataclass(frozen=True, slots=True)
class EnvVar:
    """An environment variable; `$(NAME)` in its value is not expanded yet (see core.expand).

    `source` = its value stands elsewhere (see core.values).
    """

    name: str
    value: str = ""
    source: EnvSource | None = None


@dataclass(frozen=True, slots=True)
class Port:
    """A declared container port; host_port 0 = not published."""

    container_port: int
    host_port: int = 0
    host_ip: str = ""
    protocol: str = "TCP"
    name: str = ""


@dataclass(frozen=True, slots=True)
class VolumeMount:
    """Where a volume appears in a container; propagation None|HostToContainer|Bidirectional."""

    volume: str
    mount_path: str
    read_only: bool = False
    sub_path: str = ""
    propagation: str = "None"


@dataclass(frozen=True, slots=True)
class Resources:
    """Requests and limits; None = not set. CPU in milli-CPU, memory and ephemeral storage in bytes."""

    cpu_limit: int | None = None
    memory_limit: int | None = None
    cpu_request: int | None = None
    memory_request: int | None = None
    storage_limit: int | None = None
    storage_request: int | None = None


@dataclass(frozen=True, slots=True)
class SecurityContext:
    """The effective container security context: pod-level values are already merged in (5.6.1)."""

    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    privileged: bool = False
    allow_privilege_escalation: bool | None = None
    read_only_root_filesystem: bool = False
    add_capabilities: tuple[str, ...] = ()
    drop_capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RestartRule:
    """What follows exit codes: action Restart|RestartAllContainers, operator In|NotIn (semantics 3.5)."""

    action: str
    operator: str
    values: tuple[int, ...]

    @property
    def all(self) -> bool:
        """All containers of the pod are to run again."""
        return self.action == "RestartAllContainers"

    def matches(self, code: int) -> bool:
        """Whether it is about that exit code."""
        return (code in self.values) == (self.operator == "In")


@dataclass(frozen=True, slots=True)
class Container:
    """A regular or init container. `restart_policy` "" = the pod's; "Always" on init = sidecar."""

    name: str
    image: str
    pull_policy: str = "IfNotPresent"
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFrom, ...] = ()
    ports: tuple[Port, ...] = ()
    mounts: tuple[VolumeMount, ...] = ()
    resources: Resources = Resources()
    security: SecurityContext = SecurityContext()
    liveness: Probe | None = None
    readiness: Probe | None = None
    startup: Probe | None = None
    lifecycle: Lifecycle = Lifecycle()
    restart_policy: str = ""
    restart_rules: tuple[RestartRule, ...] = ()
    termination_message_path: str = "/dev/termination-log"
    termination_message_policy: str = "File"
    stdin: bool = False
    tty: bool = False


@dataclass(frozen=True, slots=True)
class EmptyDir:
    """A directory that lives as long as the pod; medium "" or "Memory"; size in bytes."""

    medium: str = ""
    size_limit: int | None = None


@dataclass(frozen=True, slots=True)
class HostPath:
    """A path of the host; type "" or one of the eight of semantics 5.5."""

    path: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class ImageSource:
    """The files of an image, read only."""

    reference: str
    pull_policy: str = "IfNotPresent"


@dataclass(frozen=True, slots=True)
class Volume:
    """A named volume of the pod."""

    name: str
    source: EmptyDir | HostPath | Files | ImageSource


@dataclass(frozen=True, slots=True)
class HostAlias:
    """A line of /etc/hosts."""

    ip: str
    hostnames: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pod:
    """One desired pod.

    `uid` is the manifest's own or the hash of the manifest as written; `config_hash` is always
    the hash (with its scheme, e.g. "1-6f0c..."): two pods with equal `config_hash` are the same
    generation and nothing restarts.  `active_deadline` is in seconds.  `sysctls` are pairs of name (with dots) and
    value.  `document` is the defaulted v1.Pod as
    compact JSON text, for readers (API, mirror); it is not consulted for decisions.
    """

    name: str
    namespace: str
    uid: str
    config_hash: str
    source: str
    containers: tuple[Container, ...]
    init_containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    restart_policy: str = "Always"
    grace: int = 30
    active_deadline: int | None = None
    host_network: bool = False
    host_pid: bool = False
    host_ipc: bool = False
    share_process_namespace: bool = False
    hostname: str = ""
    host_aliases: tuple[HostAlias, ...] = ()
    priority: int = 0
    sysctls: tuple[tuple[str, str], ...] = ()
    short_name: str = ""
    document: str = "{}"

    @property
    def key(self) -> PodKey:
        """The pod's identity on this node."""
        return PodKey(self.namespace, self.name)

    @property
    def all_containers(self) -> tuple[Container, ...]:
        """Init containers, then regular ones, in spec order."""
        return self.init_containers + self.containers

    @property
    def image_volumes(self) -> tuple[Container, ...]:
        """The images of its volumes, each as a container that is never run: they are fetched as those of containers."""
        return tuple(
            Container(f"volumes[{v.name}]", v.source.reference, v.source.pull_policy)
            for v in self.volumes
            if isinstance(v.source, ImageSource)
        )

    def image(self, name: str) -> Container | None:
        """The container of that name, or the volume's that `image_volumes` calls so."""
        return next((c for c in (*self.all_containers, *self.image_volumes) if c.name == name), None)

    def container(self, name: str) -> Container | None:
        """The container of that name, init containers included."""
        return next((c for c in self.all_containers if c.name == name), None)

    def is_init(self, name: str) -> bool:
        """Whether `name` is an init container (sidecars included)."""
        return any(c.name == name for c in self.init_containers)

    @property
    def refers(self) -> bool:
        """Whether it uses ConfigMaps or Secrets."""
        files = [s for v in self.volumes if isinstance(v.source, Files) for s in v.source.sources]
        return any(isinstance(s, ObjectFiles) for s in files) or any(
            c.env_from or any(isinstance(v.source, KeyRef) for v in c.env) for c in self.all_containers
        )

    def is_sidecar(self, container: Container) -> bool:
        """Whether it is an init container with restartPolicy Always: it goes on beside the regular ones."""
        return container.restart_policy == "Always" and self.is_init(container.name)
