"""`edgelet logs POD`: the log of a container, with kubectl's flags."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from . import client as api
from . import names
from .get import Usage

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s|d)")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def add_parser(subparsers: Any) -> None:
    """Add `logs`."""
    parser = subparsers.add_parser("logs", help="print the log of a container", allow_abbrev=False)
    parser.add_argument("pod", metavar="POD")
    parser.add_argument("name", nargs="?", metavar="CONTAINER", help="the same as -c")
    parser.add_argument("-c", "--container", default="", help="which container of the pod")
    parser.add_argument("-f", "--follow", action="store_true", help="go on as the log grows")
    parser.add_argument("-p", "--previous", action="store_true", help="the instance before the present one")
    parser.add_argument("--tail", type=int, default=-1, metavar="N", help="only the last N lines")
    parser.add_argument("--since", default="", metavar="DURATION", help="only newer lines: 5s, 2m, 3h")
    parser.add_argument("--since-time", default="", metavar="TIME", help="only lines after that (RFC 3339)")
    parser.add_argument("--timestamps", action="store_true", help="a time stamp before each line")
    parser.add_argument("--limit-bytes", type=int, default=0, metavar="N", help="at most N bytes")
    parser.add_argument("--all-containers", action="store_true", help="one after the other, all containers")
    parser.add_argument("--prefix", action="store_true", help="which container before each line")
    names.add_namespace(parser)
    api.add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Copy the log to standard output."""
    query = _query(args)
    client = api.connect(args)
    pod = names.find(client, args.namespace, args.pod)
    full = pod["metadata"]["name"]
    path = f"{api.pod_path(args.namespace, full)}/log"
    for container in _containers(args, pod):
        prefix = f"[pod/{full}/{container}] ".encode() if args.prefix and container else b""
        chosen = {**query, "container": container} if container else query
        _copy(client, path, chosen, prefix)
    return 0


def seconds(text: str) -> int:
    """A Go duration (1h30m) in whole seconds, at least one. Raises Usage."""
    if not text or "".join(m.group() for m in _PART.finditer(text)) != text:
        raise Usage(f'cannot read --since "{text}": give a duration such as 5s, 2m or 3h')
    return max(1, round(sum(float(m[1]) * _UNITS[m[2]] for m in _PART.finditer(text))))


def _query(args: argparse.Namespace) -> dict[str, str | int]:
    if args.since and args.since_time:
        raise Usage("cannot use --since and --since-time together: give one")
    query: dict[str, str | int] = {}
    for name, wanted in (("follow", args.follow), ("previous", args.previous), ("timestamps", args.timestamps)):
        if wanted:
            query[name] = "true"
    if args.tail >= 0:
        query["tailLines"] = args.tail
    if args.limit_bytes:
        query["limitBytes"] = args.limit_bytes
    if args.since:
        query["sinceSeconds"] = seconds(args.since)
    if args.since_time:
        query["sinceTime"] = args.since_time
    return query


def _containers(args: argparse.Namespace, pod: dict[str, Any]) -> list[str]:
    """Whose logs: the named one, all, or the default one."""
    given = args.container or args.name or ""
    if not args.all_containers:
        return [given or names.default_container(pod)]
    if given or args.follow:
        raise Usage("cannot use --all-containers with a container or --follow: leave one out")
    spec = pod["spec"]
    return [c["name"] for c in (*(spec.get("initContainers") or ()), *spec["containers"])]


def _copy(client: api.Client, path: str, query: dict[str, str | int], prefix: bytes) -> None:
    out = sys.stdout.buffer
    rest = b""
    for chunk in client.chunks(path, query):
        if not prefix:
            out.write(chunk)
        else:
            *whole, rest = (rest + chunk).split(b"\n")
            out.write(b"".join(prefix + line + b"\n" for line in whole))
        out.flush()
    if rest:
        out.write(prefix + rest)
        out.flush()
