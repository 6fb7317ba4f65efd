"""Which pod a person means: the full name, or the manifest's own name without the node suffix."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from . import client as api

Json = dict[str, Any]

SHORT_NAME = "edgelet.io/short-name"
SUMMARY = "edgelet.io/summary"
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


def add_namespace(parser: argparse.ArgumentParser, everywhere: bool = False) -> None:
    """The flags -n and, for lists, -A."""
    parser.add_argument("-n", "--namespace", default="default", metavar="NS", help="namespace (default: default)")
    if everywhere:
        parser.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces")


def find(client: api.Client, namespace: str, name: str) -> Json:
    """The pod object that `name` means in that namespace; "pod/NAME" is understood. Raises ApiFailure."""
    bare = plain(name)
    try:
        return client.get(api.pod_path(namespace, bare))
    except api.ApiFailure as error:
        if error.code != 404:
            raise
        not_found = error
    pods = client.get(api.pod_path(""))["items"]
    for pod in pods:
        if pod["metadata"]["namespace"] == namespace and bare in names(pod):
            return {"kind": "Pod", "apiVersion": "v1", **pod}
    raise _elsewhere(pods, bare, not_found)


def full_name(client: api.Client, namespace: str, name: str) -> str:
    """The full name of the pod that `name` means."""
    return str(find(client, namespace, name)["metadata"]["name"])


def default_container(pod: Json) -> str:
    """The container meant when none is named: the annotated one, else the first; said aloud where it is a choice."""
    spec = pod["spec"]
    regular = [c["name"] for c in spec["containers"]]
    inits = [c["name"] for c in spec.get("initContainers") or ()]
    annotated = (pod["metadata"].get("annotations") or {}).get(DEFAULT_CONTAINER)
    if annotated in (*regular, *inits):
        return str(annotated)
    if len(regular) + len(inits) > 1:
        choices = ", ".join([*regular, *(f"{name} (init)" for name in inits)])
        print(f'Defaulted container "{regular[0]}" out of: {choices}', file=sys.stderr)
    return str(regular[0])


def names(pod: Json) -> tuple[str, ...]:
    """All names that mean this pod."""
    meta = pod["metadata"]
    short = (meta.get("annotations") or {}).get(SHORT_NAME)
    return (meta["name"], short) if short else (meta["name"],)


def plain(name: str) -> str:
    """The name without a kind before it: pod/web and pods/web are web."""
    kind, slash, rest = name.partition("/")
    return rest if slash and kind in ("pod", "pods", "po") else name


def _elsewhere(pods: list[Json], name: str, not_found: api.ApiFailure) -> api.ApiFailure:
    """The refusal, with the namespace that was probably meant."""
    places = sorted({pod["metadata"]["namespace"] for pod in pods if name in names(pod)})
    if not places:
        return not_found
    message = f'pods "{name}" not found here; it is in namespace {places[0]}: add -n {places[0]}'
    return api.ApiFailure({"reason": "NotFound", "message": message, "code": 404})
