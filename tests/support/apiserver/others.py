"""Nodes, events, leases and signing requests as the server keeps them: what must be right about each.

Sources: pkg/apis/core/validation (ValidateNodeUpdate, events.go), pkg/apis/coordination/validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
Cause = tuple[str, str]


def node_problems(node: Json) -> Iterator[Cause]:
    """Of a Node, new or changed."""
    status = node.get("status", {})
    seen: list[Json] = []
    for index, address in enumerate(status.get("addresses", [])):
        if address in seen:
            yield f"status.addresses[{index}]", f"Duplicate value: {address}"
        seen.append(address)
    keys: list[tuple[str, str]] = []
    for index, taint in enumerate(node.get("spec", {}).get("taints", [])):
        if taint.get("effect") not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            yield f"spec.taints[{index}].effect", f'Unsupported value: "{taint.get("effect")}"'
        if (taint.get("key", ""), taint.get("effect", "")) in keys:
            yield f"spec.taints[{index}]", "Duplicate value"
        keys.append((taint.get("key", ""), taint.get("effect", "")))
    if status.get("allocatable", {}).keys() - status.get("capacity", status.get("allocatable", {})).keys():
        yield "status.allocatable", "Invalid value: more resources than status.capacity"


def event_problems(event: Json) -> Iterator[Cause]:
    """Of an Event: its namespace is that of the object, or `default` for objects without one."""
    namespace, told = event["metadata"].get("namespace", ""), event.get("involvedObject", {}).get("namespace", "")
    path, mismatch = "involvedObject.namespace", f'Invalid value: "{told}": does not match event.namespace'
    if event.get("eventTime"):
        if not told and namespace not in ("default", "kube-system"):
            yield path, mismatch
        for field in ("reportingComponent", "reportingInstance", "action", "reason"):
            if not event.get(field):
                yield field, "Required value"
    elif told != namespace and (told or namespace != "default"):
        yield path, mismatch
    if event.get("type", "Normal") not in ("Normal", "Warning"):
        yield "type", f'Invalid value: "{event["type"]}"'


def lease_problems(lease: Json) -> Iterator[Cause]:
    """Of a Lease."""
    spec = lease.get("spec", {})
    seconds = spec.get("leaseDurationSeconds", 1)
    if seconds <= 0:
        yield "spec.leaseDurationSeconds", f"Invalid value: {seconds}: must be greater than 0"
    if spec.get("leaseTransitions", 0) < 0:
        yield "spec.leaseTransitions", "Invalid value: must be greater than or equal to 0"
    if spec.get("preferredHolder") and not spec.get("strategy"):
        yield "spec.preferredHolder", "Forbidden: may only be specified if `strategy` is defined"


_USAGES = {
    "kubernetes.io/kube-apiserver-client-kubelet": ({"client auth", "digital signature"}, {"key encipherment"}),
    "kubernetes.io/kubelet-serving": ({"server auth", "digital signature"}, {"key encipherment"}),
}
SIGNERS = tuple(_USAGES)


def csr_problems(request: Json) -> Iterator[Cause]:
    """Of a CertificateSigningRequest; usages as the two signers for nodes ask for them."""
    spec = request.get("spec", {})
    for field in ("request", "signerName", "usages"):
        if not spec.get(field):
            yield f"spec.{field}", "Required value"
    if spec.get("expirationSeconds", 600) < 600:
        yield "spec.expirationSeconds", "Invalid value: may not specify a duration less than 600 seconds (10 minutes)"
