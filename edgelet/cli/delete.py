"""`edgelet delete pod NAME`: end pods that were given by `edgelet apply` or kubectl, and wait until they are gone."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from . import client as api
from . import names
from .get import Usage

Json = dict[str, Any]

LOOK_SECONDS = 0.2
"""Between two looks at a pod that ends; only while the command waits."""


def add_parser(subparsers: Any) -> None:
    """Add `delete`."""
    text = "end pods that were submitted, for good (pods of files: remove the file; to pause one: edgelet stop)"
    parser = subparsers.add_parser("delete", help=text, description=text, allow_abbrev=False)
    parser.add_argument("resource", metavar="pod", help="what to delete; pod/NAME is understood")
    parser.add_argument("names", nargs="*", metavar="NAME", help="the pods")
    parser.add_argument("--grace-period", type=int, default=None, metavar="S", help="seconds instead of the pod's own")
    parser.add_argument("--force", action="store_true", help="at once: as --grace-period 0")
    parser.add_argument("--no-wait", action="store_true", help="do not wait until they are gone")
    parser.add_argument("--ignore-not-found", action="store_true", help="a pod that is not there is no error")
    names.add_namespace(parser)
    api.add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Delete each pod named, then wait for all of them."""
    client = api.connect(args)
    deleted = [pod for name in _names(args) if (pod := _delete(client, args, name))]
    for namespace, name, uid in () if args.no_wait else deleted:
        while _there(client, namespace, name, uid):
            time.sleep(LOOK_SECONDS)
    return 0


def _names(args: argparse.Namespace) -> list[str]:
    kind, slash, name = args.resource.partition("/")
    if kind not in ("pod", "pods", "po"):
        raise Usage(f'cannot delete "{kind}": only pods can be deleted')
    found = [name, *args.names] if slash else args.names
    if not found:
        raise Usage("cannot delete: give the name of a pod")
    if args.grace_period is not None and args.grace_period < 0:
        raise Usage("cannot delete: --grace-period must be 0 or more")
    return found


def _delete(client: api.Client, args: argparse.Namespace, given: str) -> tuple[str, str, str] | None:
    try:
        name = names.full_name(client, args.namespace, given)
        grace = 0 if args.force and args.grace_period is None else args.grace_period
        options: Json = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        body = json.dumps(options).encode()
        found = client.send("DELETE", api.pod_path(args.namespace, name), None, body, "application/json")
    except api.ApiFailure as error:
        if error.code == 404 and args.ignore_not_found:
            return None
        raise
    print(f'pod "{name}" deleted', flush=True)
    return args.namespace, name, found["metadata"]["uid"]


def _there(client: api.Client, namespace: str, name: str, uid: str) -> bool:
    try:
        found: Json = client.get(api.pod_path(namespace, name))
    except api.ApiFailure as error:
        if error.code == 404:
            return False
        raise
    meta = found["metadata"]
    return bool(meta["uid"] == uid and meta.get("deletionTimestamp"))
