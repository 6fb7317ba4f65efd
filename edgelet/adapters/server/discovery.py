"""``/api``, ``/api/v1``, ``/apis``: which resources there are and what can be done with them.

Both forms: one resource list per group version, and the aggregated one (apidiscovery.k8s.io/v2) for
clients that ask for it.
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

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class _Both(Access):
    """Answers in the aggregated form when that is asked for."""

    def _sent_aggregated(self, groups: list[tuple[str, str, list[Json]]]) -> bool:
        accept = self.request.headers.get("Accept", "").replace(" ", "")
        self.set_header("Vary", "Accept")
        if AGGREGATED not in accept:
            return False
        items = [_discovered(group, version, resources) for group, version, resources in groups]
        kind = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
        self.send({**kind, "items": items}, kind=AGGREGATED)
        return True


def _discovered(group: str, version: str, resources: list[Json]) -> Json:
    found = [
        {
            "resource": r["name"],
            "responseKind": {"group": group, "version": version, "kind": r["kind"]},
            "scope": "Namespaced" if r["namespaced"] else "Cluster",
            "singularResource": r["singularName"],
            "verbs": r["verbs"],
            **{key: r[key] for key in ("shortNames", "categories") if key in r},
            **_subresources(r["name"], group, version, resources),
        }
        for r in resources
        if "/" not in r["name"]
    ]
    listed = {"version": version, "resources": found, "freshness": "Current"}
    return {"metadata": {"name": group} if group else {}, "versions": [listed]}


def _subresources(name: str, group: str, version: str, resources: list[Json]) -> Json:
    below = [
        {
            "subresource": r["name"].partition("/")[2],
            "responseKind": {"group": group, "version": version, "kind": r["kind"]},
            "verbs": r["verbs"],
        }
        for r in resources
        if r["name"].startswith(f"{name}/")
    ]
    return {"subresources": below} if below else {}


class Api(_Both):
    """``/api``: the versions of the core group."""

    async def get(self) -> None:
        if self._sent_aggregated([("", "v1", CORE)]):
            return
        self.send({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})


class Core(Access):
    """``/api/v1``: the resources of the core group."""

    async def get(self) -> None:
        self.send({"kind": "APIResourceList", "groupVersion": "v1", "resources": CORE})


class Groups(_Both):
    """``/apis``: the named groups."""

    async def get(self) -> None:
        if self._sent_aggregated([(name, *about) for name, about in GROUPS.items()]):
            return
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
