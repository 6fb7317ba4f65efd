"""ports.Runtime that counts: how often each kind of call was made, failed, and how long it took."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager

from .. import errors, ports
from ..engine.counts import Counts, Row
from ..model.observed import Bind, Image, ObservedContainer, ObservedPod
from ..model.pod import Container, Pod, PodKey


class Counted:
    """Passes every call on; the names of operations are those of the port."""

    def __init__(self, runtime: ports.Runtime) -> None:
        self._runtime = runtime
        self._counts = Counts()

    def calls(self) -> tuple[Row, ...]:
        """What was counted since the start, by operation."""
        return self._counts.rows()

    def _counted(self, name: str) -> AbstractContextManager[None]:
        return self._counts.timed(time.monotonic, errors.RuntimeFailure, name)

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
