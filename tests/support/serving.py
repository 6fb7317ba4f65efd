"""A running API server on a socket of its own, before a store, a ring and fakes of all the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from edgelet import errors
from edgelet.adapters.server.api import ApiServer
from edgelet.adapters.server.contracts import LogStream, Services, Session
from edgelet.adapters.server.secure import ReadOnly, Secure
from edgelet.adapters.submitted import Submitted
from edgelet.app.measures import Measures
from edgelet.app.submissions import Submissions
from edgelet.app.usage import Looks
from edgelet.cli.client import Client
from edgelet.engine.director import Director
from edgelet.engine.recorder import EventRing
from edgelet.engine.store import StatusStore
from edgelet.model.agent_report import AgentReport, SourceReport
from edgelet.model.logs import LogOptions
from edgelet.model.node_facts import NodeFacts
from edgelet.model.objects import LocalObject
from edgelet.model.pod import Container, Pod, PodKey
from edgelet.model.status import Condition, ContainerStatus, PodStatus, Running
from edgelet.model.usage import Report
from edgelet.ports import Snapshot
from tests.fakes import FakeClock

NOW = 1_700_000_000.0


class FakeControl:
    """Remembers orders; its report and checks can be set."""

    def __init__(self) -> None:
        self.orders: list[tuple[str, PodKey, str]] = []
        self.wrong: dict[str, str] = {"ping": "", "syncloop": ""}
        source = SourceReport("file", "/etc/kubernetes/manifests", pods=1, read_at=NOW)
        self.answer = AgentReport("edge1", "0.1.0", NOW - 60, podman_version="4.3.1", sources=(source,))

    def restart(self, key: PodKey, container: str = "") -> None:
        """See contracts.Control."""
        self.orders.append(("restart", key, container))

    def stop(self, key: PodKey) -> None:
        """See contracts.Control."""
        self.orders.append(("stop", key, ""))

    def start(self, key: PodKey) -> None:
        """See contracts.Control."""
        self.orders.append(("start", key, ""))

    def report(self) -> AgentReport:
        """See contracts.Control."""
        return self.answer

    def checks(self) -> Mapping[str, str]:
        """See contracts.Control."""
        return self.wrong


class NoLogs:
    """No log anywhere."""

    def locate(self, pod: Pod, status: ContainerStatus, previous: bool) -> str:
        """See contracts.Logs."""
        raise errors.NotFound("no log")

    def open(self, path: str, options: LogOptions) -> LogStream:
        """See contracts.Logs."""
        raise errors.NotFound("no log")


class FakeUsages:
    """One look that never changes."""

    cgroup_version = 2

    def __init__(self, report: Report | None = None) -> None:
        self.report = report or Report()

    def now(self) -> Report:
        """See contracts.Usages."""
        return self.report

    rates = now


class NoExecs:
    """Nothing can be executed."""

    def begin(self, key: PodKey, container: str, command: tuple[str, ...], tty: bool, stdin: bool) -> Session:
        """See contracts.Execs."""
        raise errors.ExecError("cannot execute: nothing here")

    def attach(self, key: PodKey, container: str, stdin: bool) -> Session:
        """See contracts.Execs."""
        raise errors.ExecError("cannot attach: nothing here")


class Takers:
    """The sink of the submitted pods, and the director: at once, what is wanted is Pending in the store."""

    def __init__(self, store: StatusStore) -> None:
        self._store = store
        self._wanted: dict[PodKey, Pod] = {}
        self.graces: dict[PodKey, int] = {}

    def put(self, snapshot: Snapshot) -> None:
        """See ports.Sink."""
        wanted = {pod.key: pod for pod in snapshot.pods}
        for pod in wanted.values():
            if self._wanted.get(pod.key) != pod:
                self._store.put(pod, PodStatus("Pending"))
        for key in self._wanted.keys() - wanted.keys():
            self._store.remove(key)
        self._wanted = wanted

    def pod(self, key: PodKey) -> Pod | None:
        """See engine.Director: pods that a test put into the store are wanted as well."""
        entry = self._store.get(key)
        return self._wanted.get(key) or (entry.pod if entry and not entry.status.deleting else None)

    def deleting(self, key: PodKey, grace: int) -> None:
        """See engine.Director."""
        self.graces[key] = grace


@dataclass
class Rig:
    """What a test of the server holds in its hands."""

    socket: str
    clock: FakeClock
    store: StatusStore
    events: EventRing
    control: FakeControl
    services: Services
    takers: Takers

    @property
    def client(self) -> Client:
        """A client of this server."""
        return Client(self.socket)


@contextmanager
def serving(
    folder: Path,
    logs: Any = None,
    execs: Any = None,
    secure: Secure | None = None,
    usages: Any = None,
    objects: tuple[LocalObject, ...] | Callable[[], tuple[LocalObject, ...]] = (),
    store: StatusStore | None = None,
    read_only: ReadOnly | None = None,
) -> Iterator[Rig]:
    """Run a server in `folder` for the time of a with block."""
    clock = FakeClock(time=NOW)
    store, events, control = store or StatusStore(clock), EventRing(clock, "edge1"), FakeControl()
    takers = Takers(store)
    submitted = Submitted(str(folder / "state"), takers, "edge1", lambda key: _source(takers.pod(key)))
    submitted.start()
    submissions = Submissions(submitted, cast(Director, takers), [], "edge1")
    usage = usages or FakeUsages()
    measured = Measures(control.report, store, lambda: (), cast(Looks, usage), lambda: (), lambda: {})
    services = Services(
        store,
        events,
        control,
        logs or NoLogs(),
        execs or NoExecs(),
        submissions,
        clock,
        _node,
        usage,
        measured,
        "edge1",
        secure=secure,
        read_only=read_only,
        objects=objects if callable(objects) else lambda: objects,
    )
    rig = Rig(str(folder / "s.sock"), clock, store, events, control, services, takers)
    server = ApiServer(rig.socket, services)
    server.start()
    try:
        yield rig
    finally:
        server.stop()


def _node() -> NodeFacts:
    return NodeFacts(
        "edge1", "192.0.2.10", NOW - 3600, NOW - 7200, 4, 4 << 30, 32 << 30, kernel="6.1", runtime="podman://4.3.1"
    )


def _source(pod: Pod | None) -> str | None:
    return pod.source if pod else None


def pod(name: str = "web", namespace: str = "default", uid: str = "", **labels: str) -> Pod:
    """A pod of one container, named as file pods are: with the node suffix."""
    full = f"{name}-edge1"
    container = {"name": "c", "image": "localhost/bb:1", "resources": {}}
    document = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": full, "namespace": namespace, "labels": labels},
        "spec": {"containers": [container], "restartPolicy": "Always", "nodeName": "edge1"},
    }
    return Pod(
        name=full,
        namespace=namespace,
        uid=uid or f"uid-{name}",
        config_hash=f"1-{name}",
        source="file",
        containers=(Container("c", "localhost/bb:1"),),
        labels=labels,
        short_name=name,
        document=json.dumps(document),
    )


def running(restarts: int = 0, ready: bool = True, **fields: Any) -> PodStatus:
    """The status of such a pod when it runs."""
    text = "True" if ready else "False"
    container = ContainerStatus("c", "localhost/bb:1", Running(NOW - 90), ready=ready, restart_count=restarts)
    given = {"start_time": NOW - 100, "ips": ("10.89.0.5",), "containers": (container,), **fields}
    return PodStatus("Running", conditions=(Condition("Ready", text, NOW - 90),), **given)
