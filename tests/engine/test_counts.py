"""What is counted for the metrics: actions, restarts and their reasons, how long news waited."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgelet import errors
from edgelet.engine.counts import Counts
from edgelet.engine.workers import Mailbox
from edgelet.model.pod import Container, Exec, Probe
from tests.engine.world import KEY, World, make_pod
from tests.fakes import FakeClock

PROBED = replace(Container("app", "demo"), liveness=Probe(Exec(("true",))))


def counted(counts: Counts) -> dict[str, int]:
    """How many by the first label."""
    return {row.labels[0]: row.count for row in counts.rows()}


def test_actions_and_restarts_are_counted_with_their_reasons() -> None:
    world = World()
    world.want(make_pod(containers=(PROBED,)))
    world.pump()
    made = {"create pod": 1, "start pod": 1, "create container": 1, "start container": 1}
    assert counted(world.work.actions) == made
    assert counted(world.work.restarts) == {}
    world.exit("app", 1)
    world.pump()
    world.probes.set(KEY, "app", failed="liveness")
    world.box.wake()
    world.run(40)
    assert counted(world.work.restarts) == {"Error": 1, "LivenessProbe": 1}


def test_what_fails_is_counted_as_tried_and_failed() -> None:
    world = World()
    world.runtime.fail("create_pod", errors.Temporary("no answer"))
    world.want(make_pod())
    world.pump()
    world.run(5)
    (row,) = [r for r in world.work.actions.rows() if r.labels == ("create pod",)]
    assert (row.count, row.errors, sum(row.buckets)) == (2, 1, 2)


def test_news_are_as_old_as_the_oldest_that_was_not_taken() -> None:
    clock = FakeClock()
    box = Mailbox(clock.monotonic)
    assert box.age() is None
    box.wake()
    clock.advance(2)
    box.hurry()
    clock.advance(1)
    assert box.age() == 3


def test_counting_survives_what_is_not_counted_as_a_failure() -> None:
    counts, clock = Counts(), FakeClock()
    with pytest.raises(ValueError, match="x"), counts.timed(clock.monotonic, errors.EdgeletError, "a"):
        raise ValueError("x")
    counts.add("b", seconds=99)
    assert [(r.labels, r.count, r.errors) for r in counts.rows()] == [(("a",), 1, 0), (("b",), 1, 0)]
    assert counts.rows()[1].buckets[-1] == 1
