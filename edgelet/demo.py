"""`make run` and `make clean`: a first look at edgelet on this machine, from a source tree, and its removal.

Builds an image out of the host's static busybox (no registry needed), runs the installed agent in
the foreground on manifests/ with all its state under .run/, and takes exactly that away again.
Part of the tree's tools: no other module uses it.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import config, config_values
from .adapters.podman.service import Service
from .model import labels

IMAGE = "localhost/edgelet-demo:1"
BUSYBOX = "/bin/busybox"
GRACE = "2"
"""Seconds that `make clean` leaves a container: those of the demo have nothing to save."""

INTRODUCTION = """\
edgelet runs the pods of {manifests} now; Ctrl-C stops the agent, not the pods. What goes wrong is told here
(EDGELET_LOG_LEVEL=info make run: all that happens). In another terminal:
  {command} get pods                 names, readiness, restarts
  {command} get events               what happened, in order
  busybox wget -qO- http://127.0.0.1:18080/    the pod "web" answers; a browser shows it too
  podman pod ps                      the same pods, as Podman sees them
Kill one of them and look again:
  podman kill $(podman ps --quiet --filter label={label}={owner} | head -n 1)
Edit, add or remove a file in manifests/ and look again.
"""
FAREWELL = """
The agent has ended; its pods go on running. make run takes them over again, make clean stops and removes them.
"""


@dataclass(frozen=True, slots=True)
class Places:
    """Where the demo keeps things; `run` is on a file system that a reboot empties."""

    tree: Path

    @property
    def state(self) -> Path:
        """All that is made below the tree."""
        return self.tree / ".run"

    @property
    def owner(self) -> str:
        """The owner label of the demo's pods."""
        return config.owner(str(self.state / "root"))

    @property
    def run(self) -> Path:
        """Sockets and the Podman service's files."""
        return Path("/run") / f"edgelet-demo-{self.owner}"

    @property
    def socket(self) -> Path:
        """The API socket: in the tree, to be typed easily, unless the kernel finds that too long."""
        near = self.state / "edgelet.sock"
        return near if len(os.fsencode(near)) <= config_values.SOCKET_PATH_MAX else self.run / "edgelet.sock"

    def service(self) -> Service:
        """Podman as the demo's agent uses it."""
        found = config.DEFAULT_PODMAN_SOCKET if os.path.exists(config.DEFAULT_PODMAN_SOCKET) else None
        return Service(found, str(self.run))


def main(arguments: Sequence[str] | None = None) -> int:
    """`run` or `clean`; returns the exit status."""
    argv = sys.argv[1:] if arguments is None else list(arguments)
    places = Places(Path.cwd())
    if argv not in (["run"], ["clean"]):
        print("usage: python -m edgelet.demo run|clean", file=sys.stderr)
        return 2
    if os.geteuid() != 0:
        print(f"cannot {argv[0]} the demo: edgelet runs pods as root; try: sudo make {argv[0]}", file=sys.stderr)
        return 1
    return run(places) if argv == ["run"] else clean(places)


def run(places: Places) -> int:
    """Build the image if needed, run the agent until it ends, say what is left."""
    if not build_image(places.service()):
        return 1
    places.state.mkdir(exist_ok=True)
    here = os.path.relpath(places.socket) if places.socket.is_relative_to(places.tree) else str(places.socket)
    client = f"{_program()} --socket {here}"
    print(
        INTRODUCTION.format(manifests="manifests/", command=client, label=labels.OWNER, owner=places.owner), flush=True
    )
    # What was printed stays in sight: the agent's log would push it out within seconds.
    quiet = [] if os.environ.get("EDGELET_LOG_LEVEL") else ["--log-level=warning"]
    status = _foreground([_program(), "run", *flags(places), *quiet])
    print(FAREWELL, end="", flush=True)
    return status


def flags(places: Places) -> list[str]:
    """The flags of `edgelet run` that keep everything below .run/ (and one directory in /run)."""
    return [
        f"--pod-manifest-path={places.tree / 'manifests'}",
        f"--root-dir={places.state / 'root'}",
        f"--run-dir={places.run}",
        f"--pod-logs-dir={places.state / 'logs'}",
        f"--socket={places.socket}",
    ]


def clean(places: Places) -> int:
    """Remove the demo's pods, image, mounts and files; nothing of anybody else's."""
    if _somebody_listens(places.socket):
        print("cannot clean: the demo's agent still runs; end it first (Ctrl-C in its terminal)", file=sys.stderr)
        return 1
    if shutil.which("podman"):
        _remove_from_podman(places)
    for mount in reversed(_mounts_below(places.state)):
        subprocess.run(["umount", mount], check=False)
    for directory in (places.state, places.run):
        shutil.rmtree(directory, ignore_errors=True)
    return 0


def build_image(service: Service) -> bool:
    """Make IMAGE out of the host's static busybox unless it is there; False = it did not work, and it was said why."""
    podman, environment = service.command_line, service.environment()
    if subprocess.run(podman("image", "exists", IMAGE), env=environment, check=False).returncode == 0:
        return True
    changes = ("--change", 'CMD ["sh"]', "--change", "ENV PATH=/bin")
    made = subprocess.run(
        podman("import", "--quiet", *changes, "-", IMAGE),
        input=root_file_system(),
        env=environment,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    if made.returncode != 0:
        print("cannot build the demo image: see Podman's message above", file=sys.stderr)
    return made.returncode == 0


def root_file_system() -> bytes:
    """A tar of a minimal root: busybox, a link for each of its commands, /etc/passwd, /tmp."""
    applets = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, mode in (("bin", 0o755), ("etc", 0o755), ("tmp", 0o1777), ("www", 0o755)):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        _add_file(tar, "bin/busybox", Path(BUSYBOX).read_bytes(), 0o755)
        _add_file(tar, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n", 0o644)
        _add_file(tar, "etc/group", b"root:x:0:\nnogroup:x:65534:\n", 0o644)
        for applet in sorted(set(applets) - {"busybox"}):
            entry = tarfile.TarInfo(f"bin/{applet}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(entry)
    return buffer.getvalue()


def _add_file(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))


def _program() -> str:
    """The agent as installed beside this interpreter, as short as it can be typed here."""
    return os.path.relpath(Path(sys.executable).parent / "edgelet")


def _foreground(command: list[str]) -> int:
    """Run the agent on this terminal. Ctrl-C reaches it directly; SIGTERM is passed on."""
    # A handler that does nothing, and not SIG_IGN, which the agent would inherit.
    ignored = signal.signal(signal.SIGINT, lambda *_: None)
    process = subprocess.Popen(command)
    passed_on = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        return process.wait()
    finally:
        signal.signal(signal.SIGINT, ignored)
        signal.signal(signal.SIGTERM, passed_on)


def _somebody_listens(path: Path) -> bool:
    import socket

    with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
        probe.connect(str(path))
        return True
    return False


def _remove_from_podman(places: Places) -> None:
    service = places.service()
    environment = service.environment()
    mine = f"label={labels.OWNER}={places.owner}"

    def podman(*words: str) -> str:
        command = service.command_line(*words)
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout

    if pods := podman("pod", "ps", "--quiet", "--filter", mine).split():
        podman("pod", "rm", "--force", "--time", GRACE, *pods)
    if containers := podman("ps", "--all", "--quiet", "--filter", mine).split():
        podman("rm", "--force", "--time", GRACE, *containers)
    # Refused, rightly, while another tree's demo uses it.
    podman("rmi", IMAGE)


def _mounts_below(directory: Path) -> list[str]:
    """Mount points inside `directory`, outer ones first (memory volumes of pods)."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    unescaped = [point.encode().decode("unicode_escape") for point in points]
    return sorted(p for p in unescaped if Path(p).is_relative_to(directory))


if __name__ == "__main__":
    sys.exit(main())
