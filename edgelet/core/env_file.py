"""A file of variables, NAME='value' a line, as fileKeyRef reads it (semantics 5.1.6). Pure."""

from __future__ import annotations

import re

_LINE = re.compile(r"([^=]*[^=\s])=(.*)")
_AFTER = re.compile(r"[ \t]*(#.*)?")


def value(text: str, key: str) -> str:
    """The value of `key`, "" if the file has none; the first one counts, and what follows it is not looked at.

    Raises ValueError for a line that is none: a value stands in single quotes, and may have several lines.

    >>> value("# a comment\\nA='1'\\nB= 'gone'\\nC='x\\ny' # more", "C")
    'x\\ny'
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    at = 0
    while at < len(lines):
        line, number = lines[at].lstrip(" \t"), at + 1
        at += 1
        if line and not line.startswith("#"):
            found = _LINE.fullmatch(line)
            if found is None:
                raise ValueError(f"line {number} is not NAME='value'")
            said, at = _quoted(found[2], lines, at)
            if found[1] == key:
                return said
    return ""


def _quoted(rest: str, lines: list[str], at: int) -> tuple[str, int]:
    """What stands in the quotes after `=`, and the index of the line after it."""
    number = at
    if rest.startswith((" ", "\t")):
        return "", at  # as in a shell: the blank ends an empty value
    if not rest.startswith("'"):
        raise ValueError(f"line {number}: the value must stand in single quotes")
    text = rest[1:]
    while "'" not in text:
        if at == len(lines):
            raise ValueError(f"line {number}: the quote is not closed")
        text += f"\n{lines[at]}"
        at += 1
    inside, _, after = text.partition("'")
    if not _AFTER.fullmatch(after):
        raise ValueError(f"line {number}: nothing may follow the closing quote")
    return inside, at
