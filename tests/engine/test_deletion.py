"""A grace period given with a deletion: taken, only ever shortened, and kept while the pod ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgelet.core import plan as planner
from edgelet.core.memory import Ending
from edgelet.engine.local import Local
from edgelet.engine.workers import Mailbox, Wish
from edgelet.model.actions import Verb
from tests.core.scenes import KEY, NOW, WALL, memory, pod, runs, sandbox

ENDING = Ending("its manifest is gone", False, WALL)


def local(**fields: object) -> Local:
    """A running pod's worker."""
    return replace(Local(KEY, desired=pod(), observed=sandbox(runs()), memory=memory()), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ending", "before", "wish", "after"),
    [
        (None, None, Wish(None, grace=5), 5),
        (None, None, Wish(None), None),
        (None, 5, Wish(None), None),
        (ENDING, 60, Wish(None, grace=5), 5),
        (ENDING, 5, Wish(None, grace=60), 5),
        (ENDING, 5, Wish(pod()), 5),
        (ENDING, None, Wish(pod()), None),
    ],
)
def test_the_mailbox_keeps_the_shortest(ending: Ending | None, before: int | None, wish: Wish, after: int) -> None:
    box = Mailbox()
    box.wish(wish)
    assert box.take(local(grace=before, memory=replace(memory(), ending=ending))).grace == after


def test_the_containers_get_that_long() -> None:
    scene = planner.Scene(None, sandbox(runs()), memory(), NOW, old=pod(), grace=7)
    (action,) = planner.plan(scene).actions
    assert (action.verb, action.number) == (Verb.STOP_CONTAINER, 7)
    own = planner.plan(replace(scene, grace=None)).actions[0]
    assert own.number == 30


def test_a_hold_is_not_hurried_by_an_earlier_deletion() -> None:
    scene = planner.Scene(pod(), sandbox(runs()), memory(), NOW, held=True, grace=7)
    assert planner.plan(scene).actions[0].number == 30
