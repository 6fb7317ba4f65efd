"""ports.Runtime that counts: how often each kind of call was made, failed, and how long it took."""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .. import errors, ports
from ..adapters.metrics.facts import Calls
from ..engine.probe_tally import BUCKETS
from ..model.observed import Bind, Image, ObservedContainer, ObservedPod
from ..model.pod import Container, Pod, PodKey


class _Tally:
    __slots__ = ("buckets", "count", "errors", "seconds")

    def __init__(self) -> None:
        self.count = self.errors = 0
        self.seconds = 0.0
        self.buckets = [0] * (len(BUCKETS) + 1)


class Counted:
    """Passes every call on; the names of operations are those of the port."""

    def __init__(self, runtime: ports.Runtime) -> None:
        self._runtime = runtime
        self._lock = threading.Lock()
        self._tallies: dict[str, _Tally] = {}

    def calls(self) -> tuple[Calls, ...]:
        """What was counted since the start."""
        with self._lock:
            rows = sorted(self._tallies.items())
            return tuple(Calls(name, t.count, t.errors, t.seconds, tuple(t.buckets)) for name, t in rows)

    @contextmanager
    def _counted(self, name: str) -> Iterator[None]:
        began, failed = time.monotonic(), 0
        try:
            yield
        except errors.RuntimeFailure:
            failed = 1
            raise
        finally:
            seconds = time.monotonic() - began
            with self._lock:
                tally = self._tallies.setdefault(name, _Tally())
                tally.count += 1
                tally.errors += failed
                tally.seconds += seconds
                tally.buckets[bisect.bisect_left(BUCKETS, seconds)] += 1

    def list(self, key: PodKey | None = None) -> tuple[ObservedPod, ...]:
        """See ports.Runtime."""
        with self._counted("list"):
            return self._runtime.list(key)

    def create_pod(self, pod: Pod, attempt: int) -> ObservedPod:
        """See ports.Runtime."""
        with self._counted("create_pod"):
            return self._runtime.create_pod(pod, attempt)

    def remove_pod(self, pod_id: str) -> None:
        """See ports.Runtime."""
        with self._counted("remove_pod"):
            self._runtime.remove_pod(pod_id)

    def create_container(
        self, sandbox: ObservedPod, pod: Pod, container: Container, restart_count: int, binds: tuple[Bind, ...]
    ) -> ObservedContainer:
        """See ports.Runtime."""
        with self._counted("create_container"):
            return self._runtime.create_container(sandbox, pod, container, restart_count, binds)

    def start_container(self, sandbox: ObservedPod, container_id: str) -> ObservedPod:
        """See ports.Runtime."""
        with self._counted("start_container"):
            return self._runtime.start_container(sandbox, container_id)

    def signal_container(self, container_id: str, signal: str) -> None:
        """See ports.Runtime."""
        with self._counted("signal_container"):
            self._runtime.signal_container(container_id, signal)

    def remove_container(self, container_id: str) -> None:
        """See ports.Runtime."""
        with self._counted("remove_container"):
            self._runtime.remove_container(container_id)

    def inspect_container(self, container_id: str) -> ObservedContainer:
        """See ports.Runtime."""
        with self._counted("inspect_container"):
            return self._runtime.inspect_container(container_id)

    def image(self, reference: str) -> Image | None:
        """See ports.Runtime."""
        with self._counted("image"):
            return self._runtime.image(reference)

    def pull(self, reference: str) -> Image:
        """See ports.Runtime."""
        with self._counted("pull"):
            return self._runtime.pull(reference)
