"""Which source wins, and when a pod that nobody wants may end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.core import desired
from edgelet.model.pod import Container, Pod, PodKey
from edgelet.model.problems import Problem
from edgelet.ports import Snapshot

ORDER = ("file", "http:1", "http:2", "api")


def pod(name: str, source: str, config_hash: str = "1-a") -> Pod:
    return Pod(name, "default", name, config_hash, source, (Container("c", "i"),))


def snapshots(**names: str) -> dict[str, Snapshot]:
    short = {"file": "file", "http:1": "one", "http:2": "two", "api": "api"}
    sources = {source: names.get(name) for source, name in short.items()}
    return {s: Snapshot(s, tuple(pod(n, s) for n in text.split())) for s, text in sources.items() if text is not None}


def test_every_pod_of_every_source_is_wanted() -> None:
    merged = desired.merge(snapshots(file="a b", one="c d", two="e", api="f"), ORDER)
    assert sorted(k.name for k in merged.pods) == ["a", "b", "c", "d", "e", "f"]
    assert merged.conflicts == () and merged.problems == () and merged.unseen == ()


@pytest.mark.parametrize(
    ("given_by", "winner", "losers"),
    [
        ({"file": "a", "one": "a"}, "file", ["http:1"]),
        ({"one": "a", "two": "a"}, "http:1", ["http:2"]),
        ({"two": "a", "api": "a"}, "http:2", ["api"]),
        ({"file": "a", "one": "a", "two": "a", "api": "a"}, "file", ["http:1", "http:2", "api"]),
    ],
)
def test_the_source_named_first_wins_and_the_others_are_reported(
    given_by: dict[str, str], winner: str, losers: list[str]
) -> None:
    merged = desired.merge(snapshots(**given_by), ORDER)
    key = PodKey("default", "a")
    assert merged.pods[key].source == winner
    assert [(c.winner, c.loser) for c in merged.conflicts] == [(winner, loser) for loser in losers]
    assert [p.file for p in merged.problems] == losers
    assert f"the one from {winner} runs" in merged.problems[0].message


def test_first_of_two_in_one_snapshot_wins_and_is_reported() -> None:
    first, second = pod("a", "http:1", "1-first"), pod("a", "http:1", "1-second")
    merged = desired.merge({"http:1": Snapshot("http:1", (first, second))}, ("http:1",))
    assert list(merged.pods.values()) == [first]
    assert len(merged.conflicts) == 1


def test_problems_of_sources_are_kept_in_the_order_of_the_sources() -> None:
    given_by = {
        "api": Snapshot("api", problems=(Problem("late"),)),
        "file": Snapshot("file", problems=(Problem("early"),)),
    }
    assert [p.message for p in desired.merge(given_by, ORDER).problems] == ["early", "late"]


def test_a_source_taken_out_of_the_configuration_wants_nothing() -> None:
    merged = desired.merge(snapshots(file="a", one="b"), ("file", "api"))
    assert [k.name for k in merged.pods] == ["a"]


def test_unseen_sources_are_named_whether_silent_or_not_started() -> None:
    given_by = {"file": Snapshot("file"), "http:1": Snapshot("http:1", seen=False)}
    assert desired.merge(given_by, ORDER).unseen == ("http:1", "http:2", "api")


def test_last_known_good_pods_of_an_unseen_source_still_run() -> None:
    given_by = {"http:1": Snapshot("http:1", (pod("a", "http:1"),), seen=False)}
    assert [k.name for k in desired.merge(given_by, ("http:1",)).pods] == ["a"]


@pytest.mark.parametrize(
    ("source", "silent", "order", "expected"),
    [
        ("file", "http:1", ORDER, True),
        ("file", "file", ORDER, False),
        ("http:1", "http:2", ORDER, True),
        ("http:1", "http:1", ORDER, False),
        ("http:gone", "", ORDER, True),
        ("http:gone", "http:1", ORDER, False),
        ("http:gone", "file", ORDER, True),
        ("api", "", ("file",), True),
        ("", "", ORDER, True),
        ("", "api", ORDER, False),
    ],
)
def test_a_pod_may_end_once_its_own_source_has_spoken(
    source: str, silent: str, order: tuple[str, ...], expected: bool
) -> None:
    given_by = {s: Snapshot(s, seen=s != silent) for s in order}
    assert desired.may_end(source, given_by, order) is expected


names = st.lists(st.sampled_from("abcd"), max_size=4)


@given(st.dictionaries(st.sampled_from(ORDER), names), st.permutations(ORDER))
def test_merging_is_the_same_whatever_the_order_of_arrival(wishes: dict[str, list[str]], arrival: list[str]) -> None:
    given_by = {s: Snapshot(s, tuple(pod(n, s) for n in wishes[s])) for s in wishes}
    shuffled = {s: given_by[s] for s in arrival if s in given_by}
    merged = desired.merge(shuffled, ORDER)
    assert merged == desired.merge(given_by, ORDER)
    assert {k.name for k in merged.pods} == {n for wish in wishes.values() for n in wish}
    for key, winner in merged.pods.items():
        assert winner.source == next(s for s in ORDER if key.name in wishes.get(s, ()))
    assert len(merged.pods) + len(merged.conflicts) == sum(len(w) for w in wishes.values())
