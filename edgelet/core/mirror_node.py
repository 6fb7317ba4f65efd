"""The Node as it is registered and kept current on the server (semantics 7.1, 7.2). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ..model import quantity
from ..model.node_facts import NodeFacts, Pressure
from . import render_node
from .mirror_status import REPLACE, bare

Json = dict[str, Any]

MANAGED_ATTACH = "volumes.kubernetes.io/controller-managed-attach-detach"
IMAGES_MOST = 50
NAMES_MOST = 5
MEMORY_RESERVED = 100 * 2**20
"""What eviction keeps free of the memory, and so is not allocatable (kubelet's default, semantics 6.1)."""
STORAGE_PART = 0.9
"""Part of the disk that is allocatable, for the same reason."""

_GOOD = {
    "MemoryPressure": "kubelet has sufficient memory available",
    "DiskPressure": "kubelet has no disk pressure",
    "PIDPressure": "kubelet has sufficient PID available",
    "Ready": "kubelet is posting ready status",
}
"""The kubelet's words for a good state; they hold no figure, so that nothing changes while all is well."""


@dataclass(frozen=True, slots=True)
class Taint:
    """One taint of `registerWithTaints`."""

    key: str
    value: str
    effect: str

    def render(self) -> Json:
        """As in v1.Node."""
        return {"key": self.key, "effect": self.effect, **({"value": self.value} if self.value else {})}


@dataclass(frozen=True, slots=True)
class Registration:
    """How the node is to be registered. `port` is the kubelet endpoint's (0 = none), `version` edgelet's."""

    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    port: int
    version: str


def labels(facts: NodeFacts, more: Mapping[str, str]) -> dict[str, str]:
    """All labels, the deprecated two of the kubelet included."""
    base = render_node.labels(facts)
    beta = {"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": facts.architecture}
    return {**base, **beta, **more}


def body(facts: NodeFacts, how: Registration) -> Json:
    """The v1.Node to be created; its status follows as a patch."""
    meta = {"name": facts.name, "labels": labels(facts, how.labels), "annotations": {MANAGED_ATTACH: "true"}}
    spec: Json = {"taints": [t.render() for t in how.taints]} if how.taints else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec}


def reconcile(there: Json, facts: NodeFacts, how: Registration) -> Json:
    """The merge patch that brings labels and annotation of an existing Node up to date; {} = it is."""
    meta = there.get("metadata") or {}
    wanted = {"labels": labels(facts, how.labels), "annotations": {MANAGED_ATTACH: "true"}}
    found: Json = {}
    for part, values in wanted.items():
        have = meta.get(part) or {}
        missing = {k: v for k, v in values.items() if have.get(k) != v}
        if missing:
            found[part] = missing
    return {"metadata": found} if found else {}


def status(facts: NodeFacts, how: Registration, images: Iterable[Json], now: float) -> Json:
    """The v1.NodeStatus to be shown; conditions still without the time of their last change."""
    found = render_node.status(_quiet(facts), now, now, how.port, how.version)
    memory = max(0, facts.memory - MEMORY_RESERVED)
    storage = quantity.decimal(int(facts.storage * STORAGE_PART))
    allocatable = {"memory": quantity.binary(memory & ~1023), "ephemeral-storage": storage}
    for condition in found["conditions"]:
        if condition["type"] == "Ready" and condition["status"] == "True":
            condition["message"] = _GOOD["Ready"]
    found["allocatable"] = {**found["capacity"], **allocatable}
    listed = sorted(images, key=lambda i: -int(i.get("sizeBytes", 0)))[:IMAGES_MOST]
    if listed:
        found["images"] = [{**i, "names": i["names"][:NAMES_MOST]} for i in listed]
    return found


def _quiet(facts: NodeFacts) -> NodeFacts:
    def words(kind: str, pressure: Pressure) -> Pressure:
        return pressure if pressure.present else Pressure(False, _GOOD[kind])

    return replace(
        facts,
        memory_pressure=words("MemoryPressure", facts.memory_pressure),
        disk_pressure=words("DiskPressure", facts.disk_pressure),
        pid_pressure=words("PIDPressure", facts.pid_pressure),
    )


def merged(there: Json, here: Json) -> Json:
    """`here` with the times of the last change: the server's where a condition is what it was."""
    known = {c.get("type"): c for c in there.get("conditions") or ()}
    return {**here, "conditions": [_since(c, known.get(c["type"]) or {}) for c in here["conditions"]]}


def _since(condition: Json, before: Json) -> Json:
    if before.get("status") != condition["status"] or not before.get("lastTransitionTime"):
        return condition
    return {**condition, "lastTransitionTime": before["lastTransitionTime"]}


def patch(there: Json, here: Json, heartbeat: bool) -> Json:
    """The strategic merge patch of `status`; {} = nothing but the heartbeat differs and that is not due."""
    here = merged(there, here)
    changed = {n: v for n, v in here.items() if n != "conditions" and bare(there.get(n)) != bare(v)}
    conditions = _told(there.get("conditions") or []) != _told(here["conditions"])
    if not (changed or conditions or heartbeat):
        return {}
    if "addresses" in changed:
        changed["addresses"] = [REPLACE, *here["addresses"]]
    for name in ("capacity", "allocatable"):
        if name in changed:
            changed[name] = {**dict.fromkeys(set(there.get(name) or ()) - set(here[name])), **here[name]}
    return {**changed, "conditions": here["conditions"]}


def _told(conditions: list[Json]) -> list[Json]:
    """The conditions that are ours, without their times."""
    ours = [c for c in conditions if c.get("type") in _GOOD]
    return sorted(
        ({k: c.get(k, "") for k in ("type", "status", "reason", "message")} for c in ours), key=lambda c: str(c["type"])
    )


def readiness(conditions: Iterable[Json]) -> str:
    """Status of the condition Ready, "" = there is none."""
    return next((str(c.get("status", "")) for c in conditions if c.get("type") == "Ready"), "")


def other_machine(there: Json, facts: NodeFacts) -> bool:
    """Whether the Node on the server was filled in by another machine."""
    info = (there.get("status") or {}).get("nodeInfo") or {}
    return bool(info.get("machineID") and facts.machine_id and info["machineID"] != facts.machine_id)


def rebooted(there: Json, facts: NodeFacts) -> bool:
    """Whether this machine has booted since it told its status last (event Rebooted)."""
    info = (there.get("status") or {}).get("nodeInfo") or {}
    return bool(info.get("bootID") and facts.boot_id and info["bootID"] != facts.boot_id)


def micro_time(wall: float) -> str:
    """metav1.MicroTime: RFC 3339 in UTC with six digits."""
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def lease(name: str, node_uid: str, duration: float, wall: float, there: Json | None) -> Json:
    """The v1.Lease: a new one, or the server's with a fresh renewTime."""
    spec = dict((there or {}).get("spec") or {})
    spec |= {"holderIdentity": name, "leaseDurationSeconds": int(duration), "renewTime": micro_time(wall)}
    meta: Json = {"name": name, "namespace": "kube-node-lease"}
    if there is not None:
        known = there.get("metadata") or {}
        meta |= {part: known.get(part, "") for part in ("resourceVersion", "uid")}
    if node_uid:
        meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": node_uid}]
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}


def fresh(lease_there: Json, wall: float) -> bool:
    """Whether a lease was renewed within its own duration, by this box's clock, either way."""
    spec = lease_there.get("spec") or {}
    try:
        renewed = datetime.fromisoformat(str(spec.get("renewTime", ""))).timestamp()
    except ValueError:
        return False
    return abs(wall - renewed) < float(spec.get("leaseDurationSeconds") or 40)
