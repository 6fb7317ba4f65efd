"""All that a pod leaves on the host, as one: its volumes and its logs go together."""

from __future__ import annotations

from ..adapters.logs import removal
from ..adapters.volumes import HostVolumes
from ..model.observed import Bind
from ..model.pod import Container, Pod
from ..ports import NO_FILES, NO_LAYERS, Layers, VolumeFiles


class PodData:
    """ports.Volumes whose `remove` takes the pod's log directory as well (semantics 6.3)."""

    def __init__(self, volumes: HostVolumes, pod_logs_dir: str) -> None:
        self._volumes = volumes
        self._pod_logs_dir = pod_logs_dir

    def binds(
        self, pod: Pod, container: Container, files: VolumeFiles = NO_FILES, layers: Layers = NO_LAYERS
    ) -> tuple[Bind, ...]:
        """See ports.Volumes."""
        return self._volumes.binds(pod, container, files, layers)

    def text(self, pod: Pod, volume: str, path: str) -> str:
        """See ports.Volumes."""
        return self._volumes.text(pod, volume, path)

    def message_file(self, pod: Pod, container: Container, restart_count: int) -> Bind:
        """See ports.Volumes."""
        return self._volumes.message_file(pod, container, restart_count)

    def hosts_file(self, pod: Pod, ips: tuple[str, ...]) -> Bind:
        """See ports.Volumes."""
        return self._volumes.hosts_file(pod, ips)

    def remove(self, uid: str) -> None:
        """See ports.Volumes."""
        self._volumes.remove(uid)
        removal.remove(self._pod_logs_dir, uid)

    def uids(self) -> frozenset[str]:
        """See ports.Volumes."""
        return self._volumes.uids()
