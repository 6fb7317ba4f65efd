"""What was learnt of Podman's objects and no answer carries: which are ours, what an inspect told, addresses."""

from __future__ import annotations

import threading
from collections import deque

from ...model.observed import ObservedContainer
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

    def keep(self, ids: set[str]) -> None:
        """Forget all others, except what was created while the list was under way."""
        with self._lock:
            self._containers = {i: v for i, v in self._containers.items() if i in ids}
            self._addresses = {i: v for i, v in self._addresses.items() if i in ids}
            self._gone.extend(self._ours - ids)
            self._ours &= ids
        self._times.keep(ids)

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


GO_ZERO = -62135596800


def _inspect_key(what: ObservedContainer, more: seen.Details) -> tuple[object, ...]:
    """The `_row_key` that the next list will show if nothing changes: whole seconds."""
    started = int(more.started_at) if more.started_at else GO_ZERO
    ended = int(more.finished_at) if more.finished_at else GO_ZERO
    return (what.state.value, more.pid, started, ended)
