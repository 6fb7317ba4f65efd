"""Signing requests of nodes: who may ask for what, and the certificate that an approved one gets."""

from __future__ import annotations

import base64
import itertools
import subprocess
from pathlib import Path
from typing import Any

from tests.support.certificates import Authority

from .identity import NODE_PREFIX
from .store import Store, now

Json = dict[str, Any]
PLURAL = "certificatesigningrequests"
CLIENT, SERVING = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"


class Signer:
    """Approves and signs by the test's authority. `automatic` = at once, as a cluster does for its nodes' clients.

    `ends` is the last day of what it signs, as YYMMDD.
    """

    def __init__(self, directory: Path, authority: Authority, store: Store) -> None:
        self.automatic = True
        self.ends = "491231"
        self._directory = directory
        self._authority = authority
        self._store = store
        self._numbers = itertools.count()

    def created(self, item: Json) -> None:
        """A request has come."""
        if self.automatic and item["spec"]["signerName"] == CLIENT:
            self.approve(item["metadata"]["name"])

    def approve(self, name: str) -> None:
        """Approve and sign."""
        self._conclude(name, "Approved", self._sign)

    def deny(self, name: str) -> None:
        """Deny."""
        self._conclude(name, "Denied", lambda _request: "")

    def _conclude(self, name: str, verdict: str, sign: Any) -> None:
        key = (PLURAL, "", name)
        with self._store.changed:
            item = self._store.get(key)
            if item is None:
                raise LookupError(name)
            condition = {"type": verdict, "status": "True", "reason": "AutoApproved", "message": "by the test"}
            condition |= {"lastUpdateTime": now(), "lastTransitionTime": now()}
            certificate = sign(item["spec"]["request"])
            item["status"] = {"conditions": [condition], **({"certificate": certificate} if certificate else {})}
            self._store.replace(key, item)

    def _sign(self, request: str) -> str:
        at = self._directory / f"request-{next(self._numbers)}"
        at.with_suffix(".csr").write_bytes(base64.b64decode(request))
        self._authority.sign(str(at.with_suffix(".csr")), str(at.with_suffix(".pem")), end=self.ends)
        return base64.b64encode(at.with_suffix(".pem").read_bytes()).decode()


def refusal(node: str, item: Json) -> str:
    """Why a node may not ask for this; "" = it may."""
    spec = item.get("spec", {})
    if spec.get("signerName") not in (CLIENT, SERVING):
        return ""
    name = subject(spec.get("request", "")).get("CN", "")
    if not name:
        return "unable to parse csr"
    if name != f"{NODE_PREFIX}{node}":
        return f"node {node!r} may only request a certificate for itself, not for {name!r}"
    return ""


def subject(request: str) -> dict[str, str]:
    """Parts of a request's subject, {} if it is none. `request` is base64 of PEM."""
    try:
        data = base64.b64decode(request)
        command = ["openssl", "req", "-noout", "-subject", "-nameopt", "multiline"]
        text = subprocess.run(command, input=data, capture_output=True, check=True, timeout=60).stdout.decode()
    except (ValueError, subprocess.CalledProcessError):
        return {}
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("subject"))
    short = {"commonName": "CN", "organizationName": "O"}
    return {short.get(k.strip(), k.strip()): v.strip() for k, _, v in pairs}
