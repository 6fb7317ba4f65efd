"""Every wrong type in every field gives an error with the right path and line (issue 4, must show 3).

Walks the field table from each kind down, builds the smallest manifest that reaches a field, and
puts each type there that does not belong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from edgelet.model import decode, fields
from edgelet.model.fields import Field

MAX_DEPTH = 7
ORIGIN = decode.Origin("f.yaml", "file", "node")
MINIMAL: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i:1"}]},
}
WRONG: dict[str, tuple[Any, ...]] = {
    "str": (7, True, 1.5, [], {}),
    "text": ([], {}),
    "int32": ("x", "5", True, 1.5, [], {}, 2**31, -(2**31) - 1),
    "int64": ("x", "5", False, 1.5, [], {}, 2**63),
    "bool": ("true", "x", 1, [], {}),
    "bytes": (7, "not base64!", [], {}),
    "Time": (7, "yesterday", True, [], {}),
    "Quantity": ("much", True, [], {}),
    "IntOrString": (True, 1.5, [], {}),
}


def paths(type_name: str, depth: int, seen: tuple[str, ...] = ()) -> Iterator[tuple[tuple[Field, ...], Field]]:
    """All ways from a type down to a field; a type that contains itself is not entered again."""
    for field in fields.table()[type_name].values():
        yield (), field
        if field.type in fields.table() and field.type not in seen and depth > 1:
            for way, last in paths(field.type, depth - 1, (*seen, field.type)):
                yield (field, *way), last


def wrong_values(field: Field) -> tuple[Any, ...]:
    """Values of the types that the field has not."""
    inner = WRONG.get(field.type, ("x", 7, [])) if field.type not in ("any", "FieldsV1") else ()
    if field.shape == "list":
        return ("x", 7, {"a": 1}, *([v] for v in inner))
    if field.shape == "map":
        return ("x", 7, [1], *({"k": v} for v in inner))
    return inner


def place(way: tuple[Field, ...], field: Field, value: Any) -> tuple[Any, str]:
    """`value` in the field at the end of `way`, and the path to the first thing that is wrong."""
    path = ""
    for step in (*way, field):
        path += f".{step.name}" if path else step.name
        if step is not field or not isinstance(value, dict | list) or not value:
            path += {"list": "[0]", "map": ".k"}.get(step.shape, "") if step is not field else ""
    if field.shape == "list" and isinstance(value, list):
        path += "[0]"
    if field.shape == "map" and isinstance(value, dict):
        path += ".k"
    for step in reversed((*way, field)):
        wrapped = value
        if step is not field:
            wrapped = {"list": [value], "map": {"k": value}}.get(step.shape, value)
        value = {step.name: wrapped}
    return value, path


def refused(way: tuple[Field, ...], field: Field) -> str:
    """The path of the field on the way that is refused whatever it holds, "" if there is none."""
    path = ""
    for step in (*way, field):
        path += f".{step.name}" if path else step.name
        if step.verdict == fields.REFUSED:
            return path
        if step.verdict == fields.IDLE:
            return ""
        path += {"list": "[0]", "map": ".k"}.get(step.shape, "")
    return ""


def merged(base: Any, over: Any) -> Any:
    """`over` laid upon `base`: maps by key, the first item of lists, everything else replaced."""
    if isinstance(base, dict) and isinstance(over, dict):
        return {**base, **{k: merged(base.get(k), v) for k, v in over.items()}}
    if isinstance(base, list) and isinstance(over, list) and base and over:
        return [merged(base[0], over[0])]
    return over


CASES = [(kind, way, field) for kind in ("Pod", "ConfigMap", "Secret") for way, field in paths(kind, MAX_DEPTH)]


def base(kind: str) -> dict[str, Any]:
    return MINIMAL if kind == "Pod" else {"apiVersion": "v1", "kind": kind, "metadata": {"name": "p"}}


def test_the_walk_reaches_everything() -> None:
    assert len(CASES) > 1400


@pytest.mark.parametrize("chunk", range(20))
def test_every_wrong_type_in_every_field(chunk: int) -> None:
    for kind, way, field in CASES[chunk::20]:
        if not way and field.name in ("apiVersion", "kind"):
            continue
        for value in wrong_values(field):
            over, path = place(way, field, value)
            manifest = merged(base(kind), over)
            data = yaml.safe_dump(manifest, sort_keys=False).encode()
            problems = decode.decode(data, ORIGIN).problems
            errors = {p.path.replace("[k]", ".k"): p for p in problems if not p.warning}
            expected = refused(way, field) or path
            assert expected in errors, f"{kind} {path} = {value!r}: {problems}"
            found = errors[expected]
            assert leaf(expected) in data.decode().splitlines()[found.line - 1], f"{path} = {value!r}: {found}"
            assert not decode.decode(data, ORIGIN).pods


def leaf(path: str) -> str:
    """What must stand in the line that is named: the last field name, or a list's dash."""
    last = path.rsplit(".", 1)[-1]
    return "-" if last.endswith("]") else last
