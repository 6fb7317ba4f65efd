"""What becomes of each mirror pod: create, delete, report its status, or leave it (semantics 7.4). Pure.

A mirror shows the pod to the server; the containers never depend on it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..model.pod import Pod, PodKey
from ..model.status import PodStatus
from . import mirror_spec

Json = dict[str, Any]

MIRROR = "kubernetes.io/config.mirror"
CONFIG_HASH = "kubernetes.io/config.hash"
CONFIG_SOURCE = "kubernetes.io/config.source"
CONFIG_SEEN = "kubernetes.io/config.seen"
LEFT_OUT = "edgelet.io/not-mirrored"
"""Lists what the server would have refused and the mirror's spec therefore lacks."""
LEFT_OUT_MOST = 4096

_DROPPED_ANNOTATIONS = frozenset(("kubectl.kubernetes.io/last-applied-configuration",))


class Step(enum.Enum):
    """What to do for one mirror pod next."""

    NOTHING = "nothing"
    CREATE = "create"
    DELETE = "delete"
    STATUS = "status"
    TAKEN = "taken"


@dataclass(frozen=True, slots=True)
class Local:
    """A pod of this box as the mirror needs it; `seen_at` wall second of its first sight."""

    pod: Pod
    status: PodStatus
    seen_at: float


@dataclass(frozen=True, slots=True)
class Remote:
    """A pod on the server that is bound to this node. `hash` None = it is no mirror pod."""

    key: PodKey
    uid: str
    version: str = ""
    hash: str | None = None
    source: str = ""
    owner: str = ""
    deleting: bool = False


def key_of(pod: Pod, node: str) -> PodKey:
    """The mirror's name: a pod that was given through the API gets the node's suffix here (design section 5)."""
    if pod.source != "api":
        return pod.key
    return PodKey(pod.namespace, f"{pod.name}-{node}")


def remote(document: Mapping[str, Any]) -> Remote:
    """Out of a v1.Pod, or of its metadata alone. Raises ValueError when it is neither."""
    meta = document.get("metadata")
    if not isinstance(meta, dict) or not meta.get("name") or not meta.get("uid"):
        raise ValueError("the answer is no pod: it has no name or uid")
    notes = meta.get("annotations") or {}
    owners = [o for o in meta.get("ownerReferences") or () if o.get("kind") == "Node"]
    return Remote(
        key=PodKey(str(meta.get("namespace", "")), str(meta["name"])),
        uid=str(meta["uid"]),
        version=str(meta.get("resourceVersion", "")),
        hash=str(notes[MIRROR]) if MIRROR in notes else None,
        source=str(notes.get(CONFIG_SOURCE, "")),
        owner=str(owners[0].get("uid", "")) if owners else "",
        deleting=bool(meta.get("deletionTimestamp")),
    )


def decide(local: Local | None, there: Remote | None, node_uid: str, gone: bool) -> Step:
    """The next step. `gone` = it is certain that no source wants, and nothing runs, a pod of that name."""
    if local is None:
        return _leftover(there, gone)
    if there is None:
        return Step.NOTHING if local.status.deleting else Step.CREATE
    if there.hash is None:
        return Step.TAKEN
    stale = there.hash != local.pod.config_hash or there.owner != node_uid
    return Step.DELETE if there.deleting or stale else Step.STATUS


def _leftover(there: Remote | None, gone: bool) -> Step:
    """No such pod here. One that is no mirror never ran here, so nothing holds up its deletion (7.4.6)."""
    if there is None or (there.hash is None and not there.deleting):
        return Step.NOTHING
    return Step.DELETE if gone or there.hash is None else Step.NOTHING


def body(local: Local, node: str, node_uid: str, seen: str | None) -> Json:
    """The mirror pod to be created (7.4.1); `seen` is the RFC 3339 time for config.seen."""
    document = mirror_spec.parse(local.pod.document)
    given = document.get("metadata") or {}
    spec, left_out = mirror_spec.acceptable(document.get("spec") or {})
    key = key_of(local.pod, node)
    notes = {k: v for k, v in (given.get("annotations") or {}).items() if k not in _DROPPED_ANNOTATIONS}
    notes |= {MIRROR: local.pod.config_hash, CONFIG_HASH: local.pod.config_hash, CONFIG_SOURCE: local.pod.source}
    notes |= {CONFIG_SEEN: seen} if seen else {}
    notes |= {LEFT_OUT: _listed(left_out)} if left_out else {}
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node_uid, "controller": True}
    meta: Json = {"name": key.name, "namespace": key.namespace, "annotations": notes, "ownerReferences": [owner]}
    if given.get("labels"):
        meta["labels"] = given["labels"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**spec, "nodeName": node}}


def _listed(left_out: tuple[str, ...]) -> str:
    text = "; ".join(left_out)
    return text if len(text) <= LEFT_OUT_MOST else text[: LEFT_OUT_MOST - 3] + "..."
