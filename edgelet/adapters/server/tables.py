"""meta.k8s.io/v1 Table answers: the columns and cells that kubectl shows for pods and events (pure).

The cells of a pod follow printPod of kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import humans

Json = dict[str, Any]
Cells = list[str | int]

_META = "meta.k8s.io/v1"

POD_COLUMNS = (
    ("Name", "name", 0, "Name must be unique within a namespace."),
    ("Ready", "", 0, "The aggregate readiness state of this pod for accepting traffic."),
    ("Status", "", 0, "The aggregate status of the containers in this pod."),
    ("Restarts", "", 0, "How often its containers were restarted, and when the last one was."),
    ("Age", "", 0, "The time since the pod was created."),
    ("IP", "", 1, "IP address allocated to the pod."),
    ("Node", "", 1, "The node the pod runs on."),
    ("Nominated Node", "", 1, "Not used on a lone node."),
    ("Readiness Gates", "", 1, "Conditions that must be true beside the containers' readiness."),
)

EVENT_COLUMNS = (
    ("Last Seen", "", 0, "The time at which the most recent occurrence of this event was recorded."),
    ("Type", "", 0, "Type of this event (Normal, Warning)."),
    ("Reason", "", 0, "A short, machine understandable reason."),
    ("Object", "", 0, "The object that this event is about."),
    ("Subobject", "", 1, "The part of the object, such as spec.containers{name}."),
    ("Source", "", 1, "The component reporting this event."),
    ("Message", "", 0, "A human-readable description."),
    ("First Seen", "", 1, "The time at which the event was first recorded."),
    ("Count", "", 1, "The number of times this event has occurred."),
    ("Name", "name", 1, "Name of the event."),
)


NODE_COLUMNS = (
    ("Name", "name", 0, "Name must be unique."),
    ("Status", "", 0, "The status of the node"),
    ("Roles", "", 0, "The roles of the node"),
    ("Age", "", 0, "The time since edgelet was first started here."),
    ("Version", "", 0, "The Kubernetes version whose behaviour is followed."),
    ("Internal-IP", "", 1, "The node's own address."),
    ("External-IP", "", 1, "Not known on a lone node."),
    ("OS-Image", "", 1, "From /etc/os-release."),
    ("Kernel-Version", "", 1, "As uname -r says it."),
    ("Container-Runtime", "", 1, "Podman and its version."),
)

NAMESPACE_COLUMNS = (
    ("Name", "name", 0, "Name must be unique."),
    ("Status", "", 0, "The status of the namespace"),
    ("Age", "", 0, "The time since edgelet was first started here."),
)

DATA_COLUMNS = (
    ("Name", "name", 0, "Name must be unique within a namespace."),
    ("Data", "", 0, "The number of keys."),
    ("Age", "", 0, "The time since edgelet was first started here."),
)

SECRET_COLUMNS = (DATA_COLUMNS[0], ("Type", "", 0, "What it is for."), *DATA_COLUMNS[1:])


def nodes(items: Iterable[Json], version: str, now: float, include: str = "Metadata", header: bool = True) -> Json:
    """The Table of these v1.Nodes."""
    return _table(NODE_COLUMNS if header else (), [_row(node_cells(i, now), i, include) for i in items], version)


def namespaces(items: Iterable[Json], version: str, now: float, include: str = "Metadata", header: bool = True) -> Json:
    """The Table of these v1.Namespaces."""
    rows = [_row([i["metadata"]["name"], i["status"]["phase"], _age(i, now)], i, include) for i in items]
    return _table(NAMESPACE_COLUMNS if header else (), rows, version)


def data(items: Iterable[Json], version: str, now: float, include: str = "Metadata", header: bool = True) -> Json:
    """The Table of these ConfigMaps."""
    rows = [_row([i["metadata"]["name"], _keys(i), _age(i, now)], i, include) for i in items]
    return _table(DATA_COLUMNS if header else (), rows, version)


def secrets(items: Iterable[Json], version: str, now: float, include: str = "Metadata", header: bool = True) -> Json:
    """The Table of these Secrets."""
    rows = [_row([i["metadata"]["name"], i["type"], _keys(i), _age(i, now)], i, include) for i in items]
    return _table(SECRET_COLUMNS if header else (), rows, version)


def _keys(item: Json) -> int:
    return len(item.get("data") or ()) + len(item.get("binaryData") or ())


def node_cells(node: Json, now: float) -> Cells:
    """The node's cells, wide ones included (printNode)."""
    status, info = node["status"], node["status"]["nodeInfo"]
    ready = "Ready" if _true(status, "Ready") else "NotReady"
    inside = next((a["address"] for a in status["addresses"] if a["type"] == "InternalIP"), "<none>")
    return [
        node["metadata"]["name"],
        ready,
        "<none>",
        _age(node, now),
        info["kubeletVersion"],
        inside,
        "<none>",
        info["osImage"] or "<unknown>",
        f"{info['kernelVersion']} ({info['architecture']})",
        info["containerRuntimeVersion"] or "<unknown>",
    ]


def _age(item: Json, now: float) -> str:
    return humans.since(item["metadata"].get("creationTimestamp"), now)


def pods(items: Iterable[Json], version: str, now: float, include: str = "Metadata", header: bool = True) -> Json:
    """The Table of these v1.Pods; ages as of `now`. `include`: None, Metadata or Object (whole rows)."""
    rows = [_row(pod_cells(item, now), item, include) for item in items]
    return _table(POD_COLUMNS if header else (), rows, version)


def events(items: Iterable[Json], version: str, now: float, include: str = "Metadata", header: bool = True) -> Json:
    """The Table of these v1.Events."""
    rows = [_row(event_cells(item, now), item, include) for item in items]
    return _table(EVENT_COLUMNS if header else (), rows, version)


def pod_cells(pod: Json, now: float) -> Cells:
    """One pod's cells, wide ones included."""
    status, spec = pod["status"], pod["spec"]
    view = _PodView(pod)
    gates = spec.get("readinessGates")
    return [
        pod["metadata"]["name"],
        f"{view.ready}/{view.total}",
        view.reason,
        _restarts(view, now),
        humans.since(pod["metadata"].get("creationTimestamp"), now),
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        _gates(gates, status) if gates else "<none>",
    ]


def event_cells(event: Json, now: float) -> Cells:
    """One event's cells, wide ones included."""
    involved, source = event["involvedObject"], event.get("source") or {}
    first = humans.since(event.get("firstTimestamp") or event.get("eventTime"), now)
    last = event.get("lastTimestamp")
    return [
        humans.since(last, now) if last else first,
        event.get("type", ""),
        event.get("reason", ""),
        f"{involved.get('kind', '').lower()}/{involved.get('name', '')}",
        involved.get("fieldPath", ""),
        ", ".join(x for x in (source.get("component"), source.get("host")) if x),
        event.get("message", "").strip(),
        first,
        event.get("count") or 1,
        event["metadata"]["name"],
    ]


class _PodView:
    """What printPod computes on its way through the containers."""

    def __init__(self, pod: Json) -> None:
        status, spec = pod["status"], pod["spec"]
        self.sidecars = {c["name"] for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
        self.inits = len(spec.get("initContainers") or ())
        self.total = len(spec.get("containers") or ()) + len(self.sidecars)
        self.ready = 0
        self.restarts = 0
        self.restarted_at = ""
        self.reason: str = status.get("reason") or status.get("phase", "Unknown")
        initializing = self._walk_inits(status.get("initContainerStatuses") or ())
        if not initializing or _true(status, "Initialized"):
            self._walk_regular(status)
        if pod["metadata"].get("deletionTimestamp") and status.get("phase") not in ("Succeeded", "Failed"):
            self.reason = "Terminating"
        elif status.get("reason") == "Stopped":  # held by `edgelet stop`
            self.reason = "Stopped"

    def _count(self, container: Json) -> None:
        self.restarts += container.get("restartCount", 0)
        last = (container.get("lastState") or {}).get("terminated") or {}
        self.restarted_at = max(self.restarted_at, last.get("finishedAt") or "")

    def _walk_inits(self, containers: Iterable[Json]) -> bool:
        for index, container in enumerate(containers):
            self._count(container)
            terminated = container["state"].get("terminated")
            if terminated is not None and terminated["exitCode"] == 0:
                continue
            if container["name"] in self.sidecars and container.get("started"):
                self.ready += bool(container.get("ready"))
                continue
            self.reason = self._init_reason(container, index)
            return True
        return False

    def _init_reason(self, container: Json, index: int) -> str:
        state = container["state"]
        if "terminated" in state:
            return "Init:" + _ending(state["terminated"])
        waiting = (state.get("waiting") or {}).get("reason", "")
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}"
        return f"Init:{index}/{self.inits}"

    def _walk_regular(self, status: Json) -> None:
        self.restarts, self.restarted_at = 0, ""
        for container in status.get("initContainerStatuses") or ():
            if container["name"] in self.sidecars:
                self._count(container)
        running = False
        for container in reversed(status.get("containerStatuses") or ()):
            self._count(container)
            running |= self._regular(container)
        if self.reason == "Completed" and running:
            self.reason = "Running" if _true(status, "Ready") else "NotReady"

    def _regular(self, container: Json) -> bool:
        state = container["state"]
        waiting = (state.get("waiting") or {}).get("reason", "")
        if waiting:
            self.reason = waiting
        elif "terminated" in state:
            self.reason = _ending(state["terminated"])
        elif container.get("ready") and "running" in state:
            self.ready += 1
            return True
        return False


def _ending(terminated: Json) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated['exitCode']}"


def _true(status: Json, condition: str) -> bool:
    return any(c["type"] == condition and c["status"] == "True" for c in status.get("conditions") or ())


def _restarts(view: _PodView, now: float) -> str:
    if view.restarts and view.restarted_at:
        return f"{view.restarts} ({humans.since(view.restarted_at, now)} ago)"
    return str(view.restarts)


def _gates(gates: list[Json], status: Json) -> str:
    met = sum(_true(status, gate["conditionType"]) for gate in gates)
    return f"{met}/{len(gates)}"


def _row(cells: Cells, item: Json, include: str) -> Json:
    if include == "Object":
        return {"cells": cells, "object": item}
    if include == "None":
        return {"cells": cells}
    partial = {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": item["metadata"]}
    return {"cells": cells, "object": partial}


def _table(columns: tuple[tuple[str, str, int, str], ...], rows: list[Json], version: str) -> Json:
    definitions = [
        {"name": name, "type": "string", "format": form, "description": text, "priority": priority}
        for name, form, priority, text in columns
    ]
    return {
        "kind": "Table",
        "apiVersion": _META,
        "metadata": {"resourceVersion": version},
        "columnDefinitions": definitions or None,
        "rows": rows,
    }
