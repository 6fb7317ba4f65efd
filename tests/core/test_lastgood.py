"""What a changed manifest may change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.core import lastgood
from edgelet.model.decode import Decoded
from edgelet.model.objects import LocalObject
from edgelet.model.pod import Container, Pod
from edgelet.model.problems import Problem


def pod(name: str, image: str = "one") -> Pod:
    return Pod(name, "default", name, f"1-{image}", "file", (Container("c", image),))


def decoded(text: str) -> Decoded:
    """ "a1 b2" = pods a and b with those images, "X1" = an object x; "!" = a mistake; "?" = a warning."""
    words = [word for word in text.split() if word[0].isalpha()]
    pods = tuple(pod(word[0], word[1:]) for word in words if word[0].islower())
    objects = tuple(LocalObject("ConfigMap", "default", w[0], {"k": w[1:].encode()}) for w in words if w[0].isupper())
    problems = [Problem("bad")] * text.count("!") + [Problem("odd", warning=True)] * text.count("?")
    return Decoded(pods, tuple(problems), objects=objects)


def names(pods: tuple[Pod, ...]) -> str:
    return " ".join(p.name + p.containers[0].image for p in pods)


@pytest.mark.parametrize(
    ("running", "now", "runs", "accepted", "contributes", "kept"),
    [
        ("a1 b1", "a2", "a2", True, True, False),
        ("a1 b1", "", "", True, True, False),
        ("a1 b1", "a2 ?", "a2", True, True, False),
        ("a1 b1", "a2 !", "a2 b1", False, True, True),
        ("a1 b1", "!", "a1 b1", False, False, True),
        ("", "a1 !", "a1", False, True, False),
        ("", "!", "", False, False, False),
    ],
)
def test_a_version_with_a_mistake_ends_nothing(
    running: str, now: str, runs: str, accepted: bool, contributes: bool, kept: bool
) -> None:
    outcome = lastgood.weigh(decoded(now), lastgood.Outcome(decoded(running).pods))
    assert names(outcome.pods) == runs
    assert (outcome.accepted, outcome.contributes, outcome.kept) == (accepted, contributes, kept)
    assert len(outcome.problems) == now.count("!") + now.count("?")


def test_objects_are_kept_as_pods_are() -> None:
    first = lastgood.weigh(decoded("a1 X1 Y1"), lastgood.NOTHING)
    half = lastgood.weigh(decoded("X2 !"), first)
    assert {o.name: o.data["k"] for o in half.objects} == {"X": b"2", "Y": b"1"}
    assert (names(half.pods), half.contributes, half.kept) == ("a1", True, True)
    assert lastgood.refuse(Problem("empty"), half).objects == half.objects
    assert lastgood.weigh(decoded("a1 X2"), half).objects == decoded("X2").objects


def test_refused_bytes_change_nothing_and_are_said() -> None:
    outcome = lastgood.refuse(Problem("empty"), lastgood.Outcome((pod("a"),)))
    assert (names(outcome.pods), outcome.accepted, outcome.contributes, outcome.kept) == ("aone", False, False, True)
    assert outcome.problems == (Problem("empty"),)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"\0" * 4096, "filled with NUL"),
        (b"kind: Pod\n\0\0", "contains NUL"),
        (b"# off\n", ""),
        (b"kind: Pod", ""),
        ("kind: Pod\n".encode("utf-16"), ""),
    ],
)
def test_leftovers_of_crashes_are_told_from_manifests(data: bytes, said: str) -> None:
    reason = lastgood.damage(data)
    assert said in reason and bool(said) == bool(reason)


@pytest.mark.parametrize(
    ("data", "before", "cut"),
    [
        (b"kind: Po", b"kind: Pod\n", True),
        (b"kind: Pod\n", b"kind: Pod\n", False),
        (b"kind: Pod\r\n  ", b"kind: Pod\r\n", False),
        (b"kind: Pod", b"kind: Pod", False),
        (b'{"kind": "Pod"}', b'{"kind": "Pod"}\n', False),
        (b"[a]", b"[a]\n", False),
    ],
)
def test_a_missing_end_of_line_that_was_there_before_looks_cut(data: bytes, before: bytes, cut: bool) -> None:
    assert lastgood.looks_cut(data, before) is cut


texts = st.lists(
    st.lists(st.sampled_from(["a1", "a2", "b1", "X1", "X2", "c1", "!"]), max_size=3).map(
        lambda w: " ".join(sorted(set(w)))
    ),
    max_size=10,
)


@given(texts)
def test_versions_kept_give_the_same_pods_when_replayed(history: list[str]) -> None:
    running = lastgood.NOTHING
    versions: tuple[bytes, ...] = ()
    halves = 0
    for text in history:
        outcome = lastgood.weigh(decoded(text), running)
        running = outcome
        versions = lastgood.remember(versions, text.encode(), outcome)
        halves = 0 if outcome.accepted else halves + 1
        assert len(versions) <= lastgood.MAX_VERSIONS
        if halves < lastgood.MAX_VERSIONS:
            replayed = lastgood.replay(versions, lambda data: decoded(data.decode()))
            assert {p.key: p for p in replayed.pods} == {p.key: p for p in running.pods}
            assert {o.id: o for o in replayed.objects} == {o.id: o for o in running.objects}


def test_beyond_the_bound_the_last_good_and_the_newest_are_kept() -> None:
    versions: tuple[bytes, ...] = (b"good",)
    for number in range(20):
        versions = lastgood.remember(versions, b"%d" % number, lastgood.weigh(decoded("a1 !"), lastgood.NOTHING))
    assert versions == (b"good", *(b"%d" % number for number in range(13, 20)))


def test_the_same_half_valid_version_is_kept_once_and_one_that_gives_nothing_never() -> None:
    half, nothing = (
        lastgood.weigh(decoded("a1 !"), lastgood.NOTHING),
        lastgood.weigh(decoded("!"), lastgood.Outcome((pod("a"),))),
    )
    versions = lastgood.remember((b"good",), b"half", half)
    assert versions == (b"good", b"half")
    assert lastgood.remember(versions, b"half", half) == versions
    assert lastgood.remember(versions, b"broken", nothing) == versions
    assert lastgood.remember(versions, b"good", half) == (b"good", b"half", b"good")


@given(st.lists(st.binary(max_size=20), max_size=5).map(tuple))
def test_packing_round_trips(versions: tuple[bytes, ...]) -> None:
    assert lastgood.unpack(lastgood.pack(versions)) == versions


@pytest.mark.parametrize("packed", [b"3\nab", b"x\nabc", b"2\nabc", b"-1 4\nabc"])
def test_what_was_not_packed_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match=r"lengths|invalid literal"):
        lastgood.unpack(packed)
