"""Query parameters and Accept headers, read strictly (pure). A mistake raises BadRequest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import humans

Get = Callable[[str], str]
"""The last value of a query parameter, "" when it is absent."""


class BadRequest(ValueError):
    """The request cannot be understood; the message goes to the caller."""


def flag(get: Get, name: str) -> bool:
    """A boolean, as Go's strconv.ParseBool reads it; absent = false."""
    text = get(name)
    if text in ("", "0", "f", "F", "false", "FALSE", "False"):
        return False
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    raise BadRequest(f'cannot read parameter {name}: "{text}" is not a boolean')


def integer(get: Get, name: str, least: int = 0) -> int | None:
    """An integer of at least `least`; None when absent."""
    text = get(name)
    if not text:
        return None
    if not text.isascii() or not text.lstrip("-").isdigit() or len(text) > 19:
        raise BadRequest(f'cannot read parameter {name}: "{text}" is not an integer')
    if int(text) < least:
        raise BadRequest(f"cannot use parameter {name}: {text} must be greater than or equal to {least}")
    return int(text)


def moment(get: Get, name: str) -> float | None:
    """An RFC 3339 time stamp as epoch seconds; None when absent."""
    text = get(name)
    if not text:
        return None
    try:
        return humans.parse(text)
    except (ValueError, OverflowError) as error:
        raise BadRequest(f'cannot read parameter {name}: "{text}" is not an RFC 3339 time stamp') from error


def wants_table(accept: str) -> bool:
    """Whether the first representation asked for that we know is a meta.k8s.io/v1 Table."""
    for choice in accept.split(","):
        kind, *options = (part.strip() for part in choice.split(";"))
        given: dict[str, Any] = dict(option.split("=", 1) for option in options if "=" in option)
        if given.get("as") == "Table" and given.get("g") == "meta.k8s.io":
            if given.get("v") == "v1":
                return True
        elif kind in ("application/json", "*/*", "") and "as" not in given:
            return False
    return False
