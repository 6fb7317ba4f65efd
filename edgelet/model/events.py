"""An event of a pod or of one of its containers (semantics 7.6), as a frozen value."""

from __future__ import annotations

from dataclasses import dataclass

from .pod import PodKey


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened `count` times; times are epoch seconds.

    `name` is unique on this node.  `field_path` is "" for the pod itself or
    ``spec.containers{name}``.  `kind` is "Normal" or "Warning".
    """

    name: str
    key: PodKey
    uid: str
    field_path: str
    kind: str
    reason: str
    message: str
    first: float
    last: float
    count: int = 1
    version: int = 0
