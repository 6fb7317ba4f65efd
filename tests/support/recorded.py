"""The recorded objects of a real API server, as the values that the agent's own store holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgelet.adapters.server import humans
from edgelet.model.pod import Container, Pod
from edgelet.model.status import Condition, ContainerState, ContainerStatus, PodStatus, Running, Terminated, Waiting

Json = dict[str, Any]

FOLDER = Path(__file__).parents[2].parent / "shared" / "data" / "apiserver-responses"


ADDED = {"web-edge1": {"x": "z"}}
"""Annotations that were made after the list was recorded and before kubectl printed."""


def folder() -> Path:
    """Where the recordings are; skips where they are not."""
    if not FOLDER.is_dir():
        pytest.skip("needs the recorded answers in shared/ beside the checkout")
    return FOLDER


def pods() -> list[tuple[Pod, PodStatus]]:
    """Each recorded pod with its status."""
    found = json.loads((folder() / "list_pods.json").read_text())
    return [(_pod(item), _status(item["status"])) for item in found["items"]]


def _pod(item: Json) -> Pod:
    meta, spec = item["metadata"], item["spec"]
    notes = {**meta["annotations"], **ADDED.get(meta["name"], {})}
    kept = {**{k: meta[k] for k in ("name", "namespace", "labels")}, "annotations": notes}
    return Pod(
        name=meta["name"],
        namespace=meta["namespace"],
        uid=meta["uid"],
        config_hash=notes["kubernetes.io/config.hash"],
        source=notes["kubernetes.io/config.source"],
        containers=tuple(Container(c["name"], c["image"]) for c in spec["containers"]),
        init_containers=tuple(Container(c["name"], c["image"]) for c in spec.get("initContainers", ())),
        labels=meta["labels"],
        annotations=notes,
        short_name=meta["name"],
        document=json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": spec}),
    )


def _status(item: Json) -> PodStatus:
    return PodStatus(
        phase=item["phase"],
        conditions=tuple(
            Condition(c["type"], c["status"], humans.parse(c["lastTransitionTime"]), c.get("reason", ""))
            for c in item["conditions"]
        ),
        containers=tuple(_container(c) for c in item["containerStatuses"]),
        init_containers=tuple(_container(c) for c in item["initContainerStatuses"]),
        start_time=humans.parse(item["startTime"]),
        ips=(item["podIP"],) if "podIP" in item else (),
        host_ip=item["hostIP"],
        qos=item["qosClass"],
    )


def _container(item: Json) -> ContainerStatus:
    last = _state(item["lastState"]) if item["lastState"] else None
    return ContainerStatus(
        name=item["name"],
        image=item["image"],
        state=_state(item["state"]),
        last_state=last if isinstance(last, Terminated) else None,
        ready=item["ready"],
        started=item.get("started", False),
        restart_count=item["restartCount"],
        image_id=item["imageID"],
        container_id=item.get("containerID", ""),
    )


def _state(item: Json) -> ContainerState:
    if "waiting" in item:
        return Waiting(item["waiting"]["reason"], item["waiting"].get("message", ""))
    if "running" in item:
        return Running(humans.parse(item["running"]["startedAt"]))
    ended = item["terminated"]
    return Terminated(
        ended["exitCode"],
        ended["reason"],
        humans.parse(ended["startedAt"]),
        humans.parse(ended["finishedAt"]),
        container_id=ended.get("containerID", ""),
    )
