"""Quantities as the server keeps them: 1024Mi becomes 1Gi, 0.1 becomes 100m (apimachinery, CanonicalizeBytes)."""

from __future__ import annotations

import re

from edgelet.model import quantity

_DECIMAL = ("m", "", "k", "M", "G", "T", "P", "E")


def canonical(text: str) -> str:
    """The quantity in its one form, rounded up to thousandths as those of resources are. Raises ValueError."""
    amount = quantity.parse(text)
    top, bottom = amount.numerator, amount.denominator
    if text.endswith("i") and abs(top) >= 1024 * bottom:
        return quantity.binary(-(-top // bottom))
    number, at = -(-top * 1000 // bottom), 0
    if not number:
        return "0"
    while number % 1000 == 0 and at + 1 < len(_DECIMAL):
        number, at = number // 1000, at + 1
    if re.search("[eE][-+]?[0-9]+$", text):
        return f"{number}e{3 * (at - 1)}" if at != 1 else str(number)
    return f"{number}{_DECIMAL[at]}"
