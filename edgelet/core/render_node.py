"""The machine as a v1.Node: its labels and status (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..model import quantity
from ..model.node_facts import NodeFacts, Pressure
from . import render

Json = dict[str, Any]

KUBERNETES = ("1", "36")
"""The Kubernetes minor whose API shapes are served; kubectl checks its own skew against it."""


def kubelet_version(version: str) -> str:
    """The version as a Kubernetes component tells it, edgelet's own after the plus sign."""
    major, minor = KUBERNETES
    return f"v{major}.{minor}.0+edgelet.{version}"


def labels(facts: NodeFacts) -> dict[str, str]:
    """The labels that every node has (semantics 7.1)."""
    return {
        "kubernetes.io/arch": facts.architecture,
        "kubernetes.io/hostname": facts.name,
        "kubernetes.io/os": "linux",
    }


def status(facts: NodeFacts, now: float, started: float, port: int, version: str) -> Json:
    """The v1.NodeStatus; conditions are as of now, and begin with the agent at the earliest; `version` is edgelet's."""
    addresses = [{"type": "InternalIP", "address": facts.address}] if facts.address else []
    capacity = {
        "cpu": quantity.decimal(facts.cpus),
        "ephemeral-storage": quantity.binary(facts.storage & ~1023),
        "memory": quantity.binary(facts.memory & ~1023),
        "pods": quantity.decimal(facts.pods),
    }
    return {
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": list(_conditions(facts, now, started)),
        "addresses": [*addresses, {"type": "Hostname", "address": facts.name}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "nodeInfo": {
            "machineID": facts.machine_id,
            "systemUUID": facts.system_uuid,
            "bootID": facts.boot_id,
            "kernelVersion": facts.kernel,
            "osImage": facts.os_image,
            "containerRuntimeVersion": facts.runtime,
            "kubeletVersion": kubelet_version(version),
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": facts.architecture,
        },
    }


def _conditions(facts: NodeFacts, now: float, started: float) -> Iterable[Json]:
    for kind, bad, good, pressure in (
        ("MemoryPressure", "KubeletHasInsufficientMemory", "KubeletHasSufficientMemory", facts.memory_pressure),
        ("DiskPressure", "KubeletHasDiskPressure", "KubeletHasNoDiskPressure", facts.disk_pressure),
        ("PIDPressure", "KubeletHasInsufficientPID", "KubeletHasSufficientPID", facts.pid_pressure),
    ):
        yield _condition(kind, pressure, bad if pressure.present else good, now, started)
    ready = Pressure(not facts.ready_message, facts.ready_message or "edgelet runs pods")
    yield _condition("Ready", ready, "KubeletReady" if ready.present else "KubeletNotReady", now, started)


def _condition(kind: str, found: Pressure, reason: str, now: float, started: float) -> Json:
    return {
        "type": kind,
        "status": "True" if found.present else "False",
        "lastHeartbeatTime": render.timestamp(now),
        "lastTransitionTime": render.timestamp(started),
        "reason": reason,
        "message": found.message,
    }
