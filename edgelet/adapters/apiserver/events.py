"""Tells the server the events of this box, those of a time without a link included, each once (semantics 7.6)."""

from __future__ import annotations

import logging
import os
import random

from ...core import mirror_events, mirror_link, mirror_pods
from ...engine.journal import Change
from ...model.events import Event
from ...model.pod import PodKey
from . import api
from .ledger import Ledger
from .node import NodeState
from .parts import Parts

log = logging.getLogger(__name__)

AT_ONCE = 5
"""So many are sent before the heartbeat and the pods get their turn again."""
ALL_SECONDS = 60.0
"""Counts of repeats that were not announced are told so often."""
KEEP_SECONDS = 0.5
"""An event that is not on disk yet is looked at again after that: only what a restart remembers is told."""
SETTLE = 0.1
"""Seconds for events to gather: a pod that starts makes half a dozen."""


class EventsTask:
    """`ring_changed` from any thread, all else from the mirror's."""

    name = "events"

    def __init__(self, parts: Parts, asked: api.Api, state: NodeState) -> None:
        self._parts = parts
        self._api = asked
        self._state = state
        self._ledger = Ledger(os.path.join(parts.options.state_dir, "events.sent"))
        self._due = 0.0
        self._parked: dict[str, tuple[int, float]] = {}  # namespace -> refusals in a row, second of the next try
        self._queue: list[Event] = []

    def ring_changed(self, change: Change[Event]) -> None:
        """There is news."""
        self._due = min(self._due, self._parts.clock.monotonic() + SETTLE)

    def begin(self) -> None:
        """The Node is known: under a new uid, everything is told anew."""
        self._ledger.begin(self._state.uid)
        self._parked.clear()
        self._due = 0.0

    @property
    def pending(self) -> int:
        """About how many are not told."""
        return len(self._queue)

    def due(self, now: float) -> float | None:
        """See parts.Task."""
        if not self._state.uid or self._state.clash:
            return None
        return self._due

    def lost(self) -> None:
        """See parts.Task."""

    def run(self, now: float) -> None:
        """See parts.Task."""
        self._due = now + ALL_SECONDS
        kept = self._parts.kept()  # before the events: what comes meanwhile waits
        recorded = self._parts.events.events()
        everything = [e for e in recorded if e.version <= kept]
        if len(everything) < len(recorded):
            self._due = now + KEEP_SECONDS
        self._queue = [e for e in mirror_events.pending(everything, self._ledger.sent) if self._open(e, now)]
        sent = 0
        self._ledger.telling(e.name for e in self._queue[:AT_ONCE])
        try:
            for event in self._queue[:AT_ONCE]:
                self._send(event, now)
                sent += 1
        finally:
            self._ledger.flush(e.name for e in recorded)
            if sent < len(self._queue):
                self._due = 0.0
            parked = [at for _, at in self._parked.values() if at > now]
            if parked:  # else `ring_changed` may have set it meanwhile
                self._due = min(self._due, *parked)
            self._queue = self._queue[sent:]

    def _open(self, event: Event, now: float) -> bool:
        return now >= self._parked.get(_namespace(event), (0, 0.0))[1]

    def _park(self, namespace: str, now: float) -> None:
        """Its events wait, in their order: a namespace that is not there, or trouble of the server's."""
        failures = self._parked.get(namespace, (0, 0.0))[0] + 1
        self._parked[namespace] = failures, now + mirror_link.object_retry(failures, random.random())

    def _send(self, event: Event, now: float) -> None:
        if not self._open(event, now):
            return
        namespace = _namespace(event)
        if event.name in self._ledger.sent and self._repeated(event, namespace):
            return
        reply = self._api.create_event(namespace, self._body(event))
        if reply.code in (200, 201) or (reply.code == 409 and self._repeated(event, namespace)):
            self._ledger.told(event.name, mirror_events.told(event))
            self._parked.pop(namespace, None)
        elif reply.code in (400, 413, 422):
            log.warning("the API server does not take an event: %s", reply.message)
            self._ledger.told(event.name, mirror_events.told(event))
        else:
            log.info("cannot tell the events of namespace %s: %s", namespace, reply.message)
            self._park(namespace, now)

    def _repeated(self, event: Event, namespace: str) -> bool:
        """Tell the newest count of one that the server knows; False = it has forgotten it."""
        reply = self._api.patch_event(namespace, event.name, mirror_events.repeat(event))
        if reply.code != 200:
            return False
        self._ledger.told(event.name, mirror_events.told(event))
        return True

    def _body(self, event: Event) -> api.Json:
        """The event of a pod that was given through the API is about its mirror, whose name differs."""
        names: dict[PodKey, PodKey] = {}
        hashes: dict[str, str] = {}
        entry = self._parts.store.get(event.key)
        if entry is not None:
            names[event.key] = mirror_pods.key_of(entry.pod, self._parts.options.node)
            if entry.pod.uid == event.uid:
                hashes[event.uid] = entry.pod.config_hash
        return mirror_events.body(event, self._parts.options.node, names, hashes)


def _namespace(event: Event) -> str:
    return event.key.namespace or "default"
