"""A small world around one reconciler: fake Podman, virtual clock, agent that can be killed at any call.

Watches, at every call on the runtime, what must never happen (see `Rules`); a violation is an
AssertionError at the call that commits it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from edgelet import errors, ports
from edgelet.core.memory import Pull
from edgelet.engine import observer as observers
from edgelet.engine import puller as pullers
from edgelet.engine.counts import Work
from edgelet.engine.executor import Executor, Tools
from edgelet.engine.local import Local
from edgelet.engine.reconciler import Context, Reconciler, Stepped
from edgelet.engine.states import States
from edgelet.engine.workers import Mailbox, Wish
from edgelet.model.gate import Gate
from edgelet.model.hooks import HookKind, HookState
from edgelet.model.observed import Bind, ObservedContainer, ObservedPod
from edgelet.model.pod import Container, Pod, PodKey
from edgelet.model.status import PodStatus, Waiting
from tests import fakes

KEY = PodKey("default", "web-node")


class Killed(Exception):
    """The agent is killed here (kill -9)."""


class MemoryStore:
    """engine.states.Store in a dict that outlives the agent."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}

    def put(self, key: str, data: bytes) -> None:
        """See engine.states.Store."""
        self.entries[key] = data

    def remove(self, key: str) -> None:
        """See engine.states.Store."""
        self.entries.pop(key, None)


class FakeExits:
    """engine.observer.Exits: what is watched; `deaths` says which of it has died."""

    def __init__(self) -> None:
        self.watched: dict[str, int] = {}

    def watch(self, container_id: str, pid: int, conmon_pid: int) -> None:
        """See engine.observer.Exits."""
        self.watched[container_id] = pid

    def forget(self, container_id: str) -> None:
        """See engine.observer.Exits."""
        self.watched.pop(container_id, None)


class FakeStatuses:
    """engine.reconciler.Statuses that keeps the newest status per pod and all phases in order."""

    def __init__(self) -> None:
        self.newest: dict[PodKey, PodStatus] = {}
        self.phases: list[str] = []
        self.waits: list[Waiting] = []
        """What containers waited for, in order."""

    def put(self, pod: Pod, status: PodStatus) -> None:
        """See engine.reconciler.Statuses."""
        self.newest[pod.key] = status
        if not self.phases or self.phases[-1] != status.phase:
            self.phases.append(status.phase)
        for waits in [c.state for c in status.containers if isinstance(c.state, Waiting)]:
            if self.waits[-1:] != [waits]:
                self.waits.append(waits)

    def remove(self, key: PodKey) -> None:
        """See engine.reconciler.Statuses."""
        self.newest.pop(key, None)


@dataclass
class Crash:
    """The kubelet's back-off of one container (3.6), told from outside: delay, when set, end of the last run."""

    delay: float = 0.0
    updated: float = 0.0
    ended: float | None = None

    def begin(self, now: float) -> None:
        """A new instance is made: not before the delay is over. Checks, then moves on."""
        if self.ended is None:
            return
        expired = self.ended - self.updated > 600
        if self.delay and not expired:
            assert now >= self.ended + self.delay - 1e-6, f"restarted {self.ended + self.delay - now:.3f} s too early"
        self.delay = min(self.delay * 2, 300.0) if self.delay and not expired else 10.0
        self.updated, self.ended = now, None


@dataclass
class Rules:
    """What must hold at every moment."""

    clock: fakes.FakeClock
    terms: dict[str, float] = field(default_factory=dict)
    graces: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    crashes: dict[str, Crash] = field(default_factory=dict)
    hooks: dict[str, float] = field(default_factory=dict)
    hooking: set[str] = field(default_factory=set)
    """Instances whose preStop hook was begun and has not ended, by id; `hooks` says since when."""
    generation: str = ""
    since: float = 0.0
    """When the pod was last removed."""
    deletion: int | None = None
    """The shortest grace with which a person has deleted the pod."""

    def new_generation(self, config_hash: str) -> None:
        """From here counts may begin at 0."""
        self.generation = config_hash
        self.counts.clear()
        self.crashes.clear()
        self.deletion = None

    def created(self, sandbox: ObservedPod, pod: Pod, container: Container, number: int) -> None:
        """Before a create_container."""
        assert sandbox.config_hash == pod.config_hash, "a container of one generation in the sandbox of another"
        assert number > self.counts.get(container.name, -1), f"{container.name}: restart count went back to {number}"
        self.counts[container.name] = number
        self.crashes.setdefault(container.name, Crash()).begin(self.clock.monotonic())

    def hook_begun(self, container_id: str, kind: HookKind) -> None:
        """A hook begins."""
        if kind is not HookKind.PRE_STOP:
            return
        self.hooks.setdefault(container_id, self.clock.monotonic())
        self.hooking.add(container_id)

    def _grace(self, seen: ObservedContainer) -> int:
        """The seconds that an instance is allowed at the least."""
        least = self.graces.get(seen.id, seen.grace if seen.grace is not None else 30)
        return least if self.deletion is None else min(least, self.deletion)

    def signalled(self, seen: ObservedContainer, signal: str) -> None:
        """Before a signal to a running container."""
        now = self.clock.monotonic()
        if signal == "SIGKILL":
            assert seen.id in self.terms, f"{seen.name} is killed without having been asked to end"
            least = max(self._grace(seen), 2)
            assert now - self.terms[seen.id] >= 2 - 1e-6, f"{seen.name} is killed right after its signal"
            passed = now - min(self.terms[seen.id], self.hooks.get(seen.id, now))
            assert passed >= least - 1e-6, f"{seen.name} is killed after {passed:.3f} s of {least} s"
        else:
            self._hook_was_run(seen, now)
            self.terms.setdefault(seen.id, now)
        self.crashes.pop(seen.name, None)

    def grace_is_over(self, seen: ObservedContainer) -> bool:
        """The pod has been ending for as long as this container is allowed."""
        return self.clock.monotonic() - self.since >= self._grace(seen) - 1e-6

    def _hook_was_run(self, seen: ObservedContainer, now: float) -> None:
        if seen.pre_stop is None or self._grace(seen) == 0:
            return
        assert seen.id in self.hooks, f"{seen.name} is told to end without its preStop hook"
        waited = now - self.hooks[seen.id]
        assert seen.id not in self.hooking or waited >= self._grace(seen) - 1e-6, f"{seen.name}: hook cut short"

    def ended(self, name: str) -> None:
        """An instance has ended by itself, or failed to start."""
        self.crashes.setdefault(name, Crash()).ended = self.clock.monotonic()


class Runtime(fakes.FakeRuntime):
    """FakeRuntime that is watched by `rules`."""

    rules: Rules
    ending: Callable[[], bool]
    """Whether the pod as a whole is being ended."""

    def check(self) -> None:
        """One instance per name; nothing of ours in two sandboxes."""
        for pod in self.pods():
            names = [c.name for c in pod.containers if self.lives(c.id)]
            assert len(names) == len(set(names)), f"two instances of one container run: {names}"

    def lives(self, container_id: str) -> bool:
        """Whether the container's process is there, whatever Podman believes."""
        box = self._boxes.get(container_id)
        return box is not None and box.seen.running and not box.process_dead

    def create_pod(self, pod: Pod, attempt: int) -> ObservedPod:
        """See ports.Runtime."""
        before = {p.id for p in self.pods()}
        try:
            return super().create_pod(pod, attempt)
        finally:
            if {p.id for p in self.pods()} != before:
                self.rules.crashes.clear()
                if self.rules.generation != pod.config_hash:
                    self.rules.new_generation(pod.config_hash)

    def create_container(
        self, sandbox: ObservedPod, pod: Pod, container: Container, restart_count: int, binds: tuple[Bind, ...]
    ) -> ObservedContainer:
        """See ports.Runtime."""
        before = len(self._boxes)
        try:
            return super().create_container(sandbox, pod, container, restart_count, binds)
        finally:
            if len(self._boxes) > before:
                self.rules.created(sandbox, pod, container, restart_count)

    def start_container(self, sandbox: ObservedPod, container_id: str) -> ObservedPod:
        """See ports.Runtime."""
        box = self._boxes.get(container_id)
        try:
            answer = super().start_container(sandbox, container_id)
        except errors.Permanent:
            self.rules.ended(self._box(container_id).seen.name)
            raise
        finally:
            self.check()
        if box is not None and not box.seen.running:
            self.rules.ended(box.seen.name)
        return answer

    def signal_container(self, container_id: str, signal: str) -> None:
        """See ports.Runtime."""
        box = self._boxes.get(container_id)
        if box is not None and self.lives(container_id):
            self._in_turn(box.seen, box.pod_id, signal)
            self.rules.signalled(box.seen, signal)
        super().signal_container(container_id, signal)

    def _in_turn(self, seen: ObservedContainer, pod_id: str, signal: str) -> None:
        """While its pod ends, a sidecar is asked to end after the regular containers and later sidecars (3.4.4)."""
        if seen.sidecar is None or signal == "SIGKILL" or not self.ending():
            return
        others = [b.seen for b in self._boxes.values() if b.pod_id == pod_id and self.lives(b.seen.id)]
        before = [c.name for c in others if c.sidecar is None or c.sidecar > seen.sidecar]
        assert not before or self.rules.grace_is_over(seen), f"{seen.name} is told to end before {before}"

    def remove_pod(self, pod_id: str) -> None:
        """See ports.Runtime."""
        alive = [b.seen.name for b in self._boxes.values() if b.pod_id == pod_id and self.lives(b.seen.id)]
        assert not alive, f"a pod is removed while {alive} still run"
        super().remove_pod(pod_id)

    def remove_container(self, container_id: str) -> None:
        """See ports.Runtime."""
        assert not self.lives(container_id), "a running container is removed"
        box = self._boxes.get(container_id)
        if box is not None and box.seen.restart_count >= self.rules.counts.get(box.seen.name, 0):
            self.rules.crashes.pop(box.seen.name, None)  # all containers are to run again: only one backs off
        super().remove_container(container_id)


class Volumes(fakes.FakeVolumes):
    """FakeVolumes that tells `gone` which pod's data it has removed."""

    gone: Callable[[str], None]

    def remove(self, uid: str) -> None:
        """See ports.Volumes."""
        super().remove(uid)
        self.gone(uid)


class Recorder(fakes.FakeRecorder):
    """FakeRecorder that tells `again` when all containers are to run again: no grace holds for them any more."""

    again: Callable[[], None]

    def event(self, ref: ports.EventRef, kind: str, reason: str, message: str) -> None:
        """See ports.Recorder."""
        super().event(ref, kind, reason, message)
        if reason == "RestartingAllContainers":
            self.again()


class World:
    """One pod's agent and all around it."""

    def __init__(self, *, images: tuple[str, ...] = ("demo",)) -> None:
        self.clock = fakes.FakeClock()
        self.runtime = Runtime(self.clock, images=images)
        self.runtime.rules = self.rules = Rules(self.clock)
        self.runtime.ending = lambda: self.wish.pod is None
        self.volumes = Volumes()
        self.volumes.gone = self._gone
        self.store = MemoryStore()
        self.recorder = Recorder()
        self.recorder.again = self._all_again
        self.repairs = fakes.FakeRepairs(self.runtime)
        self.statuses = FakeStatuses()
        self.wish = Wish(None)
        self.gate: Gate | None = None
        self.ready = True
        self.work = Work()
        self.boot()

    # -- the agent --------------------------------------------------------------------------------

    def boot(self) -> None:
        """A new agent process that knows only what Podman and the disk hold."""
        self.rules.crashes.clear()
        self.rules.hooking.clear()
        self.box = Mailbox()
        self.probes = fakes.FakeProbes()
        self.exits = FakeExits()
        self.pulls: list[pullers.Request] = []
        self.observer = observers.Observer(self.runtime, self.clock, self.exits, lambda key: self.box.wake())
        self.runtime.on_change = self.deliver
        puller = pullers.Puller(self.runtime, self.clock, self.recorder, self._pulled)
        self.puller = puller
        self.hooks = fakes.FakeHooks()
        self.hooks.began = self.rules.hook_begun
        tools = Tools(
            self.runtime, self.volumes, self.observer, puller, self.recorder, self.clock, self.hooks, self.repairs
        )
        context = Context(
            executor=Executor(tools),
            observer=self.observer,
            probes=self.probes,
            hooks=self.hooks,
            recorder=self.recorder,
            statuses=self.statuses,
            memories=States(self.store, dict(self.store.entries), self.runtime.boot_id),
            clock=self.clock,
            boot_id=self.runtime.boot_id,
            host_ip=lambda: "192.0.2.1",
            work=self.work,
        )
        self.reconciler = Reconciler(context)
        self.local = Local(KEY)
        self.listed = False
        self._only_what_is_known()
        self.wake_at: float | None = self.clock.monotonic()
        self.over = False
        if self.wish.pod is not None:
            self.box.wish(self.wish)

    def _gone(self, uid: str) -> None:
        """A generation that is not wanted any more is gone for good."""
        if self.wish.pod is None or self.wish.pod.uid != uid:
            self.rules.new_generation("")

    def _all_again(self) -> None:
        pod = self.pod()
        self.rules.graces |= {c.id: 0 for c in pod.containers} if pod is not None else {}

    def _pulled(self, key: PodKey, config_hash: str, container: str, pull: Pull) -> None:
        self.box.pulled(config_hash, container, pull)

    def deliver(self) -> None:
        """The exit watcher tells the deaths of what it watches."""
        alive = {c.id for p in self.runtime.pods() for c in p.containers if self.runtime.lives(c.id)}
        alive |= {p.infra_id for p in self.runtime.pods() if p.infra_pid}
        codes = {c.id: c.exit_code for p in self.runtime.pods() for c in p.containers}
        for container_id in [i for i in self.exits.watched if i not in alive]:
            self.exits.forget(container_id)
            self.observer.exited(container_id, codes.get(container_id), "test")

    def step(self) -> Stepped | None:
        """One step of the worker; None = the agent was killed (and is started again)."""
        try:
            if not self.listed and not self._list():
                self.wake_at = self.clock.monotonic() + observers.RETRY
                return Stepped(self.local, self.wake_at)
            stepped = self.reconciler.step(self.box.take(self.local))
            self._after(stepped)
            while not self.puller._queue.empty():
                request = self.puller._queue.get()
                if request is not None:
                    self._pulled(request.key, request.config_hash, request.container.name, self.puller.pull(request))
        except Killed:
            self.boot()
            return None
        self.deliver()
        return stepped

    def relist(self) -> None:
        """The observer's own thread lists all pods."""
        try:
            self.observer.relist()
        except errors.RuntimeFailure:
            return
        except Killed:
            self.boot()

    def _list(self) -> bool:
        try:
            self.observer.relist()
        except errors.RuntimeFailure:
            return False
        self.listed = True
        if self.wish.pod is None and KEY in self.observer.all():
            self.box.wish(self.wish)
        return True

    def _after(self, stepped: Stepped) -> None:
        self.local, self.wake_at = stepped.local, stepped.wake_at
        if stepped.over:
            self.local = Local(KEY)
            self.rules.new_generation("")

    # -- time ---------------------------------------------------------------------------------------

    def pump(self, limit: int = 60) -> int:
        """Step until there is nothing to do at this moment; the number of steps."""
        for n in range(limit):
            stepped = self.step()
            due = stepped is None or (stepped.wake_at is not None and stepped.wake_at <= self.clock.monotonic())
            quiet = self.box.empty and self.puller._queue.empty()
            if not due and (quiet or not self.listed):
                return n
        raise AssertionError(f"no rest after {limit} steps: {self.local}")

    def run(self, seconds: float) -> None:
        """Let that much time pass, stepping whenever the worker would."""
        until = self.clock.monotonic() + seconds
        while True:
            self.pump()
            if self.wake_at is None or self.wake_at > until:
                break
            self.clock.advance(max(0.0, self.wake_at - self.clock.monotonic()))
        self.clock.advance(until - self.clock.monotonic())

    # -- wishes and the world -------------------------------------------------------------------------

    def want(self, pod: Pod | None, *, held: bool = False, grace: int | None = None) -> None:
        """The newest wish."""
        if pod is None and self.wish.pod is not None:
            self.rules.since = self.clock.monotonic()
        self.wish = Wish(pod, held, grace, gate=self.gate if pod is not None else None)
        if grace is not None:
            self.rules.deletion = min(grace, self.rules.deletion if self.rules.deletion is not None else grace)
        self.box.wish(self.wish)

    def times(self, method: str) -> list[float]:
        """A list that grows by the time, from now, of each call of a method of the runtime."""
        began, found = self.clock.monotonic(), []
        call = getattr(self.runtime, method)

        def timed(*args: object) -> object:
            found.append(self.clock.monotonic() - began)
            return call(*args)

        setattr(self.runtime, method, timed)
        return found

    def exit(self, name: str, code: int = 0, *, oom: bool = False) -> bool:
        """A container ends by itself, if it runs."""
        if self.state(name) != "running":
            return False
        self.rules.ended(name)
        self.runtime.exit(self.newest(name).id, code, oom=oom)
        return True

    def end_hooks(self, state: HookState = HookState.DONE) -> int:
        """All preStop hooks that run end; how many there were."""
        self.rules.hooking.clear()
        ended = self.hooks.end(KEY, HookKind.PRE_STOP, state)
        self.box.wake()
        return ended

    def end_post_start(self, state: HookState = HookState.DONE) -> int:
        """All postStart hooks that run end; how many there were."""
        ended = self.hooks.end(KEY, HookKind.POST_START, state)
        self.box.wake()
        return ended

    def reboot(self, boot_id: str) -> None:
        """Power is lost and comes back; the agent starts anew."""
        self.rules.crashes.clear()
        self.rules.terms.clear()
        self.runtime.reboot(boot_id)
        self.boot()

    def neighbour(self) -> frozenset[str]:
        """Another pod that runs beside ours; the ids that no call may name."""
        other = replace(make_pod("1-other"), name="other-node")
        base = fakes.FakeRuntime
        sandbox = base.create_pod(self.runtime, other, 0)
        made = base.create_container(self.runtime, sandbox, other, other.containers[0], 0, ())
        base.start_container(self.runtime, sandbox, made.id)
        self.runtime.calls.clear()
        return frozenset({sandbox.id, made.id})

    def vanish(self, target_id: str) -> None:
        """A person removes a pod or container behind the agent's back."""
        self.rules.crashes.clear()
        self.runtime.vanish(target_id)
        self._only_what_is_known()
        self.deliver()

    def _only_what_is_known(self) -> None:
        """Counts that stood nowhere but in what has just been lost may be given again."""
        pod = self.pod()
        seen = pod.containers if pod else ()
        saved = {n: c for data in self.store.entries.values() for n, c in _containers(data).items()}
        for name, count in self.rules.counts.items():
            places = [c.restart_count for c in seen if c.name == name]
            places.append(self.local.memory.of(name).next_count - 1)
            if name in saved:
                places.append(max(saved[name]["restartCount"], saved[name]["base"] - 1))
            self.rules.counts[name] = min(count, max(places))

    def pod(self) -> ObservedPod | None:
        """What the runtime holds of the pod."""
        return next((p for p in self.runtime.pods() if p.key == KEY), None)

    @property
    def status(self) -> PodStatus:
        """The newest status."""
        return self.statuses.newest[KEY]

    def newest(self, name: str) -> ObservedContainer:
        """The newest instance of a container, which must be there."""
        pod = self.pod()
        found = pod.newest(name) if pod else None
        assert found is not None, f"no instance of {name}"
        return found

    def state(self, name: str) -> str:
        """State of the newest instance: created, running, exited or "" (none)."""
        pod = self.pod()
        newest = pod.newest(name) if pod else None
        return newest.state.value if newest else ""


def _containers(data: bytes) -> dict[str, dict[str, int]]:
    """Containers in a saved state; none in a damaged one."""
    try:
        return dict(json.loads(data)["containers"])
    except (ValueError, KeyError):
        return {}


def fault_source(rate: float, kill: float, seed: int) -> Callable[[str], fakes.Fault | None]:
    """Random faults: `rate` of all calls fail, half of them after their effect; `kill` of all end the agent."""
    dice = random.Random(seed)
    kinds = (errors.Temporary, errors.Unreachable, errors.Temporary)

    def source(method: str) -> fakes.Fault | None:
        roll = dice.random()
        if roll < kill:
            return fakes.Fault(Killed(), after=dice.random() < 0.5)
        if roll < kill + rate:
            return fakes.Fault(dice.choice(kinds)(f"cannot {method}: injected"), after=dice.random() < 0.5)
        return None

    return source


def make_pod(config_hash: str = "1-a", *, containers: tuple[Container, ...] = (), **fields: object) -> Pod:
    """A pod of KEY with one container `app` of image `demo` unless told otherwise."""
    base = Pod(
        name=KEY.name,
        namespace=KEY.namespace,
        uid=config_hash.replace("1-", "uid-"),
        config_hash=config_hash,
        source="file",
        containers=containers or (Container("app", "demo"),),
        short_name="web",
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def settled(world: World, pod: Pod) -> str:  # noqa: C901 - one question after the other
    """Why the runtime does not yet hold what `pod` asks for ("" = it does); an oracle apart from core.plan."""
    observed = world.pod()
    phase = world.status.phase
    policies = {c.name: c.restart_policy or pod.restart_policy for c in pod.containers}
    if phase in ("Succeeded", "Failed"):
        every = set(policies.values()) | {c.restart_policy or pod.restart_policy for c in pod.init_containers}
        if (phase == "Succeeded" and "Always" in policies.values()) or (phase == "Failed" and "Never" not in every):
            return f"{phase} under {policies}"
        alive = [c.name for c in observed.containers if c.running] if observed else []
        return f"{phase} but {alive} run" if alive else ""
    if observed is None:
        return "no sandbox"
    if observed.config_hash != pod.config_hash or observed.infra_dead or observed.boot_id != world.runtime.boot_id:
        return "another generation, a dead sandbox or one of another boot"
    for container in pod.containers:
        newest = observed.newest(container.name)
        known = world.local.memory.of(container.name)
        policy = policies[container.name]
        if newest is None:
            done = {"Always": False, "OnFailure": known.ended, "Never": known.restart_count >= 0}
            if not done[policy]:
                return f"{container.name} has no instance"
        elif newest.running or (policy == "Never" and known.start_error is not None):
            continue
        elif policy == "Always" or newest.exit_code is None:
            return f"{container.name} does not run"
        elif policy == "OnFailure" and newest.exit_code != 0:
            return f"{container.name} failed and does not run"
        elif not known.stopped and any(r.matches(newest.exit_code) for r in container.restart_rules):
            return f"{container.name} has ended with a code that a rule is about, and does not run"
    lost = [c.name for c in pod.init_containers if pod.is_sidecar(c) and world.state(c.name) != "running"]
    return f"sidecars {lost} do not run" if lost else ""


__all__ = ["KEY", "FakeStatuses", "Killed", "World", "fault_source", "make_pod", "ports", "settled"]
