"""Interactive commands for the API server: finds the running container, hands it to the exec runner."""

from __future__ import annotations

from typing import Protocol

from .. import errors, ports
from ..adapters import attach
from ..adapters.server.contracts import Session
from ..engine.director import Director
from ..engine.observer import Observer
from ..model.observed import ObservedContainer
from ..model.pod import Container, PodKey


class Interactive(Protocol):
    """The part of the exec runner that serves people."""

    def begin_interactive(self, target: ports.Target, command: tuple[str, ...], tty: bool, stdin: bool) -> Session:
        """Start argv. Raises errors.ExecError."""
        ...


class Execs:
    """See adapters.server.contracts.Execs."""

    def __init__(self, observer: Observer, director: Director, runner: Interactive) -> None:
        self._observer = observer
        self._director = director
        self._runner = runner

    def begin(self, key: PodKey, container: str, command: tuple[str, ...], tty: bool, stdin: bool) -> Session:
        """Start argv in a running container. Raises errors.NotFound or errors.ExecError."""
        observed = self._observer.get(key)
        instance = observed.newest(container) if observed else None
        if observed is None or instance is None or not instance.running:
            raise errors.NotFound(f"container {container} of pod {key} is not running")
        pod = self._director.pod(key)
        spec = pod.container(container) if pod else None
        return self._runner.begin_interactive(
            _target(key, observed.uid, spec or Container(container, instance.image), instance), command, tty, stdin
        )

    def attach(self, key: PodKey, container: str, stdin: bool) -> Session:
        """The container's own input and output. Raises errors.NotFound or errors.ExecError."""
        observed = self._observer.get(key)
        instance = observed.newest(container) if observed else None
        if observed is None or instance is None or not instance.running:
            raise errors.NotFound(f"container {container} of pod {key} is not running")
        pod = self._director.pod(key)
        spec = pod.container(container) if pod else None
        wanted = stdin and spec is not None and spec.stdin
        return attach.attach(instance.oci_config, instance.pid, spec is not None and spec.tty, wanted)


def _target(key: PodKey, uid: str, container: Container, instance: ObservedContainer) -> ports.Target:
    return ports.Target(
        key=key,
        uid=uid,
        container=container,
        container_id=instance.id,
        pid=instance.pid,
        oci_config=instance.oci_config,
        ip="",
        started_mono=instance.started_mono,
    )
