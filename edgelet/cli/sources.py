"""`edgelet get sources`: where pods come from, what is wrong there, and with `-o wide` every file."""

from __future__ import annotations

import argparse
from typing import Any

from ..model.plain import one_line
from . import client as api
from . import printing

Json = dict[str, Any]
Rows = list[list[str]]

_HEADINGS = ["NAME", "STATE", "PODS", "LOCATION", "MESSAGE"]
_WIDE = ["NAME", "STATE", "PODS", "LAST GOOD READ", "LAST TRY", "LOCATION", "MESSAGE"]
_FILES = ["FILE", "STATE", "PODS", "MESSAGE"]


def show(client: api.Client, args: argparse.Namespace) -> int:
    """Print the sources in the form that is asked for."""
    found = client.get("/apis/edgelet.io/v1/sources")
    if args.output in ("json", "yaml"):
        printing.emit(printing.as_json(found) if args.output == "json" else printing.as_yaml(found))
    elif args.output == "name":
        printing.emit("".join(f"source/{source['name']}\n" for source in found["items"]))
    else:
        wide = args.output == "wide"
        printing.emit(_table(found["items"], wide, not args.no_headers))
        printing.emit("".join(_files(s) if wide and s["files"] else _problems(s) for s in found["items"]))
    return 0


def _table(items: list[Json], wide: bool, headings: bool) -> str:
    rows: Rows = [_WIDE if wide else _HEADINGS] if headings else []
    return printing.Columns().text([*rows, *(_row(source, wide) for source in items)])


def _row(source: Json, wide: bool) -> list[str]:
    read = [source["readAt"] or "never", source["triedAt"] or "never"] if wide else []
    place = source["location"] or "<none>"
    return [source["name"], _state(source), str(source["pods"]), *read, place, source["message"]]


def _state(source: Json) -> str:
    if not source["ok"]:
        return "Lost"
    return "Faulty" if source["problems"] else "Good"


def _problems(source: Json) -> str:
    return "".join(f"  {one_line(problem)}\n" for problem in source["problems"])


def _files(source: Json) -> str:
    rows = [[f["file"], _file_state(f), ",".join(f["pods"]) or "<none>", *_first(f)] for f in source["files"]]
    return "\n" + printing.Columns().text([_FILES, *rows])


def _file_state(file: Json) -> str:
    """LastGood = refused, and an earlier version runs; Refused = nothing of it runs that is not in it."""
    if file["skipped"]:
        return "Skipped"
    if file["fromLastGood"]:
        return "LastGood"
    if not file["accepted"]:
        return "Refused"
    return "Warned" if file["warnings"] else "Good"


def _first(file: Json) -> list[str]:
    """The first sentence about it, and how many more there are (`-o json` shows all)."""
    said = [line for line in [file["skipped"], *file["error"].splitlines(), *file["warnings"]] if line]
    more = f" (and {len(said) - 1} more)" if len(said) > 1 else ""
    return [said[0] + more] if said else [""]
