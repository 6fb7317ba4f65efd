"""Protocols between the engine and the world outside: at most ten methods each.

The engine knows these only; adapters implement them; `tests/fakes` holds in-memory twins that the
contract suite holds to the same behaviour as the real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from .model.hooks import HookKind, HookStates
from .model.objects import LocalObject
from .model.observed import Bind, Image, ObservedContainer, ObservedPod
from .model.pod import Container, HookHandler, Pod, PodKey
from .model.problems import Problem


class Clock(Protocol):
    """Time. Decisions use `monotonic` only; `time` is for people."""

    def monotonic(self) -> float:
        """Seconds since boot, never going back, suspended time included (CLOCK_BOOTTIME)."""
        ...

    def time(self) -> float:
        """Epoch seconds; may jump."""
        ...


class Runtime(Protocol):
    """Podman, as the engine sees it. Every method has a deadline and raises errors.RuntimeFailure.

    Only objects that carry our owner label are ever listed, changed or removed; asked to act on
    another one, it raises NotFound.
    """

    def list(self, key: PodKey | None = None) -> tuple[ObservedPod, ...]:
        """All our pods (or the one of `key`) with all their containers."""
        ...

    def create_pod(self, pod: Pod, attempt: int) -> ObservedPod:
        """Create the Podman pod (its infra container starts with the first container).

        Raises Conflict when a pod of that name exists, ours or not.
        """
        ...

    def remove_pod(self, pod_id: str) -> None:
        """Remove the pod and all its containers by force; done already is success."""
        ...

    def create_container(
        self, sandbox: ObservedPod, pod: Pod, container: Container, restart_count: int, binds: tuple[Bind, ...]
    ) -> ObservedContainer:
        """Create (not start) an instance.

        Raises ImageMissing, Conflict, NotFound (pod gone), Permanent, VolumeError (its log cannot be written).
        """
        ...

    def start_container(self, sandbox: ObservedPod, container_id: str) -> ObservedPod:
        """Start it, or the pod's infra container alone.

        The answer is `sandbox` with the container as inspected right after (pid, times).

        The infra container and the addresses, which a pod's first start brings, are in it too.
        Raises Permanent for a bad command.
        """
        ...

    def signal_container(self, container_id: str, signal: str) -> None:
        """Send a signal to the container's first process; not running any more is success."""
        ...

    def remove_container(self, container_id: str) -> None:
        """Remove it by force; gone already is success."""
        ...

    def inspect_container(self, container_id: str) -> ObservedContainer:
        """One container in full detail. Raises NotFound."""
        ...

    def image(self, reference: str) -> Image | None:
        """The local image of that reference, or None."""
        ...

    def pull(self, reference: str) -> Image:
        """Pull it; may take minutes. Raises PullFailed."""
        ...


class Repairs(Protocol):
    """Ways around a Podman that does not do its work (core.repair says when); all of them leave other pods alone."""

    def settle(self, container_id: str) -> None:
        """End its process by the kernel, and write its exit file where conmon cannot. Raises StateError."""
        ...

    def drop_image(self, reference: str) -> None:
        """Remove a damaged image that no container uses, so that it can be fetched anew. Raises RuntimeFailure."""
        ...

    def renew_service(self) -> bool:
        """Restart the Podman service if it is ours, and has not just been; False = it was left alone."""
        ...


VolumeFiles = Mapping[str, Mapping[str, tuple[bytes, int]]]
NO_FILES: VolumeFiles = {}
Layers = Mapping[str, tuple[str, ...]]
"""Directories of the images of volumes, by volume, the uppermost first."""
NO_LAYERS: Layers = {}


class Volumes(Protocol):
    """Volumes on the host: directories, tmpfs mounts, hostPath checks."""

    def binds(
        self, pod: Pod, container: Container, files: VolumeFiles = NO_FILES, layers: Layers = NO_LAYERS
    ) -> tuple[Bind, ...]:
        """Set up what `container` mounts (idempotent) and resolve it. Raises VolumeError.

        `files` is what volumes of files hold, by volume: path -> content and mode; `layers` those of images.
        """
        ...

    def text(self, pod: Pod, volume: str, path: str) -> str:
        """A file of an emptyDir, 1 MiB of it at the most. Raises VolumeError."""
        ...

    def message_file(self, pod: Pod, container: Container, restart_count: int) -> Bind:
        """A fresh file for an instance's termination message (semantics 3.14.1); those of instances long gone go.

        Raises VolumeError.
        """
        ...

    def hosts_file(self, pod: Pod, ips: tuple[str, ...]) -> Bind:
        """The pod's /etc/hosts with its addresses (semantics 5.2). Raises VolumeError."""
        ...

    def remove(self, uid: str) -> None:
        """Unmount and delete all data of the pod with that uid; none is success. Raises StateError."""
        ...

    def uids(self) -> frozenset[str]:
        """The uids that have data on disk."""
        ...


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that one source wants at one moment (SET semantics, semantics 1.1.10).

    `seen` False = the source could not be read yet: its absence of pods is evidence of nothing.
    `trouble` says why the source as a whole cannot be read now ("" = it can, or was not tried yet).
    `objects` are the ConfigMaps and Secrets beside the pods; they outlive a reboot as the pods do.
    """

    source: str
    pods: tuple[Pod, ...] = ()
    problems: tuple[Problem, ...] = ()
    seen: bool = True
    trouble: str = ""
    objects: tuple[LocalObject, ...] = ()


class Source(Protocol):
    """A place pods come from; it calls the sink it was built with, from its own thread."""

    name: str

    def start(self) -> None:
        """Begin: the first snapshot (possibly last known good) is delivered before this returns."""
        ...

    def stop(self) -> None:
        """End its threads, bounded."""
        ...


class Sink(Protocol):
    """Takes the snapshots of sources."""

    def put(self, snapshot: Snapshot) -> None:
        """Replace what `snapshot.source` wants; never blocks for long."""
        ...


@dataclass(frozen=True, slots=True)
class EventRef:
    """The object of an event: a pod, or one of its containers."""

    key: PodKey
    uid: str
    field_path: str = ""


class Recorder(Protocol):
    """Takes events (semantics 7.6)."""

    def event(self, ref: EventRef, kind: str, reason: str, message: str) -> None:
        """Record one; kind is "Normal" or "Warning"; repeats are counted. Never raises, never blocks."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """A running container whose probes are to run.

    `ip` "" = the host's own network.  `terminating` = its pod is being ended: only readiness is
    probed from now on (semantics 4.7).
    """

    key: PodKey
    uid: str
    container: Container
    container_id: str
    pid: int
    oci_config: str
    ip: str
    started_mono: float
    field_path: str = ""
    terminating: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the probes of one container instance say now.

    `failed` is "" or the kind that reached its failure threshold ("liveness", "startup"): the
    container is to be killed, once.  `grace` is the probe's own termination grace, if it has one.
    """

    container_id: str
    started: bool
    ready: bool
    failed: str = ""
    grace: int | None = None


class Probes(Protocol):
    """The prober, as a pod's worker uses it."""

    def sync(self, key: PodKey, targets: tuple[Target, ...]) -> None:
        """From now on probe exactly these containers of the pod (idempotent, by container id)."""
        ...

    def verdicts(self, key: PodKey) -> Mapping[str, Verdict]:
        """Newest verdict by container name."""
        ...

    def forget(self, key: PodKey) -> None:
        """The pod is gone."""
        ...


@dataclass(frozen=True, slots=True)
class ExecResult:
    """A finished command: exit code, the first 10 KiB of output; timed_out = it was killed."""

    exit_code: int
    output: bytes = b""
    timed_out: bool = False


class Hooks(Protocol):
    """Lifecycle hooks, as a pod's worker uses them: begun here, run elsewhere; the worker is woken at their end."""

    def begin(self, kind: HookKind, target: Target, handler: HookHandler, limit: float) -> None:
        """Run it, once per container instance, for `limit` seconds at the most; a failure becomes an event."""
        ...

    def states(self, key: PodKey) -> HookStates:
        """How the hooks of a pod's containers stand."""
        ...

    def keep(self, key: PodKey, container_ids: Collection[str]) -> None:
        """Forget, and end, the hooks of all other containers of the pod."""
        ...


class ExecRunner(Protocol):
    """Runs commands in containers by their own OCI runtime, never by Podman's API."""

    def begin(self, target: Target, command: tuple[str, ...]) -> Running:
        """Start argv inside the container. Raises ExecError."""
        ...

    def forget(self, container_id: str) -> None:
        """The container is gone: drop what was kept about it."""
        ...


class Running(Protocol):
    """A command under way.

    The owner selects on both descriptors: `output_fileno` until it is -1 (a command whose output
    nobody reads blocks), `fileno` (a pidfd) until it is readable, then calls `finish` once.
    """

    def fileno(self) -> int:
        """Readable once the command has ended."""
        ...

    def output_fileno(self) -> int:
        """Readable while there is output to `drain`; -1 once the output has ended."""
        ...

    def drain(self) -> None:
        """Take in what output there is, without waiting; what exceeds 10 KiB is dropped."""
        ...

    def finish(self) -> ExecResult:
        """Reap it and return its result; only once `fileno` was readable, or after `abort`.

        Raises ExecError when the runtime could not start the command at all.
        """
        ...

    def abort(self) -> None:
        """Signal the whole process tree to die now, without waiting; `fileno` becomes readable soon."""
        ...

    def kill(self) -> None:
        """End the whole process tree now and reap it; waits for it, one second at most."""
        ...


Wake = Callable[[PodKey], None]
"""Tells a pod's worker to look again; cheap, from any thread."""
