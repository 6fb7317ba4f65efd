"""`edgelet events`: short for `edgelet get events`."""

from __future__ import annotations

import argparse
from typing import Any

from . import get


def add_parser(subparsers: Any) -> None:
    """Add `events`."""
    parser = subparsers.add_parser("events", help="list events", allow_abbrev=False)
    parser.add_argument("--for", dest="object", default="", metavar="pod/NAME", help="only those of that pod")
    get.add_list_flags(parser)


def run(args: argparse.Namespace) -> int:
    """List them."""
    args.resource, args.names = "events", []
    if args.object:
        from . import client, names

        name = names.full_name(client.connect(args), args.namespace, args.object)
        fields = [args.field_selector] if args.field_selector else []
        args.field_selector = ",".join([*fields, f"involvedObject.name={name}"])
    return get.run(args)
