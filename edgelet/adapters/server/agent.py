"""The agent's own paths: health, version, and edgelet.io/v1 (status, sources, orders to pods)."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ... import __version__
from ...core.render_node import KUBERNETES, kubelet_version
from ...engine.store import Entry
from ...model.agent_report import AgentReport, LinkReport, SourceReport
from ...model.pod import PodKey
from ...model.sources import FileState
from . import objects, params, statuses
from .base import Access, Refused

Json = dict[str, Any]

VERSION = "edgelet.io/v1"


class Health(Access):
    """``/healthz``, ``/livez``, ``/readyz``, all or one check (``/healthz/CHECK``), with ``?verbose`` (8.2)."""

    resource = "health"

    async def get(self, name: str, check: str | None = None) -> None:
        checks = dict(self.services.control.checks())
        if name == "readyz":
            checks.update(_ready_checks(self.services.control.report()))
        if check is not None:
            if check not in checks:
                raise Refused(statuses.no_such_path())
            checks = {check: checks[check]}
        good = not any(checks.values())
        if good and not params.flag(lambda _: self._verbose(), "verbose"):
            self.send_text("ok")
            return
        self.send_text(_verbose(name, checks), 200 if good else 500)

    def _verbose(self) -> str:
        given = self.get_query_arguments("verbose")
        return "" if not given else (given[-1] or "true")


class Version(Access):
    """``/version``."""

    async def get(self) -> None:
        major, minor = KUBERNETES
        self.send(
            {
                "major": major,
                "minor": minor,
                "gitVersion": kubelet_version(__version__),
                "gitCommit": "",
                "gitTreeState": "",
                "buildDate": "1970-01-01T00:00:00Z",
                "goVersion": f"python{platform.python_version()}",
                "compiler": sys.implementation.name,
                "platform": f"linux/{platform.machine()}",
            }
        )


class Status(Access):
    """``/apis/edgelet.io/v1/status``."""

    resource = "status"

    async def get(self) -> None:
        _, entries = self.services.store.list()
        report = self.services.control.report()
        trouble = self.hub.trouble()
        self.send(agent_status(replace(report, notes=(*report.notes, trouble)) if trouble else report, entries))


class Sources(Access):
    """``/apis/edgelet.io/v1/sources``."""

    resource = "sources"

    async def get(self) -> None:
        sources = self.services.control.report().sources
        self.send({"kind": "SourceList", "apiVersion": VERSION, "items": [_with_files(s) for s in sources]})


class Order(Access):
    """``POST /apis/edgelet.io/v1/namespaces/NS/pods/NAME/(restart|stop|start)``."""

    resource = "pods"

    async def post(self, namespace: str, name: str, order: str) -> None:
        key = PodKey(namespace, name)
        entry = self.services.store.get(key)
        if entry is None:
            raise Refused(statuses.not_found("pods", name))
        container = self.param("container")
        if container and entry.pod.container(container) is None:
            raise Refused(statuses.failure(400, f"container {container} is not valid for pod {name}"))
        self._run(order, key, container)
        self.send(statuses.success({"name": name, "kind": "pods", "uid": entry.pod.uid}))

    def _run(self, order: str, key: PodKey, container: str) -> None:
        control = self.services.control
        if order == "restart":
            control.restart(key, container)
            return
        orders: Mapping[str, Callable[[PodKey], None]] = {"stop": control.stop, "start": control.start}
        orders[order](key)


def agent_status(report: AgentReport, entries: tuple[Entry, ...]) -> Json:
    """How the agent is doing, in one object; `degraded` decides the exit code of `edgelet status`."""
    wanted = [e for e in entries if not (e.status.held or e.status.deleting)]
    waiting = [e for e in wanted if not _well(e)]
    bad_sources = [s for s in report.sources if not s.ok or s.problems]
    return {
        "kind": "AgentStatus",
        "apiVersion": VERSION,
        "node": report.node,
        "version": report.version,
        "startedAt": objects.timestamp(report.started_at),
        "podman": {"ok": report.podman_ok, "message": report.podman_message, "version": report.podman_version},
        "sources": [source(s) for s in report.sources],
        "pods": {"ready": len(wanted) - len(waiting), "total": len(wanted), "held": _held(entries)},
        "notReady": [_why(entry) for entry in waiting],
        "notes": list(report.notes),
        "link": link(report.link) if report.link else None,
        "degraded": bool(waiting or bad_sources or not report.podman_ok or _bad(report.link)),
    }


def link(report: LinkReport) -> Json:
    """The link to an API server."""
    return {
        "server": report.server,
        "up": report.up,
        "message": report.message,
        "since": objects.timestamp(report.since),
        "lastHeartbeatTime": objects.timestamp(report.heartbeat),
        "registered": report.registered,
        "pending": report.pending,
        "problems": list(report.problems),
    }


def _bad(report: LinkReport | None) -> bool:
    return report is not None and bool(not report.up or report.problems)


def source(report: SourceReport) -> Json:
    """One source."""
    return {
        "name": report.name,
        "location": report.location,
        "ok": report.ok,
        "message": report.message,
        "pods": report.pods,
        "readAt": objects.timestamp(report.read_at),
        "triedAt": objects.timestamp(report.tried_at),
        "fromLastGood": report.from_last_good,
        "problems": list(report.problems),
    }


def _with_files(report: SourceReport) -> Json:
    """One source and each of its files; there may be thousands."""
    return {**source(report), "files": [_file(f) for f in report.files]}


def _file(state: FileState) -> Json:
    return {
        "file": state.file,
        "pods": list(state.pods),
        "accepted": state.accepted,
        "warnings": list(state.warnings),
        "error": state.error,
        "fromLastGood": state.from_last_good,
        "skipped": state.skipped,
    }


def _well(entry: Entry) -> bool:
    ready = any(c.type == "Ready" and c.status == "True" for c in entry.status.conditions)
    return ready or entry.status.phase == "Succeeded"


def _held(entries: tuple[Entry, ...]) -> int:
    return sum(e.status.held for e in entries)


def _why(entry: Entry) -> Json:
    status = entry.status
    reason = status.summary or status.message or status.reason or f"the pod is {status.phase}"
    return {"namespace": entry.pod.namespace, "name": entry.pod.name, "phase": status.phase, "reason": reason}


def _ready_checks(report: AgentReport) -> dict[str, str]:
    return {"podman": "" if report.podman_ok else (report.podman_message or "Podman does not answer")}


def _verbose(name: str, checks: Mapping[str, str]) -> str:
    lines = [f"[-]{check} failed: {wrong}" if wrong else f"[+]{check} ok" for check, wrong in checks.items()]
    verdict = "failed" if any(checks.values()) else "passed"
    return "\n".join([*lines, f"{name} check {verdict}", ""])
