"""The ring of events: repeats counted, bounded with fairness, kept over a restart."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.engine.journal import ChangeKind
from edgelet.engine.recorder import BURST, MESSAGE_LIMIT, EventRing
from edgelet.model.events import Event
from edgelet.model.pod import PodKey
from edgelet.ports import EventRef
from tests.fakes import FakeClock

REF = EventRef(PodKey("default", "web-edge1"), "u", "spec.containers{c}")
OTHER = EventRef(PodKey("default", "quiet-edge1"), "v")


def ring(capacity: int = 1000) -> tuple[EventRing, FakeClock]:
    """An empty ring and its clock."""
    clock = FakeClock()
    return EventRing(clock, "edge1", capacity), clock


def test_a_repeat_is_counted_and_moves_to_the_end() -> None:
    r, clock = ring()
    r.event(REF, "Warning", "BackOff", "again")
    r.event(REF, "Normal", "Pulled", "other")
    clock.advance(10)
    r.event(REF, "Warning", "BackOff", "again")
    other, again = r.events()
    assert (other.reason, again.reason) == ("Pulled", "BackOff")
    assert (again.count, again.last - again.first) == (2, 10)
    assert again.name.startswith("web-edge1.")


def test_another_message_container_or_uid_is_another_event() -> None:
    r, _ = ring()
    for ref in (REF, EventRef(REF.key, "u"), EventRef(REF.key, "w", REF.field_path)):
        r.event(ref, "Warning", "BackOff", "a")
    r.event(REF, "Warning", "BackOff", "b")
    assert [e.count for e in r.events()] == [1, 1, 1, 1]
    assert len({e.name for e in r.events()}) == 4


def test_a_noisy_pod_does_not_push_out_the_others() -> None:
    r, _ = ring(capacity=10)
    r.event(OTHER, "Normal", "Started", "Container started")
    for number in range(100):
        r.event(REF, "Warning", "Failed", f"attempt {number}")
    events = r.events()
    assert len(events) == 10
    assert events[0].key == OTHER.key
    assert events[-1].message == "attempt 99"


def test_watchers_hear_of_what_was_pushed_out() -> None:
    r, _ = ring(capacity=2)
    r.event(REF, "Normal", "A", "a")
    r.event(REF, "Normal", "B", "b")
    version, _ = r.list()
    r.event(REF, "Normal", "C", "c")
    assert [(c.kind, c.value.reason) for c in r.since(version)] == [
        (ChangeKind.ADDED, "C"),
        (ChangeKind.DELETED, "A"),
    ]


def test_events_since_a_version_are_the_newer_ones() -> None:
    r, _ = ring()
    r.event(REF, "Normal", "A", "a")
    version, _ = r.list()
    r.event(REF, "Normal", "B", "b")
    assert [e.reason for e in r.events(version)] == ["B"]


def test_after_a_burst_repeats_are_counted_but_told_every_five_minutes_only() -> None:
    r, clock = ring()
    told: list[int] = []
    r.subscribe(lambda change: told.append(change.value.count))
    for _ in range(1000):
        r.event(REF, "Warning", "Unhealthy", "Readiness probe failed")
        clock.advance(1)
    assert r.events()[0].count == 1000
    assert told == [*range(1, BURST + 1), BURST + 1, 326, 626, 926]
    r.event(REF, "Warning", "Unhealthy", "another reason is told at once")
    assert told[-1] == 1


def test_a_long_message_is_cut() -> None:
    r, _ = ring()
    r.event(REF, "Warning", "Failed", "x" * 5000)
    assert len(r.events()[0].message) == MESSAGE_LIMIT
    r.event(REF, "Warning", "Failed", "x" * 5000)
    assert r.events()[0].count == 2


def test_subscribers_hear_until_they_leave() -> None:
    r, _ = ring()
    heard: list[str] = []
    leave = r.subscribe(lambda change: heard.append(change.value.reason))
    r.event(REF, "Normal", "A", "a")
    leave()
    r.event(REF, "Normal", "B", "b")
    assert heard == ["A"]


def test_pain_145_the_reasons_of_restarts_survive_a_restart_of_the_agent() -> None:
    before, clock = ring()
    before.event(REF, "Warning", "Unhealthy", "Liveness probe failed: timeout")
    before.event(REF, "Normal", "Killing", "Container c failed liveness probe, will be restarted")
    after = EventRing(clock, "edge1")
    assert after.load(before.dump() + b'{"torn": ') == 2
    assert [(e.reason, e.message, e.count) for e in after.events()] == [
        (e.reason, e.message, e.count) for e in before.events()
    ]
    after.event(REF, "Warning", "Unhealthy", "Liveness probe failed: timeout")
    assert after.events()[-1].count == 2


@pytest.mark.parametrize("years", [-50, 50])
def test_a_clock_that_was_set_gives_no_event_the_name_or_the_place_of_an_older_one(years: int) -> None:
    before = EventRing(FakeClock(time=2e9), "n1")
    for number in range(3):
        before.event(REF, "Normal", "Before", f"number {number}")
    again = EventRing(FakeClock(time=2e9 + years * 31557600), "n1")
    again.load(before.dump())
    newest = max(e.version for e in before.events())
    for number in range(3):
        again.event(REF, "Normal", "After", f"number {number}")
    found = again.events()
    assert [e.reason for e in found] == ["Before"] * 3 + ["After"] * 3
    assert sorted(e.version for e in found) == [e.version for e in found]
    assert len({e.name for e in found}) == 6
    assert min(e.version for e in found) > newest


def test_a_later_line_about_the_same_event_wins() -> None:
    before, clock = ring()
    before.event(REF, "Warning", "BackOff", "a")
    first = before.dump()
    before.event(REF, "Warning", "BackOff", "a")
    after = EventRing(clock, "edge1")
    after.load(first + before.dump())
    assert [e.count for e in after.events()] == [2]


def test_garbage_is_no_event() -> None:
    r, _ = ring()
    assert r.load(b'\x00\xff\n[]\n{}\n{"key": 5}\n"x"\nnull\n\n' + b"[" * 100_000) == 0


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(Event)])
@pytest.mark.parametrize("value", [None, [1], {"a": 1}, True, 1.5, "x", [1, 2]])
def test_an_event_with_a_field_of_another_type_is_no_event_nor_a_fault(field: str, value: object) -> None:
    before, clock = ring()
    before.event(REF, "Warning", "BackOff", "a")
    damaged = {**json.loads(before.dump()), field: value}
    after = EventRing(clock, "edge1")
    after.load(json.dumps(damaged).encode())
    after.event(REF, "Warning", "BackOff", "b")
    assert after.events()[-1].message == "b"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=60), st.integers(1, 8))
def test_never_more_than_the_capacity_and_the_newest_is_there(orders: list[tuple[str, int]], capacity: int) -> None:
    r, _ = ring(capacity)
    for name, number in orders:
        r.event(EventRef(PodKey("d", name), "u"), "Normal", "R", str(number))
        newest = r.events()[-1]
        assert len(r.events()) <= capacity
        if capacity > 1:
            assert (newest.key.name, newest.message) == (name, str(number))


def test_an_event_never_holds_what_cannot_be_encoded_not_even_one_that_was_saved_before() -> None:
    ring = EventRing(FakeClock(), "n1")
    ring.event(EventRef(PodKey("", "n1"), "n1"), "Warning", "FailedValidation", "b\udcff.yaml: error: no")
    assert ring.events()[0].message == "b\\xff.yaml: error: no"
    saved = ring.dump().replace(b"\\\\xff", b"\\udcff")
    again = EventRing(FakeClock(), "n1")
    assert again.load(saved) == 1
    assert again.events()[0].message == "b\\xff.yaml: error: no"
