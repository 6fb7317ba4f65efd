"""The requests that a node makes, by name, within the rate limit. One thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from ...core import rate
from ...errors import Refused
from ...model.pod import PodKey
from ...ports import Clock
from .connection import METADATA_LIST, Connection, Reply

Json = dict[str, Any]

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
NODES = "/api/v1/nodes"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Api:
    """`pause(seconds)` waits for the rate limit, or less when the agent ends."""

    def __init__(
        self, connection: Connection, node: str, clock: Clock, qps: float, burst: int, pause: Callable[[float], object]
    ) -> None:
        self._connection = connection
        self._node = quote(node, safe="")
        self._clock = clock
        self._bucket = rate.bucket(qps, burst, clock.monotonic())
        self._pause = pause

    def _ask(
        self, method: str, path: str, body: Json | None = None, kind: str = "application/json", accept: str = ""
    ) -> Reply:
        self._bucket, wait = rate.take(self._bucket, self._clock.monotonic())
        if wait:
            self._pause(wait)
        return self._connection.request(method, path, body, kind, accept)

    def node(self) -> Reply:
        """GET the Node."""
        return self._ask("GET", f"{NODES}/{self._node}")

    def create_node(self, body: Json) -> Reply:
        """POST it."""
        return self._ask("POST", NODES, body)

    def patch_node(self, body: Json) -> Reply:
        """Merge patch of labels and annotations."""
        return self._ask("PATCH", f"{NODES}/{self._node}", body, MERGE)

    def patch_node_status(self, status: Json) -> Reply:
        """Strategic merge patch of the status."""
        return self._ask("PATCH", f"{NODES}/{self._node}/status", {"status": status}, STRATEGIC)

    def lease(self) -> Reply:
        """GET the Lease."""
        return self._ask("GET", f"{LEASES}/{self._node}")

    def create_lease(self, body: Json) -> Reply:
        """POST it."""
        return self._ask("POST", LEASES, body)

    def renew_lease(self, body: Json) -> Reply:
        """PUT it."""
        return self._ask("PUT", f"{LEASES}/{self._node}", body)

    def pods(self) -> Reply:
        """The metadata of all pods that are bound to this node."""
        return self._ask("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{self._node}", accept=METADATA_LIST)

    def pod(self, key: PodKey) -> Reply:
        """GET one pod."""
        return self._ask("GET", _pod(key))

    def create_pod(self, namespace: str, body: Json) -> Reply:
        """POST one."""
        return self._ask("POST", f"/api/v1/namespaces/{quote(namespace, safe='')}/pods", body)

    def delete_pod(self, key: PodKey, uid: str) -> Reply:
        """DELETE it at once, if it still is the one of that uid."""
        body: Json = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": uid},
        }
        return self._ask("DELETE", _pod(key), body)

    def patch_pod_status(self, key: PodKey, uid: str, status: Json) -> Reply:
        """Strategic merge patch of the status; the uid is a guard (apiserver-facts, Pod status)."""
        return self._ask("PATCH", f"{_pod(key)}/status", {"metadata": {"uid": uid}, "status": status}, STRATEGIC)

    def create_csr(self, body: Json) -> Reply:
        """POST a request for a client certificate."""
        return self._ask("POST", CSRS, body)

    def csr(self, name: str) -> Reply:
        """GET it."""
        return self._ask("GET", f"{CSRS}/{quote(name, safe='')}")

    def create_event(self, namespace: str, body: Json) -> Reply:
        """POST one event."""
        return self._ask("POST", _events(namespace), body)

    def patch_event(self, namespace: str, name: str, body: Json) -> Reply:
        """Merge patch of one."""
        return self._ask("PATCH", f"{_events(namespace)}/{quote(name, safe='')}", body, MERGE)


def refused(what: str, reply: Reply) -> Refused:
    """The error for an answer that is none of the expected ones."""
    return Refused(f"cannot {what}: {reply.message}", reply.code, reply.reason)


def _pod(key: PodKey) -> str:
    return f"/api/v1/namespaces/{quote(key.namespace, safe='')}/pods/{quote(key.name, safe='')}"


def _events(namespace: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/events"
