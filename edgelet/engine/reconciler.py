"""One step of one pod: observe, plan, act, record. No thread in here; tests drive it directly."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from .. import errors, ports
from ..core import backoff, deadline, phase, repair, restart, stopping
from ..core import memory as memories
from ..core import plan as planner
from ..core.absorb import absorb
from ..core.memory import Climb, Ending, PodMemory, Trouble
from ..model.actions import Action, Plan, Verb
from ..model.pod import Pod, PodKey
from ..model.status import PodStatus
from . import targets
from .counts import Work
from .executor import Executor
from .local import Local
from .observer import Observer

log = logging.getLogger(__name__)

ROUNDS = 64
"""Rounds in one step before other work of this pod gets a turn; a step that needs more goes on at once."""
FIRST_RETRY, RETRY_CAP = 0.5, 15.0
"""Seconds until a step that the runtime failed is tried again, doubling."""


class Statuses(Protocol):
    """Where newest statuses go (engine.store)."""

    def put(self, pod: Pod, status: PodStatus) -> None:
        """Replace the pod's status."""
        ...

    def remove(self, key: PodKey) -> None:
        """The pod is gone."""
        ...


class Memories(Protocol):
    """What outlives the agent (engine.states)."""

    def load(self, uid: str, config_hash: str) -> PodMemory | None:
        """Memory of that generation from an earlier life; None if there is none."""
        ...

    def save(self, memory: PodMemory) -> None:
        """Keep it, if it changed. Never raises."""
        ...

    def drop(self, uid: str) -> None:
        """Forget it. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """What all pods share."""

    executor: Executor
    observer: Observer
    probes: ports.Probes
    hooks: ports.Hooks
    recorder: ports.Recorder
    statuses: Statuses
    memories: Memories
    clock: ports.Clock
    boot_id: str
    host_ip: Callable[[], str]
    work: Work = field(default_factory=Work)


@dataclass(frozen=True, slots=True)
class Stepped:
    """After a step: the state, when to look again (None = on news only), and whether all is over."""

    local: Local
    wake_at: float | None
    over: bool = False


class Reconciler:
    """Brings one pod after the other nearer to what is wanted."""

    def __init__(self, context: Context) -> None:
        self._c = context

    def step(self, local: Local) -> Stepped:
        """Act until nothing is left to do now, or something failed; a machine that lacks something is waited for."""
        try:
            return self._step(local)
        except (OSError, MemoryError, RuntimeError) as error:
            if not errors.of_machine(error):
                raise
            lack = errors.Temporary(f"cannot go on: {errors.cause(error)}")
            log.warning("%s: %s", local.key, lack)
            local = self._trouble(replace(local, stale=True), lack)
            return Stepped(local, local.memory.trouble.retry_at if local.memory.trouble else None)

    def _step(self, local: Local) -> Stepped:
        for _ in range(ROUNDS):
            local = self._look(local)
            plan = planner.plan(local.scene(self._c.probes.verdicts(local.key), self._c.clock.monotonic()))
            self._note_back_off(local, plan)
            local = self._publish(self._ending(self._waiting(local, plan), plan))
            if not plan.actions:
                return self._rest(local, plan)
            local = self._act(local, plan)
            if _start_failed(local, plan):
                # Told before the back-off that follows at once: 3.8 has a reason of its own for it.
                local = self._publish(replace(self._look(local), waiting={}))
        return Stepped(local, self._c.clock.monotonic())

    # -- observe ----------------------------------------------------------------------------------

    def _look(self, local: Local) -> Local:
        """The newest observation, memory brought up to it, and a new generation adopted."""
        if local.stale and not self._troubled(local):
            local = self._refresh(local)
        observed = self._c.observer.get(local.key)
        if observed is not local.observed:
            local = replace(local, observed=observed)
        now = self._c.clock.monotonic()
        memory = deadline.begin(absorb(self._adopt(local), local.observed, now), now, self._c.clock.time())
        hooks = self._c.hooks.states(local.key)
        if hooks != memory.hooks:
            memory = replace(memory, hooks=hooks)
        if memory.anew and not local.memory.anew:
            self._c.memories.save(memory)  # a person's restart of a pod that has completed outlives the agent
        local = self._expect(local.with_memory(memory))
        return local if local.spec is local.current else replace(local, spec=local.current)

    def _troubled(self, local: Local) -> bool:
        """The runtime has failed this pod and gets some time to recover."""
        trouble = local.memory.trouble
        return trouble is not None and self._c.clock.monotonic() < trouble.retry_at

    def _refresh(self, local: Local) -> Local:
        try:
            self._c.observer.refresh(local.key)
        except errors.RuntimeFailure as error:
            return self._trouble(local, error)
        return replace(local, stale=False)

    def _adopt(self, local: Local) -> PodMemory:
        """The memory that fits what runs, or what is about to run."""
        memory = local.memory if local.memory.boot_id else replace(local.memory, boot_id=self._c.boot_id)
        if memory.uid:
            return memory
        pod, observed = local.desired, local.observed
        if observed is not None and (pod is None or observed.config_hash != pod.config_hash):
            return self._c.memories.load(observed.uid, observed.config_hash) or memory
        if pod is None:
            return memory
        if local.incoming.config_hash == pod.config_hash:
            return local.incoming
        return self._c.memories.load(pod.uid, pod.config_hash) or memories.fresh(
            pod, self._c.boot_id, self._c.clock.time()
        )

    def _expect(self, local: Local) -> Local:
        """Keep a memory for the generation that is to come while another one runs."""
        pod = local.desired
        if pod is None or pod.config_hash == local.memory.config_hash:
            return local if not local.incoming.uid else replace(local, incoming=PodMemory())
        if pod.config_hash == local.incoming.config_hash:
            return local
        return replace(local, incoming=memories.fresh(pod, self._c.boot_id, self._c.clock.time()))

    # -- act ----------------------------------------------------------------------------------------

    def _act(self, local: Local, plan: Plan) -> Local:
        for action in plan.actions:
            uid = local.memory.uid
            self._count_restart(local, action)
            if action.rung:
                local = self._climb(local, action)
            try:
                with self._c.work.actions.timed(self._c.clock.monotonic, errors.EdgeletError, action.verb.value):
                    local = self._c.executor.do(local, action)
            except (errors.RuntimeFailure, errors.VolumeError) as error:
                return self._failed(local, action, error)
            if action.verb is Verb.REMOVE_DATA:
                self._forget(uid, local.memory)
            elif action.verb in (Verb.RESTART_ALL, Verb.FAIL_POD):
                self._c.memories.save(local.memory)  # what was decided holds, whatever becomes of the agent
        return local.with_memory(replace(local.memory, trouble=None))

    def _count_restart(self, local: Local, action: Action) -> None:
        if action.verb is Verb.CREATE_CONTAINER and action.number and local.observed is not None:
            before = local.observed.newest(action.container)
            self._c.work.restarts.add(restart.cause(action.container, before, local.memory.of(action.container)))

    def _climb(self, local: Local, action: Action) -> Local:
        """Tell of a step of the repair ladder, and remember it, whether it will succeed or not."""
        if action.verb is not Verb.REPORT:
            self._c.recorder.event(local.ref(action.container), "Warning", "Repairing", str(action))
        memory, trouble = local.memory, local.memory.trouble
        stop = memory.of(action.container).stopping
        if trouble is not None and trouble.verb is not None:
            memory = replace(memory, climb=Climb(trouble.verb, action.rung))
        elif stop is not None and stop.container_id == action.target:
            memory = memory.update(action.container, stopping=stopping.killed(stop, self._c.clock.monotonic()))
        return local.with_memory(memory)

    def _forget(self, uid: str, memory: PodMemory) -> None:
        """The data of a generation is gone; one that comes once more goes on counting (1.5.6)."""
        if memory.uid == uid:
            self._c.memories.save(memory)
        else:
            self._c.memories.drop(uid)

    def _failed(self, local: Local, action: Action, error: errors.EdgeletError) -> Local:
        if action.verb in (Verb.CREATE_POD, Verb.START_POD):
            reason = "FailedMount" if isinstance(error, errors.VolumeError) else "FailedCreatePodSandBox"
            prefix = "" if isinstance(error, errors.VolumeError) else "Failed to create pod sandbox: "
            self._event_once(local, reason, f"{prefix}{error}", error)
        elif action.verb in (Verb.REMOVE_POD, Verb.STOP_CONTAINER, Verb.KILL_CONTAINER):
            self._event_once(local, "FailedKillPod", f"error killing pod: {error}", error)
        log.warning("%s: cannot %s: %s", local.key, action.verb.value, error)
        return self._trouble(replace(local, stale=not isinstance(error, errors.VolumeError)), error, action)

    def _event_once(self, local: Local, reason: str, message: str, error: Exception) -> None:
        trouble = local.memory.trouble
        if trouble is None or trouble.message != str(error):
            self._c.recorder.event(local.ref(), "Warning", reason, message)

    def _trouble(self, local: Local, error: errors.EdgeletError, action: Action | None = None) -> Local:
        """Back off; the first surprise (a name taken, a thing gone) is looked at again at once."""
        failures = local.memory.trouble.failures + 1 if local.memory.trouble else 1
        surprise = isinstance(error, errors.Conflict | errors.NotFound)
        delay = 0.0 if surprise and failures == 1 else backoff.steps(failures, FIRST_RETRY, RETRY_CAP)
        retry_at = self._c.clock.monotonic() + delay
        trouble = repair.troubled(local.memory.trouble, action, error, Trouble(str(error), failures, retry_at))
        return local.with_memory(replace(local.memory, trouble=trouble))

    # -- record -------------------------------------------------------------------------------------

    def _waiting(self, local: Local, plan: Plan) -> Local:
        """What is waited for; trouble of the runtime hides that, and is over once nothing is left to do."""
        if self._troubled(local):
            return local
        if not plan.actions and (local.memory.trouble or local.memory.climb):
            local = local.with_memory(replace(local.memory, trouble=None, climb=None))
        return local if local.waiting == plan.waiting else replace(local, waiting=plan.waiting)

    def _ending(self, local: Local, plan: Plan) -> Local:
        """A pod whose end has begun stays ending until it is gone."""
        if not plan.ending or local.memory.ending:
            return local
        ending = Ending(plan.ending, plan.keep_data, self._c.clock.time(), plan.anew)
        return local.with_memory(replace(local.memory, ending=ending))

    def _note_back_off(self, local: Local, plan: Plan) -> None:
        for name, waiting in plan.waiting.items():
            if waiting == local.waiting.get(name):
                continue
            pod = local.current
            if waiting.reason == "CrashLoopBackOff" and pod is not None:
                where = f"{pod.name}_{pod.namespace}({pod.uid})"
                text = f"Back-off restarting failed container {name} in pod {where}"
                self._c.recorder.event(local.ref(name), "Warning", "BackOff", text)
            elif waiting.reason == "ImagePullBackOff":
                self._c.recorder.event(local.ref(name), "Normal", "BackOff", waiting.message.partition(": ")[0])

    def _publish(self, local: Local) -> Local:
        pod, observed, memory = local.current, local.observed, local.memory
        if pod is None:
            # A generation that nobody knows runs: what is wanted is told as not running yet.
            pod, observed, memory = local.desired, None, replace(local.incoming, trouble=local.memory.trouble)
        if pod is None:
            return local
        verdicts, host_ip, note = self._c.probes.verdicts(local.key), self._c.host_ip(), _note(local)
        grace = local.grace if local.desired is None or memory.ending else None
        gate = local.gate if local.gate and local.gate.closed(self._c.clock.monotonic()) else None
        told = (pod, observed, memory, verdicts, local.waiting, local.held, host_ip, note, grace, gate)
        if told == local.told:  # identical parts compare at once
            return local
        status = phase.status(
            phase.Facts(
                pod=pod,
                observed=observed,
                memory=memory,
                wall=self._c.clock.time(),
                verdicts=verdicts,
                waiting=local.waiting,
                previous=local.status,
                held=local.held,
                host_ip=host_ip,
                note=note,
                grace=grace,
                gate=gate,
            )
        )
        self._c.statuses.put(pod, status)
        return replace(local, status=status, told=told)

    def _rest(self, local: Local, plan: Plan) -> Stepped:
        """Nothing to do now: tell the prober what runs, keep what must last."""
        over = local.desired is None and local.observed is None and not local.memory.uid
        if over and not local.stale:
            self._c.probes.forget(local.key)
            self._c.hooks.keep(local.key, ())
            self._c.statuses.remove(local.key)
            return Stepped(local, None, over=True)
        self._c.probes.sync(local.key, targets.probed(local))
        if local.memory.hooks:
            alive = local.observed.containers if local.observed else ()
            self._c.hooks.keep(local.key, [c.id for c in alive if c.running])
        if local.memory.uid and local.memory is not local.saved:
            self._c.memories.save(local.memory)
            local = replace(local, saved=local.memory)
        return Stepped(local, plan.wake_at)


def _start_failed(local: Local, plan: Plan) -> bool:
    starts = {a.container: a.target for a in plan.actions if a.verb is Verb.START_CONTAINER}
    failed = ((local.memory.of(name).start_error, target) for name, target in starts.items())
    return any(error is not None and error.container_id == target for error, target in failed)


def _note(local: Local) -> str:
    """What keeps a new version of the pod from running, while the old one still does."""
    if local.desired is None or local.memory.config_hash in ("", local.desired.config_hash):
        return ""
    if local.gate is not None:
        return f"a new version may not begin: {local.gate.message}"
    for container in (*local.desired.all_containers, *local.desired.image_volumes):
        pull = local.incoming.of(container.name).pull
        if pull is not None and pull.reason:
            return f"a new version waits for image {container.image}: {pull.message}"
    return "a new version is about to replace it"
