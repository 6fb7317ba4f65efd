"""The comparison of a box with its server notices each kind of difference."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from tests.apiserver.client import Answer, Client
from tests.e2e import mirrored
from tests.e2e.agent import NODE, Agent

Json = dict[str, Any]
WHEN = "2026-01-01T00:00:00Z"


class Box:
    """Answers like an agent, or like an administrator's client of a server."""

    def __init__(self, there: bool) -> None:
        self.there = there
        owner = [{"kind": "Node", "name": NODE, "uid": "u"}]
        metadata = {"name": f"web-{NODE}", "namespace": "default", **({"ownerReferences": owner} if there else {})}
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": WHEN}
        self.pod: Json = {
            "metadata": metadata,
            "spec": {"containers": [{"name": "app", "image": "i"}]},
            "status": {"phase": "Running", "conditions": [ready]},
        }
        self.event: Json = {
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web"},
            "reason": "Started", "message": "m", "type": "Normal", "count": 2, "firstTimestamp": WHEN,
            "lastTimestamp": WHEN, "source": {"host": NODE},
        }  # fmt: skip
        self.pods, self.events = [self.pod], [self.event]
        self.node: Json = {"metadata": {"uid": "u"}, "status": {"conditions": [ready], "addresses": []}}
        renewed = datetime.now(UTC).isoformat()
        self.lease: Json = {"spec": {"holderIdentity": NODE, "leaseDurationSeconds": 4000, "renewTime": renewed}}

    def get(self, path: str) -> Any:
        """Any of them."""
        path = path.partition("?")[0]
        lists = {"/api/v1/pods": self.pods, "/api/v1/events": self.events}
        ones = {f"/api/v1/nodes/{NODE}": self.node, mirrored.LEASE: self.lease}
        found = {"items": copy.deepcopy(lists[path])} if path in lists else copy.deepcopy(ones[path])
        return Answer(200, found, {}) if self.there else found


def differences(here: Box, there: Box) -> str:
    """All, as one text."""
    return "\n".join(mirrored.differences(cast(Agent, here), cast(Client, there)))


def test_what_is_equal_does_not_differ() -> None:
    assert differences(Box(False), Box(True)) == ""


CHANGES: dict[str, tuple[str, Any]] = {
    "no-pod": ("is here only", lambda s: s.pods.clear()),
    "more-pods": ("is there only", lambda s: s.pods.append(_named(s.pod, "other"))),
    "older-phase": ("phase is Running here, Pending there", lambda s: s.pod["status"].update(phase="Pending")),
    "more-status": ("podIP is None here", lambda s: s.pod["status"].update(podIP="10.0.0.1")),
    "condition": ("conditions are", lambda s: s.pod["status"]["conditions"][0].update(lastTransitionTime="x")),
    "image": ("'i', []", lambda s: s.pod["spec"]["containers"][0].update(image="j")),
    "ending": ("is being deleted there", lambda s: s.pod["metadata"].update(deletionTimestamp=WHEN)),
    "other-node": ("belongs to another Node", lambda s: s.node["metadata"].update(uid="v")),
    "no-event": ("event e is not told", lambda s: s.events.clear()),
    "event-twice": ("event told 2 times", lambda s: s.events.append(_named(s.event, "f"))),
    "older-count": ("event e: ", lambda s: s.event.update(count=1)),
    "other-time": ("event e: ", lambda s: s.event.update(lastTimestamp="2026-01-01T00:00:01Z")),
    "node-condition": ("conditions of the Node", lambda s: s.node["status"].update(conditions=[])),
    "node-address": ("addresses of the Node", lambda s: s.node["status"].update(addresses=[{"type": "x"}])),
    "old-lease": ("the Lease was renewed", lambda s: s.lease["spec"].update(renewTime="2020-01-01T00:00:00+00:00")),
    "other-lease": ("the Lease is held by 'x'", lambda s: s.lease["spec"].update(holderIdentity="x")),
}


@pytest.mark.parametrize(("told", "change"), CHANGES.values(), ids=list(CHANGES))
def test_each_difference_is_told(told: str, change: Any) -> None:
    there = Box(True)
    change(there)
    assert told in differences(Box(False), there)


def _named(item: Json, name: str) -> Json:
    found = copy.deepcopy(item)
    found["metadata"]["name"] = name
    return found
