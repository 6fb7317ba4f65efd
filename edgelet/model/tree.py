"""The untyped tree of a document as it was written: values with the place each came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Path = tuple[str | int, ...]
"""Where a value is inside a document: field names and list indices."""


@dataclass(slots=True)
class Node:
    """One value. `value` is dict[str, Node], list[Node] or a plain scalar, as `kind` says.

    `kind` is map | list | str | int | float | bool | null; line and column count from 1. `text` is
    the scalar's source text; `keys` holds the place of every key of a map; `size` counts this node
    and all below it, `height` the levels below it; `repeated` names keys that came more than once
    (the last one counted), `odd_keys` those that were not written as the text they are read as.
    """

    kind: str
    value: Any
    line: int = 0
    column: int = 0
    text: str = ""
    size: int = 1
    height: int = 0
    keys: dict[str, tuple[int, int]] = field(default_factory=dict)
    repeated: list[tuple[str, int, int]] = field(default_factory=list)
    odd_keys: list[tuple[str, str]] = field(default_factory=list)

    def grow(self, below: Node) -> None:
        """Account for a node that was put under this one."""
        self.size += below.size
        self.height = max(self.height, below.height + 1)

    def at(self, path: Path) -> Node | None:
        """The node at `path`, or None."""
        node: Node | None = self
        for step in path:
            if node is None:
                return None
            node = node.child(step)
        return node

    def child(self, step: str | int) -> Node | None:
        """One step down."""
        if self.kind == "map" and isinstance(step, str):
            found: Node | None = self.value.get(step)
            return found
        if self.kind == "list" and isinstance(step, int) and step < len(self.value):
            item: Node = self.value[step]
            return item
        return None

    def mark(self, path: Path) -> tuple[int, int]:
        """Line and column of the value at `path` (of its key, for maps and lists in a map).

        Where there is no such value, the place of the nearest one above it.
        """
        node, place = self, (self.line, self.column)
        for step in path:
            below = node.child(step)
            if below is None:
                return place
            place = (below.line, below.column)
            if below.kind in ("map", "list", "null") and isinstance(step, str):
                place = node.keys.get(step, place)
            node = below
        return place

    def plain(self) -> Any:
        """The value without marks; nulls in maps are left out, as they mean "not set"."""
        if self.kind == "map":
            return {k: v.plain() for k, v in self.value.items() if v.kind != "null"}
        if self.kind == "list":
            return [v.plain() for v in self.value]
        return self.value


def copy(node: Node) -> Node:
    """A deep copy, for an alias: what is done to one use must not show in another."""
    value = node.value
    if node.kind == "map":
        value = {k: copy(v) for k, v in value.items()}
    elif node.kind == "list":
        value = [copy(v) for v in value]
    place = (node.line, node.column)
    return Node(node.kind, value, *place, node.text, node.size, node.height, node.keys, node.repeated, node.odd_keys)


MAX_STEP = 80
"""Characters of a key that are shown."""


def printable(text: str) -> str:
    """The text on one line: what a terminal or a log would act upon is shown as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def render(path: Path) -> str:
    """The path as the API server writes it: spec.containers[0].image, metadata.labels[a.b/c]."""
    out = ""
    for step in path:
        name = step if isinstance(step, int) else printable(step[:MAX_STEP])
        if isinstance(name, int) or "." in name or "/" in name:
            out += f"[{name}]"
        else:
            out += f".{name}" if out else name
    return out
