"""OpenAPI documents to fuzz the server by: its own, and one of everything that it routes."""

from __future__ import annotations

import re
from typing import Any, cast

from edgelet.adapters.server import api, base, doors, openapi
from edgelet.adapters.server.contracts import Services
from edgelet.adapters.server.hub import Hub

Json = dict[str, Any]

NOTHING = cast(Any, None)
METHODS = ("get", "post", "put", "patch", "delete")
QUERIES = (
    "labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "includeObject", "dryRun", "strict",
    "fieldManager", "fieldValidation", "gracePeriodSeconds", "container", "previous", "tailLines", "tail",
    "sinceSeconds", "sinceTime", "timestamps", "limitBytes", "stream", "command", "stdin", "tty", "input", "output",
    "verbose", "only_cpu_and_memory",
)  # fmt: skip
"""All that any handler reads, but for what makes an answer go on for ever (watch, follow)."""
BODIES = (
    "application/json",
    "application/yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
PLACES = {"namespace": ["default", "other"], "name": ["web-edge1", "edge1", "x"], "container": ["c", "none"]}


def own() -> Json:
    """What the server says of itself."""
    return openapi.document()


def routed() -> Json:
    """Every route with every method that its handler has."""
    paths: Json = {}
    for rule in api.routes(cast(Services, NOTHING), cast(Hub, NOTHING), cast(doors.Door, NOTHING)):
        pattern = cast(Any, rule.matcher).regex.pattern
        path, parameters = _path(pattern)
        methods = [m for m in METHODS if getattr(rule.target, m) is not getattr(base.Access, m)]
        paths[path] = {"parameters": parameters, **{m: _operation(m) for m in methods}}
    return {"openapi": "3.0.0", "info": {"title": "all routes", "version": "1"}, "paths": paths}


def _operation(method: str) -> Json:
    queries = [{"name": q, "in": "query", "schema": {"type": "string"}} for q in QUERIES]
    found: Json = {"parameters": queries, "responses": {"default": {"description": "anything"}}}
    if method in ("post", "put", "patch"):
        found["requestBody"] = {"content": {kind: {"schema": {}} for kind in BODIES}}
    return found


def _path(pattern: str) -> tuple[str, list[Json]]:
    """A route's regular expression as a path with parameters: optional parts are there, of several words the first."""
    path = pattern.removesuffix("$").replace("/?", "").replace("(?:/[^/]+)?", "").replace("(?:/.*)?", "/x")
    path = re.sub(r"\(\?:(/\(\?P<\w+>[^()]+\))\)\?", r"\1", path)
    path = re.sub(r"\(\?:([\w|]+)\)", lambda found: found[1].split("|")[0], path)
    parameters = []
    for name, allowed in re.findall(r"\(\?P<(\w+)>([^()]+)\)", path):
        words = allowed.split("|") if re.fullmatch(r"[\w|]+", allowed) else []
        schema: Json = {"type": "string", **({"enum": words} if words else {"example": PLACES.get(name, ["x"])[0]})}
        parameters.append({"name": name, "in": "path", "required": True, "schema": schema})
    return re.sub(r"\(\?P<(\w+)>[^()]+\)", r"{\1}", path).replace("\\", ""), parameters
