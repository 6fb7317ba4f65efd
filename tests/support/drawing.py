"""Draws curves as SVG, so that pictures in docs/ can be made again by anybody with nothing installed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 760, 320, 64, 40, 40, 20
COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b")


@dataclass(frozen=True)
class Curve:
    """A named line through (x, y) points."""

    name: str
    points: Sequence[tuple[float, float]]


def chart(path: Path, title: str, curves: list[Curve]) -> None:
    """Write a chart of the curves; x in seconds, both axes linear, y from 0."""
    xs = [x for c in curves for x, _ in c.points]
    top = _nice(max((y for c in curves for _, y in c.points), default=1.0))
    low, high = min(xs), max(xs)

    def place(x: float, y: float) -> str:
        across = LEFT + (x - low) / (high - low) * (WIDTH - LEFT - RIGHT)
        return f"{across:.1f},{HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="14">{title}</text>',
    ]
    for step in range(5):
        value = top * step / 4
        x, y = place(low, value).split(",")
        parts.append(f'<line x1="{x}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{float(y) + 4:.1f}" text-anchor="end">{value:g}</text>')
        at = low + (high - low) * step / 4
        x, y = place(at, 0).split(",")
        parts.append(f'<text x="{x}" y="{float(y) + 18:.1f}" text-anchor="middle">{at:.0f} s</text>')
    for number, curve in enumerate(curves):
        color = COLORS[number % len(COLORS)]
        line = " ".join(place(x, y) for x, y in curve.points)
        parts.append(f'<polyline fill="none" stroke="{color}" stroke-width="1.3" points="{line}"/>')
        parts.append(f'<text x="{LEFT + 8 + 165 * number}" y="34" fill="{color}">{curve.name}</text>')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*parts, "</svg>"]) + "\n")


def _nice(value: float) -> float:
    """The next round number."""
    power = 10.0 ** math.floor(math.log10(max(value, 1e-9)))
    return next(power * m for m in (1, 1.2, 1.5, 2, 3, 4, 5, 6, 8, 10) if power * m >= value)
