"""How the server writes objects: what Go's zero values leave in the JSON, and who has written which field."""

from __future__ import annotations

from typing import Any

from edgelet.adapters.server.patches import MERGE_KEYS

from .store import now

Json = dict[str, Any]

_EVENT: Json = {
    "source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None, "reportingComponent": "",
    "reportingInstance": "",
}  # fmt: skip
_NODE_INFO = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
    "kubeProxyVersion", "operatingSystem", "architecture",
)  # fmt: skip
_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_OWN = frozenset(("uid", "resourceVersion", "creationTimestamp", "managedFields", "name", "namespace", "generation"))


def zero_values(item: Json) -> None:
    """Put in what is written though it is empty."""
    match item.get("kind"):
        case "Event":
            item |= {name: value for name, value in _EVENT.items() if item.get(name) is None}
        case "Node":
            status = item.setdefault("status", {})
            status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
            status["nodeInfo"] = dict.fromkeys(_NODE_INFO, "") | status.get("nodeInfo", {})
            status["conditions"] = [_times(c, "lastHeartbeatTime") for c in status.get("conditions", [])]
        case "Pod":
            status = item.setdefault("status", {})
            status["conditions"] = [_times(c, "lastProbeTime") for c in status.get("conditions", [])]
            for name in _STATUSES:
                for container in status.get(name, []):
                    container.setdefault("state", {})
                    container.setdefault("lastState", {})
    if "conditions" in item.get("status", {}) and not item["status"]["conditions"]:
        del item["status"]["conditions"]


def _times(condition: Json, name: str) -> Json:
    return {name: None, "lastTransitionTime": None} | condition


def managed(item: Json, manager: str, operation: str, sub: str) -> None:
    """Note that `manager` has written the object: one entry for each manager, as long as on a real server.

    Every field counts as written by whoever wrote last; tests look at the size of it at most.
    """
    metadata = item["metadata"]
    entries = [
        e for e in metadata.get("managedFields", []) if (e["manager"], e.get("subresource", "")) != (manager, sub)
    ]
    parts = ("status",) if sub else tuple(item.keys() - {"status", "kind", "apiVersion"})
    written = {k: v for k, v in item.items() if k in parts}
    written["metadata"] = {k: v for k, v in metadata.items() if k not in _OWN} if not sub else {}
    entry = {
        "manager": manager, "operation": operation, "apiVersion": item.get("apiVersion", "v1"), "time": now(),
        "fieldsType": "FieldsV1", "fieldsV1": _fields(written), **({"subresource": sub} if sub else {}),
    }  # fmt: skip
    metadata["managedFields"] = [*entries, entry]


def _fields(value: Json) -> Json:
    found: Json = {}
    for name, inner in value.items():
        if isinstance(inner, dict) and inner:
            found[f"f:{name}"] = _fields(inner)
        elif isinstance(inner, list) and name in MERGE_KEYS:
            key = MERGE_KEYS[name]
            found[f"f:{name}"] = {f'k:{{"{key}":"{i.get(key)}"}}': {".": {}} | _fields(i) for i in inner}
        elif inner not in ({}, []):
            found[f"f:{name}"] = {}
    return found
