"""The thread around one URL: when to ask, what a reply may change, and what is kept on disk.

One look is `step`, which tests call by hand with a clock and a server of their own.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import os
import random
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from ... import durable
from ...core import clock_set, lastgood, polling
from ...errors import StateError
from ...model.pod import Pod
from ...model.problems import Problem
from ...model.sources import SourceState
from ...ports import Clock, Sink, Snapshot
from .failures import FetchError
from .fetch import PLAIN, Access, Fetcher, Reply, Validators

if TYPE_CHECKING:
    from ...model.decode import Decoded

log = logging.getLogger(__name__)

CLOCK_LOOK = 1.0
"""Seconds between looks at the clock while a wrong one may be why certificates fail."""

Decode = Callable[[bytes, str], "Decoded"]
Fetch = Callable[[Validators], Reply]


def source_name(url: str) -> str:
    """The source's name and label: the same after a restart, whatever other URLs there are."""
    return "http:" + hashlib.sha256(url.encode()).hexdigest()[:8]


def display(url: str) -> str:
    """The URL without what may be secret in it: credentials, query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "..." if parts.query else "", ""))


def prune(store_dir: str, urls: Iterable[str]) -> None:
    """Forget what was kept of URLs that are no longer configured. Raises StateError."""
    store = _store(store_dir)
    for name in set(store.load().entries) - {source_name(url) for url in urls}:
        store.remove(name)


class UrlSource:
    """Pods from one URL (ports.Source; semantics 1.2 with the differences of design section 4).

    `start` delivers the last known good pods, `seen` False, and then asks.  Only a reply that is
    fully valid counts as having spoken.
    """

    def __init__(
        self,
        url: str,
        node_name: str,
        sink: Sink,
        clock: Clock,
        store_dir: str,
        check_frequency: float = 20.0,
        access: Access = PLAIN,
        strict: bool = False,
        decode: Decode | None = None,
        fetch: Fetch | None = None,
        draw: Callable[[], float] = random.random,
        files: durable.Files = durable.DISK,
    ) -> None:
        self.name = source_name(url)
        self._shown = display(url)
        self._sink = sink
        self._clock = clock
        self._frequency = check_frequency
        self._decode = decode or _decoder(node_name, strict)
        self._fetcher = Fetcher(url, access)
        self._fetch = fetch or self._fetcher
        self._draw = draw
        self._store = _store(store_dir, files)
        self._stopping = threading.Event()
        self._asked = threading.Event()
        self._thread: threading.Thread | None = None
        self._versions: tuple[bytes, ...] = ()
        self._outcome = lastgood.NOTHING
        self._unsaved = False
        self._digest = b""
        self._validators = Validators()
        self._failures = 0
        self._error = ""
        self._store_trouble = ""
        self._clock_offset: float | None = None
        self._due = 0.0
        self._seen = False
        self._last = Snapshot(self.name, seen=False)
        self._state = SourceState(self.name, self._shown, ok=False, message="not read yet")

    def start(self) -> None:
        """See ports.Source."""
        self.begin()
        self._thread = threading.Thread(target=self._run, name=f"source-{self.name}", daemon=True)
        self._thread.start()

    def begin(self) -> None:
        """The first snapshot, from what was kept, without the thread."""
        self._restore()
        self._publish(always=True)
        last_good = bool(self._versions)
        self._due = self._clock.monotonic() + polling.first_delay(self._frequency, last_good, self._draw())

    def stop(self) -> None:
        """See ports.Source."""
        self._stopping.set()
        self._asked.set()
        self._fetcher.abort()
        if self._thread is not None:
            self._thread.join(5.0)
        self._fetcher.close()

    def look(self) -> None:
        """Ask now, whatever the time; from any thread."""
        self._asked.set()

    def state(self) -> SourceState:
        """The source as of its last request; from any thread."""
        return self._state

    # -- the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        while self._wait(max(0.0, self.wake_at() - self._clock.monotonic())):
            try:
                self.step()
            except Exception:  # guard
                # A fault here must not end the watch over the URL.
                log.exception("cannot process the reply of %s", self._shown)
                self._due = self._clock.monotonic() + self._frequency

    def _wait(self, seconds: float) -> bool:
        """Until a step is due or asked for; False = stop."""
        if self._asked.wait(seconds):
            self._asked.clear()
            self._due = self._clock.monotonic()
        return not self._stopping.is_set()

    def wake_at(self) -> float:
        """The monotonic second at which `step` is due."""
        if self._clock_offset is None:
            return self._due
        return min(self._due, self._clock.monotonic() + CLOCK_LOOK)

    def step(self) -> None:
        """Ask if it is time to, take in the reply, deliver a snapshot if it differs, save."""
        if self._clock.monotonic() < self._due and not self._clock_was_set():
            return
        try:
            reply = self._fetch(self._validators)
        except FetchError as err:
            if not self._stopping.is_set():
                self._failed(err)
        else:
            self._answered(reply)
        self._publish()
        self._save()

    def _clock_was_set(self) -> bool:
        return self._clock_offset is not None and clock_set.was_set(self._clock_offset, self._offset())

    def _offset(self) -> float:
        return clock_set.offset(self._clock.time(), self._clock.monotonic())

    # -- replies ------------------------------------------------------------------------------

    def _failed(self, err: FetchError) -> None:
        self._failures += 1
        self._error = f"cannot read {self._shown}: {err}"
        self._clock_offset = self._offset() if err.clock else None
        wait = polling.after_failure(self._frequency, self._failures, err.retry_after, self._draw())
        self._due = self._clock.monotonic() + wait
        self._complain()

    def _complain(self) -> None:
        how = polling.complaint(self._failures)
        if how == "warning":
            log.warning("%s; its pods keep running", self._error)
        elif how == "last":
            log.warning("%s; not logged again until it works", self._error)
        else:
            log.debug("%s", self._error)

    def _answered(self, reply: Reply) -> None:
        if self._failures:
            log.info("%s answers again after %d failures", self._shown, self._failures)
        wait = polling.after_success(self._frequency, self._state.read_at == 0.0, self._draw())
        self._due = self._clock.monotonic() + wait
        self._failures, self._error, self._clock_offset = 0, "", None
        self._state = dataclasses.replace(self._state, read_at=self._clock.time())
        if reply.data is None:
            return
        self._validators = reply.validators
        digest = hashlib.sha256(reply.data).digest()
        if digest != self._digest:
            self._digest = digest
            self._weigh(reply.data, reply.measured)

    def _weigh(self, data: bytes, measured: bool) -> None:
        reason = lastgood.damage(data) or _says_nothing(data)
        if not reason and not measured and self._versions and lastgood.looks_cut(data, self._versions[-1]):
            reason = "its last line has no end, and the server did not say how long it is: it may have been cut"
        decoded = None if reason else self._decode(data, self._shown)
        if decoded is not None and not (decoded.failed or decoded.pods or decoded.empty):
            decoded, reason = None, "it names no pod; to end all pods serve a PodList without items"
        if decoded is None:
            problem = Problem(f"the reply is refused: {reason}", file=self._shown)
            self._outcome = lastgood.refuse(problem, self._outcome)
        else:
            self._outcome = lastgood.weigh(decoded, self._outcome)
        self._seen = self._seen or self._outcome.accepted
        versions = lastgood.remember(self._versions, data, self._outcome)
        self._unsaved |= versions != self._versions
        self._versions = versions

    # -- results ------------------------------------------------------------------------------

    def _publish(self, always: bool = False) -> None:
        pods = tuple(self._mine(pod) for pod in self._outcome.pods)
        general = tuple(Problem(text, file=self._shown) for text in (self._error, self._store_trouble) if text)
        # A reply of which nothing can be used is as good as none.
        trouble = self._error or ("" if self._outcome.contributes else self._refused())
        problems, objects = general + self._outcome.problems, self._outcome.objects
        snapshot = Snapshot(self.name, pods, problems, self._seen, trouble, objects)
        self._report(snapshot)
        if always or snapshot != self._last:
            self._last = snapshot
            self._sink.put(snapshot)

    def _mine(self, pod: Pod) -> Pod:
        """With this source's own name as label, so that each URL's pods are told apart."""
        return dataclasses.replace(pod, source=self.name)

    def _report(self, snapshot: Snapshot) -> None:
        self._state = SourceState(
            self.name,
            self._shown,
            ok=not self._error and self._outcome.accepted,
            message=self._error or self._refused(),
            pods=len(snapshot.pods),
            read_at=self._state.read_at,
            tried_at=self._clock.time(),
            from_last_good=bool(snapshot.pods) and (not self._seen or self._outcome.kept or bool(self._error)),
            problems=tuple(str(p) for p in snapshot.problems if not p.warning),
        )

    def _refused(self) -> str:
        """The first mistake of the newest reply, "" if it has none."""
        return next((p.message for p in self._outcome.problems if not p.warning), "")

    def _save(self) -> None:
        """After the snapshot, as a slow disk must not hold up a pod; what fails is tried again."""
        if not self._unsaved:
            return
        before = self._store_trouble
        try:
            self._store.put(self.name, lastgood.pack(self._versions))
            self._unsaved, self._store_trouble = False, ""
        except StateError as err:
            self._store_trouble = f"{err}; after a reboot without link the newest pods may be missing"
        if self._store_trouble != before:
            self._publish()

    def _restore(self) -> None:
        try:
            loaded = self._store.load()
            self._versions = lastgood.unpack(loaded.entries[self.name])
        except KeyError:
            return
        except (StateError, ValueError) as err:
            self._store_trouble = f"cannot use what was kept of {self._shown}: {err}"
            return
        for complaint in loaded.complaints:
            log.warning("%s", complaint)
        self._outcome = lastgood.replay(self._versions, lambda data: self._decode(data, self._shown))


def _says_nothing(data: bytes) -> str:
    """A server that sends comments only has lost its content; a file may mean it, a URL must say it."""
    lines = (line.strip() for line in data.removeprefix(b"\xef\xbb\xbf").splitlines())
    if all(not line or line.startswith((b"#", b"---", b"...")) for line in lines):
        return "it holds only comments; to end all pods serve a PodList without items"
    return ""


def _store(store_dir: str, files: durable.Files = durable.DISK) -> durable.Store:
    return durable.Store(os.path.join(store_dir, "http"), files=files)


def _decoder(node_name: str, strict: bool) -> Decode:
    from ...model import decode

    def call(data: bytes, file: str) -> Decoded:
        return decode.decode(data, decode.Origin(file=file, source="http", node_name=node_name, strict=strict))

    return call
