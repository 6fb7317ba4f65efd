"""Tables as kubectl aligns them (tabwriter: minimum 6, padding 3), JSON and YAML as it writes them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from ..model.plain import one_line

Json = dict[str, Any]

MINIMUM = 6
PADDING = 3


class Columns:
    """Prints rows in columns; widths are remembered, so that later rows (watch) line up with earlier ones."""

    def __init__(self) -> None:
        self._widths: list[int] = []

    def text(self, rows: Sequence[Sequence[str]]) -> str:
        """These rows, each with its newline; what a terminal would act upon (in a file's name) is written out."""
        rows = [[one_line(cell) for cell in row] for row in rows]
        for row in rows:
            for index, cell in enumerate(row):
                self._widen(index, len(cell))
        return "".join(self._line(row) for row in rows)

    def _widen(self, index: int, length: int) -> None:
        if index == len(self._widths):
            self._widths.append(0)
        self._widths[index] = max(self._widths[index], length + PADDING, MINIMUM)

    def _line(self, row: Sequence[str]) -> str:
        *padded, last = row
        return "".join(cell.ljust(width) for cell, width in zip(padded, self._widths, strict=False)) + f"{last}\n"


def as_json(value: Json) -> str:
    """JSON as kubectl prints it: four spaces, sorted keys."""
    return json.dumps(value, indent=4, sort_keys=True, ensure_ascii=False) + "\n"


def as_yaml(value: Json) -> str:
    """YAML as kubectl prints it: sorted keys, block style."""
    import yaml

    class GoLike(yaml.SafeDumper):
        """Quotes and folds as Go's YAML libraries do."""

        def choose_scalar_style(self) -> str:
            style = str(super().choose_scalar_style())
            return '"' if style == "'" else style

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    GoLike.add_representer(str, text)
    return yaml.dump(value, Dumper=GoLike, default_flow_style=False, allow_unicode=True, width=1 << 20)


def as_list(items: list[Json]) -> Json:
    """Several objects as the one that kubectl prints."""
    return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}


def emit(text: str) -> None:
    """Write to standard output at once (watches are read by people and pipes)."""
    sys.stdout.write(text)
    sys.stdout.flush()
