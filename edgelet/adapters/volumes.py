"""Volumes on this host: emptyDir directories and tmpfs mounts, hostPath checks, subPath binds.

Owns everything below ``<root>/pods/<uid>``.  Memory volumes are tmpfs mounts in the host's mount
namespace (design section 3).  Nothing is deleted while anything is still mounted below it: a
subPath bind may lead into a directory of the host.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping

from .. import errors
from ..core import hosts
from ..model.layout import Layout
from ..model.observed import Bind
from ..model.pod import Container, EmptyDir, HostPath, Pod, Volume, VolumeMount
from ..model.references import Files
from ..ports import NO_FILES, VolumeFiles

log = logging.getLogger(__name__)

DIRECTORY_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
MOUNT_SECONDS = 30
HOSTS = "/etc/hosts"
SECRETS_SIZE = 32 * 2**20
"""Bytes that a volume of Secrets may take; the API allows 1 MiB per Secret."""
TEXT_MOST = 2**20
Contents = Mapping[str, tuple[bytes, int]]


class HostVolumes:
    """See ports.Volumes. `memory` is the machine's memory in bytes: the cap of a tmpfs without a size."""

    def __init__(self, layout: Layout, *, memory: int = 0) -> None:
        self._layout = layout
        self._memory = memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    def binds(self, pod: Pod, container: Container, files: VolumeFiles = NO_FILES) -> tuple[Bind, ...]:
        """See ports.Volumes."""
        return tuple(self._bind(pod, container, i, m, files) for i, m in enumerate(container.mounts))

    def text(self, pod: Pod, volume: str, path: str) -> str:
        """See ports.Volumes."""
        try:
            with _opened(self._layout.empty_dir(pod.uid, volume), path, make=False) as (descriptor, kind):
                if kind != "file" or not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise errors.VolumeError("it is no file")
                with open(f"/proc/self/fd/{descriptor}", encoding="utf-8", errors="replace") as file:
                    return file.read(TEXT_MOST)
        except (OSError, errors.VolumeError) as error:
            raise errors.VolumeError(f"cannot read {path} of volume {volume}: {error}") from error

    def message_file(self, pod: Pod, container: Container, restart_count: int) -> Bind:
        """See ports.Volumes. The file is another one each time: a container that still ends may hold the old one."""
        path = self._layout.message_file(pod.uid, container.name, restart_count)
        try:
            _forget_messages(os.path.dirname(path), restart_count)
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))
            os.chmod(path, 0o666)  # whatever the umask: the container may run as anybody
        except OSError as error:
            raise errors.VolumeError(
                f"cannot create the termination message file of container {container.name}: {error}",
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
            raise errors.VolumeError(f"cannot write /etc/hosts of pod {pod.key}: {error}") from error
        return Bind(path, HOSTS, kind="file")

    def remove(self, uid: str) -> None:
        """See ports.Volumes."""
        if uid in ("", ".", "..") or "/" in uid:
            raise errors.StateError(f"cannot delete the data of pod {uid!r}: that is no uid")
        path = self._layout.pod_dir(uid)
        if not os.path.isdir(path):
            return
        try:
            for point in reversed(_mounts_below(path)):
                _run("umount", point)
            left = _mounts_below(path)
            if left:
                raise errors.StateError(f"cannot delete the data of pod {uid}: still mounted: {', '.join(left)}")
            shutil.rmtree(path)
        except OSError as error:
            raise errors.StateError(f"cannot delete the data of pod {uid}: {error}") from error

    def uids(self) -> frozenset[str]:
        """See ports.Volumes."""
        try:
            with os.scandir(os.path.dirname(self._layout.pod_dir("x"))) as entries:
                return frozenset(e.name for e in entries if e.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return frozenset()

    # ---- inside -----------------------------------------------------------------------------

    def _bind(self, pod: Pod, container: Container, index: int, mount: VolumeMount, files: VolumeFiles) -> Bind:
        volume = next((v for v in pod.volumes if v.name == mount.volume), None)
        if volume is None:
            raise errors.VolumeError(f"cannot mount {mount.volume}: pod {pod.key} has no such volume")
        source, kind = self._source(pod, volume, files.get(volume.name, {}))
        if mount.sub_path and kind == "dir":
            target = os.path.join(
                self._layout.pod_dir(pod.uid), "volume-subpaths", volume.name, container.name, str(index)
            )
            source, kind = _sub_path(source, mount.sub_path, target)
        read_only = mount.read_only or isinstance(volume.source, Files)  # by nature (5.4.1)
        return Bind(source, mount.mount_path, read_only, mount.propagation, kind)

    def _source(self, pod: Pod, volume: Volume, files: Contents) -> tuple[str, str]:
        try:
            if isinstance(volume.source, HostPath):
                return _host_path(volume.source)
            if isinstance(volume.source, Files):
                return self._files(pod, volume.name, volume.source, files), "dir"
            return self._empty_dir(pod, volume.name, volume.source), "dir"
        except OSError as error:
            raise errors.VolumeError(f"cannot set up volume {volume.name}: {error}") from error

    def _files(self, pod: Pod, name: str, source: Files, files: Contents) -> str:
        """A directory with these files; what is secret lies in memory, and nobody but root reaches it from outside."""
        path = self._layout.files_dir(pod.uid, name)
        os.makedirs(path, exist_ok=True)
        os.chmod(self._layout.pod_dir(pod.uid), 0o750)
        if source.secret and not os.path.ismount(path):
            _mount_tmpfs(path, SECRETS_SIZE, "0755")
        _write_tree(path, files)
        return path

    def _empty_dir(self, pod: Pod, name: str, source: EmptyDir) -> str:
        path = self._layout.empty_dir(pod.uid, name)
        if not os.path.isdir(path):
            os.makedirs(path, exist_ok=True)
            os.chmod(path, 0o777)  # whatever the umask
        if source.medium == "Memory" and not os.path.ismount(path):
            _mount_tmpfs(path, _tmpfs_size(pod, source, self._memory))
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


def _mount_tmpfs(path: str, size: int, mode: str = "0777") -> None:
    options = f"size={size},mode={mode}"
    if _kernel() >= (6, 4):
        options += ",noswap"
    _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", path)


def _kernel() -> tuple[int, ...]:
    parts = os.uname().release.split("-")[0].split(".")[:2]
    return tuple(int(p) for p in parts if p.isdigit())


# ---- files ----------------------------------------------------------------------------------


def _write_tree(path: str, files: Contents) -> None:
    """All files at once: a new directory, and one link that is turned to it; unchanged ones are left alone."""
    data = os.path.join(path, "..data")
    old = os.path.realpath(data)
    if os.path.isdir(data) and _tree(old) == dict(files):
        return
    new = tempfile.mkdtemp(prefix="..", dir=path)
    os.chmod(new, 0o755)
    for name, (content, mode) in files.items():
        place = os.path.join(new, name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
    _turn(os.path.basename(new), data)
    tops = {name.split("/")[0] for name in files}
    for name in os.listdir(path):
        if not name.startswith("..") and name not in tops:
            os.unlink(os.path.join(path, name))
    for name in tops:
        if not os.path.islink(os.path.join(path, name)):
            os.symlink(f"..data/{name}", os.path.join(path, name))
    if old != data:
        shutil.rmtree(old, ignore_errors=True)


def _turn(target: str, link: str) -> None:
    """Make a link lead to another place, in one step."""
    beside = f"{link}_tmp"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(beside)
    os.symlink(target, beside)
    os.rename(beside, link)


def _tree(path: str) -> dict[str, tuple[bytes, int]]:
    """The files below a directory, as they were written."""
    found = {}
    for directory, _, names in os.walk(path):
        for name in names:
            place = os.path.join(directory, name)
            with open(place, "rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                found[os.path.relpath(place, path)] = (file.read(), mode)
    return found


# ---- hostPath -------------------------------------------------------------------------------

_CHECKS: dict[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "directory"),
    "File": (stat.S_ISREG, "file"),
    "FileOrCreate": (stat.S_ISREG, "file"),
    "Socket": (stat.S_ISSOCK, "socket file"),
    "CharDevice": (stat.S_ISCHR, "character device"),
    "BlockDevice": (stat.S_ISBLK, "block device"),
}


def _host_path(source: HostPath) -> tuple[str, str]:
    """The path and its kind, after the check of semantics 5.5. Raises VolumeError and OSError."""
    mode = _mode(source.path)
    if mode is None:
        mode = _create(source)
    check = _CHECKS.get(source.type)
    if check is not None and (mode is None or not check[0](mode)):
        raise errors.VolumeError(f"hostPath type check failed: {source.path} is not a {check[1]}")
    if source.type in ("CharDevice", "BlockDevice"):
        return os.path.realpath(source.path), "device"
    return source.path, "dir" if mode is not None and stat.S_ISDIR(mode) else "file"


def _create(source: HostPath) -> int | None:
    """What the type allows to be created; "" gets a directory, as CRI runtimes do."""
    if source.type in ("", "DirectoryOrCreate"):
        os.makedirs(source.path, mode=0o755, exist_ok=True)
    elif source.type == "FileOrCreate":
        os.close(os.open(source.path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    return _mode(source.path)


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


# ---- subPath --------------------------------------------------------------------------------


def _sub_path(volume: str, sub_path: str, target: str) -> tuple[str, str]:
    """Bind `sub_path` of the volume to `target`, so that later symlink swaps change nothing (5.4.4)."""
    try:
        with _opened(volume, sub_path) as (descriptor, kind):
            _bind_at(descriptor, kind, target)
            return target, kind
    except (OSError, errors.VolumeError) as error:
        raise errors.VolumeError(
            f"cannot use subPath {sub_path!r}: {error}", reason="CreateContainerConfigError"
        ) from error


@contextlib.contextmanager
def _opened(volume: str, sub_path: str, make: bool = True) -> Iterator[tuple[int, str]]:
    """A descriptor of the place, reached without following any symlink after its check; `make` what is missing."""
    root = os.path.realpath(volume)
    wanted = os.path.realpath(os.path.join(root, sub_path))
    if wanted != root and not wanted.startswith(root.rstrip("/") + "/"):
        raise errors.VolumeError(f"it leads out of the volume, to {wanted}")
    names = os.path.relpath(wanted, root).split(os.sep) if wanted != root else []
    descriptor = os.open(root, DIRECTORY_FLAGS)
    try:
        mode = os.fstat(descriptor).st_mode
        for name in names:
            below = _step(descriptor, name, stat.S_IMODE(mode) if make else None)
            os.close(descriptor)
            descriptor = below
        kind = "dir" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        yield descriptor, kind
    finally:
        os.close(descriptor)


def _step(parent: int, name: str, mode: int | None) -> int:
    """Open `name` below `parent`, as a new directory of the volume's `mode` (None = none is made) if it is missing."""
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        found = os.open(name, flags, dir_fd=parent)
    except FileNotFoundError:
        if mode is None:
            raise
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=parent)
            os.chmod(name, mode, dir_fd=parent)
        found = os.open(name, flags, dir_fd=parent)
    if stat.S_ISLNK(os.fstat(found).st_mode):
        os.close(found)
        raise errors.VolumeError(f"{name} became a symbolic link while it was being resolved")
    return found


def _bind_at(descriptor: int, kind: str, target: str) -> None:
    here = os.fstat(descriptor)
    if os.path.exists(target):
        there = os.stat(target)
        if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino):
            return
        if target in _mounts_below(target):
            _run("umount", target)
    if kind == "dir":
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o640))
    _run("mount", "--bind", f"/proc/{os.getpid()}/fd/{descriptor}", target)


# ---- mounts ---------------------------------------------------------------------------------


def _mounts_below(path: str) -> list[str]:
    """Mount points at or below `path`, in the order they were mounted."""
    real = os.path.realpath(path)
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        points = [_unescape(line.split()[4]) for line in file]
    return [p for p in points if p == real or p.startswith(real + "/")]


def _unescape(field: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, char)
    return field


def _run(*words: str) -> None:
    """Run mount or umount. Raises OSError with what it said."""
    try:
        done = subprocess.run(words, capture_output=True, timeout=MOUNT_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{words[0]} of {words[-1]} took longer than {MOUNT_SECONDS} s") from error
    if done.returncode:
        raise OSError(done.stderr.decode(errors="replace").strip() or f"{words[0]} failed")
