"""`edgelet describe pod NAME`: one pod in full, laid out as kubectl lays it out, and why it is not Ready."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from typing import Any

from ..adapters.server import humans
from . import client as api
from . import describe_container, names, printing, tabs
from .get import ALIASES, Usage

Json = dict[str, Any]

ANNOTATION_LENGTH = 140
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def add_parser(subparsers: Any) -> None:
    """Add `describe`."""
    parser = subparsers.add_parser("describe", help="show a pod in full, with its events", allow_abbrev=False)
    parser.add_argument("resource", metavar="pod", help="pod, or pod/NAME")
    parser.add_argument("names", nargs="*", metavar="NAME")
    names.add_namespace(parser)
    api.add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Describe each pod named, or all of the namespace."""
    kind, slash, name = args.resource.partition("/")
    if ALIASES.get(kind) != "pods":
        raise Usage(f'cannot describe "{kind}": only pods can be described')
    client = api.connect(args)
    wanted = [name] if slash else args.names
    pods = [names.find(client, args.namespace, n) for n in wanted] or _all(client, args.namespace)
    texts = [pod_text(pod, _events(client, pod), time.time()) for pod in pods]
    printing.emit("\n\n".join(texts))
    return 0


def pod_text(pod: Json, events: list[Json], now: float) -> str:
    """The whole description; ages as of `now` (epoch seconds)."""
    lines = [*_head(pod, now), *_containers(pod), *_tail(pod), *_event_lines(events, now)]
    return tabs.align("\n".join(lines) + "\n")


def _all(client: api.Client, namespace: str) -> list[Json]:
    found: list[Json] = client.get(api.pod_path(namespace))["items"]
    return found


def _events(client: api.Client, pod: Json) -> list[Json]:
    meta = pod["metadata"]
    query = {"fieldSelector": f"involvedObject.name={meta['name']},involvedObject.uid={meta['uid']}"}
    found: list[Json] = client.get(f"/api/v1/namespaces/{api.quote(meta['namespace'])}/events", query)["items"]
    return found


def _head(pod: Json, now: float) -> Iterator[str]:
    meta, spec, status = pod["metadata"], pod["spec"], pod["status"]
    yield f"Name:\t{meta['name']}"
    yield f"Namespace:\t{meta['namespace']}"
    if spec.get("priority") is not None:
        yield f"Priority:\t{spec['priority']}"
    if spec.get("serviceAccountName"):
        yield f"Service Account:\t{spec['serviceAccountName']}"
    yield f"Node:\t{spec['nodeName']}/{status.get('hostIP', '')}" if spec.get("nodeName") else "Node:\t<none>"
    if status.get("startTime"):
        yield f"Start Time:\t{describe_container.moment(status['startTime'])}"
    yield from _many("Labels", [f"{k}={v}" for k, v in sorted((meta.get("labels") or {}).items())])
    yield from _many("Annotations", list(_annotations(meta.get("annotations") or {})))
    yield from _state(meta, status, now)
    yield f"IP:\t{status.get('podIP', '')}"
    ips = status.get("podIPs") or []
    yield from ["IPs:", *(f"  IP:\t{entry['ip']}" for entry in ips)] if ips else ["IPs:\t<none>"]


def _state(meta: Json, status: Json, now: float) -> Iterator[str]:
    if meta.get("deletionTimestamp"):
        yield f"Status:\tTerminating (lasts {humans.since(meta['deletionTimestamp'], now)})"
        yield f"Termination Grace Period:\t{meta.get('deletionGracePeriodSeconds', 0)}s"
    else:
        yield f"Status:\t{status.get('phase', 'Unknown')}"
    for field in ("reason", "message"):
        if status.get(field):
            yield f"{field.capitalize()}:\t{status[field]}"
    why = (meta.get("annotations") or {}).get(names.SUMMARY)
    if why:
        yield f"Why:\t{why}"


def _annotations(annotations: Mapping[str, str]) -> Iterator[str]:
    for key, value in sorted(annotations.items()):
        text = value.removesuffix("\n")
        if key in (_APPLIED, names.SUMMARY):
            continue
        if len(text) + len(key) + 2 > ANNOTATION_LENGTH or "\n" in text:
            yield f"{key}:"
            for line in text.split("\n"):
                yield f"  {_shorten(line, ANNOTATION_LENGTH - 2)}"
        else:
            yield f"{key}: {text}"


def _shorten(text: str, length: int) -> str:
    return f"{text[:length]}..." if len(text) > length else text


def _many(title: str, lines: list[str]) -> list[str]:
    """A title with one value per line."""
    if not lines:
        return [f"{title}:\t<none>"]
    return [f"{title}:\t{lines[0]}", *(f"\t{line}" for line in lines[1:])]


def _containers(pod: Json) -> Iterator[str]:
    spec, status = pod["spec"], pod["status"]
    for title, field, statuses in (
        ("Init Containers", "initContainers", "initContainerStatuses"),
        ("Containers", "containers", "containerStatuses"),
    ):
        containers = spec.get(field) or []
        known = {s["name"]: s for s in status.get(statuses) or []}
        if containers:
            yield f"{title}:"
        for container in containers:
            yield from describe_container.lines(container, known.get(container["name"]), pod)


def _tail(pod: Json) -> Iterator[str]:
    spec, status = pod["spec"], pod["status"]
    if status.get("conditions"):
        yield "Conditions:"
        yield "  Type\tStatus"
        for condition in status["conditions"]:
            yield f"  {condition['type']} \t{condition['status']} "
    volumes = spec.get("volumes") or []
    yield "Volumes:" if volumes else "Volumes:\t<none>"
    for volume in volumes:
        yield f"  {volume['name']}:"
        yield from (f"    {line}" for line in describe_container.volume(volume))
    yield f"QoS Class:\t{status.get('qosClass', '')}"
    yield from _many("Node-Selectors", [f"{k}={v}" for k, v in sorted((spec.get("nodeSelector") or {}).items())])
    yield from _many("Tolerations", [_toleration(t) for t in spec.get("tolerations") or []])


def _toleration(value: Json) -> str:
    text = str(value.get("key", ""))
    if value.get("value"):
        text += f"={value['value']}"
    if value.get("effect"):
        text += f":{value['effect']}"
    if value.get("operator") == "Exists" and not value.get("value"):
        text += " op=Exists" if text else "op=Exists"
    if value.get("tolerationSeconds") is not None:
        text += f" for {value['tolerationSeconds']}s"
    return text


def _event_lines(events: list[Json], now: float) -> Iterator[str]:
    if not events:
        yield "Events:\t<none>"
        return
    yield "Events:"
    yield "  Type\tReason\tAge\tFrom\tMessage"
    yield "  ----\t------\t----\t----\t-------"
    for event in sorted(events, key=lambda e: e.get("lastTimestamp") or ""):
        source = (event.get("source") or {}).get("component", "")
        age, message = _age(event, now), event.get("message", "").strip()
        yield f"  {event['type']}\t{event['reason']}\t{age}\t{source}\t{message}"


def _age(event: Json, now: float) -> str:
    first = humans.since(event.get("firstTimestamp"), now)
    count = event.get("count") or 1
    if count == 1:
        return first
    return f"{humans.since(event.get('lastTimestamp'), now)} (x{count} over {first})"
