"""Writes docs/pod-fields.md from the field table: `python -m edgelet.model.fields_doc > docs/pod-fields.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from . import fields
from .fields import Field

_HEAD = """# Fields

Made from the field table by `python -m edgelet.model.fields_doc`; do not edit by hand.

What edgelet does with each field of a manifest:

- **honoured**: done as Kubernetes does it, or as the text says.
- **warned**: accepted with a warning, not done. `--strict` refuses it.
- **refused**: the manifest is not accepted; the text says what to do instead.
- **nothing to do**: accepted in silence, because on a box of its own there is nothing to do.

A field that is not in these tables does not exist; it gets a warning with a suggestion.
Fields inside a warned, refused or idle one are checked for their types only and not listed.
"""

_VERDICTS = {
    fields.HONOURED: "honoured",
    fields.WARNED: "warned",
    fields.REFUSED: "refused",
    fields.IDLE: "nothing to do",
    fields.INHERITED: "as its parent",
}
_ROOTS = ("Pod", "Deployment", "StatefulSet", "DaemonSet", "Job", "ConfigMap", "Secret")


def render() -> str:
    """The whole page."""
    table, queue = fields.table(), list(_ROOTS)
    done: set[str] = set()
    parts = [_HEAD]
    while queue:
        name = queue.pop(0)
        if name in done or name not in table:
            continue
        done.add(name)
        rows = table[name].values()
        parts.append("\n".join(_section(name, rows)))
        queue = [f.type for f in rows if f.verdict == fields.HONOURED] + queue
    return "\n".join(parts)


def _section(name: str, rows: Iterable[Field]) -> Iterator[str]:
    yield f"## {name}\n"
    yield "| Field | Type | Default | Values | edgelet | |"
    yield "|---|---|---|---|---|---|"
    yield from (_row(row) for row in rows)
    yield ""


def _row(field: Field) -> str:
    required = " (required)" if field.required else ""
    cells = (
        f"`{field.name}`{required}",
        _type(field),
        f"`{field.default}`" if field.default else "",
        _values(field),
        _VERDICTS[field.verdict],
        field.text,
    )
    return f"| {' | '.join(cells)} |"


def _type(field: Field) -> str:
    name = {"str": "text", "int32": "number", "int64": "number", "bool": "true or false", "bytes": "base64"}.get(
        field.type, field.type
    )
    return {"list": f"list of {name}", "map": f"map to {name}"}.get(field.shape, name)


def _values(field: Field) -> str:
    if field.values:
        return ", ".join(f"`{v}`" for v in field.values)
    return "" if field.low is None else f"{field.low} to {field.high}"


if __name__ == "__main__":
    sys.stdout.write(render())
