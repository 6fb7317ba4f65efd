"""Decides what a changed pod document means: which changes a cluster would refuse to make in place.

Pure. A cluster lets a running pod change its labels, annotations, images, tolerations and two times
(validation of pod updates in the API); whatever else changes, edgelet replaces the pod and says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

FREE_SPEC = frozenset({"activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations"})
CONTAINER_LISTS = frozenset({"containers", "initContainers"})
MAX_NAMED = 10
"""Fields that are named in a warning; more are counted."""


def refused_changes(before: str, after: str) -> tuple[str, ...]:
    """Paths below spec, as the API writes them, that a cluster would refuse to change.

    `before` and `after` are v1.Pod documents as JSON text.
    """
    old, new = (json.loads(text).get("spec", {}) for text in (before, after))
    return tuple(path for path in _differences(old, new, "spec") if not _free(path))


def warning(paths: tuple[str, ...]) -> str:
    """A sentence for a person."""
    named = ", ".join(paths[:MAX_NAMED]) + (f" and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else "")
    return f"the pod is replaced: a running pod cannot change {named}"


def _free(path: str) -> bool:
    parts = path.split(".")
    if len(parts) > 1 and parts[1].split("[")[0] in FREE_SPEC:
        return True
    return len(parts) == 3 and parts[1].split("[")[0] in CONTAINER_LISTS and parts[2] == "image"


def _differences(old: Any, new: Any, path: str) -> Iterator[str]:
    """The deepest paths at which two JSON values differ, in document order."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from _differences(old.get(key), new.get(key), f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differences(one, other, f"{path}[{index}]")
    elif old != new:
        yield path
