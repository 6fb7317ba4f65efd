"""What is known of the pods on the server that are bound to this node: metadata only, from list and watch."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from ...core.mirror_pods import Remote
from ...model.pod import PodKey

ENDED = 256
"""So many pods that the watch told to be gone are remembered: more than can go while one answer is on its way."""


class RemotePods:
    """Thread-safe. `news` is called for each pod that changed by itself, outside the lock.

    `lost` is called when one is gone that we did not remove: its Node may be gone as well.
    """

    def __init__(self, news: Callable[[PodKey], None], lost: Callable[[], None]) -> None:
        self._news = news
        self._lost = lost
        self._lock = threading.Lock()
        self._pods: dict[PodKey, Remote] = {}
        self._ended: deque[str] = deque(maxlen=ENDED)  # uids, which never come back
        self.known = False

    def replace(self, pods: Iterable[Remote]) -> None:
        """The list was read."""
        with self._lock:
            self._pods = {p.key: p for p in pods}
            self.known = True

    def lost(self) -> None:
        """The link was lost: the list must be read before anything is done."""
        self.known = False

    def get(self, key: PodKey) -> Remote | None:
        """The pod of that name."""
        with self._lock:
            return self._pods.get(key)

    def keys(self) -> tuple[PodKey, ...]:
        """All names."""
        with self._lock:
            return tuple(self._pods)

    def put(self, there: Remote) -> None:
        """An answer to a request of our own; the watch may have been quicker to tell that it is gone since."""
        with self._lock:
            if there.uid not in self._ended:
                self._pods[there.key] = there

    def forget(self, there: Remote) -> bool:
        """It is gone, unless another one has that name by now; whether it was known."""
        with self._lock:
            known = self._pods.get(there.key)
            if known is None or known.uid != there.uid:
                return False
            del self._pods[there.key]
            return True

    # -- the watch (watch.Sink) -------------------------------------------------------------------

    def changed(self, there: Remote) -> None:
        """It is so now; what is older than what an answer said is dropped."""
        with self._lock:
            known = self._pods.get(there.key)
            if known is not None and known.uid == there.uid and 0 < _version(there) <= _version(known):
                return
            self._pods[there.key] = there
        self._news(there.key)

    def removed(self, there: Remote) -> None:
        """It is gone."""
        with self._lock:
            self._ended.append(there.uid)
        if self.forget(there):
            self._lost()
        self._news(there.key)


def _version(there: Remote) -> int:
    """Versions of one resource are comparable numbers (Kubernetes 1.35); 0 for a server that says otherwise."""
    return int(there.version) if there.version.isdigit() else 0
