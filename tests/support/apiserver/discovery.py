"""What kubectl asks first: which groups, versions and resources there are; and paths that are no resources."""

from __future__ import annotations

from typing import Any

from .kinds import RESOURCES, Resource

Json = dict[str, Any]
VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.2", "platform": "linux/amd64"}
_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
_SHORT = {"pods": ["po"], "nodes": ["no"], "events": ["ev"], "namespaces": ["ns"]}


def plain(path: str) -> Json | None:
    """The document at a path, None if there is none."""
    parts = path.strip("/").split("/")
    match parts:
        case ["version"]:
            return VERSION
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        case ["apis"]:
            groups = sorted({r.group for r in RESOURCES.values() if r.group})
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(g) for g in groups]}
        case ["api", "v1"]:
            return _resources("", "v1")
        case ["apis", group, "v1"] if any(r.group == group for r in RESOURCES.values()):
            return _resources(group, f"{group}/v1")
    return None


def _group(name: str) -> Json:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _resources(group: str, version: str) -> Json:
    found = [_one(r) for r in RESOURCES.values() if r.group == group]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": found}


def _one(resource: Resource) -> Json:
    return {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _VERBS,
        "shortNames": _SHORT.get(resource.plural, []),
    }
