"""The mirror's thread: one request after the other, the most important first; nothing else ever waits for it."""

from __future__ import annotations

import logging
import random
import threading

from ...core import mirror_link, mirror_pods, polling
from ...engine.journal import Change
from ...engine.store import Entry
from ...errors import LinkError
from ...model.agent_report import LinkReport
from ...model.events import Event
from ...model.pod import PodKey
from ...ports import EventRef
from . import api
from .cache import RemotePods
from .certificates import CertificateTask
from .connection import Connection
from .events import EventsTask
from .network import NetworkWatch
from .node import LeaseTask, NodeState, NodeTask
from .parts import Parts, Problems, Task, node_ref
from .pods import PodsTask
from .watch import Watch

log = logging.getLogger(__name__)

TOLD_AFTER = 2
"""So many failures in a row are told as a loss: a single one is over within a second."""
LIST_SPACE = 2.0
"""Least seconds between two lists."""
REQUEST_SECONDS = 10.0
"""Longest seconds for a request; never longer than the time between two heartbeats."""
LONGEST_SLEEP = 3600.0
STOP_SECONDS = 5.0


class ListTask:
    """Reads what the server has of this node's pods, and sends the watch off from there."""

    name = "list"

    def __init__(self, asked: api.Api, state: NodeState, cache: RemotePods, pods: PodsTask, watch: Watch) -> None:
        self._api, self._state, self._cache, self._pods, self._watch = asked, state, cache, pods, watch
        self._due = 0.0
        self._last = float("-inf")
        self._failures = 0

    def again(self) -> None:
        """From any thread: the watch has ended, or the server is a new one."""
        self._due = 0.0

    def due(self, now: float) -> float | None:
        """See parts.Task."""
        if not self._state.uid:
            return None
        return max(self._due, self._last + LIST_SPACE)

    def lost(self) -> None:
        """See parts.Task."""
        self._cache.lost()
        self._watch.cut()
        self._due = 0.0

    def run(self, now: float) -> None:
        """See parts.Task."""
        self._last, self._due = now, float("inf")
        try:
            reply = self._api.pods()
        except LinkError:
            self._due = 0.0
            raise
        if reply.code != 200:
            self._failures += 1
            self._due = now + mirror_link.object_retry(self._failures, random.random())
            error = api.refused("list the pods of this node", reply)
            self._state.problems.set("list", node_ref(self._state.options.node), str(error))
            return
        self._failures = 0
        self._state.problems.clear("list")
        self._cache.replace(mirror_pods.remote(item) for item in reply.document.get("items") or ())
        self._pods.everything()
        self._watch.begin(str((reply.document.get("metadata") or {}).get("resourceVersion", "")))


class Mirror:
    """Start it, stop it, ask it how it is."""

    def __init__(self, parts: Parts) -> None:
        o = self._o = parts.options
        self._parts = parts
        self._clock = parts.clock
        self._wake = threading.Event()
        self._stopping = threading.Event()
        timeout = min(REQUEST_SECONDS, mirror_link.renew_interval(o.lease_duration))
        self._connection = Connection(o.kubeconfig, timeout, parts.clock.time)
        self._watched = Connection(o.kubeconfig, timeout, parts.clock.time)
        self._problems = Problems(self._refused)
        self._state = NodeState(parts, self._problems)
        asked = api.Api(self._connection, o.node, parts.clock, o.qps, o.burst, self._stopping.wait)
        self._cache = RemotePods(self._remote_news, self._state.suspect)
        self._pods = PodsTask(parts, asked, self._state, self._cache)
        self._events = EventsTask(parts, asked, self._state)
        self._watch = Watch(self._watched, o.node, self._cache, self._list_again)
        self._list = ListTask(asked, self._state, self._cache, self._pods, self._watch)
        self._pods.relist = self._list.again
        self._lease = LeaseTask(parts, asked, self._state)
        node = NodeTask(parts, asked, self._state)
        self._boot = Connection(o.bootstrap, timeout, parts.clock.time) if o.bootstrap else None
        self._certificate: CertificateTask | None = None
        if self._boot is not None:
            first = api.Api(self._boot, o.node, parts.clock, o.qps, o.burst, self._stopping.wait)
            self._certificate = CertificateTask(o, parts.clock, first, asked, self._state)
        self._tasks: tuple[Task, ...] = (self._lease, node, self._list, self._pods, self._events)
        self._state.on_new = self._new_node
        self._network = NetworkWatch(self._network_changed, lambda: self._connection.server)
        self._link = mirror_link.Link()
        self._link_lock = threading.Lock()
        self._told_lost = False
        self._thread: threading.Thread | None = None
        self._unsubscribe = (
            parts.store.subscribe(self._store_news),
            parts.events.subscribe(self._event_news),
        )

    # -- from outside -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin; returns at once, whether there is a network or not."""
        self._watch.start()
        self._network.start()
        self._thread = threading.Thread(target=self._run, name="apiserver", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the threads, bounded; what was not told is told after the next start."""
        self._stopping.set()
        self._wake.set()
        for connection in filter(None, (self._connection, self._boot)):
            connection.cut()
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)
        self._network.stop()
        self._watch.stop()
        for connection in filter(None, (self._connection, self._boot)):
            connection.close()

    def report(self) -> LinkReport:
        """How the link is; from any thread."""
        link = self._link
        return LinkReport(
            server=self._connection.server,
            up=link.up,
            message="" if link.up else link.message or "not tried yet",
            since=link.since,
            heartbeat=self._state.heartbeat,
            registered=bool(self._state.uid),
            pending=self._pods.pending + self._events.pending,
            requests=self._requests,
            problems=self._problems.sentences(),
        )

    # -- news from other threads ------------------------------------------------------------------

    def _store_news(self, change: Change[Entry]) -> None:
        self._pods.store_changed(change)
        self._wake.set()

    def _event_news(self, change: Change[Event]) -> None:
        self._events.ring_changed(change)
        self._wake.set()

    def _remote_news(self, key: PodKey) -> None:
        self._pods.dirty(key)
        self._wake.set()

    def _list_again(self) -> None:
        self._list.again()
        self._wake.set()

    def _network_changed(self) -> None:
        with self._link_lock:
            self._link = mirror_link.network_changed(self._link, self._clock.monotonic())
        self._wake.set()

    def _new_node(self) -> None:
        """Another Node, perhaps on another server: nothing that was told counts any more."""
        self._lease.anew()
        self._events.begin()
        self._pods.lost()
        self._list.lost()

    def _refused(self, ref: EventRef, message: str) -> None:
        self._parts.events.event(ref, "Warning", "FailedMirror", message)

    # -- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            wait = self._step()
            if wait > 0:
                self._wake.wait(min(wait, LONGEST_SLEEP))

    def _step(self) -> float:
        """One task, if one is due and the link may be tried; else the seconds until then."""
        now = self._clock.monotonic()
        if self._link.retry_at > now:
            return self._link.retry_at - now
        nearest = now + LONGEST_SLEEP
        for task in self._possible():
            due = task.due(now)
            if due is not None and due <= now:
                self._do(task, now)
                return 0.0
            nearest = min(nearest, due if due is not None else nearest)
        return nearest - now

    def _possible(self) -> tuple[Task, ...]:
        """The tasks, the most important first; without a certificate there is only one."""
        if self._certificate is None:
            return self._tasks
        return (self._certificate,) if self._certificate.needed else (*self._tasks, self._certificate)

    @property
    def _requests(self) -> int:
        return self._connection.requests + (self._boot.requests if self._boot else 0)

    def _do(self, task: Task, now: float) -> None:
        asked = self._requests
        try:
            task.run(now)
        except LinkError as error:
            if not self._stopping.is_set():
                self._failed(error)
            return
        except Exception:  # guard
            # Whatever a server answers, the box goes on; this is tried again as after a loss.
            log.exception("the mirror's task %s has failed", task.name)
            self._failed(LinkError(f"the mirror's task {task.name} has failed, see the log"))
            return
        if self._requests > asked:
            self._worked()

    def _worked(self) -> None:
        with self._link_lock:
            before, self._link = self._link, mirror_link.worked(self._link, self._clock.time())
        if before.up:
            return
        log.info("the API server %s answers", self._connection.server)
        if self._told_lost:
            self._told_lost = False
            text = f"the API server {self._connection.server} answers again"
            self._parts.events.event(node_ref(self._o.node), "Normal", "APIServerReachable", text)

    def _failed(self, error: LinkError) -> None:
        with self._link_lock:
            now, wall = self._clock.monotonic(), self._clock.time()
            cap = mirror_link.CLOCK_CAP if error.clock else mirror_link.RETRY_CAP
            self._link = mirror_link.failed(self._link, str(error), now, wall, error.retry_after, random.random(), cap)
        if not error.answered:
            for task in self._tasks:
                task.lost()
        wait = self._link.retry_at - self._clock.monotonic()
        level = logging.DEBUG if polling.complaint(self._link.failures) == "debug" else logging.WARNING
        log.log(level, "cannot use the API server: %s; tried again in %.1f s, the pods run on", error, wait)
        if self._link.failures >= TOLD_AFTER and not self._told_lost:
            self._told_lost = True
            text = f"cannot use the API server {self._connection.server}: {error}"
            self._parts.events.event(node_ref(self._o.node), "Warning", "APIServerUnreachable", text)
