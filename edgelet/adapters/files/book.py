"""Remembers each manifest file and decides what its absence means. No I/O, no clock.

The rule behind everything here: a pod ends because somebody deleted its file, never because the
file could not be seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...core.lastgood import Outcome
from ...model.objects import LocalObject
from ...model.pod import Pod, PodKey
from ...model.problems import Problem
from ...model.sources import FileState
from .scan import Found, Place, Stamp

VANISHED_GRACE = 0.5
"""Seconds a file must stay away before its pods end: editors save by rename-away and create."""

QUIET = 0.5
"""Seconds a changed file must stay the same before it is read, where no event says it is whole."""

WRITER_PATIENCE = 10.0
"""Seconds without a write after which a file that nobody closed is read nevertheless."""


@dataclass(slots=True)
class Record:
    """One manifest file: what it said last, what runs of it, and when it was last seen.

    `versions` are the bytes kept as last good; `outcome` None = they were not decoded yet.
    `visit` is the number of the uninterrupted look at the directory in which the file was last
    seen (0 = never since the agent started; then `place` is the directory of before).
    """

    name: str
    versions: tuple[bytes, ...] = ()
    outcome: Outcome | None = None
    digest: bytes = b""
    stamp: Stamp | None = None
    place: Place | None = None
    visit: int = 0
    missing_since: float | None = None
    deletion_seen: bool = False
    written_at: float | None = None
    unsettled: Stamp | None = None
    unsettled_since: float = 0.0
    held: str = ""
    dirty: bool = False

    def seen(self, place: Place, visit: int) -> None:
        """The file is there."""
        self.place, self.visit = place, visit
        self.missing_since, self.deletion_seen, self.held = None, False, ""

    def retargeted(self, found: Found) -> bool:
        """Whether a link leads to another file than before: that is a swap, whole at once."""
        return found.link and found.stamp is not None and (self.stamp is None or self.stamp.inode != found.stamp.inode)

    def recheck_at(self, stamp: Stamp, now: float) -> float | None:
        """When to look again before reading a file that no event called whole; None = read it now."""
        if self.written_at is not None and now < self.written_at + WRITER_PATIENCE:
            return self.written_at + WRITER_PATIENCE
        if stamp != self.unsettled:
            self.unsettled, self.unsettled_since = stamp, now
        due = self.unsettled_since + QUIET
        return due if now < due else None

    def settled(self) -> None:
        """The file is whole as it is."""
        self.written_at = self.unsettled = None


@dataclass(frozen=True, slots=True)
class View:
    """The directory as it was just listed, and how it was listened to.

    `inhabited` = it holds any entry; `watched` = a deletion would have been heard.
    """

    place: Place
    visit: int
    inhabited: bool
    watched: bool
    check_frequency: float


def judge(record: Record, view: View, now: float) -> float | None:
    """The monotonic second at which the pods of a missing file end; None = they do not, it is held."""
    if record.outcome is not None and not (record.outcome.pods or record.outcome.objects):
        return now
    verdict = _patience(record, view)
    if isinstance(verdict, str):
        record.held = verdict
        return None
    if record.held:
        # The directory has become itself again: the grace begins now.
        record.held, record.missing_since = "", now
    return (now if record.missing_since is None else record.missing_since) + verdict


def _patience(record: Record, view: View) -> float | str:
    """Seconds the file may stay away, or a clause: why its absence is no evidence of a deletion."""
    if record.visit == view.visit:
        if record.deletion_seen or view.inhabited or not view.watched:
            return VANISHED_GRACE
        return "the directory is empty and no deletion was seen"
    if record.place is None or record.place.filesystem != view.place.filesystem:
        return "the directory is on another file system than before"
    if record.visit == 0 and record.place == view.place:
        return VANISHED_GRACE
    if not view.inhabited:
        return "the directory was replaced by an empty one"
    # A directory put in the place of the old one is often filled file by file.
    return max(view.check_frequency, VANISHED_GRACE)


@dataclass(slots=True)
class Settled:
    """All files together: the pods to run, the objects beside them by id, and what there is to say."""

    pods: list[Pod] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    states: list[FileState] = field(default_factory=list)
    objects: dict[tuple[str, str, str], LocalObject] = field(default_factory=dict)


def settle(records: Iterable[Record], skipped: dict[str, str]) -> Settled:
    """Merge all files. Of two files that name the same pod the alphabetically first one wins.

    A file that is away for the moment loses against one that is there, so a renamed file is no
    conflict.  Every record must have an outcome.
    """
    settled = Settled()
    owners: dict[PodKey, tuple[str, Pod]] = {}
    for record in sorted(records, key=lambda r: (r.missing_since is not None or bool(r.held), r.name)):
        _settle_one(record, owners, settled)
    settled.states += [FileState(name, accepted=False, skipped=why) for name, why in skipped.items()]
    settled.states.sort(key=lambda s: s.file)
    return settled


def _settle_one(record: Record, owners: dict[PodKey, tuple[str, Pod]], settled: Settled) -> None:
    outcome = record.outcome or Outcome()
    problems = list(outcome.problems)
    mine = []
    for pod in outcome.pods:
        owner, winner = owners.setdefault(pod.key, (record.name, pod))
        if winner is pod:
            mine.append(pod)
        elif record.missing_since is None and not record.held:
            problems.append(_duplicate(record.name, owner, pod, winner))
    if record.held and mine:
        problems.append(_kept(record.name, record.held))
    settled.pods += mine
    for one in outcome.objects:
        if settled.objects.setdefault(one.id, one) is not one and record.missing_since is None and not record.held:
            problems.append(_second(record.name, one))
    settled.problems += problems
    settled.states.append(_state(record, mine, problems))


def _duplicate(name: str, owner: str, pod: Pod, winner: Pod) -> Problem:
    same = pod.config_hash == winner.config_hash
    text = f"pod {pod.key} is in {owner} already, which comes first in the alphabet and runs; remove or rename one"
    return Problem(text + (" (both say the same)" if same else ""), file=name, warning=same)


def _second(name: str, one: LocalObject) -> Problem:
    kind, namespace, title = one.id
    text = f"{kind} {namespace}/{title} is in a file that comes first in the alphabet already; remove or rename one"
    return Problem(text, file=name)


def _kept(name: str, why: str) -> Problem:
    return Problem(
        f"the file is not there, but {why}: its pod is kept; put the file back, or create it and delete it again"
        f" to end the pod",
        file=name,
    )


def _state(record: Record, mine: list[Pod], problems: list[Problem]) -> FileState:
    outcome = record.outcome or Outcome()
    errors = [str(p) for p in problems if not p.warning]
    return FileState(
        file=record.name,
        pods=tuple(str(pod.key) for pod in mine),
        accepted=outcome.accepted and not errors,
        warnings=tuple(str(p) for p in problems if p.warning),
        error="\n".join(errors),
        from_last_good=outcome.kept or bool(record.held and mine),
    )
