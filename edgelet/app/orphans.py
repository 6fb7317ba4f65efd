"""Containers whose conmon has died: nobody can stop, log or reap them, and Podman calls them running for ever.

Such a container is killed, and its exit file is written by hand, so that everything that follows is
an ordinary exit (design section 3: without the file even `podman rm -f` fails).
"""

from __future__ import annotations

import logging
import os
import signal

from .. import errors, ports
from ..adapters.exits import ExitWatcher
from ..core import restart
from ..engine.observer import Observer
from ..model.observed import ObservedContainer, ObservedPod

log = logging.getLogger(__name__)


class Orphans:
    """First step of the repair ladder; called from the exit watcher's thread."""

    def __init__(self, observer: Observer, exits: ExitWatcher, recorder: ports.Recorder) -> None:
        self._observer = observer
        self._exits = exits
        self._recorder = recorder

    def take(self, container_id: str) -> bool:
        """The conmon of a container has died. True = handled here, an ordinary exit will follow or has."""
        found = self._find(container_id)
        if found is None:
            return False
        pod, name, pid = found
        if pid and _alive(pid):
            self._tell(pod, name)
            _kill(pid)
            return True  # told again when the process has ended
        try:
            self._exits.settle(container_id, restart.KILLED_CODE)
        except errors.StateError as error:
            log.error("%s; Podman will not let go of container %s of pod %s", error, name, pod.key)
        self._observer.exited(container_id, restart.KILLED_CODE, "settled")
        return True

    def _find(self, container_id: str) -> tuple[ObservedPod, str, int] | None:
        for pod in self._observer.all().values():
            if pod.infra_id == container_id:
                return pod, "", pod.infra_pid
            instance: ObservedContainer | None = pod.by_id(container_id)
            if instance is not None:
                return pod, instance.name, instance.pid
        return None

    def _tell(self, pod: ObservedPod, name: str) -> None:
        what = f"Container {name}" if name else "The pod's infra container"
        path = f"spec.containers{{{name}}}" if name else ""
        self._recorder.event(
            ports.EventRef(pod.key, pod.uid, path),
            "Warning",
            "ConmonDied",
            f"{what} has lost its monitor process (conmon): nobody can log or stop it, it is killed and started again",
        )


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
