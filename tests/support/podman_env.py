"""An isolated real Podman for tests: own storage, own network configuration, own service, a demo image.

`PodmanEnv(directory)` keeps everything below `directory`; `close()` removes every pod and container
in it and ends its service.  It never sees a container of the machine's own Podman.

    env.service        adapters.podman.Service to hand to Podman(...)
    env.image          reference of a busybox image in its storage (PATH=/bin, no entrypoint)
    env.layout         model.layout.Layout below the directory
    env.run("ps")      runs a podman command on the same storage, returns its standard output
    env.flags          global podman flags (--root ...), for whoever starts podman by hand
"""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgelet.adapters import podman
from edgelet.model.layout import Layout

BUSYBOX = "/bin/busybox"
IMAGE = "localhost/edgelet-test:1"
APPLETS = """
cat date dd df echo env false grep head hostname httpd id ip kill ls mkdir mount nc od printf ps rm sed seq sh sleep
stat sync tail test touch true umount wc wget
"""


class SystemClock:
    """ports.Clock on the real clocks."""

    def monotonic(self) -> float:
        """Seconds since boot."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def time(self) -> float:
        """Epoch seconds."""
        return time.time()


def why_not() -> str:
    """Why real Podman cannot be used here; "" = it can."""
    if os.geteuid() != 0:
        return "real Podman is tested as root only"
    for tool in ("podman", "conmon"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    if not os.path.exists(BUSYBOX):
        return f"{BUSYBOX} is missing (package busybox-static)"
    return ""


def image_tar(extra: dict[str, bytes] | None = None) -> bytes:
    """A root file system of one static busybox and its applets, as a tar archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in ("bin", "tmp", "etc", "dev", "proc", "sys"):
            _add_dir(tar, name)
        tar.add(BUSYBOX, "bin/busybox", recursive=False)
        for applet in APPLETS.split():
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        for name, data in {"etc/passwd": b"root:x:0:0:root:/:/bin/sh\n", **(extra or {})}.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _add_dir(tar: tarfile.TarFile, name: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
    tar.addfile(entry)


def network_slot() -> tuple[int, socket.socket]:
    """A number no other Podman environment on this machine has; it is ours while the socket is open."""
    for number in range(64):
        holder = socket.socket(socket.AF_UNIX)
        try:
            holder.bind(f"\0edgelet-test-network-{number}")
        except OSError:
            holder.close()
            continue
        return number, holder
    raise RuntimeError("64 Podman environments run on this machine: end some test runs")


def network(number: int) -> str:
    """The default network's definition, with a bridge and addresses of its own: two environments never share one."""
    return json.dumps(
        {
            "name": "podman",
            "id": "2f259bab93aaaaa2542ba43ef33eb990d0999ee1b9924b557b7be53c0b7a1bb9",
            "driver": "bridge",
            "network_interface": f"edgetest{number}",
            "created": "2024-01-01T00:00:00Z",
            "subnets": [{"subnet": f"10.87.{number}.0/24", "gateway": f"10.87.{number}.1"}],
            "ipv6_enabled": False,
            "internal": False,
            "dns_enabled": False,
            "ipam_options": {"driver": "host-local"},
        }
    )


class PodmanEnv:
    """See the module's docstring. `directory` should be short: a socket's path has 107 bytes at most.

    attach: another process has made it, and will outlive this one's use of it.
    """

    def __init__(self, directory: str, *, idle: float = 5.0, attach: bool = False) -> None:
        self.directory = directory
        self.layout = Layout(f"{directory}/root", f"{directory}/run", f"{directory}/logs")
        self.storage = podman.Storage(
            root=f"{directory}/storage",
            runroot=f"{directory}/runroot",
            tmpdir=f"{directory}/tmp",
            network_config_dir=f"{directory}/networks",
        )
        for path in (self.storage.root, self.storage.runroot, self.storage.tmpdir, self.storage.network_config_dir):
            os.makedirs(path, exist_ok=True)
        self._slot: socket.socket | None = None
        if not attach:
            number, self._slot = network_slot()
            Path(self.storage.network_config_dir, "podman.json").write_text(network(number))
        # Two processes that share an environment have a service each: neither ends the other's.
        self.service = self.new_service(idle=idle, name=f"run-{os.getpid()}" if attach else "run")
        self.flags = self.storage.arguments()
        self.image = IMAGE
        if not attach:
            self.add_image(IMAGE)

    def new_service(self, *, idle: float = 5.0, name: str = "run") -> podman.Service:
        """Another service on the same storage (as after a restart of the agent)."""
        return podman.Service(None, f"{self.directory}/{name}", storage=self.storage, idle=idle)

    def runtime(self, owner: str = "test", **options: object) -> podman.Podman:
        """A Podman adapter of that owner on this environment."""
        settings: dict[str, object] = {"boot_id": "boot-1", "facts": podman.facts(podman.read()), **options}
        return podman.Podman(self.service, owner, self.layout, SystemClock(), **settings)  # type: ignore[arg-type]

    def add_image(self, reference: str, *changes: str, extra: dict[str, bytes] | None = None) -> None:
        """Import the busybox image under that name, with Containerfile instructions such as 'USER 1000'."""
        words = [w for c in ("ENV PATH=/bin", *changes) for w in ("--change", c)]
        self.run("import", *words, "-", reference, data=image_tar(extra))

    def run(self, *arguments: str, data: bytes | None = None) -> str:
        """Standard output of a podman command. Raises CalledProcessError, its message in stderr."""
        done = subprocess.run(
            self.service.command_line(*arguments),
            env=self.service.environment(),
            input=data,
            capture_output=True,
            check=False,
            timeout=120 * float(os.environ.get("EDGELET_TEST_PATIENCE", "1")),
        )
        try:
            done.check_returncode()
        except subprocess.CalledProcessError as error:
            error.add_note(done.stderr.decode(errors="replace"))
            raise
        return done.stdout.decode()

    def close(self) -> None:
        """Remove every pod and container, end the service, unmount and delete the storage."""
        try:
            self.run("pod", "rm", "--all", "--force", "--time", "0")
            self.run("rm", "--all", "--force", "--time", "0")
        finally:
            self.service.stop()
            end = time.monotonic() + 10
            while os.path.exists(self.directory) and time.monotonic() < end:
                self._delete()
            if self._slot is not None:
                self._slot.close()

    def _delete(self) -> None:
        """Once may not be enough: conmon starts a `podman container cleanup`, which mounts the storage again."""
        for mounted in reversed(self._mounts()):
            subprocess.run(["umount", "-l", mounted], capture_output=True, check=False)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _mounts(self) -> list[str]:
        """Mount points below the directory, outer ones first."""
        points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        return sorted(p for p in points if p.startswith(f"{self.directory}/"))


@pytest.fixture(scope="session")
def podman_env() -> Iterator[PodmanEnv]:
    """One isolated Podman for the whole run; skips with the reason where there cannot be one."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    # Podman refuses a run root of more than 50 characters, and pytest's own directories come near that.
    env = PodmanEnv(tempfile.mkdtemp(prefix="edge-"))
    yield env
    env.close()


@pytest.fixture
def own_podman() -> Iterator[PodmanEnv]:
    """An isolated Podman for one test, which may break it."""
    if reason := why_not():
        pytest.skip(reason)
    env = PodmanEnv(tempfile.mkdtemp(prefix="edge-"))
    yield env
    env.close()
