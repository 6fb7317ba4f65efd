"""Volumes on a real file system; what needs a mount needs root and skips otherwise."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from edgelet import errors
from edgelet.adapters.volumes import HostVolumes
from edgelet.model.layout import Layout
from edgelet.model.pod import Container, EmptyDir, HostAlias, HostPath, ImageSource, Pod, Resources, Volume, VolumeMount
from edgelet.model.references import Files, ObjectFiles

needs_mount = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    yield Layout(str(tmp_path / "root"), str(tmp_path / "run"), str(tmp_path / "logs"))
    for point in reversed(_mounts(str(tmp_path))):
        subprocess.run(["umount", point], check=False)


def _mounts(below: str) -> list[str]:
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [p for p in points if p.startswith(below)]


def pod(source: EmptyDir | HostPath | Files | ImageSource, *mounts: VolumeMount, limit: int | None = None) -> Pod:
    container = Container(
        "c", "demo", mounts=mounts or (VolumeMount("v", "/v"),), resources=Resources(memory_limit=limit)
    )
    return Pod("p-n", "default", "uid-1", "1-a", "file", (container,), volumes=(Volume("v", source),))


def bind(layout: Layout, made: Pod) -> tuple[str, str]:
    (found,) = HostVolumes(layout).binds(made, made.containers[0])
    return found.source, found.kind


# ---- emptyDir ----


def test_an_empty_dir_is_open_to_all_whatever_the_umask(layout: Layout) -> None:
    before = os.umask(0o077)
    try:
        source, kind = bind(layout, pod(EmptyDir()))
    finally:
        os.umask(before)
    assert source == layout.empty_dir("uid-1", "v")
    assert kind == "dir"
    assert stat.S_IMODE(os.stat(source).st_mode) == 0o777


def test_an_empty_dir_keeps_its_content_and_its_changed_mode(layout: Layout) -> None:
    source, _ = bind(layout, pod(EmptyDir()))
    Path(source, "data").write_text("x")
    os.chmod(source, 0o700)
    assert bind(layout, pod(EmptyDir())) == (source, "dir")
    assert Path(source, "data").read_text() == "x"
    assert stat.S_IMODE(os.stat(source).st_mode) == 0o700


def test_mount_flags_are_passed_on(layout: Layout) -> None:
    made = pod(EmptyDir(), VolumeMount("v", "/v", read_only=True, propagation="HostToContainer"))
    (found,) = HostVolumes(layout).binds(made, made.containers[0])
    assert (found.target, found.read_only, found.propagation) == ("/v", True, "HostToContainer")


@needs_mount
@pytest.mark.parametrize(
    ("size", "limit", "expected"),
    [(1 << 20, None, 1 << 20), (None, 2 << 20, 2 << 20), (4 << 20, 2 << 20, 2 << 20), (None, None, 8 << 20)],
)
def test_a_memory_volume_has_the_smallest_of_all_bounds(
    layout: Layout, size: int | None, limit: int | None, expected: int
) -> None:
    made = pod(EmptyDir("Memory", size), limit=limit)
    (found,) = HostVolumes(layout, memory=8 << 20).binds(made, made.containers[0])
    space = os.statvfs(found.source)
    assert space.f_frsize * space.f_blocks == expected
    assert stat.S_IMODE(os.stat(found.source).st_mode) == 0o777


@needs_mount
def test_a_memory_volume_is_mounted_once_and_again_after_a_reboot(layout: Layout) -> None:
    source, _ = bind(layout, pod(EmptyDir("Memory", 1 << 20)))
    bind(layout, pod(EmptyDir("Memory", 1 << 20)))
    assert _mounts(source) == [source]
    subprocess.run(["umount", source], check=True)
    bind(layout, pod(EmptyDir("Memory", 1 << 20)))
    assert _mounts(source) == [source]


# ---- removal ----


@needs_mount
def test_removal_takes_mounts_and_data_and_nothing_else(layout: Layout, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "sub").mkdir(parents=True)
    (outside / "sub" / "precious").write_text("x")
    mounts = (VolumeMount("v", "/v", sub_path="sub"),)
    bind(layout, pod(HostPath(str(outside)), *mounts))
    memory = Pod("p-n", "default", "uid-1", "1-a", "file", pod(EmptyDir()).containers,
                 volumes=(Volume("v", EmptyDir("Memory", 1 << 20)),))  # fmt: skip
    bind(layout, memory)
    os.symlink(str(outside), layout.pod_dir("uid-1") + "/link")
    volumes = HostVolumes(layout)
    assert volumes.uids() == {"uid-1"}
    volumes.remove("uid-1")
    assert volumes.uids() == frozenset()
    assert (outside / "sub" / "precious").read_text() == "x"
    assert _mounts(layout.root_dir) == []
    volumes.remove("uid-1")


@needs_mount
def test_nothing_is_deleted_while_something_is_mounted(layout: Layout, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "sub").mkdir(parents=True)
    (outside / "sub" / "precious").write_text("x")
    bind(layout, pod(HostPath(str(outside)), VolumeMount("v", "/v", sub_path="sub")))
    with open(layout.pod_dir("uid-1") + "/volume-subpaths/v/c/0/precious", encoding="utf-8"):
        with pytest.raises(errors.StateError, match="cannot delete the data of pod uid-1"):
            HostVolumes(layout).remove("uid-1")
        assert (outside / "sub" / "precious").read_text() == "x"
    HostVolumes(layout).remove("uid-1")


@pytest.mark.parametrize("uid", ["", "..", "a/b", "."])
def test_an_uid_that_is_no_name_removes_nothing(layout: Layout, uid: str) -> None:
    keep = Path(layout.pod_dir("keep"))
    keep.mkdir(parents=True)
    with pytest.raises(errors.StateError):
        HostVolumes(layout).remove(uid)
    assert keep.exists()


# ---- hostPath ----


@pytest.fixture
def places(tmp_path: Path) -> Iterator[dict[str, str]]:
    (tmp_path / "dir").mkdir()
    (tmp_path / "file").write_text("x")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "sock"))
        yield {
            "dir": str(tmp_path / "dir"),
            "file": str(tmp_path / "file"),
            "socket": str(tmp_path / "sock"),
            "char": "/dev/null",
            "none": str(tmp_path / "none"),
            "deep": str(tmp_path / "a" / "b"),
        }


GOOD = {
    ("", "dir"): "dir", ("", "file"): "file", ("", "socket"): "file", ("", "none"): "dir", ("", "deep"): "dir",
    ("Directory", "dir"): "dir", ("DirectoryOrCreate", "dir"): "dir", ("DirectoryOrCreate", "none"): "dir",
    ("DirectoryOrCreate", "deep"): "dir", ("File", "file"): "file", ("FileOrCreate", "file"): "file",
    ("FileOrCreate", "none"): "file", ("Socket", "socket"): "file", ("CharDevice", "char"): "device",
    ("", "char"): "file",
}  # fmt: skip
NOUNS = {
    "Directory": "directory", "DirectoryOrCreate": "directory", "File": "file", "FileOrCreate": "file",
    "Socket": "socket file", "CharDevice": "character device", "BlockDevice": "block device",
}  # fmt: skip


@pytest.mark.parametrize("place", ["dir", "file", "socket", "char", "none", "deep"])
@pytest.mark.parametrize("kind", ["", *NOUNS])
def test_every_type_against_every_thing(layout: Layout, places: dict[str, str], kind: str, place: str) -> None:
    made = pod(HostPath(places[place], kind))
    if (kind, place) in GOOD:
        assert bind(layout, made) == (places[place], GOOD[kind, place])
        return
    with pytest.raises(errors.VolumeError) as caught:
        bind(layout, made)
    if (kind, place) != ("FileOrCreate", "deep"):  # its parent is missing: the system's words
        assert str(caught.value) == f"hostPath type check failed: {places[place]} is not a {NOUNS[kind]}"
    assert caught.value.reason == "ContainerCreating"


def test_created_things_have_the_kubelet_s_modes(layout: Layout, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        directory, _ = bind(layout, pod(HostPath(str(tmp_path / "d"), "DirectoryOrCreate")))
        file, _ = bind(layout, pod(HostPath(str(tmp_path / "f"), "FileOrCreate")))
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o755
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o644


def test_a_device_behind_a_link_is_handed_in_by_its_own_name(layout: Layout, tmp_path: Path) -> None:
    (tmp_path / "by-id").symlink_to("/dev/null")
    assert bind(layout, pod(HostPath(str(tmp_path / "by-id"), "CharDevice"))) == ("/dev/null", "device")


# ---- subPath ----


@needs_mount
def test_a_sub_path_is_made_with_the_volume_s_mode(layout: Layout) -> None:
    source, kind = bind(layout, pod(EmptyDir(), VolumeMount("v", "/v", sub_path="a/b")))
    assert kind == "dir"
    real = Path(layout.empty_dir("uid-1", "v"), "a", "b")
    assert os.path.samefile(source, real)
    assert stat.S_IMODE(real.stat().st_mode) == 0o777


@needs_mount
def test_a_sub_path_of_a_file(layout: Layout, tmp_path: Path) -> None:
    (tmp_path / "conf").write_text("x")
    source, kind = bind(layout, pod(HostPath(str(tmp_path)), VolumeMount("v", "/v", sub_path="conf")))
    assert kind == "file"
    assert Path(source).read_text() == "x"


@needs_mount
def test_a_sub_path_is_bound_once(layout: Layout) -> None:
    made = pod(EmptyDir(), VolumeMount("v", "/v", sub_path="a"))
    assert bind(layout, made) == bind(layout, made)
    assert len(_mounts(layout.root_dir)) == 1


@needs_mount
def test_a_sub_path_that_was_replaced_is_bound_anew(layout: Layout) -> None:
    made = pod(EmptyDir(), VolumeMount("v", "/v", sub_path="a"))
    bind(layout, made)
    real = Path(layout.empty_dir("uid-1", "v"), "a")
    real.rename(real.with_name("old"))
    source, _ = bind(layout, made)
    assert os.path.samefile(source, real)
    assert len(_mounts(layout.root_dir)) == 1


@pytest.mark.parametrize("sub_path", ["link", "link/x", "../../..", "inner/../../.."])
def test_a_sub_path_that_leaves_the_volume_is_refused(layout: Layout, tmp_path: Path, sub_path: str) -> None:
    volume = tmp_path / "volume"
    (volume / "inner").mkdir(parents=True)
    (volume / "link").symlink_to("/etc")
    with pytest.raises(errors.VolumeError, match="leads out of the volume") as caught:
        bind(layout, pod(HostPath(str(volume)), VolumeMount("v", "/v", sub_path=sub_path)))
    assert caught.value.reason == "CreateContainerConfigError"


@needs_mount
def test_a_link_within_the_volume_is_followed(layout: Layout, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    (volume / "real").mkdir(parents=True)
    (volume / "link").symlink_to("real")
    source, _ = bind(layout, pod(HostPath(str(volume)), VolumeMount("v", "/v", sub_path="link")))
    assert os.path.samefile(source, volume / "real")


def test_a_file_of_a_volume_is_read_and_nothing_is_made(layout: Layout, tmp_path: Path) -> None:
    volumes, asked = HostVolumes(layout), pod(EmptyDir())
    (bind,) = volumes.binds(asked, asked.containers[0])
    inside = Path(bind.source)
    (inside / "in").mkdir()
    (inside / "in" / "a.env").write_text("A='1'\n")
    (inside / "link").symlink_to("in/a.env")
    assert volumes.text(asked, "v", "in/a.env") == volumes.text(asked, "v", "link") == "A='1'\n"
    (tmp_path / "secret").write_text("A='2'\n")
    (inside / "out").symlink_to(tmp_path / "secret")
    os.mkfifo(inside / "fifo")
    for path in ("none/a.env", "out", "in", "fifo"):
        with pytest.raises(errors.VolumeError, match=f"cannot read {path} of volume v: "):
            volumes.text(asked, "v", path)
    assert not (inside / "none").exists()


@needs_mount
@pytest.mark.parametrize("count", [1, 2])
def test_an_image_is_mounted_once_with_its_uppermost_layer_on_top(layout: Layout, tmp_path: Path, count: int) -> None:
    layers = [tmp_path / f"layer{n}" for n in range(count)]
    for n, layer in enumerate(layers):
        layer.mkdir()
        (layer / "name").write_text(str(n))
        (layer / f"only{n}").touch()
    volumes, asked = HostVolumes(layout), pod(ImageSource("image"))
    given = {"v": tuple(str(layer) for layer in layers)}
    (bind,) = volumes.binds(asked, asked.containers[0], layers=given)
    assert (bind.read_only, bind.no_exec) == (True, True)
    assert (Path(bind.source) / "name").read_text() == "0"
    assert sorted(os.listdir(bind.source)) == ["name", *(f"only{n}" for n in range(count))]
    with pytest.raises(OSError, match="Read-only"):
        (Path(bind.source) / "new").touch()
    assert volumes.binds(asked, asked.containers[0], layers=given) == (bind,)
    assert len(_mounts(str(tmp_path))) == 1
    volumes.remove("uid-1")
    assert _mounts(str(tmp_path)) == []
    assert (layers[0] / "name").exists()


def test_an_image_whose_layers_are_not_known_is_told(layout: Layout) -> None:
    asked = pod(ImageSource("image"))
    with pytest.raises(errors.VolumeError, match="storage driver is not overlay"):
        HostVolumes(layout).binds(asked, asked.containers[0])


def test_a_mount_of_no_volume_is_named(layout: Layout) -> None:
    with pytest.raises(errors.VolumeError, match="has no such volume"):
        bind(layout, pod(EmptyDir(), VolumeMount("other", "/v")))


def test_each_instance_gets_a_fresh_message_file_and_the_one_before_is_kept(layout: Layout) -> None:
    made, volumes = pod(EmptyDir()), HostVolumes(layout)
    seen = []
    old_mask = os.umask(0o077)
    try:
        for count in (0, 1, 2, 2):
            found = volumes.message_file(made, made.containers[0], count)
            assert (found.target, found.kind, found.read_only) == ("/dev/termination-log", "file", False)
            assert stat.S_IMODE(os.stat(found.source).st_mode) == 0o666
            assert Path(found.source).read_bytes() == b""
            Path(found.source).write_text("said")
            seen.append(sorted(os.listdir(os.path.dirname(found.source))))
    finally:
        os.umask(old_mask)
    first, second, third = (f"{n:08x}" for n in range(3))
    assert seen == [[first], [first, second], [second, third], [second, third]]
    volumes.remove("uid-1")
    assert volumes.uids() == frozenset()


def test_a_message_file_that_cannot_be_made_is_a_fault_of_the_configuration(layout: Layout) -> None:
    made = pod(EmptyDir())
    os.makedirs(layout.pod_dir("uid-1"))
    Path(layout.pod_dir("uid-1"), "containers").write_text("in the way")
    with pytest.raises(errors.VolumeError, match="termination message file of container c") as caught:
        HostVolumes(layout).message_file(made, made.containers[0], 0)
    assert caught.value.reason == "CreateContainerConfigError"


# ---- files ----

LOOK = Files((ObjectFiles("ConfigMap", "look"),))


def written(layout: Layout, made: Pod, files: dict[str, tuple[bytes, int]]) -> Path:
    """The directory of volume `v` with these files."""
    (found,) = HostVolumes(layout).binds(made, made.containers[0], {"v": files})
    assert found.read_only
    return Path(found.source)


def test_files_are_written_with_their_modes_and_turned_all_at_once(layout: Layout) -> None:
    made = pod(LOOK)
    place = written(layout, made, {"a": (b"1", 0o644), "in/b": (b"2", 0o600), "old": (b"3", 0o644)})
    assert sorted(p.name for p in place.iterdir() if not p.name.startswith("..")) == ["a", "in", "old"]
    assert (place / "in" / "b").read_bytes() == b"2"
    assert stat.S_IMODE((place / "in" / "b").stat().st_mode) == 0o600
    first = os.readlink(place / "..data")
    assert written(layout, made, {"a": (b"1", 0o644), "in/b": (b"2", 0o600), "old": (b"3", 0o644)}) == place
    assert os.readlink(place / "..data") == first  # nothing has changed, nothing is written
    written(layout, made, {"a": (b"4", 0o644), "c": (b"5", 0o644)})
    assert (place / "a").read_bytes() == b"4"
    assert sorted(p.name for p in place.iterdir() if not p.name.startswith("..")) == ["a", "c"]
    assert os.readlink(place / "..data") != first
    assert not (place / first).exists()
    assert stat.S_IMODE(os.stat(layout.pod_dir("uid-1")).st_mode) == 0o750


def test_a_write_that_fails_leaves_nothing_however_often_it_is_tried(layout: Layout) -> None:
    made = pod(LOOK)
    place = written(layout, made, {"a": (b"1", 0o644)})
    before = sorted(os.listdir(place))
    for _ in range(3):
        with pytest.raises(errors.VolumeError, match="cannot set up volume v"):
            written(layout, made, {"a": (b"2", 0o644), "x" * 300: (b"3", 0o644)})
    assert sorted(os.listdir(place)) == before
    assert (place / "a").read_bytes() == b"1"


def test_a_volume_without_files_is_an_empty_directory(layout: Layout) -> None:
    place = written(layout, pod(LOOK), {})
    assert [p.name for p in place.iterdir() if not p.name.startswith("..")] == []


def test_one_file_can_be_mounted_by_its_sub_path(layout: Layout) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    made = pod(LOOK, VolumeMount("v", "/one", sub_path="a"))
    (found,) = HostVolumes(layout).binds(made, made.containers[0], {"v": {"a": (b"1", 0o644)}})
    assert (found.kind, found.read_only, Path(found.source).read_bytes()) == ("file", True, b"1")


@needs_mount
def test_secrets_lie_in_memory(layout: Layout) -> None:
    made = pod(Files((ObjectFiles("Secret", "login"),)))
    place = written(layout, made, {"pw": (b"x", 0o400)})
    assert os.path.ismount(place)
    assert written(layout, made, {"pw": (b"y", 0o400)}) == place
    assert (place / "pw").read_bytes() == b"y"
    HostVolumes(layout).remove("uid-1")
    assert not place.exists()


def test_a29_the_hosts_file_is_one_file_for_good(layout: Layout) -> None:
    made = replace(pod(EmptyDir()), host_aliases=(HostAlias("10.0.0.1", ("db",)),))
    volumes = HostVolumes(layout)
    found = volumes.hosts_file(made, ("10.88.0.2",))
    assert (found.target, found.kind, found.read_only) == ("/etc/hosts", "file", False)
    inode = os.stat(found.source).st_ino
    assert Path(found.source).read_text().endswith("\n# Entries added by HostAliases.\n10.0.0.1\tdb\n")
    assert volumes.hosts_file(made, ("10.88.0.3",)).source == found.source
    assert "10.88.0.3\tp-n\n" in Path(found.source).read_text()
    assert os.stat(found.source).st_ino == inode  # it is mounted in containers that run
    assert stat.S_IMODE(os.stat(found.source).st_mode) == 0o644


def test_the_hosts_file_of_a_host_network_pod_is_the_nodes(layout: Layout) -> None:
    found = HostVolumes(layout).hosts_file(replace(pod(EmptyDir()), host_network=True), ("192.0.2.1",))
    own = Path("/etc/hosts").read_text()
    assert Path(found.source).read_text() == f"# Kubernetes-managed hosts file (host network).\n{own}"
