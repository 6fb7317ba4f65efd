"""What was ours is known for a while after it is gone, and not for ever."""

from __future__ import annotations

from unittest import mock

from edgelet.adapters.podman.learnt import GONE, Learnt
from edgelet.model.observed import ObservedContainer, ObservedPod, State
from edgelet.model.pod import PodKey


def container(name: str) -> ObservedContainer:
    return ObservedContainer(name, "app", State.RUNNING)


def test_what_has_gone_is_still_known_to_have_been_ours() -> None:
    learnt = Learnt(mock.Mock())
    learnt.own("old", "new")
    learnt.keep((), frozenset({"new"}))
    assert not learnt.owns("old") and learnt.owned("old")
    assert learnt.owns("new") and not learnt.owned("new")


def test_only_the_newest_of_what_has_gone_are_known() -> None:
    learnt = Learnt(mock.Mock())
    learnt.own("old")
    learnt.keep((), frozenset())
    for number in range(GONE):
        learnt.own(str(number))
        learnt.keep((), frozenset())
    assert not learnt.owned("old") and learnt.owned("0")


def test_a_pod_s_own_list_tells_what_it_has_no_more() -> None:
    times = mock.Mock()
    times.fix = lambda what: what
    learnt = Learnt(times)
    one, other = PodKey("default", "one"), PodKey("default", "other")
    learnt.own("a", "b", "c")
    for name in ("a", "b", "c"):
        learnt.remember(container(name), mock.Mock(started_at=0, finished_at=0), ())
    learnt.keep([ObservedPod(one, "p", "", "", containers=(container("a"),))], frozenset("abcp"))
    learnt.keep_of(one, frozenset("pb"))
    learnt.keep_of(other, frozenset())
    assert learnt.owned("a") and not learnt.owns("a") and learnt.recall(container("a"), ()) is None
    assert learnt.owns("b") and learnt.recall(container("c"), ()) is not None, "another pod's is not forgotten"
    learnt.keep_of(one, frozenset())
    assert learnt.owned("b") and learnt.recall(container("b"), ()) is None
