"""Decisions of the mirror, with values only: statuses, the node over time, events."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.adapters.server import patches
from edgelet.core import mirror_events, mirror_node, mirror_status
from edgelet.model.events import Event
from edgelet.model.node_facts import NodeFacts, Pressure
from edgelet.model.pod import PodKey

Json = dict[str, Any]
WEB = PodKey("default", "web-n1")


# ---- the status ------------------------------------------------------------------------------------

_text = st.sampled_from(["", "a", "b"])
_ips = st.lists(st.sampled_from(["10.0.0.1", "10.0.0.2", "fd00::1"]), unique=True, max_size=2)


@st.composite
def statuses(draw: st.DrawFn) -> Json:
    """A v1.PodStatus as core.render makes it: empty parts are left out."""
    ips, host = draw(_ips), draw(st.sampled_from(["192.0.2.1", "192.0.2.2"]))
    kinds = draw(st.lists(st.sampled_from(["Ready", "Initialized"]), unique=True))
    found: Json = {
        "phase": draw(st.sampled_from(["Pending", "Running"])), "message": draw(_text), "reason": draw(_text),
        "startTime": draw(_text), "qosClass": "Burstable", "hostIP": host, "hostIPs": [{"ip": host}],
        "podIP": ips[0] if ips else "", "podIPs": [{"ip": ip} for ip in ips],
        "conditions": [{"type": k, "status": draw(_text), "reason": draw(_text), "lastProbeTime": None} for k in kinds],
        "containerStatuses": [{"name": "a", "restartCount": draw(st.integers(0, 2)), "message": draw(_text)}],
    }  # fmt: skip
    return {k: v for k, v in found.items() if v}


@given(statuses(), statuses())
def test_7_5_after_the_patch_the_server_shows_what_is_here_and_nothing_more_is_sent(there: Json, here: Json) -> None:
    there["conditions"] = [*there.get("conditions", ()), {"type": "other/owner", "status": "True"}]
    patch = mirror_status.patch(there, here)
    after = patches.strategic(there, patch)
    assert mirror_status.patch(after, here) == {}
    assert {"type": "other/owner", "status": "True"} in after["conditions"]
    for part in ("phase", "message", "reason", "containerStatuses", "podIPs", "podIP", "hostIP", "hostIPs"):
        assert mirror_status.bare({part: after.get(part)}) == mirror_status.bare({part: here.get(part)})


@given(statuses())
def test_7_5_1_nothing_is_sent_when_nothing_differs(status: Json) -> None:
    assert mirror_status.patch(status, status) == {}


def test_the_class_of_service_is_never_changed() -> None:
    assert mirror_status.patch({"qosClass": "BestEffort"}, {"qosClass": "Guaranteed"}) == {}
    assert mirror_status.patch({}, {"qosClass": "Guaranteed"}) == {"qosClass": "Guaranteed"}


@pytest.mark.parametrize(
    ("code", "policy", "legal"),
    [(1, "Always", True), (0, "Always", True), (1, "OnFailure", True), (0, "OnFailure", False), (1, "Never", False)],
)
def test_7_5_3_what_has_ended_for_good_does_not_run_again(code: int, policy: str, legal: bool) -> None:
    there = {"phase": "Running", "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": code}}}]}
    here = {"phase": "Running", "containerStatuses": [{"name": "a", "state": {"running": {}}}]}
    assert mirror_status.legal(there, here, policy) is legal


def test_7_5_3_a_finished_pod_stays_finished() -> None:
    assert not mirror_status.legal({"phase": "Failed"}, {"phase": "Running"}, "Always")
    assert mirror_status.legal({"phase": "Failed"}, {"phase": "Failed"}, "Never")


# ---- the node --------------------------------------------------------------------------------------

FACTS = NodeFacts("n1", "192.0.2.1", memory=2**30, storage=2**30, machine_id="m1", boot_id="b1")
HOW = mirror_node.Registration({}, (), 10250, "0.1.0")


def test_7_2_an_unchanged_node_is_not_reported_and_a_heartbeat_is() -> None:
    there = mirror_node.merged({}, mirror_node.status(FACTS, HOW, (), 1000.0))
    later = mirror_node.status(replace(FACTS, memory_pressure=Pressure(False, "other figures")), HOW, (), 2000.0)
    assert mirror_node.patch(there, later, heartbeat=False) == {}
    told = mirror_node.patch(there, later, heartbeat=True)
    assert list(told) == ["conditions"]
    ready = told["conditions"][-1]
    assert (ready["type"], ready["lastHeartbeatTime"][14:16], ready["lastTransitionTime"][14:16]) == (
        "Ready",
        "33",
        "16",
    )


def test_7_1_a_change_is_reported_with_the_time_of_the_change() -> None:
    there = mirror_node.merged({}, mirror_node.status(FACTS, HOW, (), 1000.0))
    moved = replace(FACTS, address="192.0.2.2", disk_pressure=Pressure(True, "1% free"), ready_message="no Podman")
    told = mirror_node.patch(there, mirror_node.status(moved, HOW, (), 2000.0), heartbeat=False)
    assert told["addresses"][:2] == [{"$patch": "replace"}, {"type": "InternalIP", "address": "192.0.2.2"}]
    by_kind = {c["type"]: c for c in told["conditions"]}
    assert by_kind["DiskPressure"]["lastTransitionTime"].endswith("33:20Z")
    assert by_kind["MemoryPressure"]["lastTransitionTime"].endswith("16:40Z")
    assert (by_kind["Ready"]["status"], by_kind["Ready"]["reason"]) == ("False", "KubeletNotReady")


def test_images_are_the_fifty_largest_with_five_names_each() -> None:
    images = [{"names": [f"i{n}:{k}" for k in range(8)], "sizeBytes": n} for n in range(70)]
    found = mirror_node.status(FACTS, HOW, images, 0.0)["images"]
    assert [i["sizeBytes"] for i in found] == list(range(69, 19, -1))
    assert all(len(i["names"]) == 5 for i in found)


# ---- events ----------------------------------------------------------------------------------------


def test_only_what_the_server_does_not_know_is_told_the_oldest_news_first() -> None:
    one, two, three = (Event(n, WEB, "u", "", "Normal", "R", n, 1, 2, 3, v) for n, v in (("a", 9), ("b", 7), ("c", 8)))
    sent = {"c": mirror_events.told(three), "a": mirror_events.Told(2, two.last)}
    assert [e.name for e in mirror_events.pending([one, two, three], sent)] == ["b", "a"]


def test_what_is_here_is_told_though_the_server_knows_more_or_nobody_knows_what_it_knows() -> None:
    event = Event("a", WEB, "u", "", "Normal", "R", "m", 1.0, 3.0, 3, 9)
    for known in (mirror_events.Told(4, 3.0), mirror_events.Told(3, 4.0), mirror_events.UNSURE):
        assert mirror_events.pending([event], {"a": known}) == [event]
    assert mirror_events.pending([event], {"a": mirror_events.Told(3, 3.0)}) == []


def test_an_event_names_its_pod_as_kubectl_looks_for_it() -> None:
    event = Event(
        "e.1", PodKey("default", "web"), "f" * 32, "spec.containers{app}", "Normal", "Started", "m", 1, 2, 3, 4
    )
    found = mirror_events.body(event, "n1", {event.key: WEB}, {})
    about = found["involvedObject"]
    assert (about["name"], about["uid"], about["fieldPath"]) == ("web-n1", "1-" + "f" * 32, "spec.containers{app}")
    assert found["metadata"] == {"name": "e.1", "namespace": "default"}
    mine = mirror_events.body(replace(event, uid="mine"), "n1", {}, {"mine": "1-abc"})
    assert mine["involvedObject"]["uid"] == "1-abc"
