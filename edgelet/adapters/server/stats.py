"""What is used: /metrics, /stats/summary, and metrics.k8s.io/v1beta1 for `kubectl top`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from ...model.pod import PodKey
from ...model.usage import ContainerUsage, Interface, NodeUsage, PodUsage, Report, Usage
from . import objects, params, selectors, statuses
from .base import Access, Refused

Json = dict[str, Any]

GROUP_VERSION = "metrics.k8s.io/v1beta1"
WINDOW = "1s"


class Metrics(Access):
    """``/metrics``, ``/metrics/(probes|resource|cadvisor)``: text for Prometheus."""

    resource = "metrics"

    async def get(self, name: str | None = None) -> None:
        kind, text = await asyncio.to_thread(self.services.metrics, name or "")
        self.set_header("Content-Type", kind)
        self.finish(text)


class Summary(Access):
    """``/stats/summary`` (semantics 8.4)."""

    resource = "stats"

    async def get(self) -> None:
        brief = params.flag(self.param, "only_cpu_and_memory")
        report = await asyncio.to_thread(self.services.usage.rates)
        self.send(summary(report, self.services.node_name, brief))


class NodeMetrics(Access):
    """``/apis/metrics.k8s.io/v1beta1/nodes[/NAME]``."""

    resource = "nodes"

    async def get(self, name: str = "") -> None:
        own = self.services.node_name
        if name not in ("", own):
            raise Refused(statuses.not_found("nodes", name))
        node = (await asyncio.to_thread(self.services.usage.rates)).node
        usage = {"cpu": _nano(node.rate), "memory": _kibi(node.working_set)}
        one = {"metadata": {"name": own}, "timestamp": objects.timestamp(node.at), "window": WINDOW, "usage": usage}
        self.send(_one("NodeMetrics", one) if name else _list("NodeMetricsList", [one]))


class PodMetrics(Access):
    """``/apis/metrics.k8s.io/v1beta1/[namespaces/NS/]pods[/NAME]``."""

    resource = "pods"

    async def get(self, namespace: str = "", name: str = "") -> None:
        match = selectors.labels(self.param("labelSelector"))
        report = await asyncio.to_thread(self.services.usage.rates)
        items = [self._item(p) for p in report.pods if p.containers and namespace in ("", p.key.namespace)]
        if not name:
            self.send(_list("PodMetricsList", [item for item in items if match(item)]))
            return
        found = next((item for item in items if item["metadata"]["name"] == name), None)
        if found is None:
            raise Refused(statuses.not_found("podmetrics.metrics.k8s.io", f"{namespace}/{name}"))
        self.send(_one("PodMetrics", found))

    def _item(self, pod: PodUsage) -> Json:
        entry = self.services.store.get(PodKey(*pod.key))
        meta: Json = {"name": pod.key.name, "namespace": pod.key.namespace}
        if entry is not None and entry.pod.labels:
            meta["labels"] = dict(entry.pod.labels)
        containers = [
            {"name": c.name, "usage": {"cpu": _nano(c.rate), "memory": _kibi(c.usage.working_set)}}
            for c in pod.containers
        ]
        at = objects.timestamp(pod.containers[0].at)
        return {"metadata": meta, "timestamp": at, "window": WINDOW, "containers": containers}


def _one(kind: str, body: Json) -> Json:
    return {"kind": kind, "apiVersion": GROUP_VERSION, **body}


def _list(kind: str, items: list[Json]) -> Json:
    return {"kind": kind, "apiVersion": GROUP_VERSION, "metadata": {}, "items": items}


def _nano(cores: float | None) -> str:
    return f"{int((cores or 0.0) * 1e9)}n"


def _kibi(size: int) -> str:
    return f"{size >> 10}Ki"


def summary(report: Report, node_name: str, brief: bool = False) -> Json:
    """The stats/v1alpha1 Summary; `brief` = only CPU and memory."""
    node = report.node
    body: Json = {
        "nodeName": node_name,
        "startTime": objects.timestamp(node.booted),
        "cpu": _cpu(node.at, node.cpu, node.rate),
        "memory": _node_memory(node),
    }
    if not brief:
        total, free, inodes, inodes_free = node.disk
        disk = {"availableBytes": free, "capacityBytes": total, "usedBytes": total - free}
        body |= {
            "network": _network(node.at, node.interfaces),
            "fs": {"time": objects.timestamp(node.at), **disk, "inodesFree": inodes_free, "inodes": inodes,
                   "inodesUsed": inodes - inodes_free},
            "rlimit": {"time": objects.timestamp(node.at), "maxpid": node.max_pid, "curproc": node.processes},
            "swap": {"time": objects.timestamp(node.at), "swapAvailableBytes": node.swap_total - node.swap,
                     "swapUsageBytes": node.swap},
        }  # fmt: skip
    return {"node": body, "pods": [_pod(pod, brief) for pod in report.pods]}


def _pod(pod: PodUsage, brief: bool) -> Json:
    at = pod.containers[0].at if pod.containers else 0.0
    rates = [c.rate for c in pod.containers if c.rate is not None]
    body: Json = {
        "podRef": {"name": pod.key.name, "namespace": pod.key.namespace, "uid": pod.uid},
        "startTime": objects.timestamp(pod.created_at),
        "containers": [_container(c) for c in pod.containers],
        "cpu": _cpu(at, sum(c.usage.cpu for c in pod.containers), sum(rates)),
        "memory": _memory(at, [c.usage for c in pod.containers]),
    }
    if pod.interfaces and not brief:
        body["network"] = _network(at, pod.interfaces)
    return body


def _container(container: ContainerUsage) -> Json:
    return {
        "name": container.name,
        "startTime": objects.timestamp(container.started_at),
        "cpu": _cpu(container.at, container.usage.cpu, container.rate),
        "memory": _memory(container.at, [container.usage]),
    }


def _cpu(at: float, seconds: float, rate: float | None) -> Json:
    return {
        "time": objects.timestamp(at),
        "usageNanoCores": int((rate or 0.0) * 1e9),
        "usageCoreNanoSeconds": int(seconds * 1e9),
    }


def _node_memory(node: NodeUsage) -> Json:
    return {
        "time": objects.timestamp(node.at),
        "availableBytes": node.available,
        "usageBytes": node.working_set,
        "workingSetBytes": node.working_set,
        "rssBytes": node.rss,
    }


def _memory(at: float, parts: list[Usage]) -> Json:
    found: Json = {
        "time": objects.timestamp(at),
        "usageBytes": sum(u.memory for u in parts),
        "workingSetBytes": sum(u.working_set for u in parts),
        "rssBytes": sum(u.rss for u in parts),
        "pageFaults": sum(u.page_faults for u in parts),
        "majorPageFaults": sum(u.major_faults for u in parts),
    }
    limits = [u.memory_limit for u in parts]
    if limits and None not in limits:
        limit = sum(x or 0 for x in limits)
        found["availableBytes"] = max(0, limit - found["workingSetBytes"])
    return found


def _network(at: float, interfaces: Iterable[Interface]) -> Json:
    rows = [
        {"name": i.name, "rxBytes": i.rx_bytes, "rxErrors": i.rx_errors, "txBytes": i.tx_bytes, "txErrors": i.tx_errors}
        for i in interfaces
    ]
    first = next((row for row in rows if row["name"] == "eth0"), rows[0] if rows else {})
    return {"time": objects.timestamp(at), **first, "interfaces": rows}
