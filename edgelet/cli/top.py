"""`edgelet top pods|nodes`: what is used now, as kubectl top prints it."""

from __future__ import annotations

import argparse
import re
from typing import Any

from . import client as api
from . import names, printing
from .get import Usage

Json = dict[str, Any]

METRICS = "/apis/metrics.k8s.io/v1beta1"
_KINDS = {
    **dict.fromkeys(("pods", "pod", "po"), "pods"),
    **dict.fromkeys(("nodes", "node", "no"), "nodes"),
}
_UNITS = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def add_parser(subparsers: Any) -> None:
    """Add `top`."""
    parser = subparsers.add_parser("top", help="show what pods or the node use", allow_abbrev=False)
    parser.add_argument("resource", metavar="pods|nodes", nargs="?", default="pods", help="of what (default: pods)")
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="only this one")
    parser.add_argument("--containers", action="store_true", help="a line for each container")
    parser.add_argument("--sort-by", choices=("cpu", "memory"), default="", help="the greatest first")
    parser.add_argument("-l", "--selector", default="", metavar="QUERY", help="label selector, such as app=web")
    parser.add_argument("--no-headers", action="store_true", help="no headings")
    names.add_namespace(parser, everywhere=True)
    api.add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Print it."""
    kind = _KINDS.get(args.resource)
    if kind is None:
        raise Usage(f'cannot show what "{args.resource}" use: known are pods and nodes')
    client = api.connect(args)
    rows = _nodes(client) if kind == "nodes" else _pods(client, args)
    printing.emit(printing.Columns().text(rows[1:] if args.no_headers else rows))
    return 0


def _nodes(client: api.Client) -> list[list[str]]:
    capacity = {n["metadata"]["name"]: n["status"]["allocatable"] for n in client.get("/api/v1/nodes")["items"]}
    rows = [["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"]]
    for item in client.get(f"{METRICS}/nodes")["items"]:
        name, usage = item["metadata"]["name"], item["usage"]
        cpu, memory = amount(usage["cpu"]), amount(usage["memory"])
        whole = capacity[name]
        parts = [f"{100 * cpu / amount(whole['cpu']):.0f}%", f"{100 * memory / amount(whole['memory']):.0f}%"]
        rows.append([name, _milli(cpu), parts[0], _mebi(memory), parts[1]])
    return rows


def _pods(client: api.Client, args: argparse.Namespace) -> list[list[str]]:
    everywhere = args.all_namespaces
    if args.name:
        name = names.full_name(client, args.namespace, args.name)
        items = [client.get(api.pod_path(args.namespace, name, METRICS))]
    else:
        query = {"labelSelector": args.selector} if args.selector else None
        items = client.get(api.pod_path("" if everywhere else args.namespace, "", METRICS), query)["items"]
    lines = [line for item in items for line in _lines(item, args.containers)]
    if args.sort_by:
        lines.sort(key=lambda line: line[1] if args.sort_by == "cpu" else line[2], reverse=True)
    head = (["NAMESPACE"] if everywhere else []) + (["POD", "NAME"] if args.containers else ["NAME"])
    rows = [[*head, "CPU(cores)", "MEMORY(bytes)"]]
    for texts, cpu, memory in lines:
        rows.append([*(texts if everywhere else texts[1:]), _milli(cpu), _mebi(memory)])
    return rows


def _lines(item: Json, each: bool) -> list[tuple[list[str], float, float]]:
    meta = item["metadata"]
    used = [(c["name"], amount(c["usage"]["cpu"]), amount(c["usage"]["memory"])) for c in item["containers"]]
    place = [meta["namespace"], meta["name"]]
    if each:
        return [([*place, name], cpu, memory) for name, cpu, memory in used]
    return [(place, sum(c for _, c, _ in used), sum(m for _, _, m in used))]


def amount(quantity: str) -> float:
    """The number that a quantity of the API means."""
    found = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", quantity)
    return float(found[1]) * _UNITS[found[2]] if found else 0.0


def _milli(cores: float) -> str:
    return f"{max(1, round(cores * 1000)) if cores > 0 else 0}m"


def _mebi(size: float) -> str:
    return f"{int(size) >> 20}Mi"
