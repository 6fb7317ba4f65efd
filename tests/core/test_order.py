"""The order in which pods begin: edgelet.io/after, its timeout, and circles."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.core import order
from edgelet.model.gate import Gate
from edgelet.model.pod import Pod, PodKey
from tests.core.scenes import pod


def waits(name: str, after: str = "", timeout: str = "", namespace: str = "default") -> Pod:
    """A pod `name`-node that waits."""
    notes = {**({order.AFTER: after} if after else {}), **({order.TIMEOUT: timeout} if timeout else {})}
    return replace(pod(), name=f"{name}-node", namespace=namespace, short_name=name, annotations=notes)


def gates(*pods: Pod, ready: str = "", begun: str = "", since: float = 100.0) -> dict[str, Gate]:
    """By short name."""
    keys = {p.key: p for p in pods}
    is_ready, has_begun = ({k for k, p in keys.items() if p.short_name in w.split()} for w in (ready, begun))
    found = order.gates(keys, is_ready, has_begun, dict.fromkeys(keys, since))
    return {keys[k].short_name: g for k, g in found.items()}


def test_a_pod_waits_until_all_it_names_are_ready() -> None:
    pods = waits("web", "db, broker"), waits("db"), waits("broker")
    assert gates(*pods) == {
        "web": Gate("WaitingForPods", "waits for pod db to be Ready, pod broker to be Ready", refused=False)
    }
    assert gates(*pods, ready="db")["web"].message == "waits for pod broker to be Ready"
    assert gates(*pods, ready="db broker") == {}


def test_what_has_begun_in_this_boot_waits_no_more_and_the_others_do() -> None:
    assert gates(waits("web", "db"), waits("db"), begun="web") == {}
    assert list(gates(waits("web", "db"), waits("db"), waits("late", "db"), begun="web")) == ["late"]


def test_empty_words_name_no_pod() -> None:
    assert gates(waits("web", "db, ,"), waits("db"), ready="db") == {}
    assert order.wanted(waits("web", ",db")) == (("default", "db"),)


def test_the_annotations_are_those_of_the_manual() -> None:
    assert (order.AFTER, order.TIMEOUT) == ("edgelet.io/after", "edgelet.io/after-timeout")


def test_a_pod_without_a_short_name_is_found_by_its_full_one_only() -> None:
    odd = replace(waits("db"), short_name="")
    assert gates(waits("web", "db-node"), odd)["web"].message == "waits for pod db-node to be Ready"
    assert "nobody has asked for" in gates(waits("web", "default/"), odd)["web"].message


def test_full_names_other_namespaces_and_pods_that_nobody_wants() -> None:
    other = waits("db", namespace="data")
    assert gates(waits("web", "data/db"), other)["web"].message == "waits for pod data/db to be Ready"
    assert gates(waits("web", "data/db-node"), other, ready="db") == {}
    assert gates(waits("web", "db"), other)["web"].message == "waits for pod db, which nobody has asked for"


def test_a_full_name_beats_a_short_one() -> None:
    odd = replace(waits("x"), name="db")
    assert gates(waits("web", "db"), odd, waits("db"), ready="x") == {}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("90", 90), ("5m", 300), ("1h", 3600), ("1h2m3s", 3723), ("0s", 0), (" 7s ", 7)],
)
def test_after_the_timeout_it_begins_all_the_same(text: str, seconds: float) -> None:
    gate = gates(waits("web", "db", text), since=100.0)["web"]
    assert gate.until == 100.0 + seconds
    assert gate.closed(100.0 + seconds - 0.1)
    assert not gate.closed(100.0 + seconds)


def test_without_a_timeout_it_waits_for_ever() -> None:
    assert gates(waits("web", "db"))["web"].closed(1e12)


@pytest.mark.parametrize("text", ["soon", "5 m", "-5s", "s", "1.5h", "m5"])
def test_a_timeout_that_is_none_is_an_error_that_says_so(text: str) -> None:
    gate = gates(waits("web", "db", text))["web"]
    assert (gate.reason, gate.refused) == ("DependencyInvalid", True)
    assert repr(text) in gate.message


def test_a_circle_is_an_error_that_names_it() -> None:
    pods = waits("a", "b"), waits("b", "c"), waits("c", "a"), waits("d", "a"), waits("e", "e")
    found = gates(*pods)
    assert found["a"] == Gate(
        "DependencyCycle",
        "Pod was rejected: edgelet.io/after: these pods wait for each other:"
        " default/a-node -> default/b-node -> default/c-node -> default/a-node",
    )
    assert [n for n, g in found.items() if g.reason == "DependencyCycle"] == ["a", "b", "c", "e"]
    assert found["d"].reason == "WaitingForPods"
    assert gates(*pods[:2], waits("c")) != {}
    assert order.cycle(PodKey("default", "c-node"), {p.key: p for p in (*pods[:2], waits("c"))}) == ()


@given(st.lists(st.lists(st.integers(0, 5), max_size=3), min_size=6, max_size=6))
def test_whoever_is_not_in_a_circle_begins_once_the_others_are_ready(rows: list[list[int]]) -> None:
    pods = [waits(f"p{n}", ",".join(f"p{t}" for t in targets)) for n, targets in enumerate(rows)]
    ready: set[str] = set()
    for _ in range(len(pods) + 1):
        found = gates(*pods, ready=" ".join(ready))
        ready |= {p.short_name for p in pods} - found.keys()
    keys = {p.key: p for p in pods}
    circular = {p.short_name for p in pods if order.cycle(p.key, keys)}
    for name in {p.short_name for p in pods} - ready:
        reached, todo = set[str](), [name]
        while todo:
            for target in rows[int(todo.pop()[1:])]:
                if f"p{target}" not in reached:
                    reached.add(f"p{target}")
                    todo.append(f"p{target}")
        assert name in circular or reached & circular
