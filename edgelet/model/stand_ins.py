"""What libyaml reads otherwise than Go's scanner: hidden before parsing, put back into each scalar.

Three cases: the escape of an apostrophe in double quotes, which libyaml does not know; a colon at the
end of an unquoted text inside brackets (`[echo:]`), which it refuses; and for PyYAML's own parser a
question mark inside such a text. Each is replaced by one character that no manifest has, so that
places in messages stay true.
"""

from __future__ import annotations

import re

_APOSTROPHE, _PAIR, _COLON, _QUESTION = "\uf8f0", "\uf8f1\uf8f1", "\uf8f2", "\uf8f3"
_ANY = re.compile("[\uf8f0-\uf8f3]")
_ESCAPED = re.compile(r"\\[uU]0*[fF]8[fF][0-3]")
_COLON_ENDS = (":]", ":}", ":,", ":[", ":{")
# Not after a quote or a bracket: there the colon divides a key from its value, as in JSON.
_LOOSE_COLON = re.compile(r"(?<=[^\s\"'\]}{\[,:]):++(?=[,\[\]{}])")
_MOST = 50_000
"""Replacements of each kind; a file with more such texts has too many values anyway."""
_LOOSE_QUESTION = re.compile(r"(?<=[^\s\"'\]}{\[,?])\?")


def hide(text: str, python_parser: bool) -> str:
    """The text as the parser should see it. One that says such a character itself is left alone."""
    if _ESCAPED.search(text) or (not text.isascii() and _ANY.search(text)):
        return text
    if "\\'" in text:
        # Escaped backslashes are out of the way while escaped apostrophes are looked for.
        text = text.replace("\\\\", _PAIR).replace("\\'", _APOSTROPHE + "'").replace(_PAIR, "\\\\")
    if any(end in text for end in _COLON_ENDS):
        text = _LOOSE_COLON.sub(lambda m: _COLON * len(m.group()), text, count=_MOST)
    return _LOOSE_QUESTION.sub(_QUESTION, text, count=_MOST) if python_parser else text


def restore(text: str, double_quoted: bool) -> str:
    """A scalar with the hidden characters back in place; for a text that `hide` has changed."""
    if text.isascii() or not _ANY.search(text):
        return text
    text = text.replace(_APOSTROPHE, "" if double_quoted else "\\")
    return text.replace(_COLON, ":").replace(_QUESTION, "?")
