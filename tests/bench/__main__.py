"""Runs the rows that were named, or all, and prints the table; exits 1 when a budget is missed by more than half."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator

from tests.support.podman_env import why_not

from . import timing, tmpfs, weight
from .report import HEADER, Row
from .rig import Rig

ROWS: dict[str, Callable[[Rig, int], Iterator[Row]]] = {
    "commands": timing.commands,
    "start": timing.start,
    "restart": timing.restart,
    "notice": timing.notice,
    "edit": timing.edit,
    "remove": timing.remove,
    "many": timing.many,
    "memory": weight.memory,
    "exec": weight.exec_probe,
    "cpu": weight.idle_cpu,
    "planning": weight.planning,
    "soak": weight.soak,
    "written": weight.written,
}


def main() -> int:
    """0 = nothing missed by more than 1.5x."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []], help=f"rows to measure: {', '.join(ROWS)} (all)")
    parser.add_argument("--runs", type=int, default=10, help="repetitions of each measurement (10)")
    args = parser.parse_args()
    if reason := why_not():
        print(f"cannot measure: {reason}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    print(HEADER)
    for name in args.rows or ROWS:
        if name == "written" and tmpfs.needed():
            print("  (/run is on a disk here: the next row runs with a tmpfs of its own there)", file=sys.stderr)
            tmpfs.run(name)
            continue
        began = time.monotonic()
        with Rig() as rig:
            for row in ROWS[name](rig, args.runs):
                rows.append(row)
                print(row, flush=True)
        print(f"  ({name}: {time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
    missed = [r for r in rows if r.share > 1]
    print(f"{len(rows)} rows, {len(missed)} missed")
    return int(any(r.share > 1.5 for r in rows))


if __name__ == "__main__":
    sys.exit(main())
