"""One pod as the planner and the status see it: each container's newest instance and how it ended."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.observed import ObservedContainer, ObservedPod, State
from ..model.pod import Container, Pod
from ..model.status import Terminated
from . import restart
from .memory import PodMemory


@dataclass(frozen=True, slots=True)
class Look:
    """One container: `instance` in the present sandbox, `end` if it is over (or only remembered).

    `instance` None and `end` set = it ran in an earlier sandbox, or its instance was removed.
    `stopped` = the end was brought about by us (a failed probe, a dead sandbox); `asked` = a person
    wants this instance replaced.
    """

    container: Container
    instance: ObservedContainer | None
    end: Terminated | None
    sidecar: bool
    init: bool
    stopped: bool
    asked: bool

    @property
    def alive(self) -> bool:
        """A process runs (or may run)."""
        return self.instance is not None and self.instance.running

    @property
    def startable(self) -> bool:
        """Created, and nothing is known against starting it."""
        return self.instance is not None and self.instance.state is State.CREATED and self.end is None


@dataclass(frozen=True, slots=True)
class View:
    """All containers of a pod in spec order."""

    inits: tuple[Look, ...]
    regulars: tuple[Look, ...]

    @property
    def all(self) -> tuple[Look, ...]:
        """Init containers first."""
        return self.inits + self.regulars

    @property
    def initialised(self) -> bool:
        """A regular container exists in this sandbox: regular init containers are done for good (3.3.2)."""
        return any(r.instance is not None for r in self.regulars)


def view(pod: Pod, observed: ObservedPod | None, memory: PodMemory) -> View:
    """Look at every container of `pod`."""
    return View(
        tuple(_look(pod, c, observed, memory, init=True) for c in pod.init_containers),
        tuple(_look(pod, c, observed, memory, init=False) for c in pod.containers),
    )


def _look(pod: Pod, container: Container, observed: ObservedPod | None, memory: PodMemory, init: bool) -> Look:
    instance = observed.newest(container.name) if observed else None
    known = memory.of(container.name)
    end = restart.ended(instance, known) if instance else restart.remembered(memory, container.name)
    stopped = known.stopped if instance is None else restart.stopped(instance, known)
    asked = instance is not None and known.restart_id == instance.id
    return Look(container, instance, end, pod.is_sidecar(container), init, stopped, asked)


def over(pod: Pod, look: Look) -> bool:
    """It has ended and is not to be started again.

    An exit that we forced is no decision of the container: except under Never it runs again, even
    with code 0, and no rule about exit codes counts (3.5, last column).
    """
    if look.end is None or look.asked:
        return False
    if look.stopped:
        return restart.policy(pod, look.container) == "Never"
    return not restart.again(pod, look.container, look.end)


def abandoned(pod: Pod, memory: PodMemory) -> bool:
    """No sandbox is made for it any more: policy Never, and something has run already (3.2.2)."""
    ever = any(memory.of(c.name).restart_count >= 0 for c in pod.all_containers)
    return restart.gives_up(pod) and ever and not memory.anew


def finished(pod: Pod, seen: View) -> bool:
    """Nothing is left to run: a regular init container failed for good, or all regular ones are done (3.2.6)."""
    failed_init = any(
        i.instance is not None and i.end is not None and not i.sidecar and over(pod, i) and not _ok(pod, i)
        for i in seen.inits
    )
    if failed_init and not seen.initialised:
        return True
    return all(over(pod, r) for r in seen.regulars)


def _ok(pod: Pod, look: Look) -> bool:
    return look.end is not None and restart.succeeded(pod, look.container, look.end)
