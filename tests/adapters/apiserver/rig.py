"""A mirror beside a fake API server, with a box made of values: no Podman, no agent, real threads."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgelet import ports
from edgelet.adapters.apiserver.mirror import Mirror
from edgelet.adapters.apiserver.parts import Options, Parts
from edgelet.core import mirror_node, render
from edgelet.core.mirror_status import bare
from edgelet.engine.recorder import EventRing
from edgelet.engine.store import StatusStore
from edgelet.model import decode
from edgelet.model.node_facts import NodeFacts
from edgelet.model.pod import Pod, PodKey
from edgelet.model.status import Condition, ContainerStatus, PodStatus, Running, Terminated
from tests.support.apiserver import FakeServer
from tests.support.apiserver.real import either

Json = dict[str, Any]

NODE = "n1"
DEADLINE = 60.0
STORY = 10_000
"""Characters of both sides that a failure shows."""


class ShiftedClock:
    """The real clocks, which a test can set forward: both by `shift`, the wall clock alone by `wall`."""

    def __init__(self) -> None:
        self.shift = 0.0
        self.wall = 0.0

    def monotonic(self) -> float:
        """See ports.Clock."""
        return time.monotonic() + self.shift

    def time(self) -> float:
        """See ports.Clock."""
        return time.time() + self.shift + self.wall


def pod(name: str, uid: str = "", source: str = "file", **spec: Any) -> Pod:
    """A pod as a manifest gives it."""
    meta = {"name": name, **({"uid": uid} if uid else {}), **spec.pop("metadata", {})}
    body = {"containers": [{"name": "app", "image": "localhost/demo:1"}], **spec}
    document = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body}).encode()
    found = decode.decode(document, decode.Origin("test.yaml", source, NODE))
    assert found.pods, found.problems
    return found.pods[0]


def running(one: Pod, restarts: int = 0, at: float = 0.0) -> PodStatus:
    """Its status while all is well."""
    at = at or time.time() - 60
    containers = tuple(
        ContainerStatus(c.name, c.image, Running(at), ready=True, started=True, restart_count=restarts)
        for c in one.containers
    )
    ready = tuple(Condition(kind, "True", at) for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled"))
    return PodStatus("Running", ready, containers, start_time=at, host_ip="192.0.2.9", ips=("10.0.0.7",))


def finished(one: Pod, code: int = 0) -> PodStatus:
    """Its status once its containers have ended for good."""
    at = time.time() - 60
    ended = tuple(
        ContainerStatus(c.name, c.image, Terminated(code, "Completed" if not code else "Error", at, at + 1))
        for c in one.containers
    )
    return PodStatus("Failed" if code else "Succeeded", (), ended, start_time=at, host_ip="192.0.2.9")


class Rig:
    """The box: `store`, `events`, `facts`, which a test changes; `mirror` shows them to `server`."""

    def __init__(self, server: FakeServer, directory: Path, **options: Any) -> None:
        self.server = server
        self.directory = directory
        self.options = options
        self.clock = ShiftedClock()
        self.store = StatusStore(self.clock)
        self.events = EventRing(self.clock, NODE)
        self.facts = NodeFacts(
            NODE,
            "192.0.2.9",
            memory=2**30,
            storage=2**34,
            machine_id="m1",
            boot_id="b1",
            runtime="podman://4.3.1",
            architecture="amd64",
            kernel="6.1",
            os_image="Linux",
            system_uuid="s",
        )
        self.settled = True
        self.kept = sys.maxsize
        self.mirror = self._mirror()

    def _mirror(self) -> Mirror:
        settings = {"register": True, **self.options}
        registration = settings.pop("registration", mirror_node.Registration({}, (), 10250, "0.1.0"))
        options = Options(
            kubeconfig=str(settings.pop("kubeconfig", self.server.kubeconfig)),
            node=NODE,
            registration=registration,
            state_dir=str(self.directory / "mirror"),
            **settings,
        )
        return Mirror(
            Parts(
                options,
                self.store,
                self.events,
                self.clock,
                lambda: self.facts,
                lambda: (),
                lambda key, source: self.settled,
                lambda: self.kept,
            )
        )

    def restart(self) -> None:
        """As a new life of the agent: what it knows of the server is gone, its events are not."""
        self.mirror.stop()
        self.mirror = self._mirror()
        self.mirror.start()

    def kill(self, remembered: bytes) -> None:
        """As after a kill -9: all that is left of the events is what was on disk."""
        self.mirror.stop()
        self.events = EventRing(self.clock, NODE)
        self.events.load(remembered)
        self.mirror = self._mirror()
        self.mirror.start()

    def put(self, one: Pod, status: PodStatus | None = None) -> Pod:
        """A pod of the box."""
        self.store.put(one, status or running(one))
        return one

    def event(self, one: Pod, reason: str, message: str = "text", kind: str = "Normal") -> None:
        """Something happened to it."""
        self.events.event(ports.EventRef(one.key, one.uid), kind, reason, message)

    # ---- the other side -------------------------------------------------------------------------

    def there(self, name: str, namespace: str = "default") -> Json:
        """The mirror of that full name, {} if there is none."""
        return self.server.find(f"/api/v1/namespaces/{namespace}/pods/{name}") or {}

    def uid(self, name: str) -> str:
        """Its uid, "" if there is none."""
        return str(self.there(name).get("metadata", {}).get("uid", ""))

    def node(self) -> Json:
        """The Node, {} if there is none."""
        return self.server.find(f"/api/v1/nodes/{NODE}") or {}

    def lease(self) -> Json:
        """The Lease, {} if there is none."""
        return self.server.find(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NODE}") or {}

    def condition(self, kind: str) -> Json:
        """A condition of the Node, {} if there is none."""
        found = self.node().get("status", {}).get("conditions") or []
        return next((c for c in found if c["type"] == kind), {})

    def told(self, name: str) -> bool:
        """Whether the server shows that pod exactly as it is here."""
        entry = next((e for e in self.store.list()[1] if e.pod.name == name), None)
        found = self.there(name)
        if entry is None or not found:
            return entry is None and not found
        here, status = render.status(entry.status), found.get("status", {})
        parts = [p for p in here if p not in ("conditions", "qosClass")]
        conditions = {c["type"]: c["status"] for c in status.get("conditions") or ()}
        same = all(bare(status.get(p)) == bare(here[p]) for p in parts)
        return same and all(conditions.get(c.type) == c.status for c in entry.status.conditions)

    def consistent(self) -> bool:
        """Whether the server shows the box as it is: pods, statuses and events, each once."""
        _, entries = self.store.list()
        names = {e.pod.name for e in entries}
        pods = {p["metadata"]["name"] for p in self.server.list("pods")}
        here = {e.name: e.count for e in self.events.events()}
        there = {e["metadata"]["name"]: e.get("count", 1) for e in self.server.list("events")}
        return pods == names and here == there and all(self.told(name) for name in names)

    def wait(self, what: str, condition: Any, seconds: float = DEADLINE) -> float:
        """Until it holds; the seconds that took."""
        begin = time.monotonic()
        while not condition():
            if time.monotonic() - begin > seconds:
                raise AssertionError(f"after {seconds:g} s still waiting for: {what}; {self.mirror.report()}")
            time.sleep(0.02 if seconds <= DEADLINE else 0.5)
        return time.monotonic() - begin

    def settle(self, seconds: float = DEADLINE) -> float:
        """Until the server shows the box as it is."""
        try:
            return self.wait("the server to show the box", self.consistent, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story()}") from error

    def story(self) -> str:
        """Both sides, for a test that failed."""
        here = [(e.pod.name, render.status(e.status)) for e in self.store.list()[1]]
        there = [(p["metadata"]["name"], p["metadata"]["uid"], p["status"]) for p in self.server.list("pods")]
        events = [(e.name, e.reason, e.count) for e in self.events.events()]
        told = [(e["metadata"]["name"], e["reason"], e.get("count", 1)) for e in self.server.list("events")]
        text = f"pods here {here}\npods there {there}\nevents here {events}\nevents there {told}"
        return text if len(text) < STORY else text[:STORY]


@contextlib.contextmanager
def rig(directory: Path, begin: bool = True, **options: Any) -> Iterator[Rig]:
    """A server and a mirror; nothing wrong may have been sent."""
    with either(directory, NODE) as server:
        made = Rig(server, directory, **options)
        if begin:
            made.mirror.start()
        try:
            yield made
        finally:
            made.mirror.stop()
        assert server.violations == []


def key(name: str, namespace: str = "default") -> PodKey:
    """A pod's key."""
    return PodKey(namespace, name)


def pressed(facts: NodeFacts, **changes: Any) -> NodeFacts:
    """The facts, changed."""
    return replace(facts, **changes)
