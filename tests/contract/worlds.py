"""The same little world twice: in memory (FakeRuntime) and on real Podman behind a proxy that loses messages.

A `World` has a runtime, a pod to play with, and hands that do to it what the outside world does.
Both are driven by the same scenario and must answer the same transcript.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from edgelet import errors, ports
from edgelet.adapters import podman
from edgelet.model.observed import Bind, Image, ObservedContainer, ObservedPod, State
from edgelet.model.pod import Container, Pod, PodKey
from tests.fakes import FakeClock, FakeRuntime, Fault
from tests.support.podman_env import IMAGE, PodmanEnv, SystemClock
from tests.support.podman_proxy import Proxy

# pid 1 gets no signal that it has no handler for: what should end on SIGTERM has to say so
POLITE = "trap 'exit 143' TERM; until [ -s /ctl/$NAME ]; do sleep 0.02; done; exit $(cat /ctl/$NAME)"
STUBBORN = POLITE.replace("exit 143", ":")
FAULTS = ("none", "before", "after", "refuse")


def container(name: str = "c", image: str = IMAGE, script: str = POLITE) -> Container:
    """A container that ends on SIGTERM, or when told to."""
    return Container(name, image, command=("sh", "-c", script.replace("$NAME", name)))


def pod(*containers: Container, name: str = "contract", **fields: object) -> Pod:
    """A pod of those containers."""
    base = Pod(f"{name}-n", "default", f"uid-{name}", "1-abc", "file", containers or (container(),))
    return dataclasses.replace(base, **fields)  # type: ignore[arg-type]


class World(Protocol):
    """What a scenario may do besides calling the runtime."""

    @property
    def runtime(self) -> ports.Runtime:
        """The one under test."""
        ...

    @property
    def binds(self) -> tuple[Bind, ...]:
        """What its containers need to be told to exit."""
        ...

    def polite(self, seen: ObservedContainer) -> bool:
        """Whether the container has come so far that it hears SIGTERM."""
        ...

    def fault(self, method: str, how: str) -> None:
        """The next call of `method` meets this fault; "none" ends it."""
        ...

    def exit(self, name: str, code: int) -> None:
        """The container of that name ends by itself; returns when the runtime can know."""
        ...

    def settle(self, condition: Callable[[], bool]) -> None:
        """Wait until the runtime has noticed."""
        ...

    def stubborn(self, name: str) -> Container:
        """A container that ignores SIGTERM."""
        ...

    def broken(self, name: str) -> Container:
        """A container whose command is not there."""
        ...

    def take_name(self, wanted: Pod) -> None:
        """Somebody else makes a pod of that name."""
        ...

    def vanish(self, target: str, kind: str) -> None:
        """Somebody removes the pod or container behind our back."""
        ...

    def kill_infra(self, seen: ObservedPod) -> None:
        """The infra container's process dies."""
        ...

    def kill_conmon(self, seen: ObservedContainer, *, process_too: bool) -> None:
        """The container's conmon dies."""
        ...

    def repair(self, seen: ObservedContainer) -> None:
        """conmon's exit file is written by hand."""
        ...

    def reboot(self) -> None:
        """Processes gone, run directory gone."""
        ...


class FakeWorld:
    """See World."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.runtime = FakeRuntime(self.clock, images=(IMAGE,))
        self.binds: tuple[Bind, ...] = ()

    def fault(self, method: str, how: str) -> None:
        """See World."""
        self.runtime.unreachable = how == "refuse"
        fault = Fault(errors.Temporary(f"cannot {method}: the connection broke"), after=how == "after")
        wanted = method if how in ("before", "after") else ""
        self.runtime.fault_source = lambda called: fault if called == wanted else None

    def polite(self, seen: ObservedContainer) -> bool:
        """See World."""
        return seen.running

    def exit(self, name: str, code: int) -> None:
        """See World."""
        self.runtime.exit(name, code)

    def settle(self, condition: Callable[[], bool]) -> None:
        """See World."""
        assert condition()

    def stubborn(self, name: str) -> Container:
        """See World."""
        self.runtime.ignores_sigterm.add(name)
        return container(name)

    def broken(self, name: str) -> Container:
        """See World."""
        self.runtime.bad_commands.add(name)
        return container(name)

    def take_name(self, wanted: Pod) -> None:
        """See World."""
        self.runtime.taken_names.add(f"{wanted.name}_{wanted.namespace}")

    def vanish(self, target: str, kind: str) -> None:
        """See World."""
        self.runtime.vanish(target)

    def kill_infra(self, seen: ObservedPod) -> None:
        """See World."""
        self.runtime.kill_infra(seen.key)

    def kill_conmon(self, seen: ObservedContainer, *, process_too: bool) -> None:
        """See World."""
        self.runtime.kill_conmon(seen.id, process_too=process_too)

    def repair(self, seen: ObservedContainer) -> None:
        """See World."""
        self.runtime.repair(seen.id)

    def reboot(self) -> None:
        """See World."""
        self.runtime.reboot()


class RealWorld:
    """See World."""

    def __init__(self, env: PodmanEnv, directory: str, services: list[podman.Service]) -> None:
        self.env = env
        self.services = services
        self.taken = ""
        self.proxy = Proxy(f"{directory}/proxy.sock", self.service)
        self.control = f"{directory}/ctl"
        os.makedirs(self.control)
        self.binds = (Bind(self.control, "/ctl"),)
        facts = podman.facts(podman.read())
        self.runtime = podman.Podman(self.proxy, "contract", env.layout, SystemClock(), boot_id="boot-1", facts=facts)

    @property
    def service(self) -> podman.Service:
        """The newest service: all worlds of a run share one until a reboot."""
        if not self.services:
            self.services.append(self.env.new_service(name="contract"))
        return self.services[-1]

    def fault(self, method: str, how: str) -> None:
        """See World."""
        self.proxy.mode = "pass" if how == "none" else how

    def polite(self, seen: ObservedContainer) -> bool:
        """See World. SIGTERM (15) is among the signals that the shell catches."""
        with open(f"/proc/{seen.pid}/status", encoding="utf-8") as file:
            caught = next(line.split()[1] for line in file if line.startswith("SigCgt"))
        return bool(int(caught, 16) >> 14 & 1)

    def exit(self, name: str, code: int) -> None:
        """See World."""
        with open(f"{self.control}/{name}", "w", encoding="utf-8") as file:
            file.write(str(code))
        self.settle(lambda: not any(c.running and c.name == name for p in self.runtime.list() for c in p.containers))
        os.unlink(f"{self.control}/{name}")

    def settle(self, condition: Callable[[], bool]) -> None:
        """See World."""
        end = time.monotonic() + 15
        while not condition():
            assert time.monotonic() < end, "Podman did not notice in time"
            time.sleep(0.02)

    def stubborn(self, name: str) -> Container:
        """See World."""
        return container(name, script=STUBBORN)

    def broken(self, name: str) -> Container:
        """See World."""
        return Container(name, IMAGE, command=("/no/such/command",))

    def take_name(self, wanted: Pod) -> None:
        """See World."""
        self.taken = f"{wanted.name}_{wanted.namespace}_contract"
        self.env.run("pod", "create", "--name", self.taken)

    def vanish(self, target: str, kind: str) -> None:
        """See World."""
        words = ("pod", "rm") if kind == "pod" else ("rm",)
        self.env.run(*words, "--force", "--time", "0", target)

    def kill_infra(self, seen: ObservedPod) -> None:
        """See World."""
        os.kill(seen.infra_pid, signal.SIGKILL)
        self.settle(lambda: self.runtime.list(seen.key)[0].infra_dead)

    def kill_conmon(self, seen: ObservedContainer, *, process_too: bool) -> None:
        """See World."""
        pids = (seen.conmon_pid, seen.pid) if process_too else (seen.conmon_pid,)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.settle(lambda: not any(_alive(pid) for pid in pids))

    def repair(self, seen: ObservedContainer) -> None:
        """See World."""
        with open(f"{self.env.storage.tmpdir}/exits/{seen.id}", "w", encoding="utf-8") as file:
            file.write("137")

    def reboot(self) -> None:
        """See World."""
        processes = [c.pid for p in self.runtime.list() for c in p.containers if c.pid]
        processes += [p.infra_pid for p in self.runtime.list() if p.infra_pid]
        ids = self.env.run("ps", "--all", "--quiet", "--no-trunc").split()
        names = set(self.env.run("inspect", "--format", "{{.NetworkSettings.SandboxKey}}", *ids).split())
        self.service.stop()
        pids = [*self._conmons(), *processes]
        for pid in pids:  # conmons first, or they would note the exits of the others
            os.kill(pid, signal.SIGKILL)
        self.settle(lambda: not any(_alive(pid) for pid in pids))
        self._forget_the_boot([f"/run/runc/{i}" for i in ids], names)
        self.services.append(self.env.new_service(name=f"boot{len(self.services)}"))
        self.proxy.behind = self.service

    def _forget_the_boot(self, states: Sequence[str], namespaces: Iterable[str]) -> None:
        """No mount and nothing of the run directories survives a boot."""
        for namespace in namespaces:
            subprocess.run(["umount", "--lazy", namespace], check=False, capture_output=True)
            Path(namespace).unlink(missing_ok=True)
        for state in states:
            shutil.rmtree(state, ignore_errors=True)
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            points = [line.split()[4] for line in file]
        for point in reversed([p for p in points if p.startswith(self.env.directory)]):
            subprocess.run(["umount", "--lazy", point], check=True)
        for directory in (self.env.storage.tmpdir, self.env.storage.runroot):
            subprocess.run(["find", directory, "-mindepth", "1", "-delete"], check=True)

    def _conmons(self) -> list[int]:
        """Every conmon of this environment."""
        mark = self.env.storage.tmpdir.encode()
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
                if words[0].endswith(b"conmon") and any(mark in w for w in words):
                    found.append(int(entry))
        return found

    def close(self) -> None:
        """Remove what the scenario left."""
        self.proxy.mode = "pass"
        for seen in self.runtime.list():
            self.runtime.remove_pod(seen.id)
        if self.taken:
            self.env.run("pod", "rm", "--force", "--time", "0", self.taken)
        self.proxy.close()


def _alive(pid: int) -> bool:
    """Whether the process runs; one that nobody has reaped does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


# ---- transcripts ----


def plain(value: object) -> object:
    """What must be the same on both sides: no ids, no times, no numbers of processes."""
    if isinstance(value, ObservedPod):
        fixed = (value.key, value.uid, value.config_hash, value.source, value.boot_id, value.grace, value.attempt)
        state = (bool(value.infra_id), value.infra_dead, value.infra_pid > 0, len(value.ips), value.host_network)
        return (*fixed, *state, value.created_at > 0, tuple(plain(c) for c in value.containers))
    if isinstance(value, ObservedContainer):
        return (*_identity(value), *_life(value))
    if isinstance(value, Image):
        return ("image", value.id.startswith("sha256:"), value.size > 0)
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    return value


def _identity(seen: ObservedContainer) -> tuple[object, ...]:
    tail = "/".join(seen.log_path.split("/")[-3:]) if seen.state is not State.CREATED else ""
    return (seen.name, seen.restart_count, seen.image, seen.grace, seen.stop_signal, tail)


def _life(seen: ObservedContainer) -> tuple[object, ...]:
    processes = (seen.pid > 0, seen.conmon_pid > 0)
    ended = (seen.exit_code, seen.oom_killed, seen.error, seen.finished_at > 0, seen.finished_mono > 0)
    order = seen.state is not State.EXITED or seen.finished_mono >= seen.started_mono
    return (seen.state.value, *processes, seen.started_at > 0, seen.started_mono > 0, *ended, order)


@dataclasses.dataclass
class Transcript:
    """What a scenario saw, in order."""

    lines: list[tuple[str, object]] = dataclasses.field(default_factory=list)

    def call(self, label: str, action: Callable[[], object]) -> object:
        """Do it; note the plain answer, or the error's type."""
        try:
            answer = action()
        except errors.EdgeletError as error:
            self.lines.append((label, type(error).__name__))
            return error
        self.lines.append((label, plain(answer)))
        return answer

    def see(self, world: World, key: PodKey | None = None) -> tuple[ObservedPod, ...]:
        """Note what is listed now."""
        found = world.runtime.list(key)
        self.lines.append(("list", plain(found)))
        return found
