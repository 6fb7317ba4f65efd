"""The status store: equal is no change, versions grow, watchers are told or sent to list again."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.engine.journal import ChangeKind, Expired
from edgelet.engine.store import Entry, StatusStore
from edgelet.model.pod import PodKey
from tests.fakes import FakeClock
from tests.support.serving import pod, running


def store(capacity: int = 500) -> StatusStore:
    """An empty store."""
    return StatusStore(FakeClock(), capacity)


def test_an_equal_status_is_no_change() -> None:
    s = store()
    s.put(pod(), running())
    version, _ = s.list()
    s.put(pod(), running())
    assert s.list()[0] == version
    assert s.since(version) == ()


def test_changes_tell_what_was_before() -> None:
    s = store()
    start, _ = s.list()
    s.put(pod(), running())
    s.put(pod(), running(1))
    s.remove(pod().key)
    s.remove(pod().key)
    added, modified, deleted = s.since(start)
    assert [c.kind for c in (added, modified, deleted)] == [ChangeKind.ADDED, ChangeKind.MODIFIED, ChangeKind.DELETED]
    assert modified.previous == added.value
    assert deleted.value.status == running(1)
    assert added.version < modified.version < deleted.version == deleted.value.version


def test_another_uid_is_another_object() -> None:
    s = store()
    s.put(pod(uid="a"), running())
    version, _ = s.list()
    s.put(pod(uid="b"), running())
    assert [(c.kind, c.value.pod.uid) for c in s.since(version)] == [(ChangeKind.DELETED, "a"), (ChangeKind.ADDED, "b")]


def test_who_fell_too_far_behind_must_list_again() -> None:
    s = store(capacity=2)
    start, _ = s.list()
    for restarts in range(3):
        s.put(pod(), running(restarts))
    with pytest.raises(Expired):
        s.since(start)
    assert len(s.since(start + 1)) == 2


def test_a_version_of_an_earlier_run_or_of_the_future_must_list_again() -> None:
    clock = FakeClock()
    before = StatusStore(clock)
    before.put(pod(), running())
    old, _ = before.list()
    clock.advance(5)
    after = StatusStore(clock)
    for version in (old, after.list()[0] + 1, 0):
        with pytest.raises(Expired):
            after.since(version)


def test_the_list_is_sorted_by_namespace_and_name() -> None:
    s = store()
    for name, namespace in (("b", "z"), ("c", "a"), ("a", "z")):
        s.put(pod(name, namespace), running())
    keys = [e.pod.key for e in s.list()[1]]
    assert keys == [PodKey("a", "c-edge1"), PodKey("z", "a-edge1"), PodKey("z", "b-edge1")]


def test_subscribers_hear_of_changes_until_they_leave() -> None:
    s, heard = store(), list[str]()
    leave = s.subscribe(lambda change: heard.append(change.kind.value))
    s.put(pod(), running())
    s.put(pod(), running())
    leave()
    s.remove(pod().key)
    assert heard == ["ADDED"]


def test_a_subscriber_may_read_the_store() -> None:
    s, seen = store(), list[Entry | None]()
    s.subscribe(lambda change: seen.append(s.get(change.value.pod.key)))
    s.put(pod(), running())
    assert seen == [s.get(pod().key)]


def test_a_pod_keeps_the_time_it_was_first_seen() -> None:
    clock = FakeClock()
    s = StatusStore(clock)
    s.put(pod(), running())
    clock.advance(100)
    s.put(pod(), running(1))
    entry = s.get(pod().key)
    assert entry is not None
    assert entry.seen_at == clock.time() - 100


def test_writers_in_several_threads_lose_nothing() -> None:
    s = store(capacity=10_000)
    start, _ = s.list()

    def write(name: str) -> None:
        for restarts in range(100):
            s.put(pod(name), running(restarts))

    threads = [threading.Thread(target=write, args=(f"p{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    changes = s.since(start)
    assert [c.version for c in changes] == list(range(start + 1, start + 401))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-1, 3)), max_size=30), st.integers(0, 30))
def test_replaying_the_journal_onto_an_old_list_gives_the_new_one(orders: list[tuple[str, int]], cut: int) -> None:
    s = store(capacity=100)
    for step, (name, restarts) in enumerate(orders):
        if step == cut:
            break
        _apply(s, name, restarts)
    version, entries = s.list()
    seen = {e.pod.key: e for e in entries}
    for name, restarts in orders[cut:]:
        _apply(s, name, restarts)
    for change in s.since(version):
        if change.kind is ChangeKind.DELETED:
            del seen[change.value.pod.key]
        else:
            assert (change.value.pod.key in seen) is (change.kind is ChangeKind.MODIFIED)
            seen[change.value.pod.key] = change.value
    assert tuple(seen[key] for key in sorted(seen)) == s.list()[1]


def _apply(s: StatusStore, name: str, restarts: int) -> None:
    if restarts < 0:
        s.remove(pod(name).key)
    else:
        s.put(pod(name), running(restarts))
