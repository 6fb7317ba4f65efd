"""What an observation teaches a pod's memory: counts, ends and the identity of what runs."""

from __future__ import annotations

from dataclasses import replace

from ..model.observed import ObservedContainer, ObservedPod
from . import restart
from .memory import ContainerMemory, PodMemory


def absorb(memory: PodMemory, observed: ObservedPod | None) -> PodMemory:
    """Memory after looking at the runtime. Counts never go back; a known end is kept when its
    container is removed."""
    if observed is None:
        return memory
    if not memory.uid:
        memory = replace(memory, uid=observed.uid, config_hash=observed.config_hash, start_time=observed.created_at)
    if memory.attempt <= observed.attempt:
        memory = replace(memory, attempt=observed.attempt + 1)
    for name in {c.name for c in observed.containers}:
        newest = observed.newest(name)
        if newest is not None:
            changed = _container(memory.of(name), newest, _previous(observed, newest))
            if changed != memory.of(name):
                memory = replace(memory, containers={**memory.containers, name: changed})
    return memory


def _previous(observed: ObservedPod, newest: ObservedContainer) -> ObservedContainer | None:
    earlier = [c for c in observed.containers if c.name == newest.name and c.id != newest.id]
    return max(earlier, key=lambda c: (c.restart_count, c.created_at), default=None)


def _container(
    known: ContainerMemory, newest: ObservedContainer, previous: ObservedContainer | None
) -> ContainerMemory:
    if newest.restart_count < known.restart_count:
        return known
    end = restart.ended(newest, known)
    if end is not None:
        return replace(known, restart_count=newest.restart_count, last=end, ended=True)
    before = restart.ended(previous, known) if previous else None
    return replace(known, restart_count=newest.restart_count, last=before or known.last, ended=False)
