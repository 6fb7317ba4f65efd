"""Which events are still to be told to the server, and as what (semantics 7.6). Pure.

An event's name is the same for ever, so sending one twice creates nothing twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..model import identity
from ..model.events import Event
from ..model.pod import PodKey
from . import render

Json = dict[str, Any]

_DIGEST = re.compile("[0-9a-f]{32}")


def pending(events: Iterable[Event], sent: Mapping[str, int]) -> list[Event]:
    """Those that the server does not know as they are now, the oldest news first; `sent` is name -> count told."""
    return sorted((e for e in events if sent.get(e.name, 0) < e.count), key=lambda e: e.version)


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
