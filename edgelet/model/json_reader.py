"""Reads JSON text (one object, or several back to back) into trees of `Node` with line and column."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from . import scalars
from .tree import Node
from .yaml_reader import MAX_DEPTH, MAX_EVENTS, ReadError, TooBig

_SPACE = re.compile(r"[ \t\r\n]*")
_HEAD = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+\n)*+")
"""Blanks and comments before the first object: JSON has no comments, but files do. Possessive, as a
backtracking one would remember each of a million lines."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}
_scan_string: Callable[[str, int, bool], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]


def looks_like_json(text: str) -> bool:
    """Whether the first thing in the text is an opening brace, which is how Kubernetes decides."""
    return text.startswith("{", _end_of_head(text))


def _end_of_head(text: str) -> int:
    found = _HEAD.match(text)
    return found.end() if found else 0


def _end_of_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def read(text: str) -> list[Node]:
    """All values in the text. Raises ReadError at the first thing that is not JSON."""
    reader = _Reader(text)
    values = []
    at = _end_of_head(text)
    while at < len(text):
        node, at = reader.value(at, 0)
        values.append(node)
        at = _end_of_space(text, at)
    return values


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._count = 0
        self._known = (0, 1, 0)

    def _place(self, at: int) -> tuple[int, int]:
        """Line and column, counted on from the place that was asked for last."""
        since, line, start = self._known if at >= self._known[0] else (0, 1, 0)
        line += self._text.count("\n", since, at)
        start = max(start, self._text.rfind("\n", since, at) + 1)
        self._known = (at, line, start)
        return line, at - start + 1

    def _fail(self, message: str, at: int) -> ReadError:
        return ReadError(f"cannot read this as JSON: {message}", *self._place(at))

    def value(self, at: int, depth: int) -> tuple[Node, int]:
        self._count += 1
        if self._count > MAX_EVENTS:
            raise TooBig(f"the file has more than {MAX_EVENTS} values; split it", *self._place(at))
        if depth > MAX_DEPTH:
            raise TooBig(f"values are nested more than {MAX_DEPTH} levels deep", *self._place(at))
        first = self._text[at : at + 1]
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._array(at, depth)
        if first == '"':
            text, end = self._string(at)
            return Node("str", text, *self._place(at), text), end
        return self._word(at)

    def _string(self, at: int) -> tuple[str, int]:
        try:
            text, end = _scan_string(self._text, at + 1, False)
            # Half a character (a lone surrogate) is what Go's reader makes of it: U+FFFD.
            return _SURROGATE.sub("\ufffd", text), end
        except json.JSONDecodeError as error:
            raise self._fail(error.msg, error.pos) from error

    def _word(self, at: int) -> tuple[Node, int]:
        for word, value in _WORDS.items():
            if self._text.startswith(word, at):
                return Node(scalars.kind_of(value), value, *self._place(at), word), at + len(word)
        found = _NUMBER.match(self._text, at)
        if found is None:
            raise self._fail("expected a value", at)
        text = found.group()
        number = scalars.resolve(text, True, None)
        return Node(scalars.kind_of(number), number, *self._place(at), text), found.end()

    def _object(self, at: int, depth: int) -> tuple[Node, int]:
        node = Node("map", {}, *self._place(at))
        at = _end_of_space(self._text, at + 1)
        if self._text[at : at + 1] == "}":
            return node, at + 1
        while True:
            if self._text[at : at + 1] != '"':
                raise self._fail("a name in double quotes is expected here; is there a comma too many before it?", at)
            mark = self._place(at)
            key, at = self._string(at)
            at = _end_of_space(self._text, at)
            if self._text[at : at + 1] != ":":
                raise self._fail("expected ':'", at)
            value, at = self.value(_end_of_space(self._text, at + 1), depth + 1)
            if key in node.value:
                node.repeated.append((key, *mark))
            node.value[key], node.keys[key] = value, mark
            node.grow(value)
            more, at = self._more(at, "}")
            if not more:
                return node, at

    def _array(self, at: int, depth: int) -> tuple[Node, int]:
        node = Node("list", [], *self._place(at))
        at = _end_of_space(self._text, at + 1)
        if self._text[at : at + 1] == "]":
            return node, at + 1
        while True:
            value, at = self.value(at, depth + 1)
            node.value.append(value)
            node.grow(value)
            more, at = self._more(at, "]")
            if not more:
                return node, at

    def _more(self, at: int, closing: str) -> tuple[bool, int]:
        """After a member: whether another follows, and where."""
        at = _end_of_space(self._text, at)
        char = self._text[at : at + 1]
        if char == closing:
            return False, at + 1
        if char != ",":
            raise self._fail(f"expected ',' or '{closing}'", at)
        return True, _end_of_space(self._text, at + 1)
