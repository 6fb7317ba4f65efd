"""What a pod's worker remembers between two looks at the runtime, and how each outcome changes it.

Owned by that worker alone.  The part that must survive the agent (counts, last states, back-offs)
has a plain form for the disk: `dump` and `load`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..model.actions import Verb
from ..model.hooks import HookKind, HookState, HookStates
from ..model.pod import Pod
from ..model.status import Terminated, Waiting
from .backoff import Backoff


class Kind(enum.Enum):
    """What kind of failure it was, where that decides what helps."""

    OTHER = "other"
    DAMAGED = "damaged image"
    TAKEN = "name taken"
    REFUSED = "refused for what the pod asks"


class PullState(enum.Enum):
    """Where the image of a container stands."""

    MISSING = "missing"
    PULLING = "pulling"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Pull:
    """The last thing known of a container's image; `at` is monotonic, `delay` seconds to the next try."""

    state: PullState
    reason: str = ""
    message: str = ""
    at: float = 0.0
    delay: float = 0.0

    @property
    def retry_at(self) -> float:
        """When a failed pull may be tried again."""
        return self.at + self.delay


@dataclass(frozen=True, slots=True)
class Stopping:
    """A stop under way: begun at `since`, SIGKILL due at `deadline` (monotonic seconds).

    `hooking` = the preStop hook is waited for, the stop signal is yet to come; `late` = seconds between
    `since` and that signal.
    """

    container_id: str
    since: float
    deadline: float
    reason: str = ""
    kills: int = 0
    hooking: bool = False
    late: float = 0.0


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of the whole pod, once begun carried through; `since` is wall-clock, for deletionTimestamp."""

    reason: str
    keep_data: bool
    since: float
    anew: bool = False


@dataclass(frozen=True, slots=True)
class StartError:
    """An instance that was created but could not be started, at monotonic time `at`."""

    container_id: str
    message: str
    at: float


@dataclass(frozen=True, slots=True)
class Trouble:
    """The runtime failed the pod's last step `failures` times in a row; tried again at `retry_at`.

    `tries` of these were the same `verb`, the last one for that `target` and `container`; None = Podman did not
    even answer, so nothing about the step is known.
    """

    message: str
    failures: int
    retry_at: float
    verb: Verb | None = None
    target: str = ""
    container: str = ""
    tries: int = 0
    kind: Kind = Kind.OTHER


@dataclass(frozen=True, slots=True)
class Climb:
    """How far up the repair ladder of a failing `verb` this pod is: `rung` rungs have been taken."""

    verb: Verb
    rung: int


@dataclass(frozen=True, slots=True)
class RestartingAll:
    """All containers are being removed to run again, as instance `id` of `container` ended (monotonic `at`)."""

    container: str
    id: str
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the pod as a whole has failed, for good."""

    reason: str
    message: str


RESTARTING_ALL = Terminated(137, "RestartingAllContainers")
"""How a container ended that was removed because all containers of its pod run again (3.5)."""


@dataclass(frozen=True, slots=True)
class ContainerMemory:
    """Per container name.

    `restart_count` -1 = never created.  `waiting` and `retry_at` (monotonic) are those of a start
    that could not even begin, `failures` how often in a row.  `last` is the newest known end, and
    `ended` says that it is the end of the newest instance; `stopped` that we brought that end about, so
    that its exit code says nothing about the container.  `restart_id` is an instance that a person
    wants replaced.  `base` is the lowest number that the next instance may have.
    """

    restart_count: int = -1
    backoff: Backoff | None = None
    stopping: Stopping | None = None
    pull: Pull | None = None
    waiting: Waiting | None = None
    retry_at: float = 0.0
    failures: int = 0
    last: Terminated | None = None
    ended: bool = False
    start_error: StartError | None = None
    restart_id: str = ""
    stopped: bool = False
    base: int = 0

    @property
    def next_count(self) -> int:
        """Restart count of the next instance, as far as memory knows."""
        return max(self.restart_count + 1, self.base)

    def renewed(self) -> ContainerMemory:
        """As if it had never run; only its counting goes on, and its last end can be told."""
        return ContainerMemory(base=self.next_count, last=self.last, pull=self.pull)

    def restarted(self, backoff: Backoff | None) -> ContainerMemory:
        """As if it had never run, after it was removed because another one's end asked for that (3.5)."""
        if self.restart_count < 0:
            return self.renewed()
        return replace(self.renewed(), last=RESTARTING_ALL, backoff=backoff)


@dataclass(frozen=True, slots=True)
class PodMemory:
    """Per pod generation.

    `attempt` numbers the sandboxes made so far (0 = none yet); `replace_id` is a Podman pod that is
    to be replaced by a new one of the same generation (`edgelet restart`); `anew` = in the next sandbox
    all containers run again, however they ended.  `hooks` is how its hooks stood when last looked at.
    `active_from` is the monotonic second from which its deadline counts (0 = not known yet).
    """

    uid: str = ""
    config_hash: str = ""
    boot_id: str = ""
    containers: Mapping[str, ContainerMemory] = field(default_factory=dict)
    start_time: float = 0.0
    attempt: int = 0
    trouble: Trouble | None = None
    climb: Climb | None = None
    ending: Ending | None = None
    replace_id: str = ""
    anew: bool = False
    hooks: HookStates = field(default_factory=dict)
    active_from: float = 0.0
    failed: Failure | None = None
    restarting: RestartingAll | None = None

    def of(self, name: str) -> ContainerMemory:
        """Memory of one container, fresh if there is none."""
        return self.containers.get(name, _FRESH)

    def hook(self, container_id: str, kind: HookKind) -> HookState | None:
        """How a hook of an instance stands; None = it was not begun, or by an earlier agent."""
        return self.hooks.get((container_id, kind))

    def update(self, name: str, **changes: Any) -> PodMemory:
        """A copy with some fields of one container's memory changed."""
        changed = replace(self.of(name), **changes)
        return replace(self, containers={**self.containers, name: changed})

    def impatient(self) -> PodMemory:
        """A copy that waits for nothing: no back-off, no retry time, no trouble (a person said so)."""
        eager = {n: replace(c, backoff=None, retry_at=0.0, pull=_eager(c.pull)) for n, c in self.containers.items()}
        return replace(self, containers=eager, trouble=None, climb=None)


def _eager(pull: Pull | None) -> Pull | None:
    return None if pull is not None and pull.state is PullState.FAILED else pull


_FRESH = ContainerMemory()


def fresh(pod: Pod, boot_id: str, wall: float) -> PodMemory:
    """The memory of a generation that was never seen before."""
    return PodMemory(uid=pod.uid, config_hash=pod.config_hash, boot_id=boot_id, start_time=wall)


def once_more(memory: PodMemory, wall: float) -> PodMemory:
    """The same generation from nothing: its manifest went and came back; only counts go on (1.5.6)."""
    containers = {name: c.renewed() for name, c in memory.containers.items()}
    return PodMemory(memory.uid, memory.config_hash, memory.boot_id, containers, start_time=wall)


def dump(memory: PodMemory) -> dict[str, Any]:
    """The lasting part as JSON-ready values (see `load`)."""
    return {
        "uid": memory.uid,
        "configHash": memory.config_hash,
        "bootID": memory.boot_id,
        "startTime": memory.start_time,
        "attempt": memory.attempt,
        "anew": memory.anew,
        "ending": _dump_ending(memory.ending),
        "activeFrom": memory.active_from,
        **({"failed": [memory.failed.reason, memory.failed.message]} if memory.failed else {}),
        **({"restarting": [memory.restarting.container, memory.restarting.id]} if memory.restarting else {}),
        "containers": {name: _dump_container(c) for name, c in sorted(memory.containers.items())},
    }


def _dump_ending(ending: Ending | None) -> list[Any] | None:
    return [ending.reason, ending.keep_data, ending.since, ending.anew] if ending else None


def _dump_container(c: ContainerMemory) -> dict[str, Any]:
    out: dict[str, Any] = {"restartCount": c.restart_count, "ended": c.ended, "stopped": c.stopped, "base": c.base}
    if c.backoff:
        out["backoff"] = [c.backoff.delay, c.backoff.updated]
    if c.stopping:
        s = c.stopping
        out["stopping"] = [s.container_id, s.since, s.deadline, s.reason, s.kills, s.hooking, s.late]
    if c.last:
        t = c.last
        out["last"] = [t.exit_code, t.reason, t.started_at, t.finished_at, t.message, t.container_id, t.signal]
    return out


def load(data: Mapping[str, Any], boot_id: str) -> PodMemory:
    """Memory from `dump`ed values, seen in boot `boot_id`.

    After a reboot the monotonic clock starts anew, so back-offs and stops are dropped.  Raises KeyError,
    TypeError or ValueError on values that `dump` did not write.
    """
    same = data["bootID"] == boot_id
    containers = {str(n): _load_container(c, same) for n, c in dict(data["containers"]).items()}
    return PodMemory(
        uid=str(data["uid"]),
        config_hash=str(data["configHash"]),
        boot_id=boot_id,
        containers=containers,
        start_time=float(data["startTime"]),
        attempt=int(data["attempt"]),
        anew=bool(data.get("anew", False)),
        ending=_load_ending(data.get("ending")),
        active_from=float(data.get("activeFrom", 0.0)) if same else 0.0,
        failed=Failure(*map(str, data["failed"])) if "failed" in data else None,
        restarting=_load_restarting(data.get("restarting")),
    )


def _load_restarting(values: list[Any] | None) -> RestartingAll | None:
    if not values:
        return None
    container, container_id = values
    return RestartingAll(str(container), str(container_id))


def _load_ending(values: list[Any] | None) -> Ending | None:
    if not values:
        return None
    reason, keep_data, since, anew = values
    return Ending(str(reason), bool(keep_data), float(since), bool(anew))


def _load_container(data: Mapping[str, Any], same_boot: bool) -> ContainerMemory:
    data = dict(data)
    last = data.get("last")
    backoff = _load_backoff(data.get("backoff")) if same_boot else None
    stopping = _load_stopping(data.get("stopping")) if same_boot else None
    return ContainerMemory(
        restart_count=int(data["restartCount"]),
        ended=bool(data["ended"]),
        stopped=bool(data.get("stopped", False)),
        base=int(data.get("base", 0)),
        backoff=backoff,
        stopping=stopping,
        last=_load_last(last) if last else None,
    )


def _load_backoff(values: list[Any] | None) -> Backoff | None:
    if not values:
        return None
    delay, updated = values
    return Backoff(float(delay), float(updated))


def _load_stopping(values: list[Any] | None) -> Stopping | None:
    """A stop goes on where it was: neither its grace nor its hook begins anew with the agent."""
    if not values:
        return None
    container_id, since, deadline, reason, kills, hooking, late = values
    return Stopping(
        str(container_id), float(since), float(deadline), str(reason), int(kills), bool(hooking), float(late)
    )


def _load_last(values: list[Any]) -> Terminated:
    code, reason, started, finished, message, container_id, signal = values
    return Terminated(
        int(code), str(reason), float(started), float(finished), str(message), str(container_id), int(signal)
    )
