"""Boots the built image in qemu under software emulation and runs commands in it.

    with Machine(image, directory) as vm:
        vm.boot()                       waits until the guest's channel answers
        vm.run("podman ps")             Result(code, out, err); check=True raises on a failure
        vm.put("/root/x.yaml", b"...")  vm.get("/etc/hostname")
        vm.power_cut()                  qemu is killed; the disks keep what was written; boot() again

        vm.freeze()                     memory and disks into `directory`: the `frozen` of other machines,
                                        whose first boot goes on where this one was

The root disk is an overlay that is thrown away, the state disk (/var/lib/edgelet) lives as long as
the Machine.  Whatever hangs ends by a deadline, with the tail of the console in the error.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import shlex
import shutil
import socket
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BOOT_SECONDS = 900.0
CONSOLE_TAIL = 60
DISKS = ("root.qcow2", "state.qcow2")


class VmError(AssertionError):
    """The machine did not do what the test needs; carries the console's tail."""


@dataclass(frozen=True, slots=True)
class Result:
    """A finished command in the guest."""

    code: int
    out: str
    err: str


class Machine:
    """One virtual machine; see the module."""

    def __init__(
        self, image: Path, directory: Path, *, append: str = "", memory: int = 1024, frozen: Path | None = None
    ) -> None:
        """`append` goes on the kernel's command line, `memory` in MiB; `options` of qemu may be set before a `boot`."""
        self.image = image
        self.directory = directory
        self.append = append
        self.memory = memory
        self.options: tuple[str, ...] = ()
        self.console = directory / "console.log"
        self.booted_at = 0.0
        self._frozen = frozen
        self._qemu: subprocess.Popen[bytes] | None = None
        self._channel: _Channel | None = None
        directory.mkdir(parents=True, exist_ok=True)
        self._make_disks()

    def _make_disks(self) -> None:
        if self._frozen is not None:
            for name in DISKS:
                _overlay((self._frozen / name).resolve(), "qcow2", self.directory / name)
            return
        _overlay((self.image / "disk.img").resolve(), "raw", self.directory / "root.qcow2")
        state = self.directory / "state.img"
        with state.open("wb") as file:
            file.truncate(1 << 30)
        subprocess.run(["mkfs.ext4", "-q", "-L", "state", str(state)], check=True)
        _overlay(Path("state.img"), "raw", self.directory / "state.qcow2")

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self.power_cut()

    # -- power ------------------------------------------------------------------------------------

    def boot(self, seconds: float = BOOT_SECONDS) -> float:
        """Power on and wait for the channel; seconds it took."""
        began = time.monotonic()
        path = self.directory / "channel.sock"
        path.unlink(missing_ok=True)
        with self.console.open("ab") as log:
            log.write(b"\n---- power on ----\n")
        words = self._words(path)
        thaw = self._frozen is not None and not self.booted_at
        if thaw:
            words += ["-incoming", f"exec:cat {self._frozen}/memory"]
        self._qemu = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
        self._channel = _Channel(str(path), self._alive, began + seconds)
        if thaw:
            self._go_on(began + seconds)
        self._until_answers(began + seconds)
        self.booted_at = time.monotonic()
        return self.booted_at - began

    def _words(self, channel: Path) -> list[str]:
        # Nice: software emulation takes all it can get, and the tests of everybody else run beside it.
        # It dies with this process, however that ends.
        return [
            *(
                "setpriv",
                "--pdeathsig",
                "KILL",
                "nice",
                "-n",
                os.environ.get("EDGELET_VM_NICE", "5"),
                "qemu-system-x86_64",
            ),
            *("-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max"),
            *("-smp", "2", "-m", str(self.memory), "-nic", "none", "-display", "none", "-no-reboot"),
            *("-kernel", str(self.image / "vmlinuz"), "-initrd", str(self.image / "initrd.img")),
            *("-append", f"root=/dev/vda rw console=ttyS0 quiet systemd.show_status=0 {self.append}"),
            *(
                w
                for d in DISKS
                for w in ("-drive", f"file={self.directory}/{d},if=virtio,format=qcow2,cache=writeback")
            ),
            *("-monitor", f"unix:{self.directory}/monitor.sock,server=on,wait=off"),
            *("-chardev", f"file,id=console,path={self.console},append=on", "-serial", "chardev:console"),
            *("-device", "virtio-serial", "-chardev", f"socket,id=test,path={channel},server=on,wait=off"),
            *("-device", "virtserialport,chardev=test,name=edgelet.test"),
            *("-device", "virtio-rng-pci", *self.options),
        ]

    def _until_answers(self, deadline: float) -> None:
        while time.monotonic() < deadline:
            try:
                if self.run("true", timeout=5, check=False).code == 0:
                    return
            except (TimeoutError, OSError):
                if not self._alive():
                    break
        raise VmError(f"the machine did not come up\n{self.tail()}")

    def power_cut(self) -> None:
        """Kill the machine at once, as when the plug is pulled."""
        if self._qemu is not None:
            self._qemu.kill()
            self._qemu.wait()
            self._qemu = None
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def freeze(self, seconds: float = 300.0) -> None:
        """Keep memory and disks as they are in `directory`, and end. Raises VmError when qemu cannot."""
        self._monitor("stop", seconds)  # emulation loses writes that happen meanwhile
        self._monitor(f'migrate "exec:cat >{self.directory}/memory"', seconds)
        said = self._monitor("info migrate", seconds)
        self._monitor("quit", seconds)
        self.wait_off()
        if "completed" not in said:
            raise VmError(f"the machine could not be frozen: {said[-500:]}")

    def _go_on(self, deadline: float) -> None:
        """Once memory is loaded, let the machine run."""
        while "inmigrate" in self._monitor("info status", 60):
            if time.monotonic() > deadline:
                raise VmError("the machine's memory was not loaded in time")
            time.sleep(0.5)
        self._monitor("cont", 60)

    def _monitor(self, words: str, seconds: float) -> str:
        """What qemu answers to a command of its monitor; between two prompts."""
        said = b""
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.settimeout(seconds)
            monitor.connect(f"{self.directory}/monitor.sock")
            monitor.sendall(f"{words}\n".encode())
            while said.count(b"(qemu) ") < 2 and (data := _receive(monitor)):
                said += data
        return said.decode(errors="replace")

    def wait_off(self, seconds: float = 120.0) -> float:
        """Until the guest has powered itself off; seconds it took."""
        began = time.monotonic()
        if self._qemu is None:
            return 0.0
        try:
            self._qemu.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise VmError(f"the machine did not power off within {seconds:.0f} s\n{self.tail()}") from error
        self.power_cut()
        return time.monotonic() - began

    def _alive(self) -> bool:
        return self._qemu is not None and self._qemu.poll() is None

    def tail(self) -> str:
        """The last lines of the console."""
        try:
            lines = self.console.read_text(errors="replace").splitlines()[-CONSOLE_TAIL:]
        except OSError:
            lines = []
        return "console:\n" + "\n".join(lines)

    def story(self) -> str:
        """The journal's last lines where the guest still answers, else the console's."""
        try:
            found = self.run(
                "journalctl -b --no-pager -o short-monotonic -n 120; podman ps -a", timeout=60, check=False
            )
            return found.out
        except (OSError, TimeoutError, VmError):
            return self.tail()

    # -- commands ------------------------------------------------------------------------------------

    def run(self, shell: str, *, timeout: float = 60.0, check: bool = True, stdin: bytes = b"") -> Result:
        """A shell command in the guest. Raises VmError when it fails (check) or does not answer."""
        answer = self._ask(
            {"shell": shell, "timeout": timeout, "stdin": base64.b64encode(stdin).decode()}, timeout + 20
        )
        result = Result(answer["code"], _text(answer["out"]), _text(answer["err"]))
        if check and result.code:
            raise VmError(f"`{shell}` ended with {result.code}\n{result.out}\n{result.err}")
        return result

    def put(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a file in the guest, in pieces that the port takes."""
        size = 256 * 1024
        for start in range(0, max(len(data), 1), size):
            piece = base64.b64encode(data[start : start + size]).decode()
            self._ask({"put": path, "data": piece, "mode": mode, "append": start > 0}, 60)

    def get(self, path: str) -> bytes:
        """Read a file (up to 4 MiB) from the guest."""
        return base64.b64decode(self._ask({"get": path}, 60)["out"])

    def ask(self, path: str, socket: str = "/run/edgelet/edgelet.sock") -> Any:
        """JSON from the agent's API in the guest. Raises VmError when it does not answer 200."""
        answer = self._ask({"ask": path, "socket": socket}, 60)
        if answer["code"] != 200:
            raise VmError(f"{path}: {answer['code']} {_text(answer['out'])}{_text(answer['err'])}")
        return json.loads(base64.b64decode(answer["out"]))

    def wait_for(self, shell: str, seconds: float, every: float = 0.5) -> float:
        """Until the command succeeds in the guest; seconds it took. Raises VmError with its last words."""
        began = time.monotonic()
        while True:
            result = self.run(shell, check=False)
            if result.code == 0:
                return time.monotonic() - began
            if time.monotonic() - began > seconds:
                raise VmError(
                    f"`{shell}` did not succeed within {seconds:.0f} s\n{result.out}{result.err}\n{self.tail()}"
                )
            time.sleep(every)

    def _ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        if self._channel is None:
            raise VmError("the machine is off")
        return self._channel.ask(request, seconds)


def _overlay(base: Path, kind: str, path: Path) -> None:
    """A disk that keeps only what differs from `base` (relative: beside `path`)."""
    words = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", kind, "-b", str(base), str(path)]
    subprocess.run(words, check=True)


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionError:
        return b""


class _Channel:
    """Requests and answers over the port, any number at once."""

    def __init__(self, path: str, alive: Any, deadline: float) -> None:
        self._socket = _connect(path, alive, deadline)
        self._ids = itertools.count(1)
        self._lock = threading.Condition()
        self._answers: dict[int, dict[str, Any]] = {}
        self._dead = False
        threading.Thread(target=self._read, name="vm-channel", daemon=True).start()

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """One request. Raises TimeoutError, or OSError when the machine is gone."""
        with self._lock:
            number = next(self._ids)
            self._socket.sendall(json.dumps({"id": number, **request}).encode() + b"\n")
            if not self._lock.wait_for(lambda: number in self._answers or self._dead, seconds):
                raise TimeoutError(f"the guest did not answer {shlex.quote(str(request)[:80])} within {seconds:.0f} s")
            if number not in self._answers:
                raise ConnectionError("the machine is gone")
            return self._answers.pop(number)

    def close(self) -> None:
        """Forget it."""
        self._socket.close()

    def _read(self) -> None:
        try:
            for line in self._socket.makefile("rb"):
                answer = json.loads(line)
                if "id" in answer:
                    with self._lock:
                        self._answers[answer["id"]] = answer
                        self._lock.notify_all()
        except (OSError, ValueError):
            pass
        with self._lock:
            self._dead = True
            self._lock.notify_all()


def _connect(path: str, alive: Any, deadline: float) -> socket.socket:
    while time.monotonic() < deadline and alive():
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path)
            return connection
        except OSError:
            connection.close()
            time.sleep(0.1)
    raise VmError("qemu does not listen on its channel")


def _text(data: str) -> str:
    return base64.b64decode(data).decode(errors="replace")


def available() -> str:
    """Why no machine can be started here; "" = it can."""
    if os.geteuid() != 0:
        return "building the machine's image needs root"
    if shutil.which("qemu-system-x86_64") is None and shutil.which("apt-get") is None:
        return "qemu-system-x86_64 is not installed"
    return ""
