"""`edgelet exec [-it] POD -- CMD`: a command in a container over the API's WebSocket; its exit code is ours."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from .. import errors
from . import client as api
from . import names


class NotStarted(errors.EdgeletError):
    """The command could not be run; exit code 126, as a shell would say."""

    exit_code = 126


def add_parser(subparsers: Any) -> None:
    """Add `exec`."""
    parser = subparsers.add_parser(
        "exec",
        help="run a command in a container",
        usage="edgelet exec POD [-c CONTAINER] [-i] [-t] [-n NS] [--socket PATH] -- CMD ARG...",
        allow_abbrev=False,
    )
    parser.add_argument("pod", metavar="POD")
    parser.add_argument("-c", "--container", default="", help="which container of the pod")
    parser.add_argument("-i", "--stdin", action="store_true", help="hand standard input to the command")
    parser.add_argument("-t", "--tty", action="store_true", help="give the command a terminal")
    # cli.main keeps what stands after "--" in args.argv.
    names.add_namespace(parser)
    api.add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Run it to its end."""
    if not args.argv:
        raise NotStarted("cannot execute: no command given; write it after --, as in: edgelet exec POD -- ls")
    client = api.connect(args)
    pod = names.find(client, args.namespace, args.pod)
    tty = args.tty and sys.stdin.isatty()
    if args.tty and not tty:
        print("Unable to use a TTY - input is not a terminal", file=sys.stderr)
    query = [("command", word) for word in args.argv]
    query += [("container", args.container or names.default_container(pod))]
    query += [("stdout", "true"), ("stderr", "true"), ("stdin", _flag(args.stdin)), ("tty", _flag(tty))]
    from . import exec_stream  # tornado's WebSocket client is only needed here

    path = f"{api.pod_path(args.namespace, pod['metadata']['name'])}/exec"
    return _exit_code(exec_stream.run(client.path, path, query, args.stdin, tty))


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _exit_code(status: dict[str, Any] | None) -> int:
    """The exit code that the final v1.Status tells."""
    if status is None:
        raise NotStarted("cannot tell how the command ended: the connection broke")
    if status.get("status") == "Success":
        return 0
    causes = (status.get("details") or {}).get("causes") or []
    for cause in causes:
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    raise NotStarted(f"error: {status.get('message', json.dumps(status))}")
