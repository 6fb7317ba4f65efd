"""The field table: complete, in agreement with the API's own description, and documented."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgelet.model import advice, check, fields, fields_doc

ROOT = Path(__file__).parents[2]
OPENAPI = ROOT.parent / "shared" / "data" / "openapi" / "api__v1_openapi.json"
KINDS = ("Pod", "ConfigMap", "Secret", "PersistentVolumeClaim")
PLAIN = {
    ("integer", "int32"): "int32",
    ("integer", "int64"): "int64",
    ("boolean", ""): "bool",
    ("string", "byte"): "bytes",
}


def short(reference: str) -> str:
    return reference.rsplit(".", 1)[-1]


def inner_type(schema: dict[str, Any]) -> str:
    """The type of one value, in the table's words."""
    if "allOf" in schema:
        return short(schema["allOf"][0]["$ref"])
    if "$ref" in schema:
        return short(schema["$ref"])
    kind: str = schema.get("type", "any")
    names = {"string": "str", "object": "any"}
    return PLAIN.get((kind, schema.get("format", "")), names.get(kind, kind))


def described(schema: dict[str, Any]) -> tuple[str, str]:
    """Shape and type of a property, in the table's words."""
    if schema.get("type") == "array":
        return "list", inner_type(schema["items"])
    if schema.get("type") == "object" and "additionalProperties" in schema:
        return "map", inner_type(schema["additionalProperties"])
    return "", inner_type(schema)


def reachable(schemas: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every type below our kinds that has properties."""
    prefix, seen = "io.k8s.api.core.v1.", set()
    queue = [prefix + kind for kind in KINDS]
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        if schemas[name].get("properties"):
            yield short(name), schemas[name]
            queue += re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(schemas[name]))


@pytest.mark.skipif(not OPENAPI.exists(), reason=f"the API's description is not at {OPENAPI}")
def test_table_equals_the_openapi_description() -> None:
    schemas = json.loads(OPENAPI.read_text())["components"]["schemas"]
    compared = 0
    for name, schema in reachable(schemas):
        ours = fields.table()[name]
        assert set(ours) == set(schema["properties"]), name
        for key, value in schema["properties"].items():
            shape, type_ = described(value)
            mine = ours[key]
            assert (mine.shape, "str" if mine.type == "text" else mine.type) == (shape, type_), f"{name}.{key}"
            compared += 1
        {f.name for f in ours.values() if f.required}
    assert compared > 600


def test_every_type_is_defined() -> None:
    table = fields.table()
    used = {f.type for rows in table.values() for f in rows.values()}
    assert used - set(table) - fields.SCALARS <= {"FieldsV1"}
    assert {f.form for rows in table.values() for f in rows.values()} - {""} == set(check.FORMS)


def test_every_verdict_gives_its_reason() -> None:
    """Pain 8: no field is dropped without a word; a field without a verdict stands below one that has one."""
    for name, rows in fields.table().items():
        for field in rows.values():
            assert bool(field.text) == (field.verdict != fields.INHERITED), f"{name}.{field.name}"


def test_pain_8_every_field_that_can_be_reached_has_a_verdict() -> None:
    table = fields.table()
    queue, seen = ["Pod", "Deployment", "StatefulSet", "DaemonSet", "Job", "ConfigMap", "Secret"], set()
    while queue:
        name = queue.pop()
        if name in seen or name not in table:
            continue
        seen.add(name)
        for field in table[name].values():
            assert field.verdict != fields.INHERITED, f"{name}.{field.name} has no verdict of its own"
            if field.verdict == fields.HONOURED:
                queue.append(field.type)
    assert "Container" in seen


def test_defaults_are_allowed_values() -> None:
    for name, rows in fields.table().items():
        for field in rows.values():
            if field.values and field.default:
                assert field.default in field.values, f"{name}.{field.name}"


def test_the_page_is_current() -> None:
    page = ROOT / "docs" / "pod-fields.md"
    assert page.read_text() == fields_doc.render(), "run: python -m edgelet.model.fields_doc > docs/pod-fields.md"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("imagepullpolicy", "imagePullPolicy"),
        ("image_pull_policy", "imagePullPolicy"),
        ("livenesProbe", "livenessProbe"),
        ("enviroment", ""),
        ("volumemount", "volumeMounts"),
        ("comand", "command"),
        ("x" * 10_000, ""),
    ],
)
def test_suggestions(name: str, meant: str) -> None:
    assert advice.suggestion(name, fields.table()["Container"]) == meant


def test_a_line_without_a_verdict_is_refused() -> None:
    with pytest.raises(ValueError, match="no verdict"):
        fields.parse("Thing\n  name str\n")
