"""Reads YAML text into trees of `Node`, as Kubernetes' own tools do, within bounds.

Parsing is PyYAML's (the C parser where it is there, the Python one with the same results
elsewhere); everything after the parse events is ours: scalar meaning (`scalars`), anchors, merge
keys, and the limits, which are counted on events before any tree exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from . import scalars, stand_ins, tree
from .python_parser import PythonParser
from .tree import Node

MAX_EVENTS = 50_000
"""Parse events in one file; also the number of values that aliases may unfold to."""
MAX_DEPTH = 100
"""Levels of nesting (a Pod needs fewer than 20)."""
MAX_ERRORS = 20
"""Broken documents of one file that are looked at."""

C_PARSER: Any = getattr(getattr(yaml, "cyaml", None), "CParser", None)
"""The parser of the C extension, None where PyYAML was built without it."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_NEXT_DOCUMENT = re.compile(r"^---(?=[ \t\r\n]|$)", re.MULTILINE)


class ReadError(Exception):
    """Text that cannot be read; line and column count from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column

    def bare(self) -> ReadError:
        """The same without its traceback, whose frames would keep the whole text alive."""
        return type(self)(self.message, self.line, self.column)


class TooBig(ReadError):
    """A bound was crossed: nothing more of this file is looked at."""


@dataclass(slots=True)
class Result:
    """The documents of a file (None for one that holds nothing) and what was wrong."""

    documents: list[Node | None] = field(default_factory=list)
    errors: list[tuple[int, ReadError]] = field(default_factory=list)


def read(text: str) -> Result:
    """All documents. A broken one is reported and reading goes on at the next `---` line."""
    result, line = Result(), 0
    rest = stand_ins.hide(text, C_PARSER is None)
    budget = _Budget(hidden=rest != text)
    while True:
        budget.document = line + 1
        try:
            for node in _documents(rest, line, budget):
                result.documents.append(node)
            return result
        except TooBig as error:
            result.errors.append((len(result.documents) + 1, error.bare()))
            return result
        except ReadError as error:
            result.documents.append(None)
            result.errors.append((len(result.documents), error.bare()))
            skip = _after_error(rest, error.line - line, budget.document - line)
            if skip is None or len(result.errors) >= MAX_ERRORS:
                return result
            line += rest.count("\n", 0, skip)
            rest = rest[skip:]


def _after_error(text: str, line: int, begun: int) -> int | None:
    """Where the next document begins: the first `---` from `line` on, where reading stopped.

    `begun` is the line of the broken document's own beginning; lines count from 1.
    """
    start = 0
    for _ in range(max(line, begun + 1) - 1):
        end = text.find("\n", start)
        if end < 0:
            return None
        start = end + 1
    found = _NEXT_DOCUMENT.search(text, start)
    return found.start() if found else None


@dataclass(slots=True)
class _Budget:
    """What one file has used up; `document` is the line where the newest document began.

    `hidden` = some of its characters are replaced (stand_ins).
    """

    document: int = 0
    hidden: bool = False
    events: int = 0
    unfolded: int = 0

    def event(self, mark: Any) -> None:
        self.events += 1
        if self.events > MAX_EVENTS:
            raise TooBig(f"the file has more than {MAX_EVENTS} values; split it", mark.line + 1, mark.column + 1)

    def unfold(self, size: int, mark: Any) -> None:
        self.unfolded += size
        if self.unfolded > MAX_EVENTS:
            raise TooBig(f"aliases (*name) unfold to more than {MAX_EVENTS} values", mark.line + 1, mark.column + 1)


def _documents(text: str, first_line: int, budget: _Budget) -> Iterator[Node | None]:
    builder = _Builder(first_line, budget)
    parser: Any = None
    try:
        parser = _parser(text)
        while True:
            event = parser.get_event()
            if event is None or isinstance(event, yaml.StreamEndEvent):
                return
            budget.event(event.start_mark)
            if isinstance(event, yaml.DocumentStartEvent):
                budget.document = builder.start(event)
            elif isinstance(event, yaml.DocumentEndEvent):
                yield builder.finish()
            else:
                builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise _translated(error, text, first_line) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The Python parser leaks the last two for escapes that stand for no character.
        raise ReadError(_first_line(str(error)), first_line + 1, 1) from error
    finally:
        if parser is not None:
            parser.dispose()


def _parser(text: str) -> Any:
    return PythonParser(text) if C_PARSER is None else C_PARSER(text)


class _Builder:
    """Turns the events of one document into a tree; iterative, so nesting cannot overflow the stack."""

    def __init__(self, first_line: int, budget: _Budget) -> None:
        self._first_line, self._budget = first_line, budget
        self._stack: list[_Open] = []
        self._anchors: dict[str, Node | None] = {}
        self._root: Node | None = None

    def start(self, event: Any) -> int:
        """A new document; the line where it begins."""
        self._stack, self._anchors, self._root = [], {}, None
        return self._place(event)[0]

    def finish(self) -> Node | None:
        """The document, None when it is null (only comments, or nothing)."""
        root = self._root
        return None if root is None or root.kind == "null" else root

    def take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)

    def _place(self, event: Any) -> tuple[int, int]:
        mark = event.start_mark
        return mark.line + 1 + self._first_line, mark.column + 1

    def _scalar(self, event: Any) -> None:
        line, column = self._place(event)
        text = stand_ins.restore(event.value, event.style == '"') if self._budget.hidden else event.value
        if event.style == '"' and _SURROGATE.search(text):
            raise ReadError("an escape in this text stands for half a character (\\ud800 to \\udfff)", line, column)
        plain = event.style in (None, "") and event.tag is None
        try:
            value = scalars.resolve(text, plain, event.tag)
        except ValueError as error:
            raise ReadError(str(error), line, column) from error
        node = Node(scalars.kind_of(value), value, line, column, text)
        merge = plain and text == "<<"
        self._anchor(event, node)
        self._add(node, merge)

    def _open(self, event: Any) -> None:
        line, column = self._place(event)
        self._depth(0, line, column)
        is_map = isinstance(event, yaml.MappingStartEvent)
        node = Node("map", {}, line, column) if is_map else Node("list", [], line, column)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._stack.append(_Open(node, event.anchor))

    def _depth(self, below: int, line: int, column: int) -> None:
        """An alias brings levels of its own: without counting them, a chain of aliases has no bottom."""
        if len(self._stack) + below >= MAX_DEPTH:
            raise TooBig(f"values are nested more than {MAX_DEPTH} levels deep", line, column)

    def _close(self) -> None:
        done = self._stack.pop()
        node = done.node
        if done.anchor is not None:
            self._anchors[done.anchor] = node
        self._add(node, False)

    def _anchor(self, event: Any, node: Node) -> None:
        if event.anchor is not None:
            self._anchors[event.anchor] = node

    def _alias(self, event: Any) -> None:
        line, column = self._place(event)
        name = event.anchor
        if name not in self._anchors:
            raise ReadError(f"*{name} refers to an anchor (&{name}) that is not in this document", line, column)
        node = self._anchors[name]
        if node is None:
            raise ReadError(f"*{name} stands inside the value that it refers to", line, column)
        self._budget.unfold(node.size, event.start_mark)
        self._depth(node.height, line, column)
        self._add(tree.copy(node), False)

    def _add(self, node: Node, merge: bool) -> None:
        if not self._stack:
            self._root = node
            return
        top = self._stack[-1]
        top.node.grow(node)
        if top.node.kind == "list":
            top.node.value.append(node)
        elif top.key is None:
            top.key, top.merge, top.mark = _key(node), merge, (node.line, node.column)
            _note_odd_key(top.node, node, top.key)
        else:
            top.put(node)


@dataclass(slots=True)
class _Open:
    """A map or list whose end has not been seen; `key` waits for its value."""

    node: Node
    anchor: str | None
    key: str | None = None
    merge: bool = False
    mark: tuple[int, int] = (0, 0)

    def put(self, value: Node) -> None:
        key, self.key = self.key or "", None
        if self.merge:
            self._merge(value)
            return
        if key in self.node.value:
            self.node.repeated.append((key, *self.mark))
        self.node.value[key] = value
        self.node.keys[key] = self.mark

    def _merge(self, value: Node) -> None:
        """`<<`: keys before it are overwritten, keys after it overwrite (as Go's YAML v2 does)."""
        parts = [value] if value.kind == "map" else value.value if value.kind == "list" else []
        if any(p.kind != "map" for p in parts) or value.kind not in ("map", "list"):
            raise ReadError("<< needs a mapping, or a list of mappings, to merge", *self.mark)
        for part in reversed(parts):
            self.node.value.update({k: tree.copy(v) for k, v in part.value.items()})
            self.node.keys.update(part.keys)


def _key(node: Node) -> str:
    """The text of a map key; JSON knows no other keys than text."""
    if node.kind in ("map", "list", "null"):
        what = {"map": "a mapping", "list": "a list", "null": "empty (null)"}[node.kind]
        raise ReadError(f"a key must be text, this one is {what}", node.line, node.column)
    if node.kind == "bool":
        return "true" if node.value else "false"
    return str(node.value)


def _note_odd_key(parent: Node, node: Node, key: str) -> None:
    if node.kind != "str" and node.text != key:
        parent.odd_keys.append((key, node.text))


_FRIENDLY = (
    ("found a tab", "a tab is used for indentation; YAML wants spaces"),
    ("cannot start any token", "this character cannot start a value; put the value in quotes"),
    (
        "mapping values are not allowed",
        "a second ': ' on this line, or wrong indentation; quote the value if it has ': '",
    ),
    ("could not find expected ':'", "a line without ':' where 'name: value' was expected"),
    ("did not find expected key", "wrong indentation: this line does not line up with the ones above it"),
    ("expected <block end>", "wrong indentation: this line does not line up with the ones above it"),
    ("did not find expected '-' indicator", "wrong indentation: this line does not line up with the list above it"),
    ("unexpected end of stream", "the text ends inside a quoted value: a closing quote is missing"),
    ("unknown escape character", "unknown escape after a backslash in double quotes; write \\\\ for a backslash"),
    ("did not find expected node content", "a value is missing here, or there is a comma too many"),
    ("found undefined tag handle", "'!' begins a tag in YAML; quote the value if it is text"),
)


def _translated(error: yaml.MarkedYAMLError, source: str, first_line: int) -> ReadError:
    """The library's message in words that help, at the place where it was noticed."""
    mark = error.problem_mark or error.context_mark
    if "unexpected end of stream" in (error.problem or "") and error.context_mark is not None:
        mark = error.context_mark  # where the quote was opened says more than where the file ends
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    problem = error.problem or error.context or "not YAML"
    if mark is not None and "cannot start any token" in problem and _char_at(source, line, column) == "\t":
        problem = "found a tab"
    if "nesting depth" in problem:
        return TooBig(f"values are nested more than {MAX_DEPTH} levels deep", line + first_line, column)
    said = next((said for key, said in _FRIENDLY if key in problem), "")
    text = f"{said} ({problem})" if said else problem
    return ReadError(f"cannot read this as YAML: {text}", line + first_line, column)


def _char_at(text: str, line: int, column: int) -> str:
    lines = text.split("\n", line)
    return lines[line - 1][column - 1 : column] if len(lines) >= line else ""


def _first_line(text: str) -> str:
    return "cannot read this as YAML: " + (text.splitlines() or ["no reason given"])[0]
