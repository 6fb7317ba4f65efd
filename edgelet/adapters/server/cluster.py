"""Nodes, namespaces, configmaps and secrets: what a cluster has and a box has one of, or few.

Namespaces are those that pods are in; none has to be made.  None of these has a journal: a watch looks
again every few seconds and tells what has changed.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterable
from typing import Any, ClassVar

from ... import __version__
from ...core import render_node
from ...engine import journal
from ...model.objects import LocalObject
from . import objects, statuses, tables
from .base import Refused
from .peers import Role
from .resources import Feed, Item

Json = dict[str, Any]

ALWAYS = ("default",)
"""Namespaces that are there though no pod is in them."""

HIDDEN = "edgelet.io/hidden"
"""Annotation of a ConfigMap or Secret whose data is not shown to this caller."""


class Still(Feed):
    """A resource whose objects come from one look, and change without a record."""

    def bodies(self) -> Iterable[Json]:
        """All objects now."""
        raise NotImplementedError

    def snapshot(self) -> tuple[int, Iterable[Json]]:
        bodies = list(self.bodies())
        self._told = {body["metadata"]["uid"]: body for body in bodies}
        return self.services.store.list()[0], bodies

    where: ClassVar[str] = "they are what this box is"
    """What to do instead of writing one."""
    look_seconds: ClassVar[float] = 5.0
    _told: dict[str, Json] | None = None
    _looked = 0.0

    def changes(self, version: int) -> list[Item]:
        """What is other than at the last look of this watch; no more than one look a second."""
        now = self.services.clock.monotonic()
        if self._told is not None and now - self._looked < 1.0:
            return []
        version, bodies = self.services.store.list()[0], list(self.bodies())
        before, self._told, self._looked = self._told, {b["metadata"]["uid"]: b for b in bodies}, now
        return list(_differences(before, self._told, version)) if before is not None else []

    async def get(self, namespace: str = "", name: str = "") -> None:
        if not name:
            await self.answer(namespace)
            return
        version, items = self.snapshot()
        for item in items:
            meta = item["metadata"]
            if meta["name"] == name and meta.get("namespace", "") == namespace:
                self.send(self.render_table([item], str(version)) if self.as_table() else item)
                return
        raise Refused(statuses.not_found(self.resource, name))

    async def post(self, **_place: str) -> None:
        """Nor put, patch, delete: refused, with what to do instead."""
        raise Refused(statuses.not_written(self.resource, self.where))

    put = patch = delete = post

    def meta(self, name: str, created: float, namespace: str = "", **more: Any) -> Json:
        """Metadata that stay the same from look to look."""
        version = str(self.services.store.list()[0])
        place = f"{namespace}/{name}" if namespace else name
        unique = str(uuid.uuid5(uuid.NAMESPACE_URL, f"edgelet/{self.services.node_name}/{self.resource}/{place}"))
        born = objects.timestamp(created)
        inside = {"namespace": namespace} if namespace else {}
        return {"name": name, **inside, "uid": unique, "resourceVersion": version, "creationTimestamp": born, **more}


def _differences(before: dict[str, Json], now: dict[str, Json], version: int) -> Iterable[Item]:
    """What makes one look out of the other; only the time of a look is no difference."""
    for uid in before.keys() | now.keys():
        old, new = before.get(uid), now.get(uid)
        if new is None and old is not None:
            yield Item(journal.ChangeKind.DELETED, version, old, old)
        elif new is not None and (old is None or _lasting(old) != _lasting(new)):
            yield Item(journal.ChangeKind.MODIFIED if old else journal.ChangeKind.ADDED, version, new, old)


def _lasting(body: Json) -> Json:
    meta = {name: value for name, value in body["metadata"].items() if name != "resourceVersion"}
    status = body.get("status", {})
    conditions = [{**c, "lastHeartbeatTime": None} for c in status.get("conditions", ())]
    return {**body, "metadata": meta, "status": {**status, "conditions": conditions}}


class Namespaces(Still):
    """``/api/v1/namespaces[/NAME]``."""

    resource = "namespaces"
    list_kind = "NamespaceList"
    where = "a namespace is there as long as a pod is in it; none has to be made or deleted"
    table = tables.namespaces

    def bodies(self) -> Iterable[Json]:
        _, entries = self.services.store.list()
        born = self.services.node().created
        of_objects = (one.namespace for one in self.services.objects())
        for name in sorted({*ALWAYS, *(e.pod.namespace for e in entries), *of_objects}):
            labels = {"kubernetes.io/metadata.name": name}
            yield {
                "kind": "Namespace",
                "apiVersion": "v1",
                "metadata": self.meta(name, born, labels=labels),
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            }


class Nodes(Still):
    """``/api/v1/nodes[/NAME]``: this one."""

    resource = "nodes"
    list_kind = "NodeList"
    where = "the node is this box; `edgelet stop POD` keeps single pods stopped"
    table = tables.nodes

    def bodies(self) -> Iterable[Json]:
        facts = self.services.node()
        labels = render_node.labels(facts)
        port = self.services.secure.port if self.services.secure else 0
        status = render_node.status(facts, self.services.clock.time(), self._started(), port, __version__)
        meta = self.meta(facts.name, facts.created, labels=labels)
        return [{"kind": "Node", "apiVersion": "v1", "metadata": meta, "spec": {}, "status": status}]

    def _started(self) -> float:
        return self.services.control.report().started_at


class ConfigMaps(Still):
    """``/api/v1/[namespaces/NS/]configmaps[/NAME]``: those that stand beside pods in manifests."""

    resource = "configmaps"
    list_kind = "ConfigMapList"
    where = "put them into the manifest beside the pods that need them"
    table = tables.data

    def bodies(self) -> Iterable[Json]:
        kind, born = self.list_kind.removesuffix("List"), self.services.node().created
        shown = self.user.role is Role.ADMIN
        for one in self.services.objects():
            if one.kind == kind:
                meta = self.meta(one.name, born, one.namespace, **({"labels": dict(one.labels)} if one.labels else {}))
                yield local_object(one, meta, shown)


class Secrets(ConfigMaps):
    """``/api/v1/[namespaces/NS/]secrets[/NAME]``."""

    resource = "secrets"
    list_kind = "SecretList"
    table = tables.secrets


def local_object(one: LocalObject, meta: Json, shown: bool) -> Json:
    """The v1.ConfigMap or v1.Secret; without `shown` its keys only, and a note that there is more."""
    body: Json = {"kind": one.kind, "apiVersion": "v1", "metadata": meta}
    if not shown:
        meta["annotations"] = {HIDDEN: "only the role admin sees the data"}
        body["data"] = dict.fromkeys(sorted(one.data), None if one.kind == "Secret" else "")
    elif one.kind == "Secret":
        body["data"] = {key: _base64(value) for key, value in sorted(one.data.items())}
    else:
        texts = {key: objects.utf8(value) for key, value in sorted(one.data.items())}
        body["data"] = {key: text for key, text in texts.items() if text is not None}
        binary = {key: _base64(one.data[key]) for key, text in texts.items() if text is None}
        body |= {"binaryData": binary} if binary else {}
    return body | ({"type": one.type or "Opaque"} if one.kind == "Secret" else {})


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
