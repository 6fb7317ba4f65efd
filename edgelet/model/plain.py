"""Text that came from outside (file names, mostly) in a form that every terminal and encoder takes."""

from __future__ import annotations

import re

_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def plain(text: str) -> str:
    """`text` with control characters and half characters written out; tabs and line ends stay.

    A byte of a file name that is no UTF-8 (a lone surrogate in Python) becomes ``\\xNN`` again.
    """
    return _UNPRINTABLE.sub(_written_out, text)


def one_line(text: str) -> str:
    """The same on a single line."""
    return plain(text).replace("\n", "\\n").replace("\t", "\\t")


def _written_out(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\x{code:02x}"
