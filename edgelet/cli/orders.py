"""`edgelet restart|stop|start POD`: orders to the agent."""

from __future__ import annotations

import argparse
from typing import Any

from . import client as api
from . import names

_HELP = {
    "restart": "stop and start a pod's containers again",
    "stop": "stop a pod and keep it stopped, over reboots too",
    "start": "end a stop: the pod runs again",
}
_DONE = {"restart": "restarting", "stop": "stopping (edgelet start ends that)", "start": "starting"}


def add_parser(subparsers: Any) -> None:
    """Add the three commands."""
    for order, text in _HELP.items():
        parser = subparsers.add_parser(order, help=text, allow_abbrev=False)
        parser.add_argument("pods", nargs="+", metavar="POD")
        if order == "restart":
            parser.add_argument("-c", "--container", default="", help="only this container")
        names.add_namespace(parser)
        api.add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Give the order for each pod named."""
    client = api.connect(args)
    container = getattr(args, "container", "")
    for pod in args.pods:
        name = names.full_name(client, args.namespace, pod)
        path = api.pod_path(args.namespace, name, "/apis/edgelet.io/v1")
        client.post(f"{path}/{args.command}", {"container": container} if container else None)
        print(f"pod/{name} {_DONE[args.command]}")
    return 0
