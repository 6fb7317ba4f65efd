"""Volumes on this host: emptyDir directories and tmpfs mounts, hostPath checks, subPath binds.

Owns everything below ``<root>/pods/<uid>``.  Memory volumes are tmpfs mounts in the host's mount
namespace (design section 3).  Nothing is deleted while anything is still mounted below it: a
subPath bind may lead into a directory of the host.
"""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass

from ... import errors
from ...core import hosts
from ...model.layout import Layout
from ...model.observed import Bind
from ...model.pod import Container, EmptyDir, HostPath, ImageSource, Pod, Volume, VolumeMount
from ...model.references import Files
from ...ports import NO_FILES, NO_LAYERS, Layers, VolumeFiles
from . import files as trees
from . import host_path, mounts
from . import sub_path as sub_paths
from .files import Contents

HOSTS = "/etc/hosts"
SECRETS_SIZE = 32 * 2**20
"""Bytes that a volume of Secrets may take; the API allows 1 MiB per Secret."""
TEXT_MOST = 2**20


@dataclass(frozen=True, slots=True)
class _Given:
    """What volumes are made of that the manifest alone does not say, by volume."""

    files: VolumeFiles
    layers: Layers


class HostVolumes:
    """See ports.Volumes. `memory` is the machine's memory in bytes: the cap of a tmpfs without a size."""

    def __init__(self, layout: Layout, *, memory: int = 0) -> None:
        self._layout = layout
        self._memory = memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    def binds(
        self, pod: Pod, container: Container, files: VolumeFiles = NO_FILES, layers: Layers = NO_LAYERS
    ) -> tuple[Bind, ...]:
        """See ports.Volumes."""
        given = _Given(files, layers)
        return tuple(self._bind(pod, container, i, m, given) for i, m in enumerate(container.mounts))

    def text(self, pod: Pod, volume: str, path: str) -> str:
        """See ports.Volumes."""
        try:
            with sub_paths.opened(self._layout.empty_dir(pod.uid, volume), path, make=False) as (descriptor, kind):
                if kind != "file" or not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise errors.VolumeError("it is no file")
                with open(f"/proc/self/fd/{descriptor}", encoding="utf-8", errors="replace") as file:
                    return file.read(TEXT_MOST)
        except (OSError, errors.VolumeError) as error:
            raise errors.VolumeError(f"cannot read {path} of volume {volume}: {errors.cause(error)}") from error

    def message_file(self, pod: Pod, container: Container, restart_count: int) -> Bind:
        """See ports.Volumes. The file is another one each time: a container that still ends may hold the old one."""
        path = self._layout.message_file(pod.uid, container.name, restart_count)
        try:
            _forget_messages(os.path.dirname(path), restart_count)
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))
            os.chmod(path, 0o666)  # whatever the umask: the container may run as anybody
        except OSError as error:
            raise errors.VolumeError(
                f"cannot create the termination message file of container {container.name}: {errors.cause(error)}",
                reason="CreateContainerConfigError",
            ) from error
        return Bind(path, container.termination_message_path, kind="file")

    def hosts_file(self, pod: Pod, ips: tuple[str, ...]) -> Bind:
        """See ports.Volumes. Written in place: it is mounted in containers that run."""
        path = self._layout.hosts_file(pod.uid)
        try:
            text = hosts.text(pod, ips, _read(HOSTS) if pod.host_network else "")
            if _read(path) != text:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(
                    os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o644),
                    "w",
                    encoding="utf-8",
                    errors="surrogateescape",
                ) as file:
                    file.write(text)
                os.chmod(path, 0o644)
        except OSError as error:
            raise errors.VolumeError(f"cannot write /etc/hosts of pod {pod.key}: {errors.cause(error)}") from error
        return Bind(path, HOSTS, kind="file")

    def remove(self, uid: str) -> None:
        """See ports.Volumes."""
        if uid in ("", ".", "..") or "/" in uid:
            raise errors.StateError(f"cannot delete the data of pod {uid!r}: that is no uid")
        path = self._layout.pod_dir(uid)
        if not os.path.isdir(path):
            return
        try:
            for point in reversed(mounts.mounts_below(path)):
                mounts.run("umount", point)
            left = mounts.mounts_below(path)
            if left:
                raise errors.StateError(f"cannot delete the data of pod {uid}: still mounted: {', '.join(left)}")
            shutil.rmtree(path)
        except OSError as error:
            raise errors.StateError(f"cannot delete the data of pod {uid}: {errors.cause(error)}") from error

    def uids(self) -> frozenset[str]:
        """See ports.Volumes."""
        try:
            with os.scandir(os.path.dirname(self._layout.pod_dir("x"))) as entries:
                return frozenset(e.name for e in entries if e.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return frozenset()

    # ---- inside -----------------------------------------------------------------------------

    def _bind(self, pod: Pod, container: Container, index: int, mount: VolumeMount, given: _Given) -> Bind:
        volume = next((v for v in pod.volumes if v.name == mount.volume), None)
        if volume is None:
            raise errors.VolumeError(f"cannot mount {mount.volume}: pod {pod.key} has no such volume")
        source, kind = self._source(pod, volume, given)
        if mount.sub_path and kind == "dir":
            target = os.path.join(
                self._layout.pod_dir(pod.uid), "volume-subpaths", volume.name, container.name, str(index)
            )
            source, kind = sub_paths.bind(source, mount.sub_path, target)
        image = isinstance(volume.source, ImageSource)
        read_only = mount.read_only or image or isinstance(volume.source, Files)  # by nature (5.4.1)
        return Bind(source, mount.mount_path, read_only, mount.propagation, kind, no_exec=image)

    def _source(self, pod: Pod, volume: Volume, given: _Given) -> tuple[str, str]:
        try:
            if isinstance(volume.source, HostPath):
                return host_path.host_path(volume.source)
            if isinstance(volume.source, Files):
                return self._files(pod, volume.name, volume.source, given.files.get(volume.name, {})), "dir"
            if isinstance(volume.source, ImageSource):
                return self._image(pod, volume.name, given.layers.get(volume.name, ())), "dir"
            return self._empty_dir(pod, volume.name, volume.source), "dir"
        except OSError as error:
            raise errors.VolumeError(f"cannot set up volume {volume.name}: {errors.cause(error)}") from error

    def _files(self, pod: Pod, name: str, source: Files, files: Contents) -> str:
        """A directory with these files; what is secret lies in memory, and nobody but root reaches it from outside."""
        path = self._layout.files_dir(pod.uid, name)
        os.makedirs(path, exist_ok=True)
        os.chmod(self._layout.pod_dir(pod.uid), 0o750)
        if source.secret and not os.path.ismount(path):
            mounts.mount_tmpfs(path, SECRETS_SIZE, "0755")
        trees.write_tree(path, files)
        return path

    def _image(self, pod: Pod, name: str, layers: tuple[str, ...]) -> str:
        """The root of an image, mounted once per pod."""
        path = self._layout.image_dir(pod.uid, name)
        if os.path.ismount(path):
            return path
        if not layers:
            raise errors.VolumeError(f"cannot set up volume {name}: Podman's storage driver is not overlay")
        empty = os.path.join(os.path.dirname(path), ".empty")
        for directory in (path, empty):
            os.makedirs(directory, exist_ok=True)
        mounts.overlay(path, layers, empty)
        return path

    def _empty_dir(self, pod: Pod, name: str, source: EmptyDir) -> str:
        path = self._layout.empty_dir(pod.uid, name)
        if not os.path.isdir(path):
            os.makedirs(path, exist_ok=True)
            os.chmod(path, 0o777)  # whatever the umask
        if source.medium == "Memory" and not os.path.ismount(path):
            mounts.mount_tmpfs(path, _tmpfs_size(pod, source, self._memory))
        return path


def _read(path: str) -> str:
    """A text file, "" if it is not there."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return ""


# ---- termination messages -------------------------------------------------------------------


def _forget_messages(directory: str, count: int) -> None:
    """Make the directory; keep the message of the instance before `count`, which may still be shown."""
    os.makedirs(directory, exist_ok=True)
    kept = f"{count - 1:08x}" if count else ""
    for name in os.listdir(directory):
        if name != kept:
            os.unlink(os.path.join(directory, name))


# ---- emptyDir -------------------------------------------------------------------------------


def _tmpfs_size(pod: Pod, source: EmptyDir, machine: int) -> int:
    """The smallest of size limit, the pod's memory limit (if all containers have one) and the machine's memory."""
    bounds = [machine]
    if source.size_limit:
        bounds.append(source.size_limit)
    limits = [c.resources.memory_limit for c in pod.containers]
    if all(limits):
        bounds.append(sum(x or 0 for x in limits))
    return min(bounds)
