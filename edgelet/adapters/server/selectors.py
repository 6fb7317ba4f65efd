"""Label and field selectors of list and watch requests (pure): text -> predicate over an object's JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .params import BadRequest

Json = dict[str, Any]
Match = Callable[[Json], bool]

_SET = re.compile(r"^(?P<key>\S+)\s+(?P<op>in|notin)\s+\((?P<values>[^()]*)\)$")
_EQUAL = re.compile(r"^(?P<key>[^=!\s]+)\s*(?P<op>==|=|!=)\s*(?P<value>[^=!]*)$")
_EXISTS = re.compile(r"^(?P<no>!?)\s*(?P<key>[A-Za-z0-9._/-]+)$")
_COMMA = re.compile(r",(?![^(]*\))")

FIELDS = {
    "pods": (
        "metadata.name",
        "metadata.namespace",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
    ),
    "nodes": ("metadata.name", "spec.unschedulable"),
    "namespaces": ("metadata.name", "status.phase"),
    "configmaps": ("metadata.name", "metadata.namespace"),
    "secrets": ("metadata.name", "metadata.namespace", "type"),
    "events": (
        "metadata.name",
        "metadata.namespace",
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.fieldPath",
        "reason",
        "source",
        "type",
    ),
}


def labels(text: str) -> Match:
    """A labelSelector. Raises BadRequest."""
    terms = [_label_term(term.strip()) for term in _COMMA.split(text)] if text.strip() else []
    return lambda item: all(term(item["metadata"].get("labels") or {}) for term in terms)


def fields(text: str, resource: str) -> Match:
    """A fieldSelector over the fields that the API server offers for `resource`. Raises BadRequest."""
    terms = [_field_term(term.strip(), resource) for term in text.split(",")] if text.strip() else []
    return lambda item: all(term(item) for term in terms)


def _label_term(term: str) -> Match:
    if found := _SET.match(term):
        values = {value.strip() for value in found["values"].split(",")}
        key, among = found["key"], found["op"] == "in"
        return lambda have: (have.get(key) in values) if among else (have.get(key) not in values)
    if found := _EQUAL.match(term):
        key, value, same = found["key"], found["value"].strip(), found["op"] != "!="
        return lambda have: (have.get(key) == value) is same
    if found := _EXISTS.match(term):
        key, wanted = found["key"], not found["no"]
        return lambda have: (key in have) is wanted
    raise BadRequest(f'unable to parse requirement: "{term}" is not a label selector')


def _field_term(term: str, resource: str) -> Match:
    found = _EQUAL.match(term)
    if not found:
        raise BadRequest(f"invalid selector: '{term}'; can't understand '{term}'")
    path, value, same = found["key"], found["value"].strip(), found["op"] != "!="
    if path not in FIELDS[resource]:
        raise BadRequest(f"field label not supported: {path} (of {resource}: {', '.join(FIELDS[resource])})")
    return lambda item: (_field(item, path) == value) is same


def _field(item: Json, path: str) -> str:
    value: Any = item
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, dict):
        value = value.get("component")  # source=kubelet
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
