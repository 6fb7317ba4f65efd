"""Kubernetes quantities ("500m", "1.5Gi", "1e3") to whole numbers, always rounding up.

The grammar is apimachinery's: a signed decimal number, then a binary suffix (Ki Mi Gi Ti Pi Ei), a
decimal one (n u m, none, k M G T P E), or an exponent (e3, E-2).
"""

from __future__ import annotations

import re
from typing import NamedTuple

_FORM = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?)|[eE]([+-]?[0-9]{1,3}))")
_SCALE = {
    "": (1, 1),
    "n": (1, 10**9),
    "u": (1, 10**6),
    "m": (1, 1000),
    **{s: (1000 ** (i + 1), 1) for i, s in enumerate("kMGTPE")},
    **{s + "i": (1024 ** (i + 1), 1) for i, s in enumerate("KMGTPE")},
}
MAX_TEXT = 100
"""Characters of the longest quantity that is looked at."""
LIMIT = 2**63 - 1
"""Larger results are cut to this, as the API server does."""


class Amount(NamedTuple):
    """An exact value, numerator / denominator (a Fraction would load a megabyte of decimal)."""

    numerator: int
    denominator: int


def parse(text: str) -> Amount:
    """The exact value. Raises ValueError, worded for the user, when `text` is no quantity."""
    found = _FORM.fullmatch(text) if len(text) <= MAX_TEXT else None
    if found is None:
        raise ValueError(_advice(text))
    sign, number, suffix, exponent = found.groups()
    digits, _, decimals = number.partition(".")
    power = int(exponent or 0) - len(decimals)
    scale, divisor = _SCALE[suffix or ""]
    value = int(sign + digits + decimals) * scale * 10 ** max(power, 0)
    return Amount(value, divisor * 10 ** max(-power, 0))


def more(text: str, than: str) -> bool:
    """Whether one quantity is larger than another. Raises ValueError."""
    one, two = parse(text), parse(than)
    return one.numerator * two.denominator > two.numerator * one.denominator


def milli(text: str) -> int:
    """CPU in milli-CPU: "0.5" is 500, "1m" is 1. Raises ValueError."""
    return _up(parse(text), 1000)


def whole(text: str) -> int:
    """Bytes (or pieces): "1Ki" is 1024, "100m" is 1. Raises ValueError."""
    return _up(parse(text), 1)


def binary(size: int) -> str:
    """Bytes as an API server writes them: 1073741824 is "1Gi", 1536 is "1536". What it gets otherwise, it rewrites."""
    return _shortest(size, 1024, ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))


def decimal(number: int) -> str:
    """A number as an API server writes it: 110 is "110", 2000 is "2k"."""
    return _shortest(number, 1000, ("", "k", "M", "G", "T", "P", "E"))


def _shortest(number: int, step: int, suffixes: tuple[str, ...]) -> str:
    """With the largest suffix that leaves a whole number."""
    at = 0
    while number and number % step == 0 and at + 1 < len(suffixes):
        number, at = number // step, at + 1
    return f"{number}{suffixes[at]}"


def _up(amount: Amount, times: int) -> int:
    return min(-(-amount.numerator * times // amount.denominator), LIMIT)


def _advice(text: str) -> str:
    hint = ""
    tail = text.lstrip("0123456789.+-").strip()
    guess = {"mb": "M", "gb": "G", "kb": "k", "mib": "Mi", "gib": "Gi", "kib": "Ki", "g": "G", "ki": "Ki", "mi": "Mi"}
    guess |= {"gi": "Gi", "b": "", "tb": "T", "tib": "Ti", "t": "T"}
    if tail.lower() in guess and tail != guess[tail.lower()]:
        number = text[: len(text) - len(tail)].strip() if text.endswith(tail) else ""
        hint = f"; did you mean {number + guess[tail.lower()]!r}?" if number else ""
    return f"{text[:40]!r} is not a quantity: write a number with a suffix such as 500m, 64Mi, 1.5Gi{hint}"
