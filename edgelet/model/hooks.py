"""Lifecycle hooks: which there are, how one stands, and a hook as text for a label.

The label lets a container be stopped well when its manifest is gone (design section 3).
"""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Callable, Mapping

from .pod import Container, Exec, HookHandler, HttpGet, Sleep, TcpSocket


class HookKind(enum.Enum):
    """When it runs; the value is the word of the kubelet's events."""

    POST_START = "PostStart"
    PRE_STOP = "PreStop"


class HookState(enum.Enum):
    """How a hook that was begun stands."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


HookStates = Mapping[tuple[str, HookKind], HookState]
"""By container id and kind; hooks that were never begun, or are forgotten, are not in it."""

_KINDS: Mapping[str, Callable[..., HookHandler]] = {kind.__name__: kind for kind in (Exec, HttpGet, TcpSocket, Sleep)}


def text(hook: HookHandler, container: Container) -> str:
    """As compact JSON, with the class name as `kind`; a named port of the container as its number."""
    fields = dataclasses.asdict(hook)
    if isinstance(hook, HttpGet | TcpSocket):
        fields["port"] = next((p.container_port for p in container.ports if p.name == hook.port), hook.port)
    return json.dumps({"kind": type(hook).__name__, **fields}, separators=(",", ":"))


def parse(label: str) -> HookHandler | None:
    """The hook of a label that `text` wrote; None for "" and for what another version wrote and we cannot read."""
    try:
        fields = json.loads(label) if label else {}
        kind = _KINDS[fields.pop("kind")]
        return kind(**{name: _frozen(value) for name, value in fields.items()})
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _frozen(value: object) -> object:
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value
