"""What a Podman that was killed has left of pods: decided from what is there, and nothing is guessed.

A network namespace is stale when it is named as Podman names them, no process is in it, no container of
Podman names it, and its addresses are of our network: one that has none tells nobody whose it was, and stays.
A monitor (conmon) that was ours is stale when Podman knows no container of its id: it was killed between the
runtime's `create` and its own note of that, and later asked to remove what it thought had never been begun.
Whatever is stale must be so at two looks, `PATIENCE` apart: a network that is just being set up, by whatever
Podman, is not.  Pure.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..model.network import Lease, Rule, Space
from .conmon import Conmon

PATIENCE = 30.0
"""Seconds between the two looks: much longer than any set-up of a network takes."""


@dataclass(frozen=True, slots=True)
class Monitor:
    """A conmon of ours: its process, and what it was started with. `since` tells it from a later one of that pid."""

    pid: int
    since: str
    conmon: Conmon


@dataclass(frozen=True, slots=True)
class Sight:
    """One look. `containers` are the ids of all containers of Podman, whoever made them, and `named` the namespaces
    that these name; `monitors` those that seem to watch for a container of ours that is gone."""

    spaces: tuple[Space, ...] = ()
    leases: tuple[Lease, ...] = ()
    rules: tuple[Rule, ...] = ()
    containers: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    monitors: tuple[Monitor, ...] = ()


@dataclass(frozen=True, slots=True)
class Left:
    """What is stale."""

    spaces: frozenset[Space] = frozenset()
    leases: frozenset[Lease] = frozenset()
    rules: frozenset[Rule] = frozenset()
    monitors: frozenset[Monitor] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.spaces or self.leases or self.rules or self.monitors)

    def both(self, other: Left) -> Left:
        """What was stale at two looks."""
        return Left(
            self.spaces & other.spaces,
            self.leases & other.leases,
            self.rules & other.rules,
            self.monitors & other.monitors,
        )


def stale(sight: Sight, ours: Collection[str]) -> Left:
    """What nobody needs any more; `ours` = the addresses, among those seen, that are of our network."""
    idle = (s for s in sight.spaces if s.addresses and not s.busy and s.path not in sight.named)
    spaces = frozenset(s for s in idle if all(a in ours for a in s.addresses))
    kept = {a for s in sight.spaces if s not in spaces for a in s.addresses}
    leases = frozenset(
        x for x in sight.leases if x.address in ours and x.address not in kept and x.holder not in sight.containers
    )
    held = {x.address: x.holder for x in sight.leases if x not in leases}
    monitors = frozenset(m for m in sight.monitors if m.conmon.container_id not in sight.containers)
    return Left(spaces, leases, _rules(sight, ours, kept | held.keys(), set(held.values())), monitors)


def _rules(sight: Sight, ours: Collection[str], used: Collection[str], holders: Collection[str]) -> frozenset[Rule]:
    """Rules that lead to an address nobody has, and what stands around them."""
    dead = {r for r in sight.rules if r.address in ours and r.address not in used}
    live = {r.port for r in sight.rules if r.address and r not in dead}
    ports = {r.port for r in dead} - live
    networks = {r.network for r in dead}
    marks = {r for r in sight.rules if not r.address and not r.holder and r.port in ports}
    known = sight.containers | set(holders)
    jumps = {r for r in sight.rules if r.holder and r.network in networks and r.holder not in known}
    return frozenset(dead | marks | jumps)
