"""The agent inside the machine, as a person sees it: manifests in, states and container ids out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from .machine import Machine, VmError

Json = dict[str, Any]
NODE = "edgelet-vm"
MANIFESTS = "/etc/kubernetes/manifests"
DEADLINE = 600.0
"""Seconds anything may take that is not measured: emulation is slow, and the host may be busy."""
LOOK = 1.0


class Box:
    """One machine with edgelet."""

    def __init__(self, vm: Machine) -> None:
        self.vm = vm

    def write(self, *pods: Json) -> None:
        """Manifests, renamed in."""
        for pod in pods:
            name = pod["metadata"]["name"]
            beside = f"{MANIFESTS}/.{name}.new"
            self.vm.put(beside, json.dumps(pod).encode(), 0o600)
            self.vm.run(f"mv {beside} {MANIFESTS}/{name}.yaml && sync")

    def remove(self, *names: str) -> None:
        """Delete manifests and wait until their pods are gone."""
        for name in names:
            self.vm.run(f"rm -f {MANIFESTS}/{name}.yaml")
        self.until(f"{names} to be gone", lambda: not set(names) & set(self.pods()))

    def pods(self) -> dict[str, Json]:
        """v1.Pod by short name."""
        items = self.vm.ask("/api/v1/pods")["items"]
        return {p["metadata"]["name"].removesuffix(f"-{NODE}"): p for p in items}

    def events(self, name: str = "", reason: str = "") -> list[Json]:
        """v1.Event, oldest first."""
        return [
            e
            for e in self.vm.ask("/api/v1/events")["items"]
            if (not name or e["involvedObject"]["name"] == f"{name}-{NODE}") and (not reason or e["reason"] == reason)
        ]

    def container(self, name: str, container: str = "app") -> Json:
        """v1.ContainerStatus, {} if there is none."""
        found = self.pods().get(name, {}).get("status", {}).get("containerStatuses") or []
        return next((c for c in found if c["name"] == container), {})

    def ready(self, *names: str) -> bool:
        """Whether all these pods are Ready."""
        pods = self.pods()
        return all(_ready(pods.get(name, {})) for name in names)

    def wait_ready(self, *names: str, seconds: float = DEADLINE) -> float:
        """Until all are Ready; seconds it took."""
        return self.until(f"{names} to be Ready", lambda: self.ready(*names), seconds)

    def until(self, what: str, condition: Callable[[], bool], seconds: float = DEADLINE) -> float:
        """Until it is true; seconds it took. An agent that does not answer is not there yet."""
        began = time.monotonic()
        last = ""
        while time.monotonic() - began < seconds:
            try:
                if condition():
                    return time.monotonic() - began
                last = ""
            except (VmError, KeyError, IndexError, ValueError) as error:
                last = str(error)
            time.sleep(LOOK)
        raise VmError(f"waited {seconds:.0f} s for {what}; last: {last or self._states()}")

    def _states(self) -> str:
        try:
            return json.dumps({n: p["status"] for n, p in self.pods().items()}, indent=1)
        except VmError as error:
            return str(error)

    def running(self) -> dict[str, str]:
        """Podman's view of what runs: container id -> when it started; it changes when anything was restarted."""
        words = "podman ps -q --no-trunc | xargs -r podman inspect --format '{{.Id}} {{.State.StartedAt}}'"
        return dict(line.split(" ", 1) for line in self.vm.run(words, timeout=120).out.splitlines())

    def pid(self) -> int:
        """Process id of the agent, 0 while there is none."""
        return int(self.vm.run("systemctl show -p MainPID --value edgelet").out or 0)

    def inside(self, name: str, command: str, container: str = "app") -> str:
        """Output of a command in a container."""
        return self.vm.run(f"edgelet exec {name} -c {container} -- {command}", timeout=120).out

    def since_boot(self) -> float:
        """Seconds since the kernel started."""
        return float(self.vm.run("cat /proc/uptime").out.split()[0])


def _ready(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
