"""API objects out of the store's values: v1.Pod and lists (pure, golden-tested); parts come from core.render."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ...core.render import event, status, timestamp
from ...engine.store import Entry

__all__ = ["event", "listing", "pod", "status", "timestamp"]

Json = dict[str, Any]

CONFIG_HASH = "kubernetes.io/config.hash"
CONFIG_SOURCE = "kubernetes.io/config.source"
SUMMARY = "edgelet.io/summary"
SHORT_NAME = "edgelet.io/short-name"
HELD = "edgelet.io/held"


def pod(entry: Entry, node_name: str) -> Json:
    """The v1.Pod: the manifest as defaulted, with metadata and status as known now."""
    document: Json = json.loads(entry.pod.document)
    spec = document.get("spec") or {}
    spec.setdefault("nodeName", node_name)
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": _metadata(entry, document.get("metadata") or {}),
        "spec": spec,
        "status": status(entry.status),
    }


def listing(kind: str, items: Iterable[Json], version: int) -> Json:
    """A list object of that kind, such as v1.PodList."""
    return {"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}, "items": list(items)}


def utf8(data: bytes) -> str | None:
    """The text that the bytes are, None when they are none."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _metadata(entry: Entry, given: Json) -> Json:
    pod, held = entry.pod, entry.status.held
    annotations = {**given.get("annotations", {}), CONFIG_HASH: pod.config_hash, CONFIG_SOURCE: pod.source}
    extra = {
        SUMMARY: entry.status.summary,
        SHORT_NAME: pod.short_name if pod.short_name != pod.name else "",
        HELD: "true" if held else "",
    }
    own: Json = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid,
        "resourceVersion": str(entry.version),
        "creationTimestamp": timestamp(entry.status.start_time or entry.seen_at),
        "annotations": {**annotations, **{name: text for name, text in extra.items() if text}},
    }
    if entry.status.deleting:
        grace = pod.grace if entry.status.deletion_grace is None else entry.status.deletion_grace
        own["deletionTimestamp"] = timestamp(entry.status.deleting + grace)
        own["deletionGracePeriodSeconds"] = grace
    return {**given, **own}
