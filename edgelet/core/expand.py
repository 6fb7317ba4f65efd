"""Decides what `$(NAME)` means in env values, commands and arguments (semantics 5.1.4). Pure text."""

from __future__ import annotations

from collections.abc import Mapping

from ..model.pod import EnvVar


def expand(text: str, mapping: Mapping[str, str]) -> str:
    """Replace each `$(NAME)` by its value, once and without recursion.

    `$$` gives one `$` (so `$$(NAME)` stays the text `$(NAME)`), a name that is not in `mapping`
    stays as it was written, and so does any other `$`.
    """
    if "$" not in text:
        return text
    out: list[str] = []
    at = 0
    while (dollar := text.find("$", at)) >= 0:
        out.append(text[at:dollar])
        token, at = _token(text, dollar, mapping)
        out.append(token)
    out.append(text[at:])
    return "".join(out)


def _token(text: str, dollar: int, mapping: Mapping[str, str]) -> tuple[str, int]:
    """What the `$` at `dollar` stands for, and where to go on."""
    after = text[dollar + 1 : dollar + 2]
    if after == "$":
        return "$", dollar + 2
    if after == "(" and (end := text.find(")", dollar + 2)) >= 0:
        return mapping.get(text[dollar + 2 : end], text[dollar : end + 1]), end + 1
    return "$" + after, dollar + 1 + len(after)


def expand_env(env: tuple[EnvVar, ...], base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of a container in list order, each value expanded against the earlier ones.

    `base` holds variables that are there before the list begins (envFrom). A name that comes twice
    keeps its last value, which may refer to the one before.
    """
    result = dict(base or {})
    for var in env:
        result[var.name] = expand(var.value, result)
    return result
