"""What the API may ask of the agent: orders to single pods, and how everything is doing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from .. import __version__, errors
from ..engine.director import Director
from ..engine.observer import Observer
from ..engine.workers import Workers
from ..model.agent_report import AgentReport, LinkReport, SourceReport
from ..model.pod import PodKey
from ..model.sources import SourceState
from .machine import SystemClock

STUCK = 60.0
"""Seconds without a full look at the main loop after which /healthz says so."""


class Stated(Protocol):
    """A source that can describe itself."""

    name: str

    def state(self) -> SourceState:
        """As of its last look."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What Control looks at. `service` describes the Podman service (adapters.podman.Service.describe)."""

    node: str
    clock: SystemClock
    director: Director
    workers: Workers
    observer: Observer
    sources: tuple[Stated, ...]
    service: Callable[[], dict[str, Any]]
    version: Callable[[], str]
    beat: Callable[[], float]
    notes: tuple[str, ...]
    link: Callable[[], LinkReport | None] = lambda: None


class Control:
    """See adapters.server.contracts.Control."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts
        self._started = parts.clock.time()

    def restart(self, key: PodKey, container: str = "") -> None:
        """Stop (with grace) and start again one container, or all ("")."""
        if not self._p.workers.restart(key, container):
            raise errors.NotFound(f"pod {key} is not known here")

    def stop(self, key: PodKey) -> None:
        """Hold the pod."""
        self._known(key)
        self._p.director.hold(key, True)

    def start(self, key: PodKey) -> None:
        """End the hold, and any back-off."""
        self._known(key)
        self._p.director.hold(key, False)
        self._p.workers.hurry(key)

    def _known(self, key: PodKey) -> None:
        if self._p.director.pod(key) is None:
            raise errors.NotFound(f"pod {key} is not wanted by any source, so it cannot be stopped or started")

    def report(self) -> AgentReport:
        """How the agent, Podman and the sources are doing."""
        service = self._p.service()
        error = self._p.observer.error
        listed = self._p.observer.listed_at > 0
        return AgentReport(
            node=self._p.node,
            version=__version__,
            started_at=self._started,
            podman_ok=listed and not error,
            podman_message=error or ("" if listed else "Podman has not answered yet"),
            podman_version=self._p.version(),
            sources=tuple(_report(s.state()) for s in self._p.sources),
            notes=(*self._p.notes, *_service_notes(service)),
            link=self._p.link(),
        )

    def checks(self) -> Mapping[str, str]:
        """Health of the agent's own loops."""
        age = self._p.clock.monotonic() - self._p.beat()
        return {"ping": "", "syncloop": f"no beat for {age:.0f} s" if age > STUCK else ""}


def _report(state: SourceState) -> SourceReport:
    problems = [p for p in state.problems if not state.message or (state.message not in p and p not in state.message)]
    return SourceReport(
        name=state.name,
        location=state.location,
        ok=state.ok,
        message=state.message,
        pods=state.pods,
        read_at=state.read_at,
        problems=tuple(problems),
        tried_at=state.tried_at,
        from_last_good=state.from_last_good,
        files=state.files,
    )


def _service_notes(service: Mapping[str, Any]) -> tuple[str, ...]:
    deaths = service.get("deaths")
    if not deaths:
        return ()
    times = "once" if deaths == 1 else f"{deaths} times"
    return (f"edgelet's own Podman service has died {times}; last: {service['lastError']}",)
