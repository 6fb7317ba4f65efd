"""A limit that cannot be applied is an event of its pod: with the uid, by which kubectl and describe find it."""

from __future__ import annotations

from edgelet.app import wiring
from edgelet.engine.recorder import EventRing
from edgelet.model.pod import Container, Pod
from tests.fakes import FakeClock


def test_a_dropped_limit_is_told_under_the_pods_uid() -> None:
    ring = EventRing(FakeClock(), "n1")
    pod = Pod("web-n1", "default", "uid-1", "1-abc", "file", (Container("app", "x:1"),))
    wiring._warner(ring)(pod, "the kernel's memory controller is off")
    (event,) = ring.events()
    assert (event.reason, event.kind) == ("LimitNotApplied", "Warning")
    assert (event.key, event.uid) == (pod.key, "uid-1")
