"""`edgelet run`: the agent in the foreground; its settings are merged by edgelet.config."""

from __future__ import annotations

import argparse
import os
import pathlib
from typing import Any

from .. import config


def add_parser(subparsers: Any) -> None:
    """Add `run` with all its flags."""
    parser = subparsers.add_parser("run", help="run the agent in the foreground", allow_abbrev=False)
    config.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Load the settings and run until told to stop. Raises errors.ConfigError with every mistake."""
    if args.global_socket and not getattr(args, "socket", None):
        args.socket = args.global_socket
    settings = config.load(args, os.environ, lambda path: pathlib.Path(path).read_bytes(), args.unknown)
    from .. import app  # the heavy part: only once the settings are right

    return int(app.run(settings))
