"""Takes out of a pod's spec what an API server refuses in a mirror pod, and says what that was. Pure.

The server's rules for mirrors (NodeRestriction, ServiceAccount and Priority admission) forbid all that
refers to other API objects; on this box those objects are local, and their data never leaves it.
"""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]

VOLUMES = frozenset(("configMap", "secret", "persistentVolumeClaim", "ephemeral", "csi"))
"""Volume sources that are refused."""
PROJECTED = frozenset(("serviceAccountToken", "configMap", "secret", "clusterTrustBundle", "podCertificate"))
"""Sources inside a projected volume that are refused."""
ENV = frozenset(("configMapKeyRef", "secretKeyRef"))
FIELDS = (
    "serviceAccountName",
    "serviceAccount",
    "imagePullSecrets",
    "resourceClaims",
    "runtimeClassName",
    "overhead",
    "preemptionPolicy",
    "priority",
    "schedulingGates",
    "ephemeralContainers",
)
"""Fields of the spec that are refused, or that only mean something with an object that is refused."""
CLASSES = frozenset(("system-node-critical", "system-cluster-critical"))
"""Priority classes that every server has."""
LISTS = ("initContainers", "containers")


def parse(document: str) -> Json:
    """The defaulted manifest as an object of its own."""
    found: Json = json.loads(document)
    return found


def acceptable(spec: Json) -> tuple[Json, tuple[str, ...]]:
    """The spec without what is refused, and the paths of all that was taken out, with the reason in brackets."""
    out: list[str] = []
    result = {name: value for name, value in spec.items() if name not in FIELDS and name != "priorityClassName"}
    out += [f"spec.{name}" for name in FIELDS if spec.get(name)]
    if spec.get("priorityClassName") in CLASSES:
        result["priorityClassName"] = spec["priorityClassName"]
    elif spec.get("priorityClassName"):
        out.append("spec.priorityClassName")
    lost: set[str] = set()
    if spec.get("volumes"):
        result["volumes"] = [v for v in (_volume(v, out, lost) for v in spec["volumes"]) if v is not None]
    for name in LISTS:
        if spec.get(name):
            result[name] = [_container(c, f"spec.{name}[{c.get('name', '')}]", out, lost) for c in spec[name]]
    return {k: v for k, v in result.items() if v not in ([], None)}, tuple(out)


def _volume(volume: Json, out: list[str], lost: set[str]) -> Json | None:
    name = str(volume.get("name", ""))
    refused = next((kind for kind in volume if kind in VOLUMES), "")
    if refused:
        out.append(f"spec.volumes[{name}] ({refused})")
        lost.add(name)
        return None
    if not isinstance(volume.get("projected"), dict):
        return volume
    projected: Json = volume["projected"]
    sources = projected.get("sources") or []
    kept = [s for s in sources if not PROJECTED & s.keys()]
    if len(kept) == len(sources):
        return volume
    out.append(
        f"spec.volumes[{name}] (projected {', '.join(sorted({k for s in sources for k in PROJECTED & s.keys()}))})"
    )
    if not kept:
        lost.add(name)
        return None
    return {**volume, "projected": {**projected, "sources": kept}}


def _container(container: Json, path: str, out: list[str], lost: set[str]) -> Json:
    result = dict(container)
    for name in ("volumeMounts", "volumeDevices"):
        if container.get(name):
            result[name] = [m for m in container[name] if m.get("name") not in lost]
    if container.get("env"):
        result["env"] = [e for e in container["env"] if not _refers(e, path, out)]
    if container.get("envFrom"):
        out.append(f"{path}.envFrom")
        del result["envFrom"]
    claims = (container.get("resources") or {}).get("claims")
    if claims:
        out.append(f"{path}.resources.claims")
        result["resources"] = {k: v for k, v in container["resources"].items() if k != "claims"}
    return {k: v for k, v in result.items() if v not in ([], None)}


def _refers(variable: Json, path: str, out: list[str]) -> bool:
    kinds = ENV & (variable.get("valueFrom") or {}).keys()
    if kinds:
        out.append(f"{path}.env[{variable.get('name', '')}] ({', '.join(sorted(kinds))})")
    return bool(kinds)
