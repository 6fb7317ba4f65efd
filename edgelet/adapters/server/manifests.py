"""Manifests that come in by the API: what is taken from a body, and how mistakes in it are answered (pure)."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from ...model import decode, yaml_reader
from ...model.problems import Problem
from . import objects, statuses
from .params import BadRequest

Json = dict[str, Any]

_SERVER_METADATA = frozenset(
    (
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "managedFields",
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    )
)
_SERVER_NOTES = frozenset(
    (objects.CONFIG_HASH, objects.CONFIG_SOURCE, objects.SUMMARY, objects.SHORT_NAME, objects.HELD)
)
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Those that the API server makes names of (k8s.io/apimachinery rand.String)."""

WARNING_CHARACTERS = 1000


def document(body: bytes) -> Json:
    """The one object in a body, JSON or YAML. Raises BadRequest."""
    try:
        nodes, broken = decode.read_documents(body)
    except yaml_reader.ReadError as error:
        raise BadRequest(f"cannot read the body: {error.message}") from error
    if broken:
        raise BadRequest(f"cannot read the body: {broken[0][1].message}")
    found = [node.plain() for node in nodes if node is not None]
    if len(found) != 1 or not isinstance(found[0], dict):
        raise BadRequest("the body must hold one object")
    return found[0]


def metadata(tree: Json) -> Json:
    """The metadata of an object, {} where there is none. Raises BadRequest."""
    found = tree.get("metadata") or {}
    if not isinstance(found, dict):
        raise BadRequest("metadata must be a mapping")
    return found


def named(tree: Json, namespace: str, name: str = "") -> Json:
    """The manifest of a pod for this namespace (and name). Raises BadRequest when it is about another one."""
    kind, version = tree.get("kind") or "Pod", tree.get("apiVersion") or "v1"
    if (kind, version) != ("Pod", "v1"):
        raise BadRequest(f"the object provided is a {version} {kind}, and this is the place of v1 Pod")
    meta = metadata(tree)
    given = meta.get("namespace") or namespace
    if given != namespace:
        raise BadRequest(
            f"the namespace of the provided object does not match the namespace sent on the request ({given})"
        )
    if name and (meta.get("name") or name) != name:
        raise BadRequest(f"the name of the object ({meta['name']}) does not match the name on the URL ({name})")
    prefix = meta.get("generateName")
    if not meta.get("name") and not name and isinstance(prefix, str) and prefix:
        name = prefix + "".join(random.choices(_SUFFIX_LETTERS, k=5))
    return clean({**tree, "kind": kind, "apiVersion": version, "metadata": {**meta, **_place(meta, namespace, name)}})


def _place(meta: Json, namespace: str, name: str) -> Json:
    own = {"namespace": namespace}
    return {**own, "name": name} if name and not meta.get("name") else own


def clean(tree: Json) -> Json:
    """The manifest without what only the server says: two looks at one pod must not be two manifests."""
    meta = {k: v for k, v in metadata(tree).items() if k not in _SERVER_METADATA and k != "generateName"}
    notes = meta.get("annotations")
    if isinstance(notes, dict):
        meta["annotations"] = {k: v for k, v in notes.items() if k not in _SERVER_NOTES}
        if not meta["annotations"]:
            del meta["annotations"]
    return {**{k: v for k, v in tree.items() if k != "status"}, "metadata": meta}


def invalid(name: str, problems: Iterable[Problem]) -> Json:
    """The v1.Status for a manifest that cannot become a pod."""
    wrong = [p for p in problems if not p.warning] or [Problem("it is not valid")]
    if not any(p.path for p in wrong):
        return statuses.failure(400, f'Pod in version "v1" cannot be handled as a Pod: {wrong[0].message}')
    causes = [{"reason": "FieldValueInvalid", "message": p.message, "field": p.path} for p in wrong]
    texts = [f"{p.path}: {p.message}" if p.path else p.message for p in wrong]
    said = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = {"name": name, "kind": "Pod", "causes": causes}
    return statuses.failure(422, f'Pod "{name}" is invalid: {said}', details=details)


def strict(problems: Iterable[Problem]) -> Json | None:
    """The refusal of fieldValidation=Strict, None when every field is one."""
    unknown = ", ".join(_unknown(p) for p in problems if p.unknown)
    if not unknown:
        return None
    return statuses.failure(400, f'Pod in version "v1" cannot be handled as a Pod: strict decoding error: {unknown}')


def warnings(problems: Iterable[Problem], validation: str) -> list[str]:
    """Values for Warning headers (RFC 7234, 5.5); unknown fields are left out by fieldValidation=Ignore."""
    told = [p for p in problems if p.warning and not (p.unknown and validation == "Ignore")]
    return [f'299 - "{_quoted(_unknown(p) if p.unknown else _sentence(p))}"' for p in told]


def _unknown(problem: Problem) -> str:
    if problem.message.startswith("is written twice"):
        return f'duplicate field "{problem.path}"'
    hint = problem.message.partition("; ")[2]
    more = "" if not hint or hint == "it is ignored" else f"; {hint}"
    return f'unknown field "{problem.path}"{more}'


def _sentence(problem: Problem) -> str:
    return f"{problem.path}: {problem.message}" if problem.path else problem.message


def _quoted(text: str) -> str:
    plain = "".join(c if c.isprintable() and c.isascii() else "?" for c in text[:WARNING_CHARACTERS])
    return plain.replace("\\", "\\\\").replace('"', '\\"')
