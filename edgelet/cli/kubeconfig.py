"""`edgelet kubeconfig`: what kubectl, or any Kubernetes client, needs to reach this agent, on standard output."""

from __future__ import annotations

import argparse
from typing import Any

from . import client as api
from . import printing


def add_parser(subparsers: Any) -> None:
    """Add `kubeconfig`."""
    text = "print a kubeconfig with certificate authority and token inside (keep it secret)"
    parser = subparsers.add_parser("kubeconfig", help=text, description=text, allow_abbrev=False)
    parser.add_argument("--role", choices=("view", "admin"), default="view", help="what its owner may do")
    parser.add_argument("--server", default="", metavar="ADDRESS", help="HOST[:PORT] to reach the agent by")
    api.add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Print it."""
    query = {"role": args.role, **({"server": args.server} if args.server else {})}
    printing.emit(printing.as_yaml(api.connect(args).post("/apis/edgelet.io/v1/kubeconfig", query)))
    return 0
