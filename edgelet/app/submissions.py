"""Pods submitted through the API, for the server: the store, who owns a name, and how long an end may take."""

from __future__ import annotations

import os.path
from collections.abc import Iterable
from typing import Protocol

from ..adapters.submitted import Submitted
from ..engine.director import Director
from ..model import decode
from ..model.pod import Pod, PodKey
from ..model.problems import Problem
from ..model.sources import SourceState
from ..model.submission import Applied, Expect


class Stated(Protocol):
    """A source that can describe itself."""

    name: str

    def state(self) -> SourceState:
        """As of its last look."""
        ...


class Submissions:
    """See adapters.server.contracts.Submissions."""

    def __init__(self, submitted: Submitted, director: Director, sources: Iterable[Stated], node_name: str) -> None:
        self._submitted = submitted
        self._director = director
        self._sources = tuple(sources)
        self._origin = decode.Origin("", submitted.name, node_name)

    def owner(self, key: PodKey) -> str | None:
        """Who gives the pod of that name now: "api" = submitted, None = nobody, else words for a person."""
        pod = self._director.pod(key)
        if pod is None:
            return self._submitted.name if self._submitted.get(key) else None
        return pod.source if pod.source == self._submitted.name else self._place(key, pod.source)

    def _place(self, key: PodKey, source: str) -> str:
        state = next((s.state() for s in self._sources if s.name == source), None)
        if state is None:
            return f"the source {source}"
        file = next((f.file for f in state.files if str(key) in f.pods), "")
        if not file or file == state.location:
            return f"the file {state.location}" if file else state.location
        return f"the file {os.path.join(state.location, file)}"

    def get(self, key: PodKey) -> Pod | None:
        """The submitted pod of that name."""
        return self._submitted.get(key)

    def manifest(self, key: PodKey) -> bytes | None:
        """What was sent for it. Raises errors.StateError."""
        return self._submitted.manifest(key)

    def check(self, data: bytes) -> tuple[Problem, ...]:
        """All that is to be said about a manifest."""
        return decode.decode(data, self._origin).problems

    def apply(self, data: bytes, expect: Expect = Expect.ANY, dry_run: bool = False) -> tuple[Applied, ...]:
        """Take in pods. Raises errors.ManifestError, errors.NameTaken, errors.StateError."""
        return self._submitted.apply(data, expect, dry_run=dry_run)

    def delete(self, key: PodKey, grace: int | None) -> bool:
        """End a submitted pod, or hurry one that ends; False = there was none. Raises errors.StateError."""
        if grace is not None:
            self._director.deleting(key, grace)
        return self._submitted.delete(key.namespace, key.name)
