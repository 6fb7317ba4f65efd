"""A mistake or a remark about a manifest: where it is, what is wrong and what to do."""

from __future__ import annotations

from dataclasses import dataclass

from .plain import one_line, plain


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding.

    `document` counts from 1; `line` and `column` from 1 (0 = unknown); `path` is the field path as
    the API server writes it: ``spec.containers[0].image``.  `unknown` = what stands at `path` is no field,
    or stands there twice: what the API's fieldValidation is about.
    """

    message: str
    file: str = ""
    document: int = 0
    line: int = 0
    column: int = 0
    path: str = ""
    warning: bool = False
    unknown: bool = False

    def __str__(self) -> str:
        where = ":".join(str(x) for x in (one_line(self.file), self.line, self.column) if x)
        level = "warning" if self.warning else "error"
        parts = [where, level] if where else [level]
        text = ": ".join([*parts, self.path] if self.path else parts)
        return plain(f"{text}: {self.message}")
