"""`edgelet status`: one look at the whole box; exit code 0 good, 1 degraded, 2 agent down (or it may not be asked)."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..model.plain import one_line
from . import client as api
from . import printing

Json = dict[str, Any]


def add_parser(subparsers: Any) -> None:
    """Add `status`."""
    text = "how the agent, Podman, the sources and the pods are doing (exit 0 good, 1 degraded, 2 not to be known)"
    parser = subparsers.add_parser("status", help=text, description=text, allow_abbrev=False)
    parser.add_argument("-o", "--output", choices=("json", "yaml"), default="", help="another form")
    api.add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Print it; the exit code is the verdict."""
    try:
        found = api.connect(args).get("/apis/edgelet.io/v1/status")
    except (api.AgentDown, api.ApiFailure) as error:  # whether all is well is not known
        print(error, file=sys.stderr)
        return 2
    if args.output:
        printing.emit(printing.as_json(found) if args.output == "json" else printing.as_yaml(found))
    else:
        printing.emit(text(found))
    return 1 if found["degraded"] else 0


def text(found: Json) -> str:
    """The status for a person."""
    pods, podman = found["pods"], found["podman"]
    held = f", {pods['held']} stopped by hand" if pods["held"] else ""
    rows = [
        ["Node:", found["node"]],
        ["Agent:", f"edgelet {found['version']}"],
        ["Podman:", _state(podman["ok"], podman["version"] or "good", podman["message"])],
        *([f"Source {s['name']}:", _source(s)] for s in found["sources"]),
        *([["API server:", _link(found["link"])]] if found.get("link") else []),
        ["Pods:", f"{pods['ready']}/{pods['total']} ready{held}"],
    ]
    lines = [printing.Columns().text(rows)]
    lines += [f"  {p['namespace']}/{p['name']}: {p['reason']}\n" for p in found["notReady"]]
    lines += [f"  {one_line(problem)}\n" for source in found["sources"] for problem in source["problems"]]
    lines += [f"  {problem}\n" for problem in (found.get("link") or {}).get("problems", ())]
    lines += [f"Note: {note}\n" for note in found["notes"]]
    return "".join([*lines, "degraded\n" if found["degraded"] else "good\n"])


def _source(source: Json) -> str:
    count = "1 pod" if source["pods"] == 1 else f"{source['pods']} pods"
    return _state(source["ok"], f"{count} from {source['location']}", source["message"] or source["location"])


def _link(link: Json) -> str:
    """The pods do not depend on it, so what is wrong is told with how long it has been so."""
    since = f" since {link['since']}" if link["since"] else ""
    good = f"connected to {link['server']}{since}"
    waiting = f", {link['pending']} changes to tell" if link["pending"] else ""
    return _state(link["up"], good + waiting, f"{link['message']}{since}{waiting}")


def _state(ok: bool, good: str, bad: str) -> str:
    return good if ok else f"not good: {bad}"
