"""``/api``, ``/api/v1``, ``/apis``: which resources there are and what can be done with them.

Answered in the plain form; clients that would rather have the aggregated one fall back to it.
"""

from __future__ import annotations

from typing import Any

from .base import Access

Json = dict[str, Any]

READ = ["get", "list", "watch"]

RESOURCES: list[Json] = [
    {
        "name": "events",
        "singularName": "event",
        "namespaced": True,
        "kind": "Event",
        "verbs": READ,
        "shortNames": ["ev"],
    },
    {
        "name": "pods",
        "singularName": "pod",
        "namespaced": True,
        "kind": "Pod",
        "verbs": READ,
        "shortNames": ["po"],
        "categories": ["all"],
    },
    {"name": "pods/exec", "singularName": "", "namespaced": True, "kind": "PodExecOptions", "verbs": ["create", "get"]},
    {"name": "pods/log", "singularName": "", "namespaced": True, "kind": "Pod", "verbs": ["get"]},
]
"""v1.APIResource values, sorted by name."""


class Api(Access):
    """``/api``: the versions of the core group."""

    async def get(self) -> None:
        self.send({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})


class Core(Access):
    """``/api/v1``: the resources of the core group."""

    async def get(self) -> None:
        self.send({"kind": "APIResourceList", "groupVersion": "v1", "resources": RESOURCES})


class Groups(Access):
    """``/apis``: the named groups; edgelet.io is the agent's own and has nothing that kubectl can list."""

    async def get(self) -> None:
        self.send({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})
