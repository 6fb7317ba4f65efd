"""The thread around the manifest directory: listings, hints, reading, and what is kept on disk.

Owns one thread and the last good versions of the files.  One look at the world is `step`, which
tests call by hand with a clock of their own; the thread only waits and calls it.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ... import durable
from ...core import lastgood
from ...model.problems import Problem
from ...model.sources import FileState, SourceState
from ...ports import Clock, Sink, Snapshot
from . import book, scan
from .book import Record
from .hints import Ear, Hints
from .kept import Kept

if TYPE_CHECKING:
    from ...model.decode import Decoded

log = logging.getLogger(__name__)

LOST_RETRY = 1.0
"""Seconds between looks for a directory that is not there (semantics 1.1.9)."""

SAVING = 0.5
"""Seconds of saving after which there is a look at what was heard: a thousand files on a slow disk take minutes."""

Decode = Callable[[bytes, str], "Decoded"]
"""(bytes, file name to show) -> what they say."""


class FileSource:
    """Pods from a directory of manifests, or from one file (ports.Source; semantics 1.1).

    Listed at start, every `check_frequency` seconds and on inotify's word.  `store_dir` keeps the
    last good versions (mode 0600).  `strict` refuses what would be a warning.
    """

    name = "file"

    def __init__(
        self,
        path: str,
        node_name: str,
        sink: Sink,
        clock: Clock,
        store_dir: str,
        check_frequency: float = 20.0,
        strict: bool = False,
        decode: Decode | None = None,
        files: durable.Files = durable.DISK,
    ) -> None:
        self._root = scan.Root(path)
        self._sink = sink
        self._clock = clock
        self._check_frequency = check_frequency
        self._decode = decode or _decoder(node_name, strict)
        self._kept = Kept(store_dir, self._root.path, files)
        self._ear = Ear()
        self._thread = threading.Thread(target=self._run, name="source-file", daemon=True)
        self._records: dict[str, Record] = {}
        self._skipped: dict[str, str] = {}
        self._rechecks: dict[str, float] = {}
        self._next_listing = 0.0
        self._place: scan.Place | None = None
        self._complete: scan.Place | None = None
        self._listening = False
        self._visit = 1
        self._lost = ""
        self._seen = False
        self._unsaved = False
        self._last = Snapshot(self.name, seen=False)
        self._state = SourceState(self.name, self._root.path, ok=False, message="not read yet")

    def start(self) -> None:
        """See ports.Source."""
        self.begin()
        self._thread.start()

    def begin(self) -> None:
        """The first look, without the thread."""
        self._records = self._kept.restore()
        self._list(self._clock.monotonic(), starting=True)
        self._publish(always=True)
        self._save()

    def stop(self) -> None:
        """See ports.Source."""
        self._ear.stop()
        if self._thread.is_alive():
            self._thread.join(5.0)
        if not self._thread.is_alive():
            self._ear.close()

    def look(self) -> None:
        """List now, whatever the time; from any thread."""
        self._ear.look()

    def state(self) -> SourceState:
        """The source as of its last look; from any thread."""
        return self._state

    def states(self) -> tuple[FileState, ...]:
        """Every file in the directory, read or skipped, as of the last look; from any thread."""
        return self._state.files

    # -- the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        while (hints := self.wait(self.wake_at() - self._clock.monotonic())) is not None:
            try:
                self.step(hints)
            except Exception:  # guard
                # A fault here must not end the watch over the directory.
                log.exception("cannot process changes of %s; trying again at the next listing", self._root.path)
                self._next_listing = self._clock.monotonic() + self._check_frequency
                self._rechecks.clear()

    def wait(self, timeout: float) -> Hints | None:
        """What inotify says within `timeout` seconds; None = stopped."""
        return self._ear.take(timeout)

    def wake_at(self) -> float:
        """The monotonic second at which `step` is due even without hints."""
        return min([self._next_listing, *self._rechecks.values(), *([0.0] if self._unsaved else [])])

    def step(self, hints: Hints) -> None:
        """Look at what the hints and the time call for, deliver a snapshot if it differs, save."""
        now = self._clock.monotonic()
        if not self._lost:
            self._hear(hints, now)
        if hints.listing or now >= self._next_listing:
            self._list(now, trusted=hints.swapped, deaf=hints.deaf)
        for name in [n for n, due in self._rechecks.items() if due <= now]:
            del self._rechecks[name]
            self._look(name, now)
        self._publish()
        # After the snapshot: a sync of the disk can take longer than the start of a pod may.
        self._save()

    def _hear(self, hints: Hints, now: float) -> None:
        for name in hints.gone:
            record = self._records.get(name)
            if record is not None and self._place is not None:
                # Heard from the directory that is there now: that is as good as having seen the file in it.
                record.seen(self._place, self._visit)
                record.deletion_seen, record.written_at = True, None
                self._look(name, now)
        for name in hints.written:
            if self._root.reason_to_skip(name) is None:
                self._record(name).written_at = now
                self._look(name, now)
        for name in hints.whole:
            self._look(name, now, trusted=True, renamed=name in hints.renamed)
        for name in hints.touched:
            self._look(name, now)

    def _record(self, name: str) -> Record:
        return self._records.setdefault(name, Record(name, place=self._place, visit=self._visit))

    # -- listing ------------------------------------------------------------------------------

    def _list(self, now: float, starting: bool = False, trusted: bool = False, deaf: bool = False) -> None:
        self._next_listing = now + self._check_frequency
        try:
            self._root.resolve()
            self._arrive(scan.place(self._root.directory))
            listing = self._root.list()
        except OSError as err:
            self._lose(f"cannot read {self._root.path}: {err.strerror or err}", now)
            return
        self._lost = ""
        self._skipped = listing.skipped
        for found in listing.found.values():
            self._consider(found, now, trusted or (starting and not self._fresh(found)))
        for record in self._records.values():
            if record.name not in listing.found:
                self._miss(record, now)
        watched = self._ear.armed and not deaf
        self._judge(book.View(listing.place, self._visit, listing.inhabited, watched, self._check_frequency), now)

    def _arrive(self, place: scan.Place) -> None:
        """Listen to the directory at the path; a watch that ended says that it is another one."""
        interrupted = self._listening and not self._ear.armed
        if self._place is not None and (place != self._place or interrupted):
            self._interrupt()
        if place != self._place or not self._ear.armed:
            # Before the listing, so that nothing changes unheard between the two.
            self._ear.arm(self._root.directory)
        self._place, self._listening = place, self._ear.armed

    def _lose(self, reason: str, now: float) -> None:
        if not self._lost:
            log.warning("%s; its pods keep running", reason)
            self._interrupt()
        self._lost = reason
        self._place = None
        self._ear.disarm()
        self._next_listing = now + min(LOST_RETRY, self._check_frequency)
        for record in self._records.values():
            record.missing_since, record.deletion_seen, record.held = None, False, ""

    def _interrupt(self) -> None:
        """From here on it may be another directory, even with the same inode: remembered over a restart too."""
        self._visit += 1
        self._complete = self._kept.unsure()

    def _judge(self, view: book.View, now: float) -> None:
        """Drop the files that are gone; schedule the next look at those that may be."""
        for record in [r for r in self._records.values() if r.missing_since is not None]:
            due = book.judge(record, view, now)
            if due is None:
                continue
            if due <= now:
                log.info("%s is gone: its pods end", record.name)
                del self._records[record.name]
                self._kept.forget(record.name)
            else:
                self._next_listing = min(self._next_listing, due)
        missing = any(r.missing_since is not None for r in self._records.values())
        if not missing:
            self._complete = view.place
        self._seen = self._seen or not any(r.held for r in self._records.values())

    # -- one file -----------------------------------------------------------------------------

    def _look(self, name: str, now: float, trusted: bool = False, renamed: bool = False) -> None:
        if self._root.reason_to_skip(name) is not None or self._lost:
            return
        try:
            found = self._root.look(name)
        except FileNotFoundError:
            found = ""
        except OSError as err:
            found = scan.Found(name, None, error=str(err.strerror or err))
        if isinstance(found, scan.Found):
            self._consider(found, now, trusted, renamed)
        elif record := self._records.get(name):
            self._miss(record, now)

    def _miss(self, record: Record, now: float) -> None:
        if record.missing_since is None:
            record.missing_since, record.stamp = now, None
            self._next_listing = min(self._next_listing, now + book.VANISHED_GRACE)

    def _consider(self, found: scan.Found, now: float, trusted: bool, renamed: bool = False) -> None:
        """Read the file if it changed and is whole."""
        record = self._record(found.name)
        if self._place is not None:
            record.seen(self._place, self._visit)
        if found.stamp is None:
            self._unreadable(record, f"it cannot be looked at: {found.error}")
        elif found.stamp == record.stamp:
            record.settled()
        elif trusted or record.retargeted(found):
            self._read(record, found.stamp, now, renamed)
        elif due := record.recheck_at(found.stamp, now):
            self._rechecks[found.name] = due
        else:
            self._read(record, found.stamp, now, renamed)

    def _read(self, record: Record, expected: scan.Stamp, now: float, renamed: bool) -> None:
        record.settled()
        try:
            data, stamp = self._root.read(record.name)
        except FileNotFoundError:
            self._miss(record, now)
            return
        except OSError as err:
            self._unreadable(record, f"it cannot be read: {err.strerror or err}")
            return
        if stamp != expected:
            record.unsettled, record.unsettled_since = stamp, now
            self._rechecks[record.name] = now + book.QUIET
            return
        record.stamp = stamp
        digest = hashlib.sha256(data).digest()
        if digest != record.digest or renamed:
            record.digest = digest
            self._weigh(record, data, renamed)

    def _weigh(self, record: Record, data: bytes, renamed: bool) -> None:
        if len(data) > scan.MAX_BYTES:
            self._refuse(record, f"it is larger than {scan.MAX_BYTES >> 20} MiB")
            return
        if damage := lastgood.damage(data):
            self._refuse(record, damage)
            return
        decoded = self._decode(data, record.name)
        valid = all(p.warning for p in decoded.problems)
        if valid and not renamed and record.versions and lastgood.looks_cut(data, record.versions[-1]):
            self._refuse(record, lastgood.CUT)
            return
        record.outcome = lastgood.weigh(decoded, lastgood.NOTHING if valid else self._outcome(record))
        versions = lastgood.remember(record.versions, data, record.outcome)
        record.dirty |= versions != record.versions
        record.versions = versions

    def _refuse(self, record: Record, reason: str) -> None:
        problem = Problem(reason, file=record.name)
        record.outcome = lastgood.refuse(problem, self._outcome(record))

    def _unreadable(self, record: Record, reason: str) -> None:
        """Forget what it was like, so that the same content counts as new once it can be read."""
        record.stamp, record.digest = None, b""
        self._refuse(record, reason)

    def _outcome(self, record: Record) -> lastgood.Outcome:
        """What runs of the file; kept versions are decoded only when it comes to that."""
        if record.outcome is None:
            record.outcome = lastgood.replay(record.versions, lambda data: self._decode(data, record.name))
        return record.outcome

    def _fresh(self, found: scan.Found) -> bool:
        """At start nobody heard who was writing: a file changed just now, with a version kept, can wait."""
        record = self._records.get(found.name)
        if record is None or not record.versions or found.stamp is None:
            return False
        return 0.0 <= self._clock.time() - found.stamp.mtime_ns / 1e9 < book.QUIET

    # -- results ------------------------------------------------------------------------------

    def _publish(self, always: bool = False) -> None:
        for record in self._records.values():
            self._outcome(record)
        settled = book.settle(self._records.values(), self._skipped)
        general = [Problem(text, file=self._root.path) for text in (self._lost, self._kept.trouble) if text]
        problems = tuple(general + settled.problems)
        objects = tuple(settled.objects.values())
        snapshot = Snapshot(self.name, tuple(settled.pods), problems, self._seen, self._lost, objects)
        self._report(snapshot, tuple(settled.states))
        if always or snapshot != self._last:
            self._last = snapshot
            self._sink.put(snapshot)

    def _report(self, snapshot: Snapshot, files: tuple[FileState, ...]) -> None:
        now = self._clock.time()
        self._state = SourceState(
            self.name,
            self._root.path,
            ok=not self._lost,
            message=self._lost,
            pods=len(snapshot.pods),
            read_at=self._state.read_at if self._lost else now,
            tried_at=now,
            from_last_good=bool(self._lost) or any(f.from_last_good for f in files),
            problems=tuple(str(p) for p in snapshot.problems if not p.warning),
            files=files,
        )

    def _save(self) -> None:
        before, until = self._kept.trouble, self._clock.monotonic() + SAVING
        self._unsaved = not self._kept.save(
            self._records, self._complete, forget=not self._lost, busy=lambda: self._clock.monotonic() > until
        )
        if self._kept.trouble != before:
            self._publish()


def _decoder(node_name: str, strict: bool) -> Decode:
    from ...model import decode

    def call(data: bytes, file: str) -> Decoded:
        return decode.decode(data, decode.Origin(file=file, source="file", node_name=node_name, strict=strict))

    return call
