"""What an unquoted YAML word means: the table of Go's YAML v2, which all Kubernetes tools share.

It differs from YAML 1.1 as PyYAML reads it: no sexagesimal numbers, no dates, `y` and `on` are
booleans, `0o17` and `1e1` are numbers, `=` is text. Checked value by value against kubectl.
"""

from __future__ import annotations

import base64
import binascii
import math
import re

Scalar = str | int | float | bool | None

_TRUE = ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"]
_FALSE = ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"]
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
    **dict.fromkeys(["", "~", "null", "Null", "NULL"], None),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], math.nan),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], math.inf),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], -math.inf),
}
_INT = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_TAG = "tag:yaml.org,2002:"
_LONGEST_NUMBER = 400


def resolve(text: str, plain: bool, tag: str | None) -> Scalar:
    """The value of a scalar. `plain` = written without quotes; `tag` = explicit tag or None.

    Raises ValueError, worded for the user, for a tag that its text does not fit, and for numbers
    that JSON cannot hold.
    """
    if tag is None:
        return _finite(_plain(text), text) if plain else text
    if tag == _TAG + "binary":
        return _binary(text)
    if tag in (_TAG + "int", _TAG + "float", _TAG + "bool", _TAG + "null"):
        return _tagged(text, tag.removeprefix(_TAG))
    return text


def kind_of(value: Scalar) -> str:
    """str | int | float | bool | null."""
    return "null" if value is None else type(value).__name__


def _plain(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if not (first.isascii() and (first.isdigit() or first in "+-.")) or len(text) > _LONGEST_NUMBER:
        return text
    digits = text if first == "." else text.replace("_", "")
    if first != "." and _INT.fullmatch(digits):
        value = _int(digits)
        if -(2**63) <= value < 2**64:
            return value
    if _FLOAT.fullmatch(digits):
        return _float(digits, text)
    return text


def _int(digits: str) -> int:
    sign = -1 if digits[0] == "-" else 1
    body = digits.lstrip("+-").lower()
    if body.startswith("0") and body.isdigit():
        return sign * int(body, 8)
    return sign * int(body, 0)


def _float(digits: str, text: str) -> Scalar:
    value = float(digits)
    if math.isinf(value):
        return text
    # JSON has one kind of number: a whole one reads as an integer, whatever way it was written.
    return int(value) if value.is_integer() and abs(value) < 1e21 else value


def _finite(value: Scalar, text: str) -> Scalar:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{text} is not a number that a manifest can hold; quote it if it is text")
    return value


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError) as error:
        raise ValueError("the value tagged !!binary is not base64 of UTF-8 text") from error


def _tagged(text: str, want: str) -> Scalar:
    value = _finite(_plain(text), text)
    got = kind_of(value)
    if got == want or (got, want) == ("int", "float"):
        return value
    raise ValueError(f"{text[:40]!r} is tagged !!{want} but is not one")
