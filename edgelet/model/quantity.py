"""Kubernetes quantities ("500m", "1.5Gi", "1e3") to whole numbers, always rounding up.

The grammar is apimachinery's: a signed decimal number, then a binary suffix (Ki Mi Gi Ti Pi Ei), a
decimal one (n u m, none, k M G T P E), or an exponent (e3, E-2).
"""

from __future__ import annotations

import re
from fractions import Fraction

_FORM = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?)|[eE]([+-]?[0-9]{1,3}))")
_SCALE = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{s: Fraction(1000 ** (i + 1)) for i, s in enumerate("kMGTPE")},
    **{s + "i": Fraction(1024 ** (i + 1)) for i, s in enumerate("KMGTPE")},
}
MAX_TEXT = 100
"""Characters of the longest quantity that is looked at."""
LIMIT = 2**63 - 1
"""Larger results are cut to this, as the API server does."""


def parse(text: str) -> Fraction:
    """The exact value. Raises ValueError, worded for the user, when `text` is no quantity."""
    found = _FORM.fullmatch(text) if len(text) <= MAX_TEXT else None
    if found is None:
        raise ValueError(_advice(text))
    sign, number, suffix, exponent = found.groups()
    value = Fraction(number if not number.endswith(".") else number[:-1])
    value *= Fraction(10) ** int(exponent) if exponent is not None else _SCALE[suffix]
    return -value if sign == "-" else value


def milli(text: str) -> int:
    """CPU in milli-CPU: "0.5" is 500, "1m" is 1. Raises ValueError."""
    return _up(parse(text) * 1000)


def whole(text: str) -> int:
    """Bytes (or pieces): "1Ki" is 1024, "100m" is 1. Raises ValueError."""
    return _up(parse(text))


def _up(value: Fraction) -> int:
    return min(-(-value.numerator // value.denominator), LIMIT)


def _advice(text: str) -> str:
    hint = ""
    tail = text.lstrip("0123456789.+-").strip()
    guess = {"mb": "M", "gb": "G", "kb": "k", "mib": "Mi", "gib": "Gi", "kib": "Ki", "g": "G", "ki": "Ki", "mi": "Mi"}
    guess |= {"gi": "Gi", "b": "", "tb": "T", "tib": "Ti", "t": "T"}
    if tail.lower() in guess and tail != guess[tail.lower()]:
        number = text[: len(text) - len(tail)].strip() if text.endswith(tail) else ""
        hint = f"; did you mean {number + guess[tail.lower()]!r}?" if number else ""
    return f"{text[:40]!r} is not a quantity: write a number with a suffix such as 500m, 64Mi, 1.5Gi{hint}"
