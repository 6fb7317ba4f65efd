"""``/openapi/v3``: what kubectl explain and client-side validation read, made from the field table (pure).

Only what is served is described.  Nothing is kept: the document is made when it is asked for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from ... import __version__
from ...model import fields
from ...model.fields import Field
from . import patches, statuses
from .base import Access, Refused

Json = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_CORE = "io.k8s.api.core.v1"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_OF_META = frozenset(
    ("ObjectMeta", "OwnerReference", "ManagedFieldsEntry", "LabelSelector", "LabelSelectorRequirement", "ListMeta")
)
_SCALARS: dict[str, Json] = {
    "str": {"type": "string"},
    "text": {"type": "string"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "any": {"type": "object"},
    "Time": {"type": "string", "format": "date-time"},
    "Quantity": {"$ref": f"#/components/schemas/{_QUANTITY}"},
    "IntOrString": {"$ref": f"#/components/schemas/{_INT_OR_STRING}"},
}
_VERDICTS = {
    fields.HONOURED: "",
    fields.WARNED: "Accepted with a warning by edgelet: ",
    fields.REFUSED: "Refused by edgelet: ",
    fields.IDLE: "Nothing to do for edgelet: ",
    fields.INHERITED: "",
}
_ROOTS = ("Pod",)


class Index(Access):
    """``/openapi/v3``: which documents there are."""

    async def get(self) -> None:
        where = {"api/v1": {"serverRelativeURL": f"/openapi/v3/api/v1?hash={__version__}"}}
        self.send({"paths": where})


class Document(Access):
    """``/openapi/v3/api/v1``."""

    async def get(self) -> None:
        accept = self.request.headers.get("Accept", "")
        if "json" not in accept and "*/*" not in accept and accept:
            raise Refused(statuses.failure(406, "the document is served as application/json"))
        text = await asyncio.to_thread(lambda: json.dumps(document(), separators=(",", ":")))
        self.set_header("Content-Type", "application/json")
        self.finish(text)


def document() -> Json:
    """The OpenAPI 3.0 document of the core group."""
    return {
        "openapi": "3.0.0",
        "info": {"title": "edgelet", "version": __version__},
        "paths": dict(_paths()),
        "components": {"schemas": _schemas()},
    }


def _schemas() -> Json:
    table, queue = fields.table(), list(_ROOTS)
    found: Json = {
        _QUANTITY: {"type": "string", "description": "A number with a unit, such as 100m, 64Mi or 1.5."},
        _INT_OR_STRING: {"type": "string", "format": "int-or-string"},
    }
    while queue:
        name = queue.pop()
        full = _full(name)
        if full in found or name not in table:
            continue
        rows = table[name].values()
        found[full] = _schema(name, rows)
        queue += [row.type for row in rows if row.type not in fields.SCALARS]
    found |= dict(_other_kinds())
    return found


def _schema(name: str, rows: Iterable[Field]) -> Json:
    body: Json = {
        "type": "object",
        "description": f"{name} of a pod.",
        "properties": {r.name: _property(r) for r in rows},
    }
    required = [r.name for r in rows if r.required]
    if required:
        body["required"] = required
    if name == "Pod":
        body["description"] = "Pod is a group of containers that run together on this box."
        body["x-kubernetes-group-version-kind"] = [{"group": "", "kind": "Pod", "version": "v1"}]
    return body


def _property(field: Field) -> Json:
    inner = _SCALARS.get(field.type) or {"$ref": f"#/components/schemas/{_full(field.type)}"}
    text = f"{_VERDICTS[field.verdict]}{field.text}"
    match field.shape:
        case "list":
            found: Json = {"type": "array", "items": inner}
            if field.name in patches.MERGE_KEYS:
                found["x-kubernetes-patch-strategy"] = "merge"
                found["x-kubernetes-patch-merge-key"] = patches.MERGE_KEYS[field.name]
        case "map":
            found = {"type": "object", "additionalProperties": inner}
        case _:
            found = {"allOf": [inner]} if "$ref" in inner else dict(inner)
    if text:
        found["description"] = text
    if field.values and not field.shape:
        found["enum"] = list(field.values)
    return found


def _full(name: str) -> str:
    return f"{_META}.{name}" if name in _OF_META else f"{_CORE}.{name}"


def _other_kinds() -> Iterable[tuple[str, Json]]:
    """Kinds that are only read: their fields are not written by anybody."""
    for kind in ("Node", "Namespace", "Event", "ConfigMap", "Secret"):
        yield (
            _full(kind),
            {
                "type": "object",
                "description": f"{kind}, read-only on this box.",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"allOf": [{"$ref": f"#/components/schemas/{_META}.ObjectMeta"}]},
                },
                "x-kubernetes-group-version-kind": [{"group": "", "kind": kind, "version": "v1"}],
            },
        )


def _paths() -> Iterable[tuple[str, Json]]:
    one = "/api/v1/namespaces/{namespace}/pods/{name}"
    yield "/api/v1/pods", _operations("Pod", ("get",), _LIST)
    yield "/api/v1/namespaces/{namespace}/pods", _operations("Pod", ("get", "post"), _LIST, "namespace")
    yield one, _operations("Pod", ("get", "put", "patch", "delete"), (), "namespace", "name")
    yield f"{one}/log", _operations("Pod", ("get",), _LOG, "namespace", "name")
    for kind, plural in (("Node", "nodes"), ("Namespace", "namespaces")):
        yield f"/api/v1/{plural}", _operations(kind, ("get",), _LIST)
        yield f"/api/v1/{plural}/{{name}}", _operations(kind, ("get",), (), "name")
    for kind, plural in (("Event", "events"), ("ConfigMap", "configmaps"), ("Secret", "secrets")):
        within = f"/api/v1/namespaces/{{namespace}}/{plural}"
        yield f"/api/v1/{plural}", _operations(kind, ("get",), _LIST)
        yield within, _operations(kind, ("get",), _LIST, "namespace")
        yield f"{within}/{{name}}", _operations(kind, ("get",), (), "namespace", "name")


_LIST = ("labelSelector", "fieldSelector", "limit", "continue", "watch", "resourceVersion", "timeoutSeconds")
_LOG = ("container", "previous", "tailLines", "sinceSeconds", "sinceTime", "timestamps", "limitBytes")
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_NUMBERS = frozenset(("limit", "timeoutSeconds", "tailLines", "sinceSeconds", "limitBytes"))
_FLAGS = frozenset(("watch", "previous", "timestamps"))
_BODIES = {
    "post": ("application/json", "application/yaml"),
    "put": ("application/json", "application/yaml"),
    "patch": (
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ),
}


def _operations(kind: str, methods: tuple[str, ...], queries: tuple[str, ...], *places: str) -> Json:
    found: Json = {"parameters": [{"name": p, "in": "path", "required": True, **_TEXT} for p in places]}
    for method in methods:
        found[method] = _operation(kind, method, queries if method == "get" else _WRITE)
    return found


_TEXT = {"schema": {"type": "string"}}


def _operation(kind: str, method: str, queries: tuple[str, ...]) -> Json:
    answer = {"description": "OK", "content": {"application/json": {"schema": {"type": "object"}}}}
    found: Json = {
        "parameters": [_query(name) for name in queries],
        "responses": {"200": answer, "default": answer},
        "x-kubernetes-group-version-kind": {"group": "", "kind": kind, "version": "v1"},
    }
    if method in _BODIES:
        schema = {"$ref": f"#/components/schemas/{_full(kind)}"} if method != "patch" else {}
        found["requestBody"] = {"content": {kind_: {"schema": schema} for kind_ in _BODIES[method]}}
    return found


def _query(name: str) -> Json:
    if name in _NUMBERS:
        return {"name": name, "in": "query", "schema": {"type": "integer"}}
    return {"name": name, "in": "query", "schema": {"type": "boolean" if name in _FLAGS else "string"}}
