"""Pods given through the local API: validated, kept on disk before they are acknowledged.

Owns the directory ``<store dir>/api``, one checked file per pod: the bytes as they were sent.  A
call that returns has survived a power cut; a call that raises has changed nothing, except that of
several pods in one call the first ones may be in.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import durable, errors
from ..core import updates
from ..model.pod import Pod, PodKey
from ..model.problems import Problem
from ..model.sources import SourceState
from ..model.submission import Applied, Expect
from ..ports import Sink, Snapshot

if TYPE_CHECKING:
    from ..model.decode import Decoded

log = logging.getLogger(__name__)

MAX_PODS = 2000
"""Submitted pods that are taken: far above what a box can run, so that nothing grows without bound."""

_NOT_MEANT = ("kubernetes.io/config.hash", "kubectl.kubernetes.io/last-applied-configuration")
"""Annotations that say how a pod was written, not what is wanted."""

Decode = Callable[[bytes, bool], "Decoded"]
"""(bytes, strict) -> what they say."""


class Submitted:
    """The third source (ports.Source), and the store behind the API's writing calls.

    `owner_of` tells which other source gives a pod of that name now (None = none): such a pod is
    refused.  All methods may be called from any thread.
    """

    name = "api"

    def __init__(
        self,
        store_dir: str,
        sink: Sink,
        node_name: str,
        owner_of: Callable[[PodKey], str | None] = lambda key: None,
        strict: bool = False,
        decode: Decode | None = None,
        files: durable.Files = durable.DISK,
    ) -> None:
        self._store = durable.Store(os.path.join(store_dir, "api"), files=files)
        self._sink = sink
        self._owner_of = owner_of
        self._strict = strict
        self._decode = decode or _decoder(node_name)
        self._lock = threading.Lock()
        self._pods: dict[PodKey, Pod] = {}
        self._problems: tuple[Problem, ...] = ()
        self._seen = False

    def start(self) -> None:
        """See ports.Source."""
        with self._lock:
            self._restore()
            self._publish()

    def stop(self) -> None:
        """See ports.Source; there is no thread."""

    def state(self) -> SourceState:
        """The source as a whole."""
        with self._lock:
            problems = tuple(str(p) for p in self._problems)
            return SourceState(
                self.name,
                "submitted through the local API",
                ok=self._seen,
                message="; ".join(problems),
                pods=len(self._pods),
                problems=problems,
            )

    def get(self, key: PodKey) -> Pod | None:
        """The submitted pod of that name."""
        with self._lock:
            return self._pods.get(key)

    def manifest(self, key: PodKey) -> bytes | None:
        """The manifest of a submitted pod as it was sent; None = there is no such pod. Raises StateError."""
        with self._lock:
            return self._store.get(str(key)) if key in self._pods else None

    def apply(
        self, data: bytes, expect: Expect = Expect.ANY, strict: bool = False, dry_run: bool = False
    ) -> tuple[Applied, ...]:
        """Take in the pods of a manifest, all or (when one is wrong) none; `dry_run` = only say what would be.

        Raises ManifestError with every mistake, NameTaken when a name is another source's or
        `expect` is not met, StateError when they cannot be kept.
        """
        decoded = self._decode(data, strict or self._strict)
        if decoded.failed:
            raise errors.ManifestError(decoded.problems)
        if not decoded.pods:
            raise errors.ManifestError((Problem("there is no pod in it; only pods can be submitted"),))
        warnings = tuple(p for p in decoded.problems if p.warning)
        with self._lock:
            self._check(decoded.pods, expect)
            if dry_run:
                return tuple(self._judge(pod, warnings) for pod in decoded.pods)
            try:
                return tuple(self._take(pod, data, warnings) for pod in decoded.pods)
            finally:
                self._publish()

    def delete(self, namespace: str, name: str) -> bool:
        """Forget a pod; False = there is none. Raises StateError."""
        key = PodKey(namespace, name)
        with self._lock:
            if key not in self._pods:
                return False
            self._store.remove(str(key))
            del self._pods[key]
            self._publish()
            return True

    def _check(self, pods: tuple[Pod, ...], expect: Expect) -> None:
        problems = tuple(Problem(text) for pod in pods if (text := self._objection(pod, expect)))
        if problems:
            raise errors.NameTaken(problems)
        new = {pod.key for pod in pods} - set(self._pods)
        if len(self._pods) + len(new) > MAX_PODS:
            raise errors.ManifestError((Problem(f"there are {len(self._pods)} submitted pods already, of {MAX_PODS}"),))

    def _objection(self, pod: Pod, expect: Expect) -> str:
        owner = self._owner_of(pod.key)
        if owner not in {None, self.name}:
            return f"pod {pod.key} is given by the source {owner}: change it there, or choose another name"
        if expect is Expect.NEW and pod.key in self._pods:
            return f"pod {pod.key} already exists"
        if expect is Expect.EXISTING and pod.key not in self._pods:
            return f"pod {pod.key} does not exist: create it first"
        return ""

    def _take(self, pod: Pod, data: bytes, warnings: tuple[Problem, ...]) -> Applied:
        applied = self._judge(pod, warnings)
        if applied.verb != "unchanged":
            self._store.put(str(pod.key), data)
            self._pods[pod.key] = pod
        return applied

    def _judge(self, pod: Pod, warnings: tuple[Problem, ...]) -> Applied:
        """What taking in this pod means. The same pod written in other words is no change."""
        before = self._pods.get(pod.key)
        if before is not None and _meaning(before) == _meaning(pod):
            return Applied(before, "unchanged", warnings)
        if before is None:
            return Applied(pod, "created", warnings)
        refused = updates.refused_changes(before.document, pod.document)
        if refused:
            warnings = (*warnings, Problem(updates.warning(refused), warning=True))
        return Applied(pod, "configured", warnings)

    def _publish(self) -> None:
        pods = tuple(self._pods[key] for key in sorted(self._pods))
        self._sink.put(Snapshot(self.name, pods, self._problems, self._seen))

    def _restore(self) -> None:
        try:
            loaded = self._store.load()
        except errors.StateError as err:
            self._problems = (Problem(str(err), file=self.name),)
            return
        problems = [Problem(text, file=self.name) for text in loaded.complaints]
        for key, data in loaded.entries.items():
            problems += self._restore_one(key, data)
        self._problems = tuple(problems)
        # A pod whose every copy is damaged may still run, and is not to be ended for that: until the
        # damaged file is removed nothing that this source does not name is known to be unwanted.
        self._seen = not loaded.lost

    def _restore_one(self, key: str, data: bytes) -> list[Problem]:
        decoded = self._decode(data, False)
        pod = next((p for p in decoded.pods if str(p.key) == key), None)
        if pod is None:
            return [Problem(f"cannot run the submitted pod {key} any more: this edgelet refuses what was accepted")]
        self._pods[pod.key] = pod
        return []


def _meaning(pod: Pod) -> Any:
    """The defaulted pod without what follows from the way it was written."""
    document = json.loads(pod.document)
    metadata = document.get("metadata", {})
    notes = {k: v for k, v in metadata.get("annotations", {}).items() if k not in _NOT_MEANT}
    return {**document, "metadata": {**{k: v for k, v in metadata.items() if k != "uid"}, "annotations": notes}}


def _decoder(node_name: str) -> Decode:
    from ..model import decode

    def call(data: bytes, strict: bool) -> Decoded:
        return decode.decode(data, decode.Origin(file="", source="api", node_name=node_name, strict=strict))

    return call
