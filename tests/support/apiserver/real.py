"""A real API server in the hands of a test that is written for the fake one, as far as that goes.

Where EDGELET_TEST_KUBECONFIG (an administrator's) and EDGELET_TEST_NODE_KUBECONFIG (a node's) name one, `either` gives
it; what only the fake one can do skips the test.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.apiserver.client import Answer, Client

from .answers import Refusal
from .server import FakeServer

Json = dict[str, Any]
ADMIN, NODE = "EDGELET_TEST_KUBECONFIG", "EDGELET_TEST_NODE_KUBECONFIG"
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class RealServer:
    """See FakeServer, whose interface this is a part of."""

    def __init__(self, directory: Path, node: str) -> None:
        self.node = node
        # Copies: tests replace them.
        copies = [shutil.copy(os.environ[name], directory / f"{name}.kubeconfig") for name in (ADMIN, NODE)]
        self.admin_kubeconfig, self.kubeconfig = map(Path, copies)
        self.violations: list[str] = []
        self._admin = Client(self.admin_kubeconfig)
        if self._admin.get("/api/v1/namespaces/default").code != 200:
            raise AssertionError(f"the server of {ADMIN} does not answer as it should")

    def __getattr__(self, name: str) -> Any:
        pytest.skip(f"a real API server has no {name}: only the fake one")

    def get(self, path: str) -> Json:
        """See FakeServer."""
        return _good(self._admin.get(path))

    def find(self, path: str) -> Json | None:
        """See FakeServer."""
        answer = self._admin.get(path)
        return None if answer.code == 404 else _good(answer)

    def list(self, plural: str, namespace: str = "") -> list[Json]:
        """See FakeServer. Of pods and events, those of the node."""
        where = f"/api/v1/namespaces/{namespace}/{plural}" if namespace else f"/api/v1/{plural}"
        query = f"?fieldSelector=spec.nodeName%3D{self.node}" if plural == "pods" else ""
        items: list[Json] = self.get(where + query)["items"]
        if plural == "events":
            return [e for e in items if e.get("source", {}).get("host") == self.node]
        return items

    def create(self, path: str, item: Json) -> Json:
        """See FakeServer."""
        return _good(self._admin.post(path, item))

    def patch(self, path: str, change: Json, kind: str = "application/merge-patch+json") -> Json:
        """See FakeServer."""
        return _good(self._admin.patch(path, change, kind))

    def delete(self, path: str, **options: Any) -> Json:
        """See FakeServer."""
        return _good(self._admin.delete(path, **options))

    def wipe(self) -> None:
        """Take away all that is of the node: as near to another server as this one comes."""
        for pod in self.list("pods"):
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            self._admin.patch(path, {"metadata": {"finalizers": None}})
            self._admin.delete(path, gracePeriodSeconds=0)
        for event in self.list("events"):
            metadata = event["metadata"]
            self._admin.delete(f"/api/v1/namespaces/{metadata['namespace']}/events/{metadata['name']}")
        self._admin.delete(f"/api/v1/nodes/{self.node}")
        self._admin.delete(f"{_LEASE}/{self.node}")


def _good(answer: Answer) -> Json:
    if answer.code >= 400:
        raise Refusal(answer.code, answer.body.get("reason", ""), answer.message)
    return answer.body


@contextlib.contextmanager
def either(directory: Path, node: str) -> Iterator[FakeServer]:
    """The real server where the environment names one, begun and left clean; else the fake one."""
    if not (os.environ.get(ADMIN) and os.environ.get(NODE)):
        with FakeServer(directory, node) as fake:
            yield fake
        return
    real = RealServer(directory, node)
    real.wipe()
    try:
        yield cast(FakeServer, real)
    finally:
        real.wipe()
