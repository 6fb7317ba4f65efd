"""When a node's client certificate is asked for, and what an answer to a signing request means. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

Json = dict[str, Any]

SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
USAGES = ("digital signature", "client auth")
RENEW_FROM, RENEW_SPREAD = 0.7, 0.2
"""Part of its life at which a certificate is renewed, and over how much of it a fleet spreads that (kubelet)."""
GIVE_UP = 900.0
"""Seconds after which a request that nobody approves is made anew (kubelet)."""
FIRST_LOOK, LOOK_CAP = 1.0, 60.0
"""Seconds between looks at a request: approval is automatic on most clusters, and a person's work on others."""


def renew_at(begin: float, end: float, draw: float) -> float:
    """The wall second at which a certificate of that life is renewed."""
    return begin + (end - begin) * (RENEW_FROM + RENEW_SPREAD * draw)


def rest(begin: float, end: float, draw: float, wall: float) -> float:
    """Seconds until a certificate that has just come is looked at again.

    At least a tenth of its life, whatever the clock says: one that runs ahead would have it renewed without end.
    """
    return max(renew_at(begin, end, draw) - wall, (end - begin) / 10)


def body(request: bytes) -> Json:
    """The v1.CertificateSigningRequest; its name follows from the key, so that asking twice asks for one."""
    spec = {"request": base64.b64encode(request).decode(), "signerName": SIGNER, "usages": list(USAGES)}
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": f"node-csr-{hashlib.sha256(request).hexdigest()[:32]}"},
        "spec": spec,
    }


def answer(document: Json) -> tuple[bytes, str]:
    """The certificate ("" = not yet), or why there will be none."""
    status = document.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") in ("Denied", "Failed") and condition.get("status", "True") == "True":
            why = condition.get("message") or condition.get("reason") or "no reason given"
            return b"", f"the request for a client certificate was {condition['type'].lower()}: {why}"
    try:
        return base64.b64decode(status.get("certificate") or ""), ""
    except binascii.Error:
        return b"", "the certificate in the answer is not base64"
