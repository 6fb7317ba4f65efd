"""What was ours is known for a while after it is gone, and not for ever."""

from __future__ import annotations

from unittest import mock

from edgelet.adapters.podman.learnt import GONE, Learnt


def test_what_has_gone_is_still_known_to_have_been_ours() -> None:
    learnt = Learnt(mock.Mock())
    learnt.own("old", "new")
    learnt.keep({"new"})
    assert not learnt.owns("old") and learnt.owned("old")
    assert learnt.owns("new") and not learnt.owned("new")


def test_only_the_newest_of_what_has_gone_are_known() -> None:
    learnt = Learnt(mock.Mock())
    learnt.own("old")
    learnt.keep(set())
    for number in range(GONE):
        learnt.own(str(number))
        learnt.keep(set())
    assert not learnt.owned("old") and learnt.owned("0")
