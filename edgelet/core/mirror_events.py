"""Which events are still to be told to the server, and as what (semantics 7.6). Pure.

An event's name is the same for ever, so sending one twice creates nothing twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ..model import identity
from ..model.events import Event
from ..model.pod import PodKey
from . import render

Json = dict[str, Any]

_DIGEST = re.compile("[0-9a-f]{32}")


class Told(NamedTuple):
    """What the server knows of an event: how often it has happened, and when last (epoch seconds)."""

    times: int
    last: float


UNSURE = Told(0, 0.0)
"""A request was under way when the agent ended: the server may know the event, and what of it is not known."""


def told(event: Event) -> Told:
    """What the server knows once it was told."""
    return Told(event.count, event.last)


def pending(events: Iterable[Event], sent: Mapping[str, Told]) -> list[Event]:
    """Those that the server does not know as they are now, the oldest news first; `sent` is by the event's name.

    Not only those that have happened since: a killed agent may have told repeats that it has forgotten,
    and then what is here is right.
    """
    return sorted((e for e in events if sent.get(e.name) != told(e)), key=lambda e: e.version)


def body(event: Event, node: str, names: Mapping[PodKey, PodKey], hashes: Mapping[str, str]) -> Json:
    """The v1.Event to be created.

    `names`: local key -> mirror's key where they differ; `hashes`: uid -> hash of pods with an uid of
    their own.  The uid is the mirror's annotation, by which `kubectl describe` looks for events.
    """
    key = names.get(event.key, event.key)
    uid = hashes.get(event.uid) or (identity.config_hash(event.uid) if _DIGEST.fullmatch(event.uid) else event.uid)
    found = render.event(replace(event, key=key, uid=uid), node)
    found["metadata"] = {"name": found["metadata"]["name"], "namespace": found["metadata"]["namespace"]}
    return found


def repeat(event: Event) -> Json:
    """The merge patch that tells how often it has happened by now."""
    found = render.event(event, "")
    return {name: found[name] for name in ("count", "lastTimestamp", "message")}
