"""Keeps the mirror pods and their statuses on the server (semantics 7.4, 7.5): one queue, the newest wins."""

from __future__ import annotations

import heapq
import logging
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...core import mirror_link, mirror_pods, mirror_status, render
from ...core.mirror_pods import Local, Remote, Step
from ...engine.journal import Change
from ...engine.store import Entry
from ...errors import Refused
from ...model.pod import PodKey
from ...model.status import PodStatus
from ...ports import EventRef
from . import api
from .cache import RemotePods
from .connection import Reply
from .node import NodeState
from .parts import Parts

log = logging.getLogger(__name__)
Json = dict[str, Any]

STEPS = 5
"""Most steps for one pod in one go: delete, create, status, and what the server's news add."""
LEARN_SECONDS = 10.0
"""The server's own caches may not know a new Node or pod yet: a refusal so soon is no news."""
LEARN_LOOK = 0.3
ORPHAN_LOOK = 10.0
"""Seconds until a mirror without a pod is looked at again, while a source has not spoken."""


@dataclass(frozen=True, slots=True)
class Told:
    """The status that a mirror shows: `version` is the server's, after it was written."""

    uid: str
    version: str
    status: PodStatus


class PodsTask:
    """One mirror pod after the other. `dirty` from any thread, all else from the mirror's."""

    name = "pods"

    def __init__(self, parts: Parts, asked: api.Api, state: NodeState, cache: RemotePods) -> None:
        self._parts = parts
        self._node = parts.options.node
        self._api = asked
        self._state = state
        self._cache = cache
        self._lock = threading.Lock()
        self._waiting: dict[PodKey, float] = {}
        self._failures: dict[PodKey, tuple[int, str]] = {}  # how often in a row, and of which generation
        self._told: dict[PodKey, Told] = {}
        self._churn: dict[PodKey, tuple[str, mirror_link.Churn]] = {}
        self.relist: Callable[[], None] = lambda: None
        """Asks for a list: what a node hears of a single pod may be wrong for a moment after that was made."""

    # -- the queue --------------------------------------------------------------------------------

    def dirty(self, key: PodKey, at: float = 0.0) -> None:
        """Look at that mirror, at the latest at that monotonic second."""
        with self._lock:
            self._waiting[key] = min(at, self._waiting.get(key, at))

    def store_changed(self, change: Change[Entry]) -> None:
        """A pod of this box changed."""
        key = mirror_pods.key_of(change.value.pod, self._node)
        with self._lock:
            if self._failures.get(key, (0, ""))[1] != change.value.pod.config_hash:
                self._waiting[key] = 0.0  # the generation that the server refuses waits for its turn

    def everything(self) -> None:
        """Look at all mirrors, whatever was refused before."""
        _, entries = self._parts.store.list()
        keys = {mirror_pods.key_of(e.pod, self._node) for e in entries} | set(self._cache.keys())
        with self._lock:
            self._failures.clear()
            # Added to what waits: a pod may have changed since the store was read.
            self._waiting.update(dict.fromkeys(sorted(keys), 0.0))

    @property
    def pending(self) -> int:
        """How many are not as they should be."""
        with self._lock:
            return len(self._waiting)

    def due(self, now: float) -> float | None:
        """See parts.Task."""
        if not self._state.uid or not self._cache.known or self._state.clash:
            return None
        with self._lock:
            return min(self._waiting.values(), default=None)

    def lost(self) -> None:
        """What the server shows is read anew."""
        self._told.clear()

    def run(self, now: float) -> None:
        """See parts.Task."""
        with self._lock:
            _, key = heapq.nsmallest(1, ((at, key) for key, at in self._waiting.items()))[0]
            del self._waiting[key]
        over = False
        try:
            self._sync(key, now)
            over = True
        except Refused as error:
            self._refused(key, error, now)
            over = True
            return
        finally:
            if not over:
                self.dirty(key)  # the link was lost: nothing is known about what arrived
        self._failures.pop(key, None)
        self._state.problems.clear(f"pod {key}")

    def _refused(self, key: PodKey, error: Refused, now: float) -> None:
        if error.code in (403, 404):
            self._state.suspect()
        local = self._local(key)
        self._told.pop(key, None)
        failures = self._failures.get(key, (0, ""))[0] + 1
        self._failures[key] = (failures, local.pod.config_hash if local else "")
        self.dirty(key, now + mirror_link.object_retry(failures, random.random()))
        ref = EventRef(local.pod.key, local.pod.uid) if local else EventRef(key, "")
        race = error.code == 409 or now - self._state.known_at < LEARN_SECONDS
        if failures < mirror_link.TELL_AFTER + race:
            return  # a race that the next look ends
        self._state.problems.set(f"pod {key}", ref, str(error))

    # -- one mirror -------------------------------------------------------------------------------

    def _local(self, key: PodKey) -> Local | None:
        """The pod of this box whose mirror has that name; of two, the one that needs no other name."""
        entry = self._parts.store.get(key)
        if entry is None or mirror_pods.key_of(entry.pod, self._node) != key:
            entry = None
            suffix = f"-{self._node}"
            if key.name.endswith(suffix):
                other = self._parts.store.get(PodKey(key.namespace, key.name.removesuffix(suffix)))
                if other is not None and mirror_pods.key_of(other.pod, self._node) == key:
                    entry = other
        return Local(entry.pod, entry.status, entry.seen_at) if entry else None

    def _sync(self, key: PodKey, now: float) -> None:
        for _ in range(STEPS):
            local, there = self._local(key), self._cache.get(key)
            gone = local is None and there is not None and self._parts.gone(key, there.source)
            step = mirror_pods.decide(local, there, self._state.uid, gone)
            if step is Step.CREATE and local is not None:
                if self._too_often(key, local, now) or self._create(key, local, now):
                    return
            elif step is Step.DELETE and there is not None:
                self._delete(key, there)
            elif step is Step.STATUS and local is not None and there is not None:
                if self._report(key, local, there, now):
                    return
            elif step is Step.TAKEN:
                raise Refused(
                    f"cannot mirror pod {key}: a pod of that name that is no mirror is bound to this node", 409
                )
            else:
                self._rest(key, local, there, now)
                return
        self.dirty(key, now + 1.0)

    def _rest(self, key: PodKey, local: Local | None, there: Remote | None, now: float) -> None:
        if local is None and there is None:
            self._told.pop(key, None)
            churn = self._churn.get(key)
            if churn is not None and now - churn[1].at > mirror_link.CHURN_FORGET:
                del self._churn[key]
        elif local is None and there is not None and there.hash is not None:
            self.dirty(key, now + ORPHAN_LOOK)

    def _too_often(self, key: PodKey, local: Local, now: float) -> bool:
        """Whether something takes this mirror away as often as it is made: then it waits (pain 127)."""
        known, churn = self._churn.get(key, ("", mirror_link.Churn()))
        at = mirror_link.may_make_at(churn) if known == local.pod.config_hash else 0.0
        if now >= at:
            return False
        self.dirty(key, at)
        return True

    def _create(self, key: PodKey, local: Local, now: float) -> bool:
        """True = all is done that can be done now. Raises Refused."""
        seen = render.timestamp(local.seen_at)
        reply = self._api.create_pod(key.namespace, mirror_pods.body(local, self._node, self._state.uid, seen))
        if reply.code == 409:
            return self._exists(key, reply)
        if reply.code != 201:
            raise api.refused(f"mirror pod {key}", reply)
        known, churn = self._churn.get(key, ("", mirror_link.Churn()))
        same = known == local.pod.config_hash
        self._churn[key] = (local.pod.config_hash, mirror_link.made(churn, same, now))
        there = mirror_pods.remote(reply.document)
        self._cache.put(there)
        return self._show(key, local, there, reply.document.get("status") or {})

    def _exists(self, key: PodKey, reply: Reply) -> bool:
        """A pod of that name is there: ours from a try whose answer was lost, one that ends, or a stranger's."""
        found = self._api.pod(key)
        if _unrelated(found):
            self.relist()
        if found.code != 200:
            raise api.refused(f"mirror pod {key}", reply)
        self._cache.put(mirror_pods.remote(found.document))
        return False

    def _delete(self, key: PodKey, there: Remote) -> None:
        reply = self._api.delete_pod(key, there.uid)
        if reply.code in (200, 202, 404) or _unrelated(reply):
            self._vanished(key, there, reply)
            return
        if reply.code == 409:
            self._look(key, there)
            return
        raise api.refused(f"remove the mirror of pod {key}", reply)

    def _look(self, key: PodKey, there: Remote) -> Json | None:
        """The pod as it is on the server; None = it is gone. Raises Refused."""
        reply = self._api.pod(key)
        if reply.code == 404 or (_unrelated(reply) and not self._new(key)):
            self._vanished(key, there, reply)
            return None
        if reply.code != 200:
            raise api.refused(f"read the mirror of pod {key}", reply)
        self._cache.put(mirror_pods.remote(reply.document))
        return reply.document

    def _vanished(self, key: PodKey, there: Remote, reply: Reply) -> None:
        """It is gone, or the server's authorizer has not heard of it yet (a create whose answer was lost): list."""
        self._cache.forget(there)
        self._told.pop(key, None)
        if _unrelated(reply):
            self.relist()

    def _new(self, key: PodKey) -> bool:
        """Of a pod that was made just now the authorizer may not know yet that it is ours."""
        _, churn = self._churn.get(key, ("", mirror_link.Churn()))
        return churn.count > 0 and self._parts.clock.monotonic() - churn.at < LEARN_SECONDS

    def _report(self, key: PodKey, local: Local, there: Remote, now: float) -> bool:
        """True = all is done that can be done now: the server shows the newest status."""
        told = self._told.get(key)
        if told is not None and (told.uid, told.version) == (there.uid, there.version):
            # Nobody has written since: what is there is what was told, and need not be read.
            return told.status == local.status or self._show(key, local, there, render.status(told.status), read=False)
        try:
            return self._compare(key, local, there)
        except Refused as error:
            if error.code != 403 or not self._new(key):
                raise
        self.dirty(key, now + LEARN_LOOK)
        return True

    def _compare(self, key: PodKey, local: Local, there: Remote) -> bool:
        document = self._look(key, there)
        if (
            document is None
            or mirror_pods.decide(local, self._cache.get(key), self._state.uid, False) is not Step.STATUS
        ):
            return False
        return self._show(key, local, mirror_pods.remote(document), document.get("status") or {})

    def _show(self, key: PodKey, local: Local, there: Remote, before: Json, read: bool = True) -> bool:
        """Write the status over `before`. False = the mirror must be looked at again.

        `read` False = `before` is from memory: the answer must show that nothing else has changed.
        """
        here = render.status(local.status)
        if not mirror_status.legal(before, here, local.pod.restart_policy):
            self._delete(key, there)
            return False
        patch = mirror_status.patch(before, here)
        version = there.version
        if patch:
            reply = self._api.patch_pod_status(key, there.uid, patch)
            if reply.code == 404 or _unrelated(reply) or (reply.code in (409, 422) and self._replaced(key, there)):
                return False
            if reply.code != 200:
                raise api.refused(f"report the status of pod {key}", reply)
            now = mirror_pods.remote(reply.document)
            version = now.version
            self._cache.put(now)
            if not read and mirror_status.patch(reply.document.get("status") or {}, here):
                del self._told[key]
                return False
        self._told[key] = Told(there.uid, version, local.status)
        return True

    def _replaced(self, key: PodKey, there: Remote) -> bool:
        """Whether the pod is another one by now, or gone."""
        self._look(key, there)
        found = self._cache.get(key)
        return found is None or found.uid != there.uid


def _unrelated(reply: Reply) -> bool:
    """A node may not even hear that a pod is gone (apiserver-facts, Reads)."""
    return reply.code == 403 and "no relationship" in reply.message
