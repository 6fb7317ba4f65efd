"""Monitors (conmon) of containers that Podman has forgotten: which there are, and how they end."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable

from ...core import conmon
from ...core.conmon import Conmon
from ...core.leftovers import Monitor
from ...errors import StateError, cause

SECONDS = 20.0
"""For the OCI runtime to take its container away."""


def read(lost: Callable[[Conmon], bool]) -> tuple[Monitor, ...]:
    """Those of all conmon processes of which `lost` is true."""
    found = (_monitor(int(entry)) for entry in os.listdir("/proc") if entry.isdigit())
    return tuple(m for m in found if m is not None and lost(m.conmon))


def remove(monitor: Monitor) -> None:
    """Let the OCI runtime kill and forget what it watches; conmon ends after it. Raises StateError."""
    if _monitor(monitor.pid) != monitor:
        return
    facts = monitor.conmon
    words = [facts.runtime or "crun", *facts.runtime_args, "delete", "--force", facts.container_id]
    try:
        env = conmon.environment(os.environ.get("PATH", os.defpath), _strings(monitor.pid, "environ"))
        subprocess.run(words, check=True, capture_output=True, timeout=SECONDS, env=env)
    except (OSError, subprocess.SubprocessError) as error:
        raise StateError(
            f"cannot end the container {facts.container_id[:12]}, which Podman forgot: {cause(error)}"
        ) from error


def _monitor(pid: int) -> Monitor | None:
    with contextlib.suppress(OSError):  # it has ended
        facts = conmon.parse(_strings(pid, "cmdline"))
        if facts is not None:
            return Monitor(pid, _since(pid), facts)
    return None


def _since(pid: int) -> str:
    """The tick of its start (proc(5), field 22)."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[19]


def _strings(pid: int, name: str) -> list[str]:
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return [os.fsdecode(part) for part in file.read().split(b"\0")]
