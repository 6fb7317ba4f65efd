"""The Node and its Lease as the server is to show them (semantics 7.1, 7.2), with values only."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.adapters.server import patches
from edgelet.core import mirror_node
from edgelet.core.mirror_node import Registration, Taint
from edgelet.core.mirror_status import bare
from edgelet.model.node_facts import NodeFacts, Pressure

Json = dict[str, Any]

MIB = 2**20
FACTS = NodeFacts(
    "n1", "192.0.2.1", cpus=2, memory=1024 * MIB, storage=10**10, architecture="arm64", machine_id="m1", boot_id="b1"
)
HOW = Registration({}, (), 10250, "0.1.0")
ATTACH = "volumes.kubernetes.io/controller-managed-attach-detach"
T = 1_700_000_000.0
AT = "2023-11-14T22:13:20Z"


def status(facts: NodeFacts = FACTS, images: Any = (), now: float = T) -> Json:
    """The NodeStatus as of `now`."""
    return mirror_node.status(facts, HOW, images, now)


def condition(shown: Json, kind: str) -> Json:
    """One of its conditions."""
    (found,) = (c for c in shown["conditions"] if c["type"] == kind)
    return dict(found)


# ---- 7.1, registration -----------------------------------------------------------------------------


def test_7_1_the_labels_are_the_kubelets_five_and_the_configured_ones_which_win() -> None:
    assert mirror_node.labels(FACTS, {"site": "north", "kubernetes.io/arch": "mine"}) == {
        "kubernetes.io/hostname": "n1",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "mine",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "arm64",
        "site": "north",
    }


def test_7_1_a_node_is_made_with_its_name_labels_and_annotation_and_without_taints_where_none_are_wished() -> None:
    made = mirror_node.body(FACTS, replace(HOW, labels={"site": "north"}))
    labels = mirror_node.labels(FACTS, {"site": "north"})
    assert made == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": labels, "annotations": {ATTACH: "true"}},
        "spec": {},
    }


def test_7_1_taints_are_given_at_registration_and_one_without_a_value_has_none() -> None:
    taints = (Taint("a", "b", "NoExecute"), Taint("edgelet.io/static-pods-only", "", "NoSchedule"))
    assert mirror_node.body(FACTS, replace(HOW, taints=taints))["spec"]["taints"] == [
        {"key": "a", "value": "b", "effect": "NoExecute"},
        {"key": "edgelet.io/static-pods-only", "effect": "NoSchedule"},
    ]


def test_7_1_an_existing_node_without_metadata_of_ours_gets_all_of_it() -> None:
    made = mirror_node.body(FACTS, HOW)["metadata"]
    for there in ({}, {"metadata": {"labels": None}}, {"metadata": {"name": "n1"}}):
        assert mirror_node.reconcile(there, FACTS, HOW) == {
            "metadata": {"labels": made["labels"], "annotations": made["annotations"]}
        }


@given(
    st.dictionaries(st.sampled_from(["kubernetes.io/os", "site", "theirs"]), st.sampled_from(["linux", "north", "x"])),
    st.dictionaries(st.sampled_from([ATTACH, "theirs"]), st.sampled_from(["true", "x"])),
)
def test_7_1_what_is_sent_to_an_existing_node_is_just_what_differs_and_what_others_wrote_stays(
    labels: dict[str, str], notes: dict[str, str]
) -> None:
    there = {"metadata": {"name": "n1", "labels": labels, "annotations": notes}}
    how = replace(HOW, labels={"site": "north"})
    patch = mirror_node.reconcile(there, FACTS, how)
    after = patches.merge(there, patch)
    assert mirror_node.reconcile(after, FACTS, how) == {}
    sent = patch.get("metadata", {})
    assert all(sent[part] for part in sent)
    for part, had in (("labels", labels), ("annotations", notes)):
        assert all(had.get(name) != value for name, value in sent.get(part, {}).items())
        assert after["metadata"][part].get("theirs") == had.get("theirs")


# ---- 7.1, status -----------------------------------------------------------------------------------


def test_7_1_allocatable_is_the_capacity_without_what_eviction_keeps_free() -> None:
    shown = status()
    assert (shown["capacity"]["memory"], shown["allocatable"]["memory"]) == ("1Gi", "924Mi")
    assert shown["allocatable"]["ephemeral-storage"] == "9G"
    for name in ("cpu", "pods"):
        assert shown["allocatable"][name] == shown["capacity"][name]


def test_7_1_memory_is_told_in_whole_kibibytes_and_never_below_none() -> None:
    assert status(replace(FACTS, memory=200 * MIB + 1025))["allocatable"]["memory"] == "102401Ki"
    assert status(replace(FACTS, memory=50 * MIB))["allocatable"]["memory"] == "0"


def test_7_1_a_good_state_is_told_in_the_kubelets_words_which_hold_no_figures() -> None:
    figures = Pressure(False, "12345 bytes are free")
    shown = status(replace(FACTS, memory_pressure=figures, disk_pressure=figures, pid_pressure=figures))
    assert {c["type"]: c["message"] for c in shown["conditions"]} == {
        "MemoryPressure": "kubelet has sufficient memory available",
        "DiskPressure": "kubelet has no disk pressure",
        "PIDPressure": "kubelet has sufficient PID available",
        "Ready": "kubelet is posting ready status",
    }


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("MemoryPressure", {"memory_pressure": Pressure(True, "9 MiB are left")}),
        ("DiskPressure", {"disk_pressure": Pressure(True, "9 MiB are left")}),
        ("PIDPressure", {"pid_pressure": Pressure(True, "9 MiB are left")}),
    ],
)
def test_7_1_a_shortage_is_told_with_its_figures_and_the_others_stay_good(kind: str, change: Any) -> None:
    shown, good = status(replace(FACTS, **change)), status()
    assert (condition(shown, kind)["status"], condition(shown, kind)["message"]) == ("True", "9 MiB are left")
    others = [c for c in shown["conditions"] if c["type"] != kind]
    assert others == [c for c in good["conditions"] if c["type"] != kind]


def test_7_1_a_node_that_is_not_ready_says_why() -> None:
    shown = condition(status(replace(FACTS, ready_message="no Podman")), "Ready")
    assert (shown["status"], shown["message"]) == ("False", "no Podman")


def test_7_1_without_images_none_are_listed() -> None:
    assert "images" not in status()


def test_7_1_an_image_of_unknown_size_comes_after_the_smallest() -> None:
    unsized, small = {"names": ["a"]}, {"names": ["b"], "sizeBytes": 1}
    assert status(images=[unsized, small])["images"] == [small, unsized]


# ---- what is sent of it ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "since"),
    [
        ({"status": "True", "lastTransitionTime": "2001-01-01T00:00:00Z"}, "2001-01-01T00:00:00Z"),
        ({"status": "False", "lastTransitionTime": "2001-01-01T00:00:00Z"}, AT),
        ({"status": "True"}, AT),
        ({"status": "True", "lastTransitionTime": None}, AT),
    ],
)
def test_a_condition_has_changed_when_its_status_did(before: Json, since: str) -> None:
    merged = mirror_node.merged({"conditions": [{"type": "Ready", **before}]}, status())
    assert condition(merged, "Ready")["lastTransitionTime"] == since
    assert condition(merged, "Ready")["lastHeartbeatTime"] == AT
    assert condition(merged, "DiskPressure")["lastTransitionTime"] == AT
    assert {n: v for n, v in merged.items() if n != "conditions"} == {
        n: v for n, v in status().items() if n != "conditions"
    }


_facts = st.builds(
    replace,
    st.just(FACTS),
    address=st.sampled_from(["", "192.0.2.1", "192.0.2.2"]),
    memory=st.sampled_from([0, 512 * MIB, 1024 * MIB]),
    pods=st.integers(109, 110),
    disk_pressure=st.sampled_from([Pressure(), Pressure(True, "1 % free"), Pressure(True, "2 % free")]),
    ready_message=st.sampled_from(["", "no Podman", "shutdown"]),
)
FOREIGN = {"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated", "message": "ok"}


@given(_facts, _facts)
def test_7_2_after_the_patch_the_server_shows_what_is_here_and_nothing_more_is_sent(
    was: NodeFacts, now: NodeFacts
) -> None:
    there = status(was)
    there["conditions"] = [FOREIGN, *there["conditions"]]
    there["capacity"] = {**there["capacity"], "hugepages-2Mi": "0"}
    there["allocatable"] = {**there["allocatable"], "example.com/gone": "1"}
    here = status(now, now=T + 10)
    after = patches.strategic(there, mirror_node.patch(there, here, heartbeat=False))
    assert mirror_node.patch(after, here, heartbeat=False) == {}
    assert FOREIGN in after["conditions"]
    for part in ("addresses", "capacity", "allocatable", "nodeInfo", "daemonEndpoints"):
        assert bare(after[part]) == bare(here[part])
    for kind in mirror_node._GOOD:
        for part in ("status", "reason", "message"):
            assert condition(after, kind)[part] == condition(here, kind)[part]


@pytest.mark.parametrize("part", ["status", "reason", "message"])
def test_7_2_one_word_of_a_condition_is_reason_enough_and_a_time_is_not(part: str) -> None:
    there, here = status(), status(now=T + 10)
    assert mirror_node.patch(there, here, heartbeat=False) == {}
    there["conditions"][1][part] = "other"
    assert list(mirror_node.patch(there, here, heartbeat=False)) == ["conditions"]


def test_7_2_a_status_that_was_never_written_is_sent_in_full() -> None:
    sent = mirror_node.patch({}, status(), heartbeat=False)
    assert {*sent} == {"conditions", "addresses", "capacity", "allocatable", "nodeInfo", "daemonEndpoints"}


def test_7_2_only_the_part_that_changed_is_sent_beside_the_conditions() -> None:
    sent = mirror_node.patch(status(), status(images=[{"names": ["a"]}]), heartbeat=False)
    assert {*sent} == {"conditions", "images"}


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ([], ""),
        ([{"type": "DiskPressure", "status": "True"}], ""),
        ([{"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": "Unknown"}], "Unknown"),
        ([{"type": "Ready"}], ""),
    ],
)
def test_what_is_said_of_readiness(conditions: list[Json], ready: str) -> None:
    assert mirror_node.readiness(conditions) == ready


# ---- whose node it is ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "here", "differs"),
    [("1", "1", False), ("0", "1", True), ("", "1", False), (None, "1", False), ("0", "", False)],
)
def test_7_1_another_machine_or_boot_is_one_that_both_sides_name_differently(
    there: str | None, here: str, differs: bool
) -> None:
    facts = replace(FACTS, machine_id=here, boot_id=here)
    by_machine, by_boot = ({"status": {"nodeInfo": {name: there}}} for name in ("machineID", "bootID"))
    assert mirror_node.other_machine(by_machine, facts) is differs
    assert mirror_node.rebooted(by_boot, facts) is differs
    assert not mirror_node.other_machine(by_boot, facts) and not mirror_node.rebooted(by_machine, facts)


def test_a_node_that_nobody_has_filled_in_is_nobodys() -> None:
    for there in ({}, {"status": None}, {"status": {"nodeInfo": None}}):
        assert not mirror_node.other_machine(there, FACTS)
        assert not mirror_node.rebooted(there, FACTS)


# ---- 7.2, the lease --------------------------------------------------------------------------------


def test_7_2_a_new_lease_names_its_holder_and_its_node_as_owner() -> None:
    assert mirror_node.lease("n1", "uid-1", 40.0, T + 0.25, None) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "n1",
            "namespace": "kube-node-lease",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-1"}],
        },
        "spec": {
            "holderIdentity": "n1",
            "leaseDurationSeconds": 40,
            "renewTime": "2023-11-14T22:13:20.250000Z",
        },
    }


def test_7_2_a_lease_made_before_the_node_is_known_has_no_owner() -> None:
    assert "ownerReferences" not in mirror_node.lease("n1", "", 40.0, T, None)["metadata"]


def test_7_2_a_renewal_is_bound_to_what_was_read_and_keeps_what_others_wrote() -> None:
    there = {
        "metadata": {"name": "n1", "uid": "lease-uid", "resourceVersion": "7"},
        "spec": {"holderIdentity": "other", "renewTime": "old", "leaseTransitions": 3},
    }
    before = copy.deepcopy(there)
    found = mirror_node.lease("n1", "uid-1", 40.0, T, there)
    assert there == before
    assert (found["metadata"]["uid"], found["metadata"]["resourceVersion"]) == ("lease-uid", "7")
    assert (found["spec"]["leaseTransitions"], found["spec"]["holderIdentity"]) == (3, "n1")
    assert found["spec"]["renewTime"] == mirror_node.micro_time(T)


@pytest.mark.parametrize("there", [{}, {"metadata": None, "spec": None}, {"metadata": {}}])
def test_an_answer_that_is_no_lease_does_no_harm(there: Json) -> None:
    found = mirror_node.lease("n1", "uid-1", 40.0, T, there)
    assert (found["metadata"]["uid"], found["metadata"]["resourceVersion"]) == ("", "")
    assert found["spec"] == mirror_node.lease("n1", "uid-1", 40.0, T, None)["spec"]
    assert not mirror_node.fresh(there, T)


@given(st.integers(0, 2**31), st.integers(1, 300), st.integers(-1000, 1000))
def test_a_lease_is_fresh_for_its_duration_by_a_clock_that_is_early_or_late(wall: int, lasts: int, later: int) -> None:
    made = mirror_node.lease("n1", "", float(lasts), float(wall), None)
    assert mirror_node.fresh(made, float(wall + later)) is (abs(later) < lasts)


@pytest.mark.parametrize(("seconds", "fresh"), [(39.9, True), (40.0, False)])
def test_a_lease_that_does_not_say_how_long_it_lasts_lasts_as_long_as_the_kubelets(seconds: float, fresh: bool) -> None:
    assert mirror_node.fresh({"spec": {"renewTime": AT}}, T + seconds) is fresh


@pytest.mark.parametrize("time", ["", "yesterday", None])
def test_a_lease_whose_time_cannot_be_read_is_not_fresh(time: str | None) -> None:
    assert mirror_node.fresh({"spec": {"renewTime": time, "leaseDurationSeconds": 40}}, T) is False
