"""Decides what should run: the snapshots of all sources, merged into one set of pods.

Pure. Two rules live here: which source wins when two name the same pod (a fixed order, always
reported), and when the absence of a pod is evidence enough to end it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..model.objects import LocalObject
from ..model.pod import Pod, PodKey
from ..model.problems import Problem
from ..ports import Snapshot


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two sources name the same pod: `winner` and `loser` are source names."""

    key: PodKey
    winner: str
    loser: str

    def __str__(self) -> str:
        return (
            f"pod {self.key} comes from two sources, {self.winner} and {self.loser}: the one from {self.winner} runs;"
            f" remove or rename one of them"
        )


@dataclass(frozen=True, slots=True)
class Desired:
    """The merged wish.

    `problems` are those of all snapshots and one per conflict, in the order of the sources;
    `unseen` the configured sources that have not spoken yet.
    """

    pods: Mapping[PodKey, Pod]
    problems: tuple[Problem, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    unseen: tuple[str, ...] = ()


def merge(snapshots: Mapping[str, Snapshot], order: tuple[str, ...]) -> Desired:
    """All pods that should run now; no side effects.

    `order` names every configured source, the strongest first (file, URLs as configured, api).
    A snapshot of a source that is not in it is ignored: that source was taken out of the
    configuration.  Inside one snapshot the first pod of a name wins (semantics 1.5.2).
    """
    pods: dict[PodKey, Pod] = {}
    winners: dict[PodKey, str] = {}
    problems: list[Problem] = []
    conflicts: list[Conflict] = []
    for name in order:
        snapshot = snapshots.get(name)
        if snapshot is None:
            continue
        problems.extend(snapshot.problems)
        for pod in snapshot.pods:
            winner = winners.setdefault(pod.key, name)
            if pods.setdefault(pod.key, pod) is not pod:
                conflicts.append(Conflict(pod.key, winner, name))
    problems.extend(Problem(str(c), file=c.loser) for c in conflicts)
    return Desired(pods, tuple(problems), tuple(conflicts), _unseen(snapshots, order))


def objects(snapshots: Mapping[str, Snapshot], order: tuple[str, ...]) -> tuple[LocalObject, ...]:
    """The ConfigMaps and Secrets of all sources; of two with one name the stronger source's counts, as with pods."""
    found: dict[tuple[str, str, str], LocalObject] = {}
    for name in order:
        for one in snapshots[name].objects if name in snapshots else ():
            found.setdefault(one.id, one)
    return tuple(found[key] for key in sorted(found))


def may_end(source: str, snapshots: Mapping[str, Snapshot], order: Iterable[str]) -> bool:
    """Whether a running pod that `source` (its label) once gave, and nobody wants now, may be ended.

    Yes once its own source has spoken (design section 4).  A source that left the configuration
    cannot speak any more: then every configured source of its kind ("http:..." beside "http:...")
    must have, so that an edited URL does not end pods which the new URL gives as well.
    A pod without the label ("") waits for all sources.
    """
    configured = tuple(order)
    if source in configured:
        return source not in _unseen(snapshots, configured)
    kind = source.partition(":")[0]
    relatives = tuple(s for s in configured if s.partition(":")[0] == kind or not source)
    return not _unseen(snapshots, relatives)


def _unseen(snapshots: Mapping[str, Snapshot], order: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in order if name not in snapshots or not snapshots[name].seen)
