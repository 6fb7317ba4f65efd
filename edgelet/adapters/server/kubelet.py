"""The kubelet API (semantics 8.2) as far as the Kubernetes API subset does not serve it already.

`kubectl logs` of a mirror pod comes in here: a real API server asks the node's kubelet for
``/containerLogs``, over TLS with its client certificate.
"""

from __future__ import annotations

from typing import Any

from ...engine.store import Entry
from ...model.pod import PodKey
from ...model.status import Running
from . import choose, statuses
from .base import Access, Refused
from .logs import Log

Json = dict[str, Any]


class ContainerLogs(Log):
    """``/containerLogs/NS/POD/CONTAINER`` (8.3)."""

    resource = "nodes/proxy"

    async def get(self, namespace: str, name: str, container: str = "") -> None:
        known(choose.pod(self.services.store, PodKey(namespace, name)), container)
        if self.param("stream") not in ("", "All"):
            raise Refused(statuses.failure(422, "Invalid request: stream can only be All"))
        await super().get(namespace, name)

    def param(self, name: str) -> str:
        if name == "container":
            return str(self.path_kwargs.get("container") or "")
        given = super().param(name)
        if name == "tailLines" and not given:
            tail = super().param("tail")
            return "" if tail == "all" else tail
        return given


class RunningPods(Access):
    """``/runningpods/``: what runs, with names and images only."""

    resource = "nodes/proxy"

    async def get(self) -> None:
        _, entries = self.services.store.list()
        items = [_brief(entry) for entry in entries]
        items = [item for item in items if item["spec"]["containers"]]
        self.send({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})


class Configz(Access):
    """``/configz``: the settings, secrets apart."""

    resource = "nodes/configz"

    async def get(self) -> None:
        kind = {"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1"}
        self.send({"kubeletconfig": {**self.services.config(), **kind}})


class Disabled(Access):
    """``/run``, ``/logs``, ``/attach``, ``/portForward``, ``/debug``, ``/checkpoint``: not offered."""

    resource = "nodes/proxy"

    async def get(self, **_place: str) -> None:
        raise Refused(statuses.failure(405, "Debug endpoints are disabled."))

    post = get
    put = get


def known(entry: Entry, container: str) -> None:
    """Raises Refused (404) when the pod has no such container."""
    if entry.pod.container(container) is None:
        raise Refused(statuses.failure(404, f'container "{container}" not found in pod "{entry.pod.name}"'))


def _brief(entry: Entry) -> Json:
    pod = entry.pod
    running = [
        {"name": c.name, "image": c.image, "resources": {}}
        for c in (*entry.status.init_containers, *entry.status.containers)
        if isinstance(c.state, Running)
    ]
    meta = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid, "creationTimestamp": None}
    return {"metadata": meta, "spec": {"containers": running}, "status": {}}
