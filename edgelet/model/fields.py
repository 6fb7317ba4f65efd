"""The one table of fields: names, types, defaults, values, limits, and what edgelet does with each.

The table itself is `fields.txt` beside this module (its head says how it is written). Decoding,
validation, suggestions and `docs/pod-fields.md` all come from it.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass

HONOURED, WARNED, REFUSED, IDLE, INHERITED = "+", "~", "-", ".", "^"
"""Verdicts, see the head of fields.txt."""

SCALARS = frozenset(["str", "text", "int32", "int64", "bool", "bytes", "any", "Time", "Quantity", "IntOrString"])
"""Types that are no rows of fields. FieldsV1 and MicroTime do not matter to us: `any`."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `shape` is "" | "list" | "map" of `type`; `form` narrows a str (label, ip, ...).

    `default` is the API's default as text ("" = none); `values` the enum ("" always allowed where
    the API allows it); `low`/`high` the limits of a number.
    """

    name: str
    type: str
    shape: str = ""
    form: str = ""
    required: bool = False
    default: str = ""
    values: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    verdict: str = INHERITED
    text: str = ""


Table = Mapping[str, Mapping[str, Field]]


@functools.cache
def table() -> Table:
    """All types: name -> field name -> Field. Read once."""
    data = pkgutil.get_data(__package__, "fields.txt")  # not open(): the code may lie in a zip archive
    if data is None:
        raise FileNotFoundError("fields.txt is missing beside edgelet.model.fields")
    return parse(data.decode())


def parse(text: str) -> Table:
    """The table from its text. Raises ValueError for a line that makes no sense."""
    types: dict[str, dict[str, Field]] = {}
    current: dict[str, Field] = {}
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        if line[0] != " ":
            current = types.setdefault(line, {})
            continue
        field = _field(line)
        current[field.name] = field
    return types


def _field(line: str) -> Field:
    name, type_, *rest = line.split()
    default, low, high = "", None, None
    values: tuple[str, ...] = ()
    for index, word in enumerate(rest):
        if word in (HONOURED, WARNED, REFUSED, IDLE, INHERITED):
            shape, inner, form = _type(type_)
            return Field(
                name.rstrip("*"), inner, shape, form, name.endswith("*"), default, values, low, high, word,
                " ".join(rest[index + 1 :]),
            )  # fmt: skip
        if word.startswith("="):
            default = word[1:]
        elif ".." in word:
            low, high = (int(x) for x in word.split(".."))
        else:
            values = (*word.split("|"),)
    raise ValueError(f"no verdict in the line {line!r}")


def _type(word: str) -> tuple[str, str, str]:
    shape = {"[": "list", "{": "map"}.get(word[0], "")
    inner, _, form = word.strip("[]{}").partition(":")
    return shape, inner, form
