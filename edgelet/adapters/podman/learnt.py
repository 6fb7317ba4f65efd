"""What was learnt of Podman's objects and no answer carries: which are ours, what an inspect told, addresses."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Set

from ...model.observed import ObservedContainer, ObservedPod
from ...model.pod import PodKey
from . import seen
from .times import Times

GONE = 256
"""How many ids are still known as ours after they are gone."""


class Learnt:
    """What was learnt of objects by id; forgets what is not listed any more."""

    def __init__(self, times: Times) -> None:
        self._times = times
        self._lock = threading.Lock()
        self._ours: set[str] = set()
        self._parts: dict[PodKey, frozenset[str]] = {}  # as listed last: the pod and its containers
        self._gone: deque[str] = deque(maxlen=GONE)
        self._containers: dict[str, tuple[tuple[object, ...], ObservedContainer]] = {}
        self._addresses: dict[str, tuple[int, tuple[str, ...]]] = {}

    def own(self, *ids: str) -> None:
        """These are ours."""
        with self._lock:
            self._ours.update(ids)

    def owns(self, target: str) -> bool:
        """Whether that is known to be ours."""
        with self._lock:
            return target in self._ours

    def owned(self, target: str) -> bool:
        """Whether it was ours, and has gone lately."""
        with self._lock:
            return target in self._gone

    def keep(self, pods: Iterable[ObservedPod], ids: frozenset[str]) -> None:
        """These pods and ids are all there is: forget the others."""
        parts = _parts(pods)
        with self._lock:
            self._parts = parts
            self._forget((self._ours | self._containers.keys() | self._addresses.keys()) - ids)
        self._times.keep(ids)

    def keep_of(self, pod: PodKey, ids: frozenset[str]) -> None:
        """Those are all that there is of one pod: forget what it had when it was listed last and has no more.

        Lists of everything are seldom, and a pod that fails all the time leaves hundreds of containers between two.
        """
        with self._lock:
            gone = self._parts.pop(pod, frozenset()) - ids
            if ids:
                self._parts[pod] = ids
            self._forget(gone)
        self._times.forget(gone)

    def _forget(self, ids: Set[str]) -> None:
        self._gone.extend(self._ours & ids)
        self._ours -= ids
        for known in ids:
            self._containers.pop(known, None)
            self._addresses.pop(known, None)

    def recall(self, base: ObservedContainer, key: tuple[object, ...]) -> ObservedContainer | None:
        """What an inspect told, if nothing has changed since."""
        with self._lock:
            known = self._containers.get(base.id)
        return known[1] if known is not None and known[0] == key else None

    def remember(
        self, what: ObservedContainer, more: seen.Details, key: tuple[object, ...] | None = None
    ) -> ObservedContainer:
        """Keep what an inspect told; answers it with its monotonic times."""
        fixed = self._times.fix(what)
        if key is None:
            key = _inspect_key(what, more)
        with self._lock:
            self._containers[what.id] = (key, fixed)
        return fixed

    def addresses(self, infra_id: str, pid: int) -> tuple[str, ...] | None:
        """Those of a pod whose infra container has that process; None = not known."""
        with self._lock:
            known = self._addresses.get(infra_id)
        return known[1] if known is not None and known[0] == pid else None

    def set_addresses(self, infra_id: str, pid: int, found: tuple[str, ...]) -> None:
        """Keep them."""
        with self._lock:
            self._addresses[infra_id] = (pid, found)


def _parts(pods: Iterable[ObservedPod]) -> dict[PodKey, frozenset[str]]:
    """Ids of pods and of what is inside, by name: there may be two of one name for a while."""
    found: dict[PodKey, frozenset[str]] = {}
    for pod in pods:
        ids = frozenset({pod.id, pod.infra_id, *(c.id for c in pod.containers)})
        found[pod.key] = found.get(pod.key, frozenset()) | ids
    return found


GO_ZERO = -62135596800


def _inspect_key(what: ObservedContainer, more: seen.Details) -> tuple[object, ...]:
    """The `_row_key` that the next list will show if nothing changes: whole seconds."""
    started = int(more.started_at) if more.started_at else GO_ZERO
    ended = int(more.finished_at) if more.finished_at else GO_ZERO
    return (what.state.value, more.pid, started, ended)
