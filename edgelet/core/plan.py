"""The brain: what to do to one pod now, and when to look again. Pure; start reading here.

`plan` compares the pod that is wanted with what was observed and remembered, and answers with one
round of actions.  The caller acts, observes again and asks again until no action is left.  Nothing
here waits: "not before T" is the answer `wake_at`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..model.actions import Action, Plan, Verb
from ..model.gate import Gate
from ..model.hooks import HookKind, HookState
from ..model.observed import ObservedPod, State
from ..model.pod import Pod
from ..model.status import Waiting
from ..ports import Verdict
from . import deadline, repair, restart, restart_all, starting, stopping, text
from .memory import PodMemory
from .view import Look, View, abandoned, finished, over, view


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a decision about one pod may look at.

    `pod` None = it must go.  `old` is the spec of the running generation where it is another than
    `pod` and still known; `memory` belongs to the running generation, `incoming` to the wanted one
    while the two differ.  `held` = kept stopped by a person: its data stays.  `grace` = the seconds that
    whoever deleted the pod allows each container (None = its own).  `down` = the machine is going down and
    leaves every container so many seconds (None = it stays up).  `gate` = `pod` may not begin now; what runs goes on.
    """

    pod: Pod | None
    observed: ObservedPod | None
    memory: PodMemory
    now: float
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    old: Pod | None = None
    incoming: PodMemory = field(default_factory=PodMemory)
    held: bool = False
    grace: int | None = None
    down: int | None = None
    gate: Gate | None = None


def plan(scene: Scene) -> Plan:
    """One round of actions for the pod of `scene`."""
    trouble = scene.memory.trouble
    if trouble and scene.now < trouble.retry_at:
        return Plan(wake_at=trouble.retry_at)
    usual = _usual(scene)
    if trouble and any((a.verb, a.container) == (trouble.verb, trouble.container) for a in usual.actions):
        repairs = repair.rung(scene.old or scene.pod, scene.observed, scene.memory)
        return replace(usual, actions=repairs or usual.actions)
    return usual


def _usual(scene: Scene) -> Plan:
    """One round as if the runtime had never failed."""
    if scene.observed is None:
        return _absent(scene) if scene.down is None else Plan()
    if scene.down is not None and scene.pod is not None and not scene.memory.ending:
        return _go_down(scene, scene.pod, scene.observed)
    if scene.memory.ending or scene.pod is None or scene.held or _leaves(scene):
        return _end(scene, scene.observed)
    if scene.observed.config_hash != scene.pod.config_hash:
        return _change(scene, scene.pod, scene.observed)
    return _keep(scene, scene.pod, scene.observed)


def _leaves(scene: Scene) -> bool:
    """Whether it makes room for another pod (1.7.4)."""
    return scene.gate is not None and scene.gate.ends


def _end(scene: Scene, observed: ObservedPod) -> Plan:
    """The pod is not wanted, or its end has begun: that is never taken back (3.1.1)."""
    ending = scene.memory.ending
    gone = scene.pod is None
    grace = scene.grace if gone or ending is not None else None
    if ending is not None:
        keep = ending.keep_data and not gone
        return stopping.end_pod(observed, scene.memory, ending.reason, keep, scene.now, grace=grace, limit=scene.down)
    reason = (
        "its manifest is gone" if gone else "stopped by a person" if scene.held else "it makes room for another pod"
    )
    return stopping.end_pod(
        observed, scene.memory, reason, not gone, scene.now, anew=not gone, grace=grace, limit=scene.down
    )


def _go_down(scene: Scene, pod: Pod, observed: ObservedPod) -> Plan:
    """Let every container end; the pod stays wanted, and the next boot finds it as after any other end.

    Except that a container which ends well because it was told to has completed nothing: a pod that would not
    run again for it (OnFailure) loses its sandbox and is made anew.
    """
    succeeds = any(restart.policy(pod, c) == "OnFailure" for c in pod.containers)
    if succeeds and not finished(pod, view(pod, observed, scene.memory)):
        reason = "the machine is going down"
        return stopping.end_pod(observed, scene.memory, reason, True, scene.now, anew=True, limit=scene.down)
    actions, wakes = stopping.stop_all(observed.containers, scene.memory, None, scene.now, scene.down)
    return Plan(tuple(actions), min(wakes, default=None))


def _absent(scene: Scene) -> Plan:
    """Nothing runs: clear up what an earlier generation left, then make a sandbox if one is wanted."""
    stale = _stale_data(scene)
    if stale:
        return Plan((Action(Verb.REMOVE_DATA, stale, target=scene.memory.uid),))
    if scene.pod is None or scene.held:
        return Plan()
    if scene.gate is not None and scene.gate.closed(scene.now):
        return Plan(wake_at=scene.gate.until)
    return _begin(scene, scene.pod)


def _stale_data(scene: Scene) -> str:
    """Why the data on disk must go ("" = it stays, or there is none)."""
    memory = scene.memory
    if not memory.uid:
        return ""
    if scene.pod is None:
        return "its manifest is gone"
    if memory.config_hash != scene.pod.config_hash:
        return "its manifest has changed"
    return memory.ending.reason if memory.ending and not memory.ending.keep_data else ""


def _begin(scene: Scene, pod: Pod) -> Plan:
    """No sandbox exists: make one, unless nothing would be started in it (3.2.2)."""
    if not scene.memory.anew:
        over = deadline.exceeded(pod, scene.memory, scene.now)
        if over:
            return Plan((over,))
        if scene.memory.failed or abandoned(pod, scene.memory) or finished(pod, view(pod, None, scene.memory)):
            return Plan()
    number = scene.memory.attempt
    reason = "not there yet" if number == 0 else "its sandbox is gone"
    return Plan((Action(Verb.CREATE_POD, reason, number=number),))


def _change(scene: Scene, pod: Pod, observed: ObservedPod) -> Plan:
    """Another generation runs: fetch the new images first, then replace it."""
    actions, wakes, ready = starting.prefetch(pod, scene.incoming, scene.now)
    gated = scene.gate is not None and scene.gate.closed(scene.now)
    if gated and scene.gate is not None and scene.gate.until is not None:
        wakes = [*wakes, scene.gate.until]
    if (ready and not gated) or not _worth_keeping(scene, observed):
        return stopping.end_pod(observed, scene.memory, "its manifest has changed", False, scene.now)
    if scene.old is None or scene.old.config_hash != observed.config_hash:
        return Plan(tuple(actions), min(wakes, default=None))
    kept = _keep(scene, scene.old, observed)
    times = [t for t in (*wakes, kept.wake_at) if t is not None]
    return replace(kept, actions=(*actions, *kept.actions), wake_at=min(times, default=None))


def _worth_keeping(scene: Scene, observed: ObservedPod) -> bool:
    """Whether the old generation still serves while images are fetched.

    It does if its containers all run, or if its spec is known so that they can be kept running.
    """
    if _broken(scene, observed):
        return False
    if scene.old is not None and scene.old.config_hash == observed.config_hash:
        return True
    names = {c.name for c in observed.containers}
    return bool(names) and all(c.running for n in names if (c := observed.newest(n)))


def _broken(scene: Scene, observed: ObservedPod) -> str:
    """Why the sandbox cannot be used any more ("" = it can) (3.2.1)."""
    if observed.boot_id != scene.memory.boot_id:
        return "the machine was restarted"
    if observed.infra_dead:
        return "its sandbox has died"
    return "a restart was asked for" if _asked(scene, observed) else ""


def _asked(scene: Scene, observed: ObservedPod) -> bool:
    return scene.memory.replace_id == observed.id


def _keep(scene: Scene, pod: Pod, observed: ObservedPod) -> Plan:
    """The right generation exists: keep its containers as they should be."""
    seen = view(pod, observed, scene.memory)
    unclear = _unclear(seen)
    if unclear:
        return Plan(tuple(unclear))
    done = scene.memory.failed or (finished(pod, seen) and scene.memory.restarting is None)
    if done and not _asked(scene, observed):
        return _finish(scene, observed)
    why = _broken(scene, observed)
    if why:
        return stopping.end_pod(observed, scene.memory, why, True, scene.now, anew=_asked(scene, observed))
    over = deadline.exceeded(pod, scene.memory, scene.now)
    if over:
        return Plan((over,))
    return _until(_again_or_run(scene, pod, observed, seen), deadline.due(pod, scene.memory))


def _until(made: Plan, due: float | None) -> Plan:
    """The plan, looked at again at the pod's deadline."""
    return made if due is None else replace(made, wake_at=min(due, made.wake_at if made.wake_at is not None else due))


def _again_or_run(scene: Scene, pod: Pod, observed: ObservedPod, seen: View) -> Plan:
    """All containers from the beginning, where an exit code asks for it (3.5); else each as it should be."""
    if scene.memory.restarting is not None:
        return restart_all.go_on(observed, scene.memory.restarting, scene.memory, scene.now)
    again = restart_all.asked(pod, observed, seen, scene.memory, scene.now)
    return Plan((again,)) if again else _run(scene, pod, observed, seen)


def _unclear(seen: View) -> list[Action]:
    """A container has ended, nobody knows with which code: ask before judging it by the code."""
    return [
        Action(Verb.INSPECT_CONTAINER, "it has ended, the code is not known", i.name, i.id)
        for i in (look.instance for look in seen.all)
        if i is not None and i.state is State.EXITED and i.partial and i.exit_code is None
    ]


def _finish(scene: Scene, observed: ObservedPod) -> Plan:
    """The pod has run to its end: what still runs beside it is stopped, the sandbox too (3.2.6, 3.11)."""
    actions, wakes = stopping.stop_all(observed.containers, scene.memory, None, scene.now)
    if not actions and not wakes and observed.infra_pid and not observed.infra_dead:
        action, wake = stopping.step(
            stopping.Mark("", observed.infra_id), scene.memory, 0, "the pod has completed", scene.now
        )
        actions, wakes = [action] if action else [], [wake] if wake is not None else []
    if not actions:
        actions = _tidy(observed)
    return Plan(tuple(actions), min(wakes, default=None))


@dataclass(slots=True)
class _Round:
    """What one round gathers; local to a single call of `_run`."""

    actions: list[Action] = field(default_factory=list)
    wakes: list[float] = field(default_factory=list)
    waiting: dict[str, Waiting] = field(default_factory=dict)

    def take(self, name: str, step: starting.Step) -> None:
        """Add one container's step."""
        if step.action:
            self.actions.append(step.action)
        if step.until is not None:
            self.wakes.append(step.until)
        if step.waiting:
            self.waiting[name] = step.waiting

    def plan(self) -> Plan:
        """The finished round."""
        return Plan(tuple(self.actions), min(self.wakes, default=None), self.waiting)


def _run(scene: Scene, pod: Pod, observed: ObservedPod, seen: View) -> Plan:
    """Kill what its probes condemn, start what should run, in order; tidy up when there is time."""
    if observed.infra_id and not observed.infra_pid:
        return Plan((Action(Verb.START_POD, "its network comes first", target=observed.infra_id),))
    this = _Round()
    for look in seen.all:
        _condemn(scene, pod, look, this)
    if _start_inits(scene, pod, observed, seen, this):
        _start_regulars(scene, pod, observed, seen, this)
    if not this.actions:
        this.actions.extend(_tidy(observed))
    return this.plan()


def _condemn(scene: Scene, pod: Pod, look: Look, this: _Round) -> None:
    """A container whose liveness or startup probe failed is stopped; a stop once begun goes on."""
    if look.instance is None or not look.alive:
        return
    name = look.container.name
    stop = scene.memory.of(name).stopping
    verdict = scene.verdicts.get(name)
    if stop is not None and stop.container_id == look.instance.id:
        grace, reason = int(stop.deadline - stop.since), stop.reason
    elif verdict is not None and verdict.failed and verdict.container_id == look.instance.id:
        grace = pod.grace if verdict.grace is None else verdict.grace
        reason = text.probe_kill(name, verdict.failed)
    elif scene.memory.of(name).restart_id == look.instance.id:
        grace, reason = pod.grace, text.stopping(name)
    elif scene.memory.hook(look.instance.id, HookKind.POST_START) is HookState.FAILED:
        grace, reason = pod.grace, text.POST_START_FAILED
    else:
        return
    mark = stopping.Mark(name, look.instance.id, look.instance.pre_stop)
    action, wake = stopping.step(mark, scene.memory, grace, reason, scene.now)
    this.take(name, starting.Step(action, until=wake))


def _start_inits(scene: Scene, pod: Pod, observed: ObservedPod, seen: View, this: _Round) -> bool:
    """Init containers in order (3.3); True = the regular ones may start.

    What comes before the last one that was made is initialised: a sidecar among them that has ended is started
    again, and nobody waits for it (3.3.2).
    """
    last = max((n for n, i in enumerate(seen.inits) if i.instance is not None), default=-1)
    for n, look in enumerate(seen.inits):
        if not look.sidecar and (seen.initialised or n < last or _done(pod, look)):
            continue
        if not look.alive:
            step = _start(scene, pod, observed, look, this)
            if step.blocks or not (seen.initialised or n < last):
                return False
        elif _starting(scene, look) or not (seen.initialised or n < last or (look.sidecar and _started(scene, look))):
            return False
    return True


def _start_regulars(scene: Scene, pod: Pod, observed: ObservedPod, seen: View, this: _Round) -> None:
    """Regular containers, one after the other in spec order (3.2.4)."""
    for look in seen.regulars:
        if _starting(scene, look):
            return
        if look.alive or over(pod, look):
            continue
        if _start(scene, pod, observed, look, this).blocks:
            return


def _start(scene: Scene, pod: Pod, observed: ObservedPod, look: Look, this: _Round) -> starting.Step:
    if look.instance is not None and look.instance.state is State.UNKNOWN:
        action = Action(Verb.REMOVE_CONTAINER, "its state is unknown", look.container.name, look.instance.id)
        step = starting.Step(action, blocks=True)
    else:
        step = starting.next_step(pod, look, observed, scene.memory, scene.now)
    this.take(look.container.name, step)
    return step


def _done(pod: Pod, look: Look) -> bool:
    """A regular init container has exited 0 in this sandbox."""
    return look.instance is not None and look.end is not None and restart.succeeded(pod, look.container, look.end)


def _starting(scene: Scene, look: Look) -> bool:
    """Its postStart hook still runs, or has failed: a container is started only with that (3.8)."""
    if look.instance is None or not look.alive:
        return False
    state = scene.memory.hook(look.instance.id, HookKind.POST_START)
    return state in (HookState.RUNNING, HookState.FAILED)


def _started(scene: Scene, look: Look) -> bool:
    """A running container counts as started at once, or when its startup probe has succeeded."""
    if look.container.startup is None:
        return True
    verdict = scene.verdicts.get(look.container.name)
    return bool(verdict and look.instance and verdict.container_id == look.instance.id and verdict.started)


def _tidy(observed: ObservedPod) -> list[Action]:
    """Learn the details of exits; keep one dead instance per container beside the newest (6.3)."""
    inspect = [c for c in observed.containers if c.partial and c.state is State.EXITED]
    if inspect:
        return [Action(Verb.INSPECT_CONTAINER, "it has ended", c.name, c.id) for c in inspect]
    old: list[Action] = []
    for name in sorted({c.name for c in observed.containers}):
        instances = sorted(
            (c for c in observed.containers if c.name == name), key=lambda c: (c.restart_count, c.created_at)
        )
        old += [
            Action(Verb.REMOVE_CONTAINER, "an older dead instance", name, c.id) for c in instances[:-2] if not c.running
        ]
    return old
