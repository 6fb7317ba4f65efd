"""In-memory twins of `edgelet.ports`: a clock to turn by hand, a Podman without Podman, and the rest.

`FakeRuntime` answers as Podman 4.3 and 5.4 do through the adapter; `tests/contract` holds it to that.
Faults are injected before or after a call takes effect; what happens in the world (an exit, a reboot,
a dead conmon, a hand that deletes a container) is a method the test calls.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from edgelet import errors, ports
from edgelet.model.hooks import HookKind, HookState, HookStates
from edgelet.model.observed import Bind, Image, ObservedContainer, ObservedPod, State
from edgelet.model.pod import Container, HookHandler, HostPath, Pod, PodKey

Names = list[str]
Calls = list["Call"]
SIGNAL_NUMBERS = {"SIGHUP": 1, "SIGINT": 2, "SIGQUIT": 3, "SIGKILL": 9, "SIGUSR1": 10, "SIGTERM": 15}


class FakeClock:
    """A clock that only moves when told; `jump` moves the wall clock alone."""

    def __init__(self, monotonic: float = 1000.0, time: float = 1_700_000_000.0) -> None:
        self._monotonic = monotonic
        self._time = time

    def monotonic(self) -> float:
        """See ports.Clock."""
        return self._monotonic

    def time(self) -> float:
        """See ports.Clock."""
        return self._time

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._monotonic += seconds
        self._time += seconds

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back (NTP, a person)."""
        self._time += seconds


@dataclass(frozen=True, slots=True)
class Fault:
    """What a call raises; `after` = only once it has taken effect (the answer was lost)."""

    error: Exception
    after: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One call that was made: method name and its arguments as given."""

    method: str
    args: tuple[object, ...]


@dataclass
class _Box:
    """A container in the fake: what is observed of it, and how it behaves."""

    seen: ObservedContainer
    pod_id: str
    podman_name: str
    spec: Container | None = None
    binds: tuple[Bind, ...] = ()
    conmon_dead: bool = False
    process_dead: bool = False
    signals: list[str] = field(default_factory=list)


class FakeRuntime:
    """ports.Runtime in memory.

    images: local storage by reference.  registry: what `pull` can get (a reference that is in
    neither fails).  ignores_sigterm: container names that only SIGKILL ends.  exits_at_start:
    container name -> exit code it dies with right after its start.  bad_commands: container names
    whose start fails for good.  fault_source: asked on every call, for random faults.
    """

    def __init__(self, clock: FakeClock, *, boot_id: str = "boot-1", images: tuple[str, ...] = ("demo",)) -> None:
        self.clock = clock
        self.boot_id = boot_id
        self.images: dict[str, Image] = {name: Image(id=f"sha256:{name}", size=1_000_000) for name in images}
        self.registry: dict[str, Image] = {}
        self.ignores_sigterm: set[str] = set()
        self.exits_at_start: dict[str, int] = {}
        self.bad_commands: set[str] = set()
        self.taken_names: set[str] = set()
        self.unreachable = False
        self.calls: list[Call] = []
        self.fault_source: Callable[[str], Fault | None] = lambda method: None
        self.on_change: Callable[[], None] = lambda: None
        self._faults: dict[str, list[Fault]] = {}
        self._pods: dict[str, ObservedPod] = {}
        self._boxes: dict[str, _Box] = {}
        self._serial = 0
        self._lock = threading.RLock()

    # ---- faults -----------------------------------------------------------------------------

    def fail(self, method: str, error: Exception | None = None, *, after: bool = False, times: int = 1) -> None:
        """The next `times` calls of `method` raise `error` (default Temporary), before or after their effect."""
        fault = Fault(error or errors.Temporary(f"cannot {method}: injected"), after)
        self._faults.setdefault(method, []).extend([fault] * times)

    @contextlib.contextmanager
    def _call(self, method: str, *args: object) -> Iterator[None]:
        """Record the call; raise what is to be raised before it, or in place of whatever it would answer."""
        with self._lock:
            self.calls.append(Call(method, args))
            if self.unreachable:
                raise errors.Unreachable("cannot reach Podman: connection refused")
            queue = self._faults.get(method)
            fault = queue.pop(0) if queue else self.fault_source(method)
            if fault is not None and not fault.after:
                raise fault.error
            try:
                yield
            except errors.RuntimeFailure:
                if fault is None:
                    raise
            if fault is not None:
                raise fault.error

    # ---- ports.Runtime ----------------------------------------------------------------------

    def list(self, key: PodKey | None = None) -> tuple[ObservedPod, ...]:
        """See ports.Runtime."""
        with self._call("list", key):
            found = tuple(self._observed(p) for p in self._pods.values() if key is None or p.key == key)
            return found

    def create_pod(self, pod: Pod, attempt: int) -> ObservedPod:
        """See ports.Runtime."""
        with self._call("create_pod", pod, attempt):
            name = f"{pod.name}_{pod.namespace}"
            if name in self.taken_names or any(p.key == pod.key for p in self._pods.values()):
                raise errors.Conflict(f"cannot create pod {name}: the name is in use")
            made = self._new_pod(pod, attempt)
            self._pods[made.id] = made
            return self._observed(made)

    def remove_pod(self, pod_id: str) -> None:
        """See ports.Runtime."""
        with self._call("remove_pod", pod_id):
            self._boxes = {i: b for i, b in self._boxes.items() if b.pod_id != pod_id}
            self._pods.pop(pod_id, None)

    def create_container(
        self, sandbox: ObservedPod, pod: Pod, container: Container, restart_count: int, binds: tuple[Bind, ...]
    ) -> ObservedContainer:
        """See ports.Runtime."""
        with self._call("create_container", sandbox, pod, container, restart_count, binds):
            if sandbox.id not in self._pods:
                raise errors.NotFound(f"cannot create container {container.name}: no pod {sandbox.id}")
            image = self.images.get(container.image)
            if image is None:
                raise errors.ImageMissing(f"cannot create container {container.name}: no image {container.image}")
            name = f"{pod.name}_{pod.namespace}_{container.name}_{restart_count}"
            if name in self.taken_names or any(b.podman_name == name for b in self._boxes.values()):
                raise errors.Conflict(f"cannot create container {name}: the name is in use")
            box = _Box(self._new_container(pod, container, restart_count, image), sandbox.id, name, container, binds)
            self._boxes[box.seen.id] = box
            return box.seen

    def start_container(self, sandbox: ObservedPod, container_id: str) -> ObservedPod:
        """See ports.Runtime."""
        with self._call("start_container", sandbox, container_id):
            if container_id == sandbox.infra_id:
                if sandbox.id not in self._pods:
                    raise errors.NotFound(f"no container {container_id}")
                self._start_infra(sandbox.id)
                return self._with_infra(sandbox)
            box = self._box(container_id)
            self._start_infra(box.pod_id)
            if box.seen.name in self.bad_commands:
                raise errors.Permanent(f"cannot start container {box.seen.name}: executable file not found in $PATH")
            if not box.seen.running:
                self._run(box)
            return self._with_infra(sandbox).with_container(box.seen)

    def signal_container(self, container_id: str, signal: str) -> None:
        """See ports.Runtime."""
        with self._call("signal_container", container_id, signal):
            self._signal_infra(container_id)
            box = self._boxes.get(container_id)
            if box is not None and box.seen.running and not box.process_dead:
                self._signal(box, signal)

    def remove_container(self, container_id: str) -> None:
        """See ports.Runtime."""
        with self._call("remove_container", container_id):
            self._boxes.pop(container_id, None)

    def inspect_container(self, container_id: str) -> ObservedContainer:
        """See ports.Runtime."""
        with self._call("inspect_container", container_id):
            seen = self._box(container_id).seen
            return seen

    def image(self, reference: str) -> Image | None:
        """See ports.Runtime."""
        with self._call("image", reference):
            found = self.images.get(reference)
            return found

    def pull(self, reference: str) -> Image:
        """See ports.Runtime."""
        with self._call("pull", reference):
            found = self.registry.get(reference) or self.images.get(reference)
            if found is None:
                raise errors.PullFailed(f"cannot pull {reference}: manifest unknown")
            self.images[reference] = found
            return found

    # ---- the world --------------------------------------------------------------------------

    def exit(self, name_or_id: str, code: int = 0, *, oom: bool = False) -> None:
        """The newest running container of that name (or that id) ends by itself."""
        with self._lock:
            self._end(self._find(name_or_id), code, oom=oom)

    def reboot(self, boot_id: str = "boot-2") -> None:
        """Power gone and back: processes end unseen, Podman forgets who ran (state created), the boot id is new."""
        with self._lock:
            self.boot_id = boot_id
            for box in self._boxes.values():
                box.conmon_dead = box.process_dead = False
                if box.seen.running:
                    fresh = ObservedContainer(box.seen.id, box.seen.name, State.CREATED)
                    kept = (
                        "restart_count",
                        "image",
                        "image_id",
                        "created_at",
                        "grace",
                        "log_path",
                        "stop_signal",
                        "pre_stop",
                        "sidecar",
                    )
                    box.seen = replace(fresh, **{name: getattr(box.seen, name) for name in kept})
            for pod in self._pods.values():
                if pod.infra_id:
                    self._pods[pod.id] = replace(pod, infra_dead=False, infra_pid=0, ips=())

    def kill_infra(self, key: PodKey) -> None:
        """The infra container of the pod ends; its other containers go on."""
        with self._lock:
            pod = next(p for p in self._pods.values() if p.key == key and p.infra_id)
            self._pods[pod.id] = replace(pod, infra_dead=True, infra_pid=0, ips=())

    def kill_conmon(self, name_or_id: str, *, process_too: bool = True) -> None:
        """conmon is gone: Podman says `running` for ever, until `repair` or a forced removal."""
        with self._lock:
            box = self._find(name_or_id)
            box.conmon_dead, box.process_dead = True, process_too

    def repair(self, container_id: str, code: int = 137) -> None:
        """The exit file was written by hand (design section 3)."""
        with self._lock:
            self._end(self._box(container_id), code)

    def vanish(self, target_id: str) -> None:
        """Somebody removed the pod or container with that id behind our back."""
        with self._lock:
            self._boxes = {i: b for i, b in self._boxes.items() if target_id not in (i, b.pod_id)}
            self._pods.pop(target_id, None)

    def add_image(self, reference: str, **fields: object) -> Image:
        """Put an image into local storage."""
        made = dataclasses.replace(Image(id=f"sha256:{reference}", size=1_000_000), **fields)  # type: ignore[arg-type]
        self.images[reference] = made
        return made

    def pods(self) -> tuple[ObservedPod, ...]:
        """All pods as they are, without a recorded call or a fault."""
        with self._lock:
            return tuple(self._observed(p) for p in self._pods.values())

    def running(self) -> Names:
        """Names of the containers that run, sorted, one entry per instance."""
        with self._lock:
            return sorted(b.seen.name for b in self._boxes.values() if b.seen.running)

    def signals(self, name_or_id: str) -> Names:
        """Signals that the newest instance of that name (or that id) was sent while it ran."""
        with self._lock:
            return self._find(name_or_id, running=False).signals

    def binds_of(self, container_id: str) -> tuple[Bind, ...]:
        """The binds a container was created with."""
        return self._box(container_id).binds

    def called(self, method: str) -> Calls:
        """The calls of one method so far."""
        return [c for c in self.calls if c.method == method]

    # ---- inside -----------------------------------------------------------------------------

    def _id(self, kind: str) -> str:
        self._serial += 1
        return f"{kind}{self._serial:06d}".ljust(64, "0")

    def _new_pod(self, pod: Pod, attempt: int) -> ObservedPod:
        bare = pod.host_network and len(pod.all_containers) == 1
        return ObservedPod(
            key=pod.key,
            id=self._id("aa"),
            uid=pod.uid,
            config_hash=pod.config_hash,
            source=pod.source,
            boot_id=self.boot_id,
            grace=pod.grace,
            infra_id="" if bare else self._id("ff"),
            created_at=self.clock.time(),
            host_network=pod.host_network,
            attempt=attempt,
        )

    def _new_container(self, pod: Pod, container: Container, count: int, image: Image) -> ObservedContainer:
        return ObservedContainer(
            id=self._id("cc"),
            name=container.name,
            state=State.CREATED,
            restart_count=count,
            image=container.image,
            image_id=image.id,
            created_at=self.clock.time(),
            grace=pod.grace,
            log_path=f"/logs/{pod.namespace}_{pod.name}_{pod.uid}/{container.name}/{count}.log",
            stop_signal=image.stop_signal or "SIGTERM",
            pre_stop=container.lifecycle.pre_stop,
            sidecar=pod.init_containers.index(container) if pod.is_sidecar(container) else None,
        )

    def _observed(self, pod: ObservedPod) -> ObservedPod:
        boxes = [b.seen for b in self._boxes.values() if b.pod_id == pod.id]
        return replace(pod, containers=tuple(sorted(boxes, key=lambda c: (c.name, c.restart_count, c.created_at))))

    def _signal(self, box: _Box, signal: str) -> None:
        box.signals.append(signal)
        if box.seen.name in self.ignores_sigterm and signal != "SIGKILL":
            return
        self._end(box, 128 + SIGNAL_NUMBERS.get(signal, 15))

    def _signal_infra(self, container_id: str) -> None:
        for pod in tuple(self._pods.values()):
            if pod.infra_id == container_id and pod.infra_pid:
                self._pods[pod.id] = replace(pod, infra_dead=True, infra_pid=0, ips=())

    def _with_infra(self, sandbox: ObservedPod) -> ObservedPod:
        if sandbox.infra_known:
            return sandbox
        now = self._pods[sandbox.id]
        return replace(sandbox, infra_dead=now.infra_dead, infra_pid=now.infra_pid, ips=now.ips)

    def _start_infra(self, pod_id: str) -> None:
        pod = self._pods[pod_id]
        if pod.infra_pid or not pod.infra_id:
            return
        self._serial += 1
        ips = () if pod.host_network else (f"10.88.0.{self._serial % 250 + 2}",)
        self._pods[pod_id] = replace(pod, infra_dead=False, infra_pid=10_000 + self._serial, ips=ips)

    def _run(self, box: _Box) -> None:
        self._serial += 1
        box.seen = replace(
            box.seen,
            state=State.RUNNING,
            pid=10_000 + self._serial,
            conmon_pid=50_000 + self._serial,
            oci_config=f"/oci/{box.seen.id}/config.json",
            started_at=self.clock.time(),
            started_mono=self.clock.monotonic(),
            finished_at=0.0,
            finished_mono=0.0,
            exit_code=None,
            oom_killed=False,
        )
        if box.seen.name in self.exits_at_start:
            self._end(box, self.exits_at_start[box.seen.name])

    def _end(self, box: _Box, code: int, *, oom: bool = False) -> None:
        box.conmon_dead = box.process_dead = False
        box.seen = replace(
            box.seen,
            state=State.EXITED,
            pid=0,
            conmon_pid=0,
            finished_at=self.clock.time(),
            finished_mono=self.clock.monotonic(),
            exit_code=code,
            oom_killed=oom,
        )
        self.on_change()

    def _box(self, container_id: str) -> _Box:
        box = self._boxes.get(container_id)
        if box is None:
            raise errors.NotFound(f"no container {container_id}")
        return box

    def _find(self, name_or_id: str, *, running: bool = True) -> _Box:
        found = [
            b
            for b in self._boxes.values()
            if name_or_id in (b.seen.id, b.seen.name) and (b.seen.running or not running)
        ]
        if not found:
            raise LookupError(f"no {'running ' if running else ''}container {name_or_id} in the fake")
        return max(found, key=lambda b: (b.seen.restart_count, b.seen.created_at))


class FakeVolumes:
    """ports.Volumes in memory: `data` holds the uids that have been set up; `fail_with` makes `binds` raise.

    `texts` are the files of emptyDirs, by volume and path; `layers` what image volumes were made of.
    """

    def __init__(self) -> None:
        self.data: set[str] = set()
        self.removed: list[str] = []
        self.fail_with: errors.VolumeError | None = None
        self.message_fails: errors.VolumeError | None = None
        self.remove_fails: errors.StateError | None = None
        self.texts: dict[tuple[str, str], str] = {}
        self.layers: dict[str, tuple[str, ...]] = {}

    def binds(
        self,
        pod: Pod,
        container: Container,
        files: ports.VolumeFiles = ports.NO_FILES,
        layers: ports.Layers = ports.NO_LAYERS,
    ) -> tuple[Bind, ...]:
        """See ports.Volumes."""
        if self.fail_with is not None:
            raise self.fail_with
        self.data.add(pod.uid)
        self.layers |= layers
        return tuple(_bind(pod, m.volume, m.mount_path, m.read_only) for m in container.mounts)

    def text(self, pod: Pod, volume: str, path: str) -> str:
        """See ports.Volumes."""
        try:
            return self.texts[volume, path]
        except KeyError as error:
            raise errors.VolumeError(f"cannot read {path} of volume {volume}") from error

    def hosts_file(self, pod: Pod, ips: tuple[str, ...]) -> Bind:
        """See ports.Volumes."""
        self.data.add(pod.uid)
        return Bind(f"/data/{pod.uid}/etc-hosts", "/etc/hosts", kind="file")

    def message_file(self, pod: Pod, container: Container, restart_count: int) -> Bind:
        """See ports.Volumes."""
        if self.message_fails is not None:
            raise self.message_fails
        self.data.add(pod.uid)
        return Bind(f"/data/{pod.uid}/{container.name}/{restart_count:08x}", container.termination_message_path)

    def remove(self, uid: str) -> None:
        """See ports.Volumes."""
        if self.remove_fails is not None:
            raise self.remove_fails
        self.data.discard(uid)
        self.removed.append(uid)

    def uids(self) -> frozenset[str]:
        """See ports.Volumes."""
        return frozenset(self.data)


def _bind(pod: Pod, volume: str, target: str, read_only: bool) -> Bind:
    source = next((v.source for v in pod.volumes if v.name == volume), None)
    path = source.path if isinstance(source, HostPath) else f"/data/{pod.uid}/{volume}"
    return Bind(source=path, target=target, read_only=read_only)


@dataclass(frozen=True, slots=True)
class Event:
    """One recorded event."""

    ref: ports.EventRef
    kind: str
    reason: str
    message: str


class FakeRecorder:
    """ports.Recorder that keeps everything in `events`."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def event(self, ref: ports.EventRef, kind: str, reason: str, message: str) -> None:
        """See ports.Recorder."""
        self.events.append(Event(ref, kind, reason, message))

    def reasons(self) -> list[str]:
        """Reasons in order."""
        return [e.reason for e in self.events]


class FakeHooks:
    """ports.Hooks whose hooks end when a test says so."""

    def __init__(self) -> None:
        self.begun: list[tuple[HookKind, ports.Target, HookHandler, float]] = []
        self.began: Callable[[str, HookKind], None] = lambda container_id, kind: None
        self._states: dict[PodKey, dict[tuple[str, HookKind], HookState]] = {}

    def begin(self, kind: HookKind, target: ports.Target, handler: HookHandler, limit: float) -> None:
        """See ports.Hooks."""
        self.begun.append((kind, target, handler, limit))
        self._states.setdefault(target.key, {})[target.container_id, kind] = HookState.RUNNING
        self.began(target.container_id, kind)

    def states(self, key: PodKey) -> HookStates:
        """See ports.Hooks."""
        return dict(self._states.get(key, {}))

    def keep(self, key: PodKey, container_ids: Collection[str]) -> None:
        """See ports.Hooks."""
        kept = {which: s for which, s in self._states.get(key, {}).items() if which[0] in container_ids}
        self._states[key] = kept

    def end(self, key: PodKey, kind: HookKind, state: HookState = HookState.DONE) -> int:
        """All hooks of that kind that run end like this; how many there were."""
        running = [w for w, s in self._states.get(key, {}).items() if s is HookState.RUNNING and w[1] is kind]
        for which in running:
            self._states[key][which] = state
        return len(running)


class FakeProbes:
    """ports.Probes that a test answers: `set` gives a verdict for a container the worker asked to probe."""

    def __init__(self) -> None:
        self.targets: dict[PodKey, tuple[ports.Target, ...]] = {}
        self.forgotten: list[PodKey] = []
        self._given: dict[PodKey, dict[str, ports.Verdict]] = {}
        self._defaults = ports.Verdict(container_id="", started=True, ready=True)

    def sync(self, key: PodKey, targets: tuple[ports.Target, ...]) -> None:
        """See ports.Probes."""
        self.targets[key] = targets

    def verdicts(self, key: PodKey) -> Mapping[str, ports.Verdict]:
        """Verdicts that were set, for containers that are probed still; unprobed kinds count as passed."""
        given = self._given.get(key, {})
        found: dict[str, ports.Verdict] = {}
        for target in self.targets.get(key, ()):
            verdict = given.get(target.container_id)
            found[target.container.name] = verdict or self._initial(target)
        return found

    def forget(self, key: PodKey) -> None:
        """See ports.Probes."""
        self.targets.pop(key, None)
        self._given.pop(key, None)
        self.forgotten.append(key)

    def set(self, key: PodKey, name: str, *, started: bool = True, ready: bool = True, failed: str = "") -> None:
        """Set the verdict of the container of that name that is being probed now."""
        target = next(t for t in self.targets[key] if t.container.name == name)
        grace = None
        for kind, probe in (("liveness", target.container.liveness), ("startup", target.container.startup)):
            if failed == kind and probe is not None:
                grace = probe.termination_grace
        verdict = ports.Verdict(target.container_id, started, ready, failed, grace)
        self._given.setdefault(key, {})[target.container_id] = verdict

    def _initial(self, target: ports.Target) -> ports.Verdict:
        started = target.container.startup is None
        return replace(
            self._defaults,
            container_id=target.container_id,
            started=started,
            ready=started and target.container.readiness is None,
        )


class FakeRepairs:
    """ports.Repairs: notes what was asked for; settling does what an exit file written by hand does."""

    def __init__(self, runtime: FakeRuntime) -> None:
        self.runtime = runtime
        self.done: list[tuple[str, str]] = []

    def settle(self, container_id: str) -> None:
        """See ports.Repairs."""
        self.done.append(("settle", container_id))
        if any(c.id == container_id and c.running for p in self.runtime.pods() for c in p.containers):
            self.runtime.repair(container_id)

    def drop_image(self, reference: str) -> None:
        """See ports.Repairs."""
        self.done.append(("drop_image", reference))
        self.runtime.images.pop(reference, None)

    def renew_service(self) -> bool:
        """See ports.Repairs."""
        self.done.append(("renew_service", ""))
        return True
