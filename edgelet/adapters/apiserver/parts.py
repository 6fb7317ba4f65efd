"""What the mirror is given by the rest of the agent, and what its tasks share."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ... import ports
from ...core.mirror_node import Registration
from ...engine.recorder import EventRing
from ...engine.store import StatusStore
from ...model.node_facts import NodeFacts
from ...model.pod import PodKey

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of the link; durations in seconds. `register` False = an existing Node is used.

    `bootstrap` is a kubeconfig that may only ask for a client certificate; "" = none.
    """

    kubeconfig: str
    node: str
    register: bool
    registration: Registration
    state_dir: str
    bootstrap: str = ""
    update_frequency: float = 10.0
    report_frequency: float = 300.0
    lease_duration: float = 40.0
    qps: float = 50.0
    burst: int = 100


@dataclass(frozen=True, slots=True)
class Parts:
    """The agent as the mirror sees it: values to read, never to wait for.

    `gone(key, source)`: it is certain that this box neither wants nor runs a pod whose mirror has that
    name and that came from that source.  `images`: v1.ContainerImage objects, asked for rarely.
    `kept`: events up to that version survive the death of the agent.
    """

    options: Options
    store: StatusStore
    events: EventRing
    clock: ports.Clock
    facts: Callable[[], NodeFacts]
    images: Callable[[], Sequence[Json]]
    gone: Callable[[PodKey, str], bool]
    kept: Callable[[], int] = lambda: sys.maxsize


class Task(Protocol):
    """One kind of work of the mirror's thread."""

    name: str

    def due(self, now: float) -> float | None:
        """The monotonic second of its next piece of work; None = only after news."""
        ...

    def run(self, now: float) -> None:
        """One piece, few requests. Raises errors.LinkError (the link is lost)."""
        ...

    def lost(self) -> None:
        """The link was lost: what is believed about the server may be wrong."""
        ...


class Problems:
    """What the server refuses, by name of the thing; a new one is told once. Thread-safe."""

    def __init__(self, tell: Callable[[ports.EventRef, str], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._found: dict[str, str] = {}

    def set(self, name: str, ref: ports.EventRef, message: str) -> None:
        """This is wrong with it now."""
        with self._lock:
            known = self._found.get(name)
            self._found[name] = message
        if known != message:
            self._tell(ref, message)

    def clear(self, name: str) -> None:
        """It is well."""
        with self._lock:
            self._found.pop(name, None)

    def sentences(self) -> tuple[str, ...]:
        """All of them, sorted."""
        with self._lock:
            return tuple(self._found[name] for name in sorted(self._found))


def node_ref(node: str) -> ports.EventRef:
    """The node as the object of an event (semantics 7.6: its uid is its name)."""
    return ports.EventRef(PodKey("", node), node)
