"""One thread that sleeps until somebody suspects leftovers, looks twice, and takes away what was stale both times."""

from __future__ import annotations

import ipaddress
import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ...core import leftovers
from ...core.conmon import Conmon
from ...core.leftovers import Left, Monitor, Sight
from ...errors import EdgeletError, StateError, cause
from ...model.network import Lease, Rule
from . import leases, monitors, rules, spaces

log = logging.getLogger(__name__)

AFTERMATH = 90.0
"""Seconds after a death of Podman until a second look: what was asked of it then has been done anew or undone."""

RETRY = 60.0
"""Seconds until Podman is asked again after it did not answer: asking may itself be what makes it die."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What Podman knows: ids of all its containers, the namespaces that they name, the subnets of our network."""

    containers: frozenset[str]
    named: frozenset[str]
    subnets: tuple[str, ...]


class Sweeper:
    """`facts` asks Podman (raises EdgeletError); `told` hears of each thing that was taken away.

    `lost` says, without asking Podman, whether a conmon seems to watch for a container of ours that is gone.
    """

    def __init__(
        self, facts: Callable[[], Facts], told: Callable[[str], None], lost: Callable[[Conmon], bool] = lambda _: False
    ) -> None:
        self._facts = facts
        self._told = told
        self._lost = lost
        self._suspected = threading.Event()
        self._died = self._again = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="netleft", daemon=True)

    def start(self) -> None:
        """Begin to wait."""
        self._thread.start()

    def suspect(self) -> None:
        """Something may have been left: look soon. Cheap, any thread."""
        self._suspected.set()

    def died(self) -> None:
        """Podman has died: look soon, and once more when what it left half done has been dealt with. Any thread."""
        self._died = True
        self._suspected.set()

    def stop(self) -> None:
        """End the thread, at most one look later."""
        self._stop.set()
        self._suspected.set()
        self._thread.join(10)

    def _run(self) -> None:
        told = ""
        while self._wait():
            self._suspected.clear()
            try:
                while self._sweep() and not self._stop.wait(leftovers.PATIENCE):
                    pass
                told = ""
            except (EdgeletError, OSError) as error:
                told = self._later(cause(error), told)
            except Exception as error:  # guard
                told = self._later(f"{cause(error)}; this is a fault in edgelet", told, error)

    def _later(self, trouble: str, told: str, fault: Exception | None = None) -> str:
        """Look again in a while; what is told of that, once for each trouble."""
        if trouble != told:
            level = logging.ERROR if fault else logging.WARNING
            log.log(level, "cannot look for what is left of pods: %s", trouble, exc_info=fault)
        self._suspected.set()
        self._stop.wait(RETRY)
        return trouble

    def _wait(self) -> bool:
        self._suspected.wait(AFTERMATH if self._again else None)
        self._again, self._died = self._died, False
        return not self._stop.is_set()

    def _sweep(self) -> bool:
        """Two looks; whether anything was removed, so that a third one is worth it. Raises EdgeletError."""
        first = self._look()
        if not first or self._stop.wait(leftovers.PATIENCE):
            return False
        both = first.both(self._look())
        self._remove(both)
        return bool(both)

    def _look(self) -> Left:
        """What seems to be stale now; Podman is asked only when there is something that nobody is in."""
        seen, held, walls = spaces.read(), leases.read(), rules.read()
        sight = Sight(seen, held, walls, monitors=monitors.read(self._lost))
        addresses = _addresses(sight)
        if not leftovers.stale(sight, addresses):
            return Left()
        facts = self._facts()
        return leftovers.stale(
            replace(sight, containers=facts.containers, named=facts.named), _inside(facts.subnets, addresses)
        )

    def _remove(self, left: Left) -> None:
        """Rules first, the lease last: an address is not given to another pod while something still leads to it."""
        for monitor in sorted(left.monitors, key=lambda m: m.pid):
            self._end(monitor)
        if left.rules:
            rules.remove(sorted(left.rules, key=lambda r: r.text))
            self._told(f"rules of the firewall for {_ports(left.rules)}")
        for space in sorted(left.spaces, key=lambda s: s.path):
            try:
                spaces.remove(space)
                self._told(f"network namespace {space.path}")
            except StateError as error:
                log.warning("%s", error)
        if left.leases:
            leases.remove(left.leases)
            self._told(f"leases of {_names(left.leases)}")

    def _end(self, monitor: Monitor) -> None:
        try:
            monitors.remove(monitor)
            self._told(f"container {monitor.conmon.container_id[:12]}, which Podman knows no more")
        except StateError as error:
            log.warning("%s", error)


def _ports(found: Iterable[Rule]) -> str:
    return ", ".join(sorted({r.port for r in found}))


def _names(found: Iterable[Lease]) -> str:
    return ", ".join(sorted(x.address for x in found))


def _addresses(sight: Sight) -> frozenset[str]:
    """Every address that was seen."""
    inside = {a for s in sight.spaces for a in s.addresses}
    return frozenset(inside | {x.address for x in sight.leases} | {r.address for r in sight.rules if r.address})


def _inside(subnets: Iterable[str], addresses: Iterable[str]) -> frozenset[str]:
    """Those of our network."""
    ours = [ipaddress.ip_network(s, strict=False) for s in subnets]
    return frozenset(a for a in addresses if any(ipaddress.ip_address(a) in n for n in ours))
