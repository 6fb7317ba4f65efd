"""Owns the newest observation of every pod: relisted seldom, kept true by our own effects and exits.

One list at the start, one every quarter of an hour and after trouble; in between each worker puts what
its own calls answered, and the exit watcher tells deaths within milliseconds.  Readers get frozen
values; nothing is edited in place.
"""

from __future__ import annotations

import collections
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from .. import errors, ports
from ..model.observed import ObservedContainer, ObservedPod, State
from ..model.pod import PodKey

log = logging.getLogger(__name__)

RELIST = 900.0
"""Seconds between two full lists when nothing is wrong: each costs some KiB of flash (decision 13)."""
RETRY = 5.0
"""Seconds until a failed list is tried again."""
EARLY = 256
"""Exits kept for containers not known yet (died before their start call had answered)."""


class Exits(Protocol):
    """What the observer needs of the exit watcher (adapters.exits)."""

    def watch(self, container_id: str, pid: int, conmon_pid: int) -> None:
        """Report the death of this container."""
        ...

    def forget(self, container_id: str) -> None:
        """Stop watching it."""
        ...


class Observer:
    """Newest ObservedPod by key; wakes a pod's worker when something changed under it."""

    def __init__(
        self,
        runtime: ports.Runtime,
        clock: ports.Clock,
        exits: Exits,
        wake: ports.Wake,
        listed: Callable[[], None] = lambda: None,
        fatal: Callable[[str], None] = lambda message: None,
        message: Callable[[ObservedContainer], str] = lambda ended: "",
    ) -> None:
        """`listed` is called, from the observer's thread, after each full list that succeeded.

        `fatal` is told when that thread ends although it must not.  `message` reads what a container that has
        ended left (3.14): it is told together with the exit, not a call to Podman later.
        """
        self._runtime = runtime
        self._clock = clock
        self._exits = exits
        self._wake = wake
        self._listed = listed
        self._fatal = fatal
        self._message = message
        self._lock = threading.Lock()
        self._pods: dict[PodKey, ObservedPod] = {}
        self._touched: dict[PodKey, int] = {}
        self._count = 0
        self._early: collections.OrderedDict[str, int | None] = collections.OrderedDict()
        self._again = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="observer", daemon=True)
        self.listed_at = 0.0
        self.error = ""

    # -- reading ------------------------------------------------------------------------------

    def get(self, key: PodKey) -> ObservedPod | None:
        """The newest observation of one pod."""
        with self._lock:
            return self._pods.get(key)

    def all(self) -> Mapping[PodKey, ObservedPod]:
        """The newest observation of every pod."""
        with self._lock:
            return dict(self._pods)

    # -- what workers tell ----------------------------------------------------------------------

    def put(self, key: PodKey, pod: ObservedPod | None) -> None:
        """A worker's own effect on its pod."""
        with self._lock:
            pod = self._with_known_exits(pod)
            before = self._store(key, pod)
        self._rewatch(before, pod)

    def refresh(self, key: PodKey) -> ObservedPod | None:
        """Ask the runtime about one pod now. Raises errors.RuntimeFailure."""
        found = self._runtime.list(key)
        pod = found[0] if found else None
        self.put(key, pod)
        return self.get(key)

    def relist(self) -> None:
        """Ask the runtime about all pods now; wakes those that changed. Raises errors.RuntimeFailure.

        A pod that its worker touched while the list was under way keeps the worker's view.
        """
        with self._lock:
            start = self._count
        found = {p.key: p for p in self._runtime.list()}
        changed: list[tuple[PodKey, ObservedPod | None, ObservedPod | None]] = []
        with self._lock:
            for key in set(self._pods) | set(found):
                if self._touched.get(key, 0) > start:
                    continue
                new = self._with_known_exits(found.get(key))
                if new != self._pods.get(key):
                    changed.append((key, self._store(key, new), new))
            self._touched = {k: n for k, n in self._touched.items() if k in self._pods}
        for key, before, new in changed:
            self._rewatch(before, new)
            self._wake(key)
        self.listed_at = self._clock.monotonic()
        self.error = ""

    def suspect(self) -> None:
        """Something went wrong: list again soon."""
        self._again.set()

    # -- exits ----------------------------------------------------------------------------------

    def exited(self, container_id: str, code: int | None, how: str) -> None:
        """The exit watcher saw a container die (any thread); `code` None = not known."""
        message = self._message_of(container_id, code)
        with self._lock:
            key = self._mark_exit(container_id, code, message)
            if key is None:
                self._early[container_id] = code
                while len(self._early) > EARLY:
                    self._early.popitem(last=False)
        if key is not None:
            log.debug("exit of %s in %s seen by %s, code %s", container_id[:12], key, how, code)
            self._wake(key)

    def _message_of(self, container_id: str, code: int | None) -> str:
        """What it left, read without the lock; "" for one not known yet: a later inspect brings it."""
        with self._lock:
            found = next((c for p in self._pods.values() if (c := p.by_id(container_id)) is not None), None)
        if found is None or found.state is State.EXITED:
            return ""
        return self._message(replace(found, state=State.EXITED, exit_code=code))

    def _mark_exit(self, container_id: str, code: int | None, message: str) -> PodKey | None:
        for key, pod in self._pods.items():
            changed = self._exit_of(pod, container_id, code, message)
            if changed is not None:
                self._store(key, changed)
                return key
        return None

    def _exit_of(self, pod: ObservedPod, container_id: str, code: int | None, message: str = "") -> ObservedPod | None:
        """`pod` after the death of one of its containers; None if it is not one of its running ones."""
        if pod.infra_id == container_id and container_id:
            return replace(pod, infra_dead=True, infra_pid=0)
        dead = pod.by_id(container_id)
        if dead is None or dead.state is State.EXITED:
            return None if dead is None else pod
        gone = replace(
            dead,
            state=State.EXITED,
            pid=0,
            conmon_pid=0,
            exit_code=code,
            finished_at=self._clock.time(),
            finished_mono=self._clock.monotonic(),
            message=message,
            partial=True,
        )
        return replace(pod, containers=tuple(gone if c.id == container_id else c for c in pod.containers))

    def _with_known_exits(self, pod: ObservedPod | None) -> ObservedPod | None:
        """`pod` with what we know better than Podman: what has died once never runs again."""
        if pod is None:
            return None
        known = self._pods.get(pod.key)
        if known is not None and known.id == pod.id and known.infra_dead and not pod.infra_dead:
            pod = replace(pod, infra_dead=True, infra_pid=0)
        for c in known.containers if known is not None and known.id == pod.id else ():
            listed = pod.by_id(c.id)
            if c.state is State.EXITED and listed is not None and listed.running:
                pod = pod.with_container(c)
        return self._with_early_exits(pod) if self._early else pod

    def _with_early_exits(self, pod: ObservedPod) -> ObservedPod:
        for container_id in [c.id for c in pod.containers if c.running] + [pod.infra_id]:
            if container_id in self._early:
                changed = self._exit_of(pod, container_id, self._early.pop(container_id))
                pod = changed if changed is not None else pod
        return pod

    def _store(self, key: PodKey, pod: ObservedPod | None) -> ObservedPod | None:
        self._count += 1
        self._touched[key] = self._count
        before = self._pods.get(key)
        if pod is None:
            self._pods.pop(key, None)
        else:
            self._pods[key] = pod
        return before

    def _rewatch(self, before: ObservedPod | None, after: ObservedPod | None) -> None:
        """Watch what runs now, forget what does not."""
        old, new = _alive(before), _alive(after)
        for container_id in old.keys() - new.keys():
            self._exits.forget(container_id)
        for container_id, (pid, conmon) in new.items():
            if old.get(container_id) != (pid, conmon):
                self._exits.watch(container_id, pid, conmon)

    # -- the thread -------------------------------------------------------------------------------

    def start(self) -> None:
        """List now and from then on seldom, in the background."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, at most a list call later."""
        self._stop.set()
        self._again.set()
        self._thread.join(10)

    def _run(self) -> None:
        try:
            self._loop()
        except Exception as error:  # guard
            log.critical("the observer has ended; this is a fault in edgelet", exc_info=True)
            self._fatal(f"the observer has ended: {error}")

    def _loop(self) -> None:
        delay = 0.0
        while not self._stop.is_set():
            self._again.wait(delay)
            self._again.clear()
            if self._stop.is_set():
                return
            delay = RELIST if self._try() else RETRY

    def _try(self) -> bool:
        try:
            self.relist()
        except errors.RuntimeFailure as error:
            if str(error) != self.error:
                log.warning("cannot list pods: %s", error)
            self.error = str(error)
            return False
        self._listed()
        return True


def _alive(pod: ObservedPod | None) -> dict[str, tuple[int, int]]:
    if pod is None:
        return {}
    found = {c.id: (c.pid, c.conmon_pid) for c in pod.containers if c.running and c.pid}
    if pod.infra_id and pod.infra_pid and not pod.infra_dead:
        found[pod.infra_id] = (pod.infra_pid, 0)
    return found
