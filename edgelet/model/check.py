"""Holds an untyped tree against the field table: types, names, values, limits, verdicts.

The result is plain data with known fields of the right types only, so that all later code can read
it without looking twice. Everything that had to be left out is in the report.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any

from . import advice, fields, quantity
from .fields import Field
from .report import Report
from .tree import Node, Path

_DROP: Any = object()

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PORT_NAME = re.compile(r"(?=.*[a-z])(?!.*--)[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[-+]\d\d:\d\d)")
_WORDS = {"str": "text", "int": "a number", "float": "a number", "bool": "true or false", "null": "empty"}
_SHAPES = {"list": "a list", "map": "a mapping"}
_SECRETIVE = frozenset(["env", "data", "stringData"])
_WIDTH = {"int32": 2**31, "int64": 2**63}


def check(node: Node, type_name: str, report: Report) -> dict[str, Any]:
    """The document as clean data; `node` is the part of the tree that `report.base` points at."""
    checker = _Checker(report)
    value = checker.row(node, type_name, (), True)
    return value if isinstance(value, dict) else {}


class _Checker:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._table = fields.table()

    def row(self, node: Node, type_name: str, path: Path, active: bool) -> Any:
        """A mapping with the fields of `type_name`."""
        known = self._table[type_name]
        if node.kind != "map":
            return self._wrong(node, f"a mapping ({advice.row(known)}, ...)", path, advice.colon(node.text))
        self._remarks(node, path)
        out = {}
        for key, below in node.value.items():
            field = known.get(key)
            if field is None:
                self._unknown(key, type_name, path)
            elif below.kind != "null":
                value = self._field(below, field, (*path, key), active)
                if value is not _DROP:
                    out[key] = value
        if active:
            self._required(out, known, path)
        return out

    def _required(self, out: dict[str, Any], known: Any, path: Path) -> None:
        for field in known.values():
            if field.required and field.name not in out and not self._report.is_bad((*path, field.name)):
                self._report.error((*path, field.name), f"is required: {field.text}" if field.text else "is required")

    def _remarks(self, node: Node, path: Path) -> None:
        """Repeated keys, and keys that YAML does not read as the text they are."""
        for key, line, column in node.repeated:
            self._report.warn((*path, key), "is written twice; the last one counts", (line, column), True)
        for key, text in node.odd_keys:
            self._report.note((*path, key), f"the key {text} is read as {key!r}; quote it if that is not meant")

    def _unknown(self, key: str, type_name: str, path: Path) -> None:
        hint = "" if self._report.full else advice.unknown(key, type_name, self._table[type_name])
        self._report.warn((*path, key), f"there is no such field here; {hint}", self._report.key_mark(path, key), True)

    def _field(self, node: Node, field: Field, path: Path, active: bool) -> Any:
        # What is not honoured must still be right; only what says nothing of what is wanted (status) may be anything.
        below = active and (field.verdict != fields.IDLE or field.type in fields.SCALARS)
        if active and field.verdict == fields.REFUSED and not _says_nothing(node, field):
            self._report.error(path, field.text)
            return _DROP
        if active and field.verdict == fields.WARNED and not _says_nothing(node, field):
            self._report.warn(path, f"is not honoured: {field.text}", self._report.key_mark(path[:-1], field.name))
        if field.shape == "list":
            return self._list(node, field, path, below)
        if field.shape == "map":
            return self._map(node, field, path, below)
        return self._value(node, field, path, below)

    def _list(self, node: Node, field: Field, path: Path, active: bool) -> Any:
        if node.kind != "list":
            hint = "; begin each entry with '- '" if node.kind == "map" else ""
            if node.kind == "str" and field.type == "text":
                hint = advice.as_list(node.value)
            return self._wrong(node, "a list", path, hint)
        out = []
        for index, item in enumerate(node.value):
            value = self._value(item, field, (*path, index), active)
            out.append(None if value is _DROP else value)
        if None in out:
            self._report.spoil(path)
            return _DROP
        return out

    def _map(self, node: Node, field: Field, path: Path, active: bool) -> Any:
        if node.kind != "map":
            return self._wrong(node, "a mapping of names to values", path)
        self._remarks(node, path)
        out = {}
        for key, item in node.value.items():
            value = self._map_value(item, field, (*path, key), active)
            if value is not _DROP:
                out[key] = value
        return out

    def _map_value(self, node: Node, field: Field, path: Path, active: bool) -> Any:
        if node.kind == "null" and field.type in ("str", "text", "bytes"):
            return ""
        return _DROP if node.kind == "null" else self._value(node, field, path, active)

    def _value(self, node: Node, field: Field, path: Path, active: bool) -> Any:
        if field.type not in fields.SCALARS:
            if field.type not in self._table:
                return node.plain()
            return self.row(node, field.type, path, active)
        value = _READERS[field.type](self, node, field, path)
        if value is not _DROP and active:
            self._limits(value, field, path)
        return value

    def _wrong(self, node: Node, want: str, path: Path, hint: str = "") -> Any:
        got = _SHAPES.get(node.kind) or _WORDS[node.kind] + _shown(node, path, " ({})")
        self._report.error(path, f"must be {want}, not {got}{hint}")
        return _DROP

    # One reader per type of the table.

    def read_any(self, node: Node, _field: Field, _path: Path) -> Any:
        return node.plain()

    def read_str(self, node: Node, _field: Field, path: Path) -> Any:
        if node.kind == "str":
            if "\0" not in node.value:
                return node.value
            self._report.error(path, "must not contain the character NUL")
            return _DROP
        if node.kind in ("int", "float", "bool"):
            self._report.error(path, "must be text: write it in quotes" + _shown(node, path, ', "{}"'))
            return _DROP
        return self._wrong(node, "text", path)

    def read_text(self, node: Node, field: Field, path: Path) -> Any:
        if node.kind in ("int", "float", "bool"):
            shown = _shown(node, path, 'the text "{}"') or "text, as it stands"
            self._report.warn(path, f"is taken as {shown}; write it in quotes")
            # From here on it *is* text, so that adding the quotes later is no change of the pod.
            node.kind, node.value = "str", node.text
        return self.read_str(node, field, path)

    def read_integer(self, node: Node, field: Field, path: Path) -> Any:
        if node.kind == "str":
            plainly = "; remove the quotes" if re.fullmatch(r"-?\d{1,19}", node.value) else ""
            plainly = "; write the number alone" if re.fullmatch(r"\d{1,9} ?[A-Za-z]+", node.value) else plainly
            self._report.error(path, f"must be a whole number, not the text {node.value[:40]!r}{plainly}")
            return _DROP
        if node.kind != "int":
            return self._wrong(node, "a whole number", path)
        limit = _WIDTH.get(field.type, 2**31)
        if not -limit <= node.value < limit:
            self._report.error(path, f"{node.value} is too large a number here")
            return _DROP
        return node.value

    def read_bool(self, node: Node, _field: Field, path: Path) -> Any:
        if node.kind == "bool":
            return node.value
        if node.kind == "str":
            self._report.error(path, f"must be true or false without quotes, not the text {node.value[:40]!r}")
            return _DROP
        return self._wrong(node, "true or false", path)

    def read_bytes(self, node: Node, field: Field, path: Path) -> Any:
        value = self.read_str(node, field, path)
        if value is not _DROP:
            try:
                base64.b64decode("".join(value.split()), validate=True)
            except (binascii.Error, ValueError):
                self._report.error(
                    path, "must be base64; text as it is belongs under stringData (Secret) or data (ConfigMap)"
                )
                return _DROP
        return value

    def read_time(self, node: Node, _field: Field, path: Path) -> Any:
        if node.kind == "str" and _TIME.fullmatch(node.value):
            return node.value
        return self._wrong(node, "a time such as 2024-01-31T12:00:00Z", path)

    def read_quantity(self, node: Node, _field: Field, path: Path) -> Any:
        if node.kind not in ("str", "int", "float"):
            return self._wrong(node, "a quantity such as 500m or 64Mi", path)
        text = node.value if node.kind == "str" else str(node.value)
        try:
            quantity.parse(text)
        except ValueError as error:
            self._report.error(path, str(error))
            return _DROP
        return text

    def read_int_or_string(self, node: Node, field: Field, path: Path) -> Any:
        if node.kind == "str":
            return node.value
        if node.kind == "int":
            return self.read_integer(node, field, path)
        return self._wrong(node, "a port number or a port's name", path)

    def _limits(self, value: Any, field: Field, path: Path) -> None:
        if field.values and value not in field.values and value != "":
            self._report.error(path, _not_one_of(value, field.values))
        elif field.low is not None and field.high is not None and not field.low <= value <= field.high:
            self._report.error(path, f"must be between {field.low} and {field.high}, not {value}")
        elif field.form and value != "" and not FORMS[field.form][0](value):
            self._report.error(path, f"{value[:80]!r} {FORMS[field.form][1]}")


def _shown(node: Node, path: Path, form: str) -> str:
    """The value for a message; not where secrets are likely to stand, as messages end up in logs."""
    if node.kind in ("map", "list", "null") or any(step in _SECRETIVE for step in path):
        return ""
    return form.format(node.text[:40])


def _says_nothing(node: Node, field: Field) -> bool:
    """Whether the value asks for nothing: empty, or what would be there anyway."""
    if node.kind in ("map", "list"):
        return not node.value
    return node.text in ("", field.default) or (node.kind == "bool" and str(node.value).lower() == field.default)


def _not_one_of(value: str, values: tuple[str, ...]) -> str:
    folded = {v.lower(): v for v in values}
    hint = folded.get(str(value).lower())
    said = f"{str(value)[:60]!r} is not one of {', '.join(values)}"
    return f"{said}; did you mean {hint}?" if hint else said


def _is_ip(text: str) -> bool:
    import ipaddress  # most pods publish on all addresses

    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


FORMS: dict[str, tuple[Callable[[str], bool], str]] = {
    "label": (
        lambda t: LABEL.fullmatch(t) is not None,
        "must be lower-case letters, digits and '-', begin and end with a letter or digit, at most 63 characters",
    ),
    "portname": (
        lambda t: _PORT_NAME.fullmatch(t) is not None,
        "must be lower-case letters, digits and single '-', with at least one letter, at most 15 characters",
    ),
    "ip": (_is_ip, "is not an IP address"),
}

_READERS: dict[str, Callable[[_Checker, Node, Field, Path], Any]] = {
    "any": _Checker.read_any,
    "str": _Checker.read_str,
    "text": _Checker.read_text,
    "int32": _Checker.read_integer,
    "int64": _Checker.read_integer,
    "bool": _Checker.read_bool,
    "bytes": _Checker.read_bytes,
    "Time": _Checker.read_time,
    "Quantity": _Checker.read_quantity,
    "IntOrString": _Checker.read_int_or_string,
}
