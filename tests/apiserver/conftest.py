"""The servers that the facts are asked of: the fake one, and a real one where the environment names it.

EDGELET_TEST_KUBECONFIG = a kubeconfig of an administrator, EDGELET_TEST_NODE_KUBECONFIG = one of a node.
"""

from __future__ import annotations

import itertools
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.client import Answer, Client
from tests.support.apiserver import FakeServer

Json = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
CAUGHT_UP = 10.0
"""Seconds that a server may take until its authorizer knows of a change."""
REAL = ("EDGELET_TEST_KUBECONFIG", "EDGELET_TEST_NODE_KUBECONFIG")


@dataclass
class Server:
    """A server with two users: `admin`, and `node`, who is the node `name`."""

    admin: Client
    node: Client
    name: str
    fake: FakeServer | None = None
    uid: str = ""
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _mark: str = field(default_factory=lambda: uuid.uuid4().hex[:6])

    def new_name(self) -> str:
        """A name that nothing has."""
        return f"p{self._mark}-{next(self._numbers)}"

    @property
    def path(self) -> str:
        """Where the Node is."""
        return f"/api/v1/nodes/{self.name}"

    def register(self) -> None:
        """Make sure that the Node is there, and known to admission, which hears of it a moment later."""
        found = self.node.get(self.path)
        if found.code == 404:
            found = self.node.post("/api/v1/nodes", {"metadata": {"name": self.name}})
        assert found.code in (200, 201), found
        self.uid = found.body["metadata"]["uid"]
        mirror = self.mirror()
        known = self.until(lambda: self.node.post(f"{PODS}?dryRun=All", mirror), lambda a: a.code == 201)
        assert known.code == 201, known

    def mirror(self, name: str = "", **spec: Any) -> Json:
        """The body of a mirror pod."""
        owner = {"apiVersion": "v1", "kind": "Node", "name": self.name, "uid": self.uid, "controller": True}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name or self.new_name(),
                "namespace": "default",
                "annotations": {"kubernetes.io/config.mirror": "hash"},
                "ownerReferences": [owner],
            },
            "spec": {"nodeName": self.name, "containers": [{"name": "c", "image": "busybox"}], **spec},
        }

    def create(self, pod: Json) -> Answer:
        """POST a pod as the node."""
        return self.node.post(PODS, pod)

    def made(self, **spec: Any) -> Json:
        """A mirror pod that is there and that the node may read."""
        answer = self.create(self.mirror(**spec))
        assert answer.code == 201, answer
        self.read(answer.body["metadata"]["name"])
        return answer.body

    def read(self, name: str) -> Answer:
        """GET as the node, once the authorizer knows of the pod."""
        return self.until(lambda: self.node.get(f"{PODS}/{name}"), lambda a: a.code != 403)

    @staticmethod
    def until(ask: Any, good: Any) -> Answer:
        """Ask until the answer is good; the last answer."""
        deadline = time.monotonic() + CAUGHT_UP
        while True:
            answer: Answer = ask()
            if good(answer) or time.monotonic() > deadline:
                return answer
            time.sleep(0.05)

    def clean(self) -> None:
        """Take away the pods of the test."""
        for pod in self.admin.get(PODS).body["items"]:
            if pod["metadata"]["name"].startswith(f"p{self._mark}-"):
                path = f"{PODS}/{pod['metadata']['name']}"
                self.admin.patch(path, {"metadata": {"finalizers": None}})
                self.admin.delete(path, gracePeriodSeconds=0)


@pytest.fixture(scope="session")
def _fake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with FakeServer(tmp_path_factory.mktemp("fake")) as fake:
        yield Server(Client(fake.admin_kubeconfig), Client(fake.kubeconfig), fake.node, fake)


@pytest.fixture(scope="session")
def _real() -> Server:
    missing = [name for name in REAL if not os.environ.get(name)]
    if missing:
        pytest.skip(f"no real API server: set {' and '.join(REAL)} (kubeconfigs of an administrator and of a node)")
    admin, node = (Client(Path(os.environ[name])) for name in REAL)
    # Without it, what lacks a service account is refused before the question that is asked.
    admin.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    path, kind = "/apis/authentication.k8s.io/v1/selfsubjectreviews", "SelfSubjectReview"
    me = node.post(path, {"apiVersion": "authentication.k8s.io/v1", "kind": kind})
    name = me.body["status"]["userInfo"]["username"]
    assert name.startswith("system:node:"), f"{REAL[1]} is not of a node but of {name}"
    return Server(admin, node, name.removeprefix("system:node:"))


@pytest.fixture(params=["fake", "real"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server with the Node registered; each test twice, on the fake and on a real one."""
    found: Server = request.getfixturevalue(f"_{request.param}")
    found.register()
    yield found
    found.clean()


@pytest.fixture
def server_alone(tmp_path: Path) -> Iterator[FakeServer]:
    """A fake server for one test."""
    with FakeServer(tmp_path) as fake:
        yield fake
