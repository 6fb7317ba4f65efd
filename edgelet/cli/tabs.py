"""Elastic tab stops as Go's text/tabwriter lays them out (minimum width 0, padding 2): kubectl describe's way."""

from __future__ import annotations

PADDING = 2

Cells = list[str]


def align(text: str) -> str:
    """Replace tabs by blanks: neighbouring lines that have a cell in a column share its width."""
    lines = [line.split("\t") for line in text.split("\n")]
    return "\n".join(_lay(lines, []))


def _lay(lines: list[Cells], widths: list[int]) -> list[str]:
    column = len(widths)
    out: list[str] = []
    index = 0
    while index < len(lines):
        end = index
        while end < len(lines) and column < len(lines[end]) - 1:
            end += 1
        if end == index:
            out.append(_write(lines[index], widths))
            index += 1
            continue
        block = lines[index:end]
        width = max(len(cells[column]) for cells in block) + PADDING
        out += _lay(block, [*widths, width])
        index = end
    return out


def _write(cells: Cells, widths: list[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=False)]
    return "".join([*padded, *cells[len(padded) :]])
