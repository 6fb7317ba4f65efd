"""`edgelet apply -f FILE|-`: give pods to the agent; they are kept over reboots until deleted."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from .. import errors
from ..model.problems import Problem
from . import client as api

Json = dict[str, Any]

SUFFIXES = (".yaml", ".yml", ".json")
MAX_BYTES = 10 * 2**20


class Unreadable(errors.EdgeletError):
    """A file cannot be read; the message names it."""


def add_parser(subparsers: Any) -> None:
    """Add `apply`."""
    text = "create or change pods from manifests; they are kept over reboots until `edgelet delete`"
    parser = subparsers.add_parser("apply", help=text, description=text, allow_abbrev=False)
    parser.add_argument(
        "-f", "--filename", action="append", required=True, metavar="FILE|DIR|-", help="manifests; - = standard input"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument("--strict", action="store_true", help="treat warnings as errors")
    api.add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Apply one file after the other; 1 if any was refused."""
    client = api.connect(args)
    good = [_apply(client, path, args) for path in _files(args.filename)]
    return 0 if all(good) else 1


def _apply(client: api.Client, path: str, args: argparse.Namespace) -> bool:
    shown = "<stdin>" if path == "-" else path
    query = {**({"dryRun": "All"} if args.dry_run else {}), **({"strict": "true"} if args.strict else {})}
    data = _read(path)
    try:
        found = client.send("POST", "/apis/edgelet.io/v1/apply", query, data, "application/yaml")
    except api.ApiFailure as error:
        problems = (error.status.get("details") or {}).get("problems")
        if not problems:
            raise
        _tell(problems, shown)
        return False
    _tell(found["problems"], shown)
    for item in found["items"]:
        print(f"pod/{item['name']} {item['verb']}{' (dry run)' if args.dry_run else ''}", flush=True)
    return True


def _tell(problems: list[Json], shown: str) -> None:
    for p in problems:
        warning = p["level"] == "warning"
        print(Problem(p["message"], shown, p["document"], p["line"], p["column"], p["path"], warning), file=sys.stderr)


def _files(paths: list[str]) -> list[str]:
    """The files meant; a directory stands for the manifests in it."""
    found: list[str] = []
    for path in paths:
        if path == "-" or not os.path.isdir(path):
            found.append(path)
            continue
        inside = sorted(n for n in os.listdir(path) if n.endswith(SUFFIXES) and not n.startswith("."))
        if not inside:
            raise Unreadable(f"cannot apply {path}: there is no {', '.join(SUFFIXES)} file in it")
        found += [os.path.join(path, name) for name in inside]
    return found


def _read(path: str) -> bytes:
    try:
        if path == "-":
            return sys.stdin.buffer.read(MAX_BYTES + 1)
        with open(path, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unreadable(f"cannot read {path}: {error.strerror}") from error
