"""``POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews``: what `kubectl auth can-i` asks.

kubectl sends it as protobuf: four letters, then runtime.Unknown around the message; only the few
strings that matter are read (k8s.io/api/authorization/v1/generated.proto).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from . import statuses
from .base import Access, Refused
from .params import BadRequest
from .peers import Role

Json = dict[str, Any]

MAGIC = b"k8s\x00"
READING = frozenset(("get", "list", "watch"))
_ATTRIBUTES = {1: "namespace", 2: "verb", 3: "group", 4: "version", 5: "resource", 6: "subresource", 7: "name"}
_PATHS = {1: "path", 2: "verb"}


class SelfReview(Access):
    """Anyone who is known may ask what he may do."""

    resource = "selfsubjectaccessreviews"

    def verb(self) -> str:
        return "get"

    async def post(self) -> None:
        body = self.request.body
        spec = _from_protobuf(body) if body.startswith(MAGIC) else _from_json(body)
        asked = spec.get("resourceAttributes") or spec.get("nonResourceAttributes") or {}
        if not isinstance(asked, dict):
            raise BadRequest("the attributes must be a mapping")
        status: Json = {"allowed": allowed(self.user.role, asked)}
        if not status["allowed"]:
            status["reason"] = f"the role {self.user.role.value} may not do that"
        version = "authorization.k8s.io/v1"
        self.send(
            {
                "kind": "SelfSubjectAccessReview",
                "apiVersion": version,
                "metadata": {},
                "spec": spec,
                "status": status,
            },
            201,
        )


def allowed(role: Role, asked: Json) -> bool:
    """Whether that role may do what the attributes say. Files' pods are read-only all the same."""
    if role is Role.ADMIN:
        return True
    secret = asked.get("resource") == "secrets"
    running = asked.get("subresource") in ("exec", "attach", "portforward")
    return role is Role.VIEW and str(asked.get("verb", "")).lower() in READING and not (secret or running)


def _from_json(body: bytes) -> Json:
    try:
        spec = json.loads(body)["spec"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadRequest("cannot read the review: it must have a spec") from error
    if not isinstance(spec, dict):
        raise BadRequest("cannot read the review: its spec must be a mapping")
    return spec


def _from_protobuf(body: bytes) -> Json:
    try:
        unknown = dict(_fields(body[len(MAGIC) :]))
        spec = dict(_fields(dict(_fields(unknown[2]))[2]))
        for number, name, known in ((1, "resourceAttributes", _ATTRIBUTES), (2, "nonResourceAttributes", _PATHS)):
            if number in spec:
                given = dict(_fields(spec[number]))
                return {name: {known[n]: v.decode() for n, v in given.items() if n in known and v}}
    except (KeyError, IndexError, UnicodeDecodeError) as error:
        raise Refused(statuses.failure(415, "cannot read the review; send it as application/json")) from error
    return {}


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The length-delimited fields of a message; numbers are skipped. Raises IndexError where it is cut."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag & 7 == 0:
            _, at = _varint(data, at)
        elif tag & 7 == 2:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise IndexError("cut")
            yield tag >> 3, data[at : at + length]
            at += length
        else:
            raise IndexError("no type of field that is used here")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise IndexError("too long")
