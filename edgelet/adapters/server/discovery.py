"""``/api``, ``/api/v1``, ``/apis``: which resources there are and what can be done with them.

Answered in the plain form; clients that would rather have the aggregated one fall back to it.
"""

from __future__ import annotations

from typing import Any

from . import statuses
from .base import Access, Refused

Json = dict[str, Any]

READ = ["get", "list", "watch"]
ALL = ["create", "delete", "get", "list", "patch", "update", "watch"]


def _resource(name: str, singular: str, kind: str, verbs: list[str], short: str = "", namespaced: bool = True) -> Json:
    found: Json = {"name": name, "singularName": singular, "namespaced": namespaced, "kind": kind, "verbs": verbs}
    return {**found, "shortNames": [short]} if short else found


CORE: list[Json] = [
    _resource("configmaps", "configmap", "ConfigMap", READ, "cm"),
    _resource("events", "event", "Event", READ, "ev"),
    _resource("namespaces", "namespace", "Namespace", READ, "ns", namespaced=False),
    _resource("nodes", "node", "Node", READ, "no", namespaced=False),
    {**_resource("pods", "pod", "Pod", ALL, "po"), "categories": ["all"]},
    _resource("pods/attach", "", "PodAttachOptions", ["create", "get"]),
    _resource("pods/exec", "", "PodExecOptions", ["create", "get"]),
    _resource("pods/log", "", "Pod", ["get"]),
    _resource("secrets", "secret", "Secret", READ),
]
"""v1.APIResource values, sorted by name."""

GROUPS: dict[str, tuple[str, list[Json]]] = {
    "authorization.k8s.io": (
        "v1",
        [_resource("selfsubjectaccessreviews", "selfsubjectaccessreview", "SelfSubjectAccessReview", ["create"],
                   namespaced=False)],
    ),
    "metrics.k8s.io": (
        "v1beta1",
        [
            _resource("nodes", "", "NodeMetrics", ["get", "list"], namespaced=False),
            _resource("pods", "", "PodMetrics", ["get", "list"]),
        ],
    ),
}  # fmt: skip
"""The named groups: version and resources. edgelet.io is the agent's own and has nothing kubectl can list."""


class Api(Access):
    """``/api``: the versions of the core group."""

    async def get(self) -> None:
        self.send({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})


class Core(Access):
    """``/api/v1``: the resources of the core group."""

    async def get(self) -> None:
        self.send({"kind": "APIResourceList", "groupVersion": "v1", "resources": CORE})


class Groups(Access):
    """``/apis``: the named groups."""

    async def get(self) -> None:
        self.send({"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name) for name in GROUPS]})


class Group(Access):
    """``/apis/GROUP`` and ``/apis/GROUP/VERSION``."""

    async def get(self, group: str, version: str | None = None) -> None:
        known, resources = GROUPS.get(group, ("", []))
        if not known or version not in (None, known):
            raise Refused(statuses.no_such_path())
        if not version:
            self.send({"kind": "APIGroup", "apiVersion": "v1", **_group(group)})
            return
        listed = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}"}
        self.send({**listed, "resources": resources})


def _group(name: str) -> Json:
    version = {"groupVersion": f"{name}/{GROUPS[name][0]}", "version": GROUPS[name][0]}
    return {"name": name, "versions": [version], "preferredVersion": version}
