"""Holds what a client sent against the field tables: the project's own, and `fields.txt` beside this module.

Unknown fields are what a real server drops silently, and wrong types what it answers with 400; here each is
also told, so that a test can fail for it.
"""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgelet.model import fields, quantity
from edgelet.model.fields import Field, Table

from . import quantities

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[-+]\d\d:\d\d)")
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[-+]\d\d:\d\d)")
_WIDTH = {"int32": 2**31, "int64": 2**63}
DIRECTIVES = ("$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/")
"""Fields that only stand in a strategic merge patch."""


@functools.cache
def own() -> Table:
    """The types that the product's table lacks."""
    return fields.parse((Path(__file__).parent / "fields.txt").read_text())


@functools.cache
def table() -> Table:
    """All types."""
    return {**own(), **fields.table()}


class Look:
    """One body, looked at: `unknown`, `wrong` and `missing` are lines that begin with the path."""

    def __init__(self, patch: bool = False) -> None:
        self.unknown: list[str] = []
        self.wrong: list[str] = []
        self.missing: list[str] = []
        self._patch = patch

    def row(self, value: Any, type_name: str, path: str = "") -> Any:
        """The value with its known fields only."""
        if not isinstance(value, dict):
            self.wrong.append(f"{path or type_name}: must be an object, is {value!r:.60}")
            return {}
        known, out = table()[type_name], {}
        for name, inner in value.items():
            here = f"{path}.{name}" if path else name
            if self._patch and name.startswith(DIRECTIVES):
                out[name] = inner
            elif name not in known:
                self.unknown.append(f"{here}: {type_name} has no such field")
            elif inner is None:
                out |= {name: None} if self._patch else {}
            else:
                out[name] = self._field(inner, known[name], here)
        if not self._patch:
            self.missing += [
                f"{path}.{f.name}: is required" for f in known.values() if f.required and f.name not in out
            ]
        return out

    def _field(self, value: Any, field: Field, path: str) -> Any:
        if field.shape == "list":
            if isinstance(value, list):
                return [self._value(item, field, f"{path}[{index}]") for index, item in enumerate(value)]
            self.wrong.append(f"{path}: must be a list, is {value!r:.60}")
            return []
        if field.shape == "map":
            if isinstance(value, dict):
                return {key: self._mapped(item, field, f"{path}[{key}]") for key, item in value.items()}
            self.wrong.append(f"{path}: must be a map, is {value!r:.60}")
            return {}
        return self._value(value, field, path)

    def _mapped(self, value: Any, field: Field, path: str) -> Any:
        return None if value is None and self._patch else self._value(value, field, path)

    def _value(self, value: Any, field: Field, path: str) -> Any:
        if field.type in table():
            return self.row(value, field.type, path)
        if not _fits(value, field.type):
            self.wrong.append(f"{path}: must be {field.type}, is {value!r:.60}")
        elif field.values and not field.shape and value and value not in field.values:
            self.wrong.append(f"{path}: must be one of {', '.join(field.values)}, is {value!r:.60}")
        elif field.type == "Quantity":
            return quantities.canonical(value)
        return value

    def __iter__(self) -> Iterator[str]:
        yield from (*self.unknown, *self.wrong, *self.missing)


def _fits(value: Any, kind: str) -> bool:
    match kind:
        case "int32" | "int64":
            return _whole(value) and -_WIDTH[kind] <= value < _WIDTH[kind]
        case "bool":
            return isinstance(value, bool)
        case "Time":
            return isinstance(value, str) and bool(_TIME.fullmatch(value))
        case "MicroTime":
            return isinstance(value, str) and bool(_MICRO_TIME.fullmatch(value))
        case "IntOrString":
            return isinstance(value, str) or _whole(value)
        case "Quantity":
            return isinstance(value, str) and _parses(value)
        case "bytes":
            return isinstance(value, str) and _decodes(value)
        case "any" | "FieldsV1":
            return True
    return isinstance(value, str)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _parses(value: str) -> bool:
    try:
        quantity.parse(value)
    except ValueError:
        return False
    return True


def _decodes(value: str) -> bool:
    try:
        base64.b64decode(value, validate=True)
    except ValueError:
        return False
    return True
