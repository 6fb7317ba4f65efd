"""What an observation teaches a pod's memory: counts, ends, back-offs and the identity of what runs.

All of it is learnt from what is there, not from what a call answered, so an answer that was lost
changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from ..model.observed import ObservedContainer, ObservedPod, State
from ..model.status import Terminated
from . import backoff, restart, starting
from .memory import ContainerMemory, PodMemory, RestartingAll


def absorb(memory: PodMemory, observed: ObservedPod | None, now: float) -> PodMemory:
    """Memory after looking at the runtime at `now` (monotonic).

    Counts never go back; a known end is kept when its container is removed.
    """
    if observed is None:
        return _without_sandbox(memory)
    if not memory.uid:
        memory = replace(memory, uid=observed.uid, config_hash=observed.config_hash, start_time=observed.created_at)
    if memory.attempt <= observed.attempt:
        memory = _new_sandbox(memory, observed, now)
    if memory.restarting is not None and not observed.containers:
        memory = _restarted(memory, memory.restarting, now)
    for name in sorted({c.name for c in observed.containers}):
        newest = observed.newest(name)
        if newest is not None:
            changed = _container(memory, observed, newest, now)
            if changed is not memory.of(name):
                memory = replace(memory, containers={**memory.containers, name: changed})
    return memory


def removed(memory: PodMemory, observed: ObservedPod, container_id: str = "") -> PodMemory:
    """Memory once an instance ("" = all) of `observed` is removed: one that was never started has not run.

    Not after a reboot: what ran then is called created.
    """
    if observed.boot_id != memory.boot_id:
        return memory
    unused = {}
    for name in {c.name for c in observed.containers}:
        newest, known = observed.newest(name), memory.of(name)
        if newest is None or newest.state is not State.CREATED or container_id not in ("", newest.id):
            continue
        if known.restart_count == newest.restart_count and not known.ended:
            unused[name] = replace(known.renewed(), backoff=known.backoff)
    return replace(memory, containers={**memory.containers, **unused}) if unused else memory


def _without_sandbox(memory: PodMemory) -> PodMemory:
    """The sandbox is gone, whoever removed it: an end that keeps the data is complete."""
    ending = memory.ending
    anew = memory.anew or bool(memory.replace_id) or (ending is not None and ending.anew)
    if ending is not None and ending.keep_data:
        ending = None
    if (ending, anew, "") == (memory.ending, memory.anew, memory.replace_id):
        return memory
    return replace(memory, ending=ending, anew=anew, replace_id="")


def _restarted(memory: PodMemory, why: RestartingAll, now: float) -> PodMemory:
    """All containers are gone and run again; only the back-off of the one that asked for it goes on."""
    known = memory.of(why.container).backoff
    containers = {
        name: c.restarted(backoff.attempt(known, why.at, now) if name == why.container else None)
        for name, c in memory.containers.items()
    }
    return replace(memory, containers=containers, restarting=None)


def _new_sandbox(memory: PodMemory, observed: ObservedPod, now: float) -> PodMemory:
    memory = replace(memory, attempt=observed.attempt + 1)
    if not memory.anew:
        return memory
    renewed = {name: c.renewed() for name, c in memory.containers.items()}
    return replace(memory, containers=renewed, anew=False, failed=None, restarting=None, active_from=now)


def _container(memory: PodMemory, observed: ObservedPod, newest: ObservedContainer, now: float) -> ContainerMemory:
    known = memory.of(newest.name)
    if newest.restart_count < known.restart_count:
        return known
    previous = observed.before(newest)
    if newest.restart_count > known.restart_count:
        known = _another(memory, observed, newest, previous, now)
    end = restart.ended(newest, known)
    last = end or _last(known, previous)
    stopped = end is not None and restart.stopped(newest, known)
    if (known.last, known.ended, known.stopped) == (last, end is not None, stopped):
        return known
    return replace(known, last=last, ended=end is not None, stopped=stopped)


def _last(known: ContainerMemory, previous: ObservedContainer | None) -> Terminated | None:
    """The last end, in more detail where an inspect has brought some since."""
    end = restart.ended(previous, known) if previous else None
    return end if end and (known.last is None or known.last.container_id == end.container_id) else known.last


def _another(
    memory: PodMemory, observed: ObservedPod, newest: ObservedContainer, previous: ObservedContainer | None, now: float
) -> ContainerMemory:
    """A new instance is there: the back-off goes a step further, all about earlier tries is forgotten."""
    known = memory.of(newest.name)
    entry, last = known.backoff, known.last
    if previous is not None and previous.restart_count >= known.restart_count:
        last = restart.ended(previous, known) or last
    elif known.restart_count >= 0:
        last = restart.remembered(memory, newest.name)
    finished = starting.basis(previous, observed, known)
    if known.restart_count >= 0 and finished is not None:
        entry = backoff.attempt(entry, finished, now)
    return ContainerMemory(
        restart_count=newest.restart_count, backoff=entry, last=last, start_error=known.start_error, base=known.base
    )
