"""Owns what is wanted: takes the snapshots of the sources and tells each pod's worker its wish.

It is the Sink of all sources.  A pod is ended once nobody wants it *and* its own source has spoken
(core.desired.may_end); pods held by a person stay stopped over reboots.
"""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import replace
from typing import Protocol

from .. import errors, ports
from ..core import desired
from ..model.objects import LocalObject
from ..model.observed import ObservedPod
from ..model.pod import Pod, PodKey
from .admitter import Admitter
from .observer import Observer
from .workers import Wish, Workers

log = logging.getLogger(__name__)


class Holds(Protocol):
    """Durable bytes of the hold list."""

    def read(self) -> bytes | None:
        """The newest good copy, or None. Raises errors.StateError."""
        ...

    def write(self, data: bytes) -> None:
        """Replace it. Raises errors.StateError."""
        ...


class Director:
    """Merges snapshots into wishes. `order` names the configured sources, the strongest first."""

    def __init__(
        self,
        order: tuple[str, ...],
        workers: Workers,
        observer: Observer,
        recorder: ports.Recorder,
        holds: Holds,
        node_name: str = "",
        admitter: Admitter | None = None,
    ) -> None:
        self._order = order
        self._workers = workers
        self._observer = observer
        self._recorder = recorder
        self._admitter = admitter
        self._store = holds
        self.node = ports.EventRef(PodKey("", node_name), node_name)
        self._lock = threading.RLock()
        self._snapshots: dict[str, ports.Snapshot] = {}
        self._desired = desired.Desired({})
        self._objects: tuple[LocalObject, ...] = ()
        self._held: frozenset[PodKey] = _read(holds)
        self._wishes: dict[PodKey, Wish] = {}
        self._graces: dict[PodKey, int] = {}
        self._down: tuple[int, int | None] | None = None
        self._open = False

    # -- Sink ---------------------------------------------------------------------------------------

    def put(self, snapshot: ports.Snapshot) -> None:
        """Replace what one source wants."""
        with self._lock:
            self._tell_trouble(self._snapshots.get(snapshot.source), snapshot)
            self._snapshots[snapshot.source] = snapshot
            before = self._desired
            objects = desired.objects(self._snapshots, self._order)
            changed = objects != self._objects
            self._objects = objects
            self._desired = desired.merge(self._snapshots, self._order)
            for key in self._desired.pods.keys() - before.pods.keys():
                self._graces.pop(key, None)  # an earlier pod of that name
            self._tell_conflicts(before)
            self._tell_problems(before)
            if self._open:
                self._spread()
                self._hurry(changed)

    def open(self) -> None:
        """The runtime has been listed: from now on wishes go out (those that came before, now)."""
        with self._lock:
            self._open = True
            self._spread()

    def deleting(self, key: PodKey, grace: int) -> None:
        """From now on, when nobody wants this pod, its containers get so many seconds to end.

        To be told before the wish ends; a second, shorter one hurries an end under way (3.1.1).
        """
        with self._lock:
            self._graces[key] = min(grace, self._graces.get(key, grace))
            if self._open and key not in self._desired.pods:
                self._spread()

    def go_down(self, seconds: int, below: int | None = None) -> None:
        """The machine is going down: pods of a priority below that (None = all) end, and stay wanted.

        Each of their containers gets so many seconds.
        """
        with self._lock:
            self._down = seconds, below
            self._spread()

    def goes_down(self, key: PodKey) -> int | None:
        """The seconds that are left to that pod, None = it stays up."""
        if self._down is None:
            return None
        seconds, below = self._down
        pod = self._desired.pods.get(key)
        return seconds if pod is None or below is None or pod.priority < below else None

    def recheck(self) -> None:
        """Look again for pods that nobody wants (after a full list)."""
        with self._lock:
            if self._open:
                self._spread()

    def _hurry(self, changed: bool) -> None:
        """What a pod lacked may be there now."""
        for key, pod in self._desired.pods.items() if changed else ():
            if pod.refers:
                self._workers.hurry(key)

    def news(self) -> None:
        """The status of some pod has changed: one that may not begin yet may be waiting for that. Cheap, any thread."""
        if self._admitter is not None and self._admitter.closed:
            self.recheck()

    def _spread(self) -> None:
        running = self._observer.all()
        gates = self._admitter.judge(self._desired.pods, running) if self._admitter is not None else {}
        working = self._workers.keys()
        keys = set(self._desired.pods) | set(running) | working
        for key in sorted(keys):
            wish = self._wish(key, running[key].source if key in running else None)
            if wish is not None and key in gates and wish.pod is not None:
                wish = replace(wish, gate=gates[key])
            if wish is not None and (wish != self._wishes.get(key) or key not in working):
                self._wishes[key] = wish
                self._workers.wish(key, wish)
        self._wishes = {k: w for k, w in self._wishes.items() if k in keys}
        self._graces = {k: g for k, g in self._graces.items() if k in keys}

    def _wish(self, key: PodKey, running_source: str | None) -> Wish | None:
        """The wish for one pod; None = it is not known yet whether anybody wants it."""
        pod = self._desired.pods.get(key)
        if pod is not None:
            return Wish(pod, key in self._held, down=self.goes_down(key))
        before = self._wishes.get(key)
        source = before.pod.source if before and before.pod else running_source
        if source is not None and not desired.may_end(source, self._snapshots, self._order):
            return None
        return Wish(None, grace=self._graces.get(key), down=self.goes_down(key))

    def _tell_conflicts(self, before: desired.Desired) -> None:
        for conflict in self._desired.conflicts:
            if conflict in before.conflicts:
                continue
            log.warning("%s", conflict)
            pod = self._desired.pods[conflict.key]
            self._recorder.event(ports.EventRef(conflict.key, pod.uid), "Warning", "FailedValidation", str(conflict))

    def _tell_trouble(self, before: ports.Snapshot | None, now: ports.Snapshot) -> None:
        """A source that is lost, and that is back, are events of the node."""
        was = before.trouble if before is not None else ""
        if now.trouble and now.trouble != was:
            self._recorder.event(self.node, "Warning", "SourceUnavailable", f"source {now.source}: {now.trouble}")
        elif was and not now.trouble:
            self._recorder.event(self.node, "Normal", "SourceRecovered", f"source {now.source} is read again")

    def _tell_problems(self, before: desired.Desired) -> None:
        """What is wrong with a manifest is an event of the node: the pod may not even exist."""
        known, told = set(before.problems), {str(c) for c in self._desired.conflicts}
        told |= {snapshot.trouble for snapshot in self._snapshots.values()}
        for problem in self._desired.problems:
            if problem.warning or problem in known or problem.message in told:
                continue
            self._recorder.event(self.node, "Warning", "FailedValidation", str(problem))

    # -- reading --------------------------------------------------------------------------------------

    def wanted(self) -> desired.Desired:
        """The merged wish now."""
        with self._lock:
            return self._desired

    def running(self) -> tuple[ObservedPod, ...]:
        """What was observed last, wanted or not."""
        return tuple(self._observer.all().values())

    def working(self) -> frozenset[str]:
        """Uids of pods that a worker may still be busy with."""
        busy = self._workers.keys()
        with self._lock:
            return frozenset(w.pod.uid for k, w in self._wishes.items() if w.pod and k in busy)

    def snapshots(self) -> dict[str, ports.Snapshot]:
        """The newest snapshot by source."""
        with self._lock:
            return dict(self._snapshots)

    def objects(self) -> tuple[LocalObject, ...]:
        """The ConfigMaps and Secrets that stand beside pods."""
        with self._lock:
            return self._objects

    def pod(self, key: PodKey) -> Pod | None:
        """The wanted pod of that key."""
        with self._lock:
            return self._desired.pods.get(key)

    # -- holds ----------------------------------------------------------------------------------------

    def hold(self, key: PodKey, held: bool) -> None:
        """Keep a pod stopped, or let it run again; kept on disk first. Raises errors.StateError."""
        with self._lock:
            changed = self._held | {key} if held else self._held - {key}
            if changed != self._held:
                rows = sorted([k.namespace, k.name] for k in changed)
                self._store.write(json.dumps(rows).encode())
                self._held = changed
            if self._open:
                self._spread()

    def held(self) -> frozenset[PodKey]:
        """The pods a person has stopped."""
        with self._lock:
            return self._held


def _read(store: Holds) -> frozenset[PodKey]:
    try:
        data = store.read()
        return frozenset(PodKey(str(ns), str(name)) for ns, name in json.loads(data)) if data else frozenset()
    except (errors.StateError, ValueError, TypeError, RecursionError) as error:
        log.error("cannot read which pods were stopped by hand: %s; all of them run", error)
        return frozenset()
