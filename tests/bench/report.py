"""Rows of the bench as values, and the table that a person reads."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One budget: what was measured, the limit in the same unit, and how the limit came about."""

    name: str
    value: float
    limit: float
    unit: str = "s"
    how: str = ""

    @property
    def share(self) -> float:
        """Measured value as a part of its limit; above 1 = missed."""
        return self.value / self.limit

    def __str__(self) -> str:
        verdict = "ok" if self.share <= 1 else f"MISSED by {self.share:.2f}x"
        numbers = f"{self.value:>9.3f} {self.limit:>9.3f} {self.unit:<5} {self.share:>5.2f}"
        return f"{self.name:<58} {numbers}  {verdict:<16} {self.how}"


HEADER = f"{'ROW':<58} {'MEASURED':>9} {'BUDGET':>9} {'UNIT':<5} {'SHARE':>5}  {'VERDICT':<16} BUDGET IS"


def median(values: Sequence[float]) -> float:
    """The median; at least one value."""
    return float(statistics.median(values))


def spread(values: Sequence[float]) -> str:
    """Lowest and highest, for judging the noise."""
    return f"{min(values):.3f}..{max(values):.3f}"
