"""What a container is given when it is made: the values of its variables, and what it mounts."""

from __future__ import annotations

import logging
import os.path
from collections.abc import Callable
from dataclasses import replace

from .. import errors, ports
from ..core import values
from ..model.observed import Bind
from ..model.pod import Container, ImageSource, Pod
from ..model.references import FileKeyRef, Files

log = logging.getLogger(__name__)

HOSTS = "/etc/hosts"


class Furnishing:
    """Gathers it; `around` tells what stands around a pod that has those addresses."""

    def __init__(
        self, runtime: ports.Runtime, volumes: ports.Volumes, around: Callable[[tuple[str, ...]], values.Around]
    ) -> None:
        self._runtime = runtime
        self._volumes = volumes
        self._around = around

    def check(self, pod: Pod) -> None:
        """Set up the volumes before there is a sandbox. Raises VolumeError."""
        for container in pod.all_containers:
            self._volumes.binds(pod, _without_images(pod, container), self._files(pod, container))

    def variables(self, pod: Pod, container: Container, ips: tuple[str, ...]) -> Container:
        """With the values that its variables refer to. Raises ReferenceMissing."""
        if not container.env_from and all(v.source is None for v in container.env):
            return container
        around = self._around(ips)
        wanted = {v.source for v in container.env if isinstance(v.source, FileKeyRef)}
        if wanted:
            around = replace(around, files=self._texts(pod, wanted))
        return replace(container, env=values.environment(pod, container, around), env_from=())

    def _texts(self, pod: Pod, wanted: set[FileKeyRef]) -> dict[tuple[str, str], str]:
        """The files that variables are read from, as far as they can be."""
        found = {}
        for ref in wanted:
            try:
                found[ref.volume, ref.path] = self._volumes.text(pod, ref.volume, ref.path)
            except errors.VolumeError as error:
                log.info("%s: %s", pod.key, error)
        return found

    def _files(self, pod: Pod, container: Container) -> ports.VolumeFiles:
        """What the volumes hold that `container` mounts and that are made of files. Raises VolumeError."""
        mounted = {m.volume for m in container.mounts}
        wanted = [(v.name, v.source) for v in pod.volumes if v.name in mounted and isinstance(v.source, Files)]
        if not wanted:
            return ports.NO_FILES
        around, made = self._around(()), {}
        for name, source in wanted:
            try:
                made[name] = values.contents(pod, source, around)
            except errors.ReferenceMissing as error:
                raise errors.VolumeError(f'MountVolume.SetUp failed for volume "{name}" : {error}') from error
        return made

    def layers(self, pod: Pod, container: Container) -> tuple[dict[str, tuple[str, ...]], Container | None]:
        """Of the images that it mounts, by volume; or the first one that is not here. Raises RuntimeFailure."""
        mounted, found = {f"volumes[{m.volume}]": m.volume for m in container.mounts}, {}
        for needed in pod.image_volumes:
            if needed.name in mounted:
                image = self._runtime.image(needed.image)
                if image is None:
                    return {}, needed
                found[mounted[needed.name]] = image.layers
        return found, None

    def binds(
        self, pod: Pod, container: Container, number: int, ips: tuple[str, ...], layers: ports.Layers
    ) -> tuple[Bind, ...]:
        """What an instance mounts; a volume at a path takes the place of our own file. Raises VolumeError."""
        binds = self._volumes.binds(pod, container, self._files(pod, container), layers)
        taken = {os.path.normpath(b.target) for b in binds}
        path = container.termination_message_path
        if path and os.path.normpath(path) not in taken:
            binds = (*binds, *self._message(pod, container, number))
        if (ips or pod.host_network) and HOSTS not in taken:
            binds = (*binds, self._volumes.hosts_file(pod, ips))
        return binds

    def _message(self, pod: Pod, container: Container, number: int) -> tuple[Bind, ...]:
        """The file of its last words; it runs without one on a disk that takes none, as in the kubelet (3.14)."""
        try:
            return (self._volumes.message_file(pod, container, number),)
        except errors.VolumeError as error:
            log.warning("%s: %s; it runs without", pod.key, error)
            return ()


def _without_images(pod: Pod, container: Container) -> Container:
    """Without the mounts of images: these need not be here before the sandbox is."""
    images = {v.name for v in pod.volumes if isinstance(v.source, ImageSource)}
    return replace(container, mounts=tuple(m for m in container.mounts if m.volume not in images))
