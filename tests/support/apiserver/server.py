"""The fake API server as a test holds it: where it is, who may enter, what it has seen, what goes wrong.

with FakeServer(tmp_path, node="n1") as server:
    agent.start(f"--kubeconfig={server.kubeconfig}")
    server.find("/api/v1/namespaces/default/pods/web-n1")     as administrator; None = not there
    server.faults.add("hang", resource="pods", verb="create")
    server.down(); server.up(); server.wipe()
    assert server.violations == []

`kubectl logs` with `admin_kubeconfig` asks the agent's port as the user `kube-apiserver-kubelet-client`, whom
`authority.ca` vouches for (--client-ca-file).
"""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.certificates import Authority, Pair

from . import kinds
from .answers import Refusal
from .faults import Faults
from .identity import NODE_PREFIX, User
from .signing import Signer
from .store import Store
from .traffic import Traffic
from .transport import Transport
from .verbs import Verbs

Json = dict[str, Any]
ADMIN = User("admin", frozenset({"system:masters"}))
LAG = 0.05
"""Seconds until the authorizer knows of a new or removed object; a busy real server takes as long."""
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


class FakeServer:
    """See the module. `node` is the node that `kubeconfig` is for."""

    def __init__(self, directory: Path, node: str = "n1") -> None:
        self.directory = directory / "apiserver"
        self.directory.mkdir(parents=True, exist_ok=True)
        self.node = node
        self.faults = Faults()
        self.requests = Traffic()
        self.violations: list[str] = []
        self.tokens: dict[str, User] = {}
        self.store = Store()
        self.store.lag = LAG
        self.authority = Authority(self.directory / "ca", "fake-ca")
        self.signer = Signer(self.directory, self.authority, self.store)
        self.verbs = Verbs(self.store, self.violations, self.signer)
        self.issuers = {"fake-ca"}
        pair = self.authority.issue("fake-api", "IP:127.0.0.1,DNS:localhost,DNS:kubernetes")
        self.kubelet_client = self.authority.issue("kube-apiserver-kubelet-client", group="system:masters")
        self._transport = Transport(self, pair, self.authority.ca)
        self._furnish()

    def __enter__(self) -> FakeServer:
        self._transport.start()
        node = self.authority.issue(f"{NODE_PREFIX}{self.node}", group="system:nodes")
        self.kubeconfig = self.write_kubeconfig("node", node)
        self.admin_kubeconfig = self.write_kubeconfig("admin", self.authority.issue("admin", group="system:masters"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.faults.clear()
        self._transport.stop()

    # ---- where and who --------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """https://127.0.0.1:port."""
        return f"https://127.0.0.1:{self._transport.port}"

    def write_kubeconfig(self, name: str, pair: Pair | None = None, **user: Any) -> Path:
        """A kubeconfig of that file name: with a certificate, or with what `user` says (token, tokenFile, exec)."""
        who = dict(user)
        if pair:
            who |= {"client-certificate": pair.cert, "client-key": pair.key}
        path = self.directory / f"{name}.kubeconfig"
        cluster = {"server": self.url, "certificate-authority": self.authority.ca}
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps(_kubeconfig(cluster, {k.replace("_", "-"): v for k, v in who.items()}), indent=1))
        beside.replace(path)
        return path

    def node_user(self, node: str = "") -> User:
        """The user of a node, to give a token to: server.tokens["t"] = server.node_user()."""
        return User(f"{NODE_PREFIX}{node or self.node}", frozenset({"system:nodes"}))

    # ---- what an administrator does -------------------------------------------------------------

    def get(self, path: str) -> Json:
        """The object or list at an API path. Raises Refusal."""
        return self._do("GET", path)

    def find(self, path: str) -> Json | None:
        """The same, None where there is none."""
        try:
            return self.get(path)
        except Refusal as refusal:
            if refusal.code == 404:
                return None
            raise

    def list(self, plural: str, namespace: str = "") -> list[Json]:
        """All objects of a resource."""
        return self.store.items(plural, namespace)

    def create(self, path: str, item: Json) -> Json:
        """POST to the path of a collection. Raises Refusal."""
        return self._do("POST", path, item)

    def patch(self, path: str, change: Json, kind: str = "application/merge-patch+json") -> Json:
        """PATCH; merge patch unless told. Raises Refusal."""
        return self._do("PATCH", path, change, kind)

    def delete(self, path: str, **options: Any) -> Json:
        """DELETE with DeleteOptions (gracePeriodSeconds=0, ...). Raises Refusal."""
        return self._do("DELETE", path, options or None)

    def remove_namespace(self, name: str) -> None:
        """DELETE it, and do what a controller does then: all that is in it goes."""
        path = f"/api/v1/namespaces/{name}"
        self.delete(path)
        self._do("PUT", f"{path}/finalize", {"metadata": {"name": name}, "spec": {"finalizers": []}})

    def _do(self, method: str, path: str, body: Json | None = None, kind: str = "application/json") -> Json:
        aside = Verbs(self.store, [], self.signer)
        data = b"" if body is None else json.dumps(body).encode()
        return aside.run(ADMIN, kinds.parse(method, path), data, kind)[1]

    # ---- what happens to it ---------------------------------------------------------------------

    def down(self) -> None:
        """Nobody listens, every connection ends."""
        self._transport.stop()

    def up(self) -> None:
        """It listens again, where it did, with what it had."""
        self._transport.start()

    def hang_up(self) -> None:
        """Every connection ends; new ones are taken."""
        self._transport.hang_up()

    def wipe(self) -> None:
        """It is replaced by an empty one of the same address and authority."""
        self.store.wipe()
        self._transport.hang_up()
        self._furnish()

    def _furnish(self) -> None:
        for name in NAMESPACES:
            self.create("/api/v1/namespaces", {"metadata": {"name": name}})


def _kubeconfig(cluster: Json, user: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "fake", "cluster": cluster}],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "fake", "user": "me"}}],
        "current-context": "it",
    }
