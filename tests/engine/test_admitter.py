"""Who may begin, over time: after an edit, a removal, the end of another pod, and when one matters more (1.7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from edgelet.core.admission import Capacity
from edgelet.core.order import AFTER
from edgelet.engine.admitter import Admitter, Surroundings
from edgelet.engine.director import Director
from edgelet.engine.workers import Wish
from edgelet.model.observed import ObservedPod
from edgelet.model.pod import Container, Pod, PodKey, Port, Resources
from edgelet.model.status import Condition, PodStatus
from edgelet.ports import Snapshot
from tests import fakes
from tests.core.scenes import newer, pod
from tests.engine.test_workers import Holds


def takes(name: str, cpu: int, priority: int = 0) -> Pod:
    """A pod that asks for that much."""
    app = Container("app", "demo", resources=Resources(cpu_request=cpu))
    return replace(pod(app), name=name, short_name=name, priority=priority, config_hash=f"1-{name}")


LOW, HIGH = takes("low", 600), takes("high", 600, 7)


class Bench:
    """An admitter, and what it sees."""

    def __init__(self) -> None:
        self.recorder = fakes.FakeRecorder()
        self.statuses: dict[PodKey, PodStatus] = {}
        around = Surroundings(lambda: Capacity(1000, 0, 9), self.statuses.get, fakes.FakeClock(), "boot-1")
        self.admitter = Admitter(around, self.recorder)

    def judge(self, *pods: Pod, running: tuple[Pod, ...] = ()) -> dict[str, str]:
        """The reasons by name while those are there."""
        seen = {
            p.key: ObservedPod(p.key, p.key.name, p.uid, p.config_hash, p.source, boot_id="boot-1") for p in running
        }
        gates = self.admitter.judge({p.key: p for p in pods}, seen)
        return {key.name: gate.reason for key, gate in gates.items()}


def test_a_pod_that_matters_less_leaves_and_comes_back_when_there_is_room_again() -> None:
    bench = Bench()
    assert bench.judge(LOW) == {}
    waiting = {"low": "Preempting", "high": "WaitingForRoom"}
    assert bench.judge(LOW, HIGH, running=(LOW,)) == waiting
    bench.statuses[LOW.key] = PodStatus("Succeeded")
    assert bench.judge(LOW, HIGH, running=(LOW,)) == waiting
    assert bench.judge(LOW, HIGH) == {"low": "OutOfcpu"}
    assert bench.judge(LOW, HIGH, running=(HIGH,)) == {"low": "OutOfcpu"}
    del bench.statuses[LOW.key]
    assert bench.judge(LOW) == {}
    told = [(e.ref.key.name, e.kind, e.reason, e.message) for e in bench.recorder.events]
    assert told == [
        ("low", "Warning", "Preempting", "Preempted in order to admit critical pod"),
        ("high", "Normal", "WaitingForRoom", "waits for pod default/low to end"),
        told[2],
    ]
    assert told[2][:3] == ("low", "Warning", "OutOfcpu")


PORTED = Container("app", "demo", ports=(Port(80, 8080),))


def ported(name: str, **annotations: str) -> Pod:
    """A pod that holds a port of the host."""
    return replace(pod(PORTED), name=name, short_name=name, uid=f"uid-{name}", annotations=annotations)


class Told:
    """In place of workers and observer: the newest wish of each pod, none of which runs."""

    def __init__(self) -> None:
        self.wishes: dict[PodKey, Wish] = {}

    def wish(self, key: PodKey, wish: Wish) -> None:
        """See engine.workers."""
        self.wishes[key] = wish

    def keys(self) -> frozenset[PodKey]:
        """See engine.workers."""
        return frozenset(self.wishes)

    def all(self) -> dict[PodKey, ObservedPod]:
        """See engine.observer."""
        return {}

    def refused(self) -> list[str]:
        """Names of the pods that may not begin."""
        return [key.name for key, wish in self.wishes.items() if wish.gate is not None]


def test_an_edit_is_judged_without_the_version_before_it() -> None:
    bench, web = Bench(), ported("web")
    assert bench.judge(web) == {}
    assert bench.judge(newer(web)) == {}


def test_an_edit_that_asks_for_too_much_is_refused() -> None:
    bench, other = Bench(), ported("other")
    assert bench.judge(LOW, other) == {}
    more = replace(newer(LOW), containers=takes("low", 1001).containers)
    assert bench.judge(more, other) == {"low": "OutOfcpu"}


def test_a_pod_that_nobody_wants_any_more_holds_nothing() -> None:
    bench, first, second = Bench(), ported("first"), ported("second")
    assert bench.judge(first, second) == {"second": "NodePorts"}
    assert bench.judge(second) == {}
    assert bench.judge(first, second) == {"first": "NodePorts"}


def test_a_refusal_is_told_once_and_ends_when_another_pod_has_completed() -> None:
    bench, told = Bench(), Told()
    first, second = LOW, takes("second", 600)
    every = cast(Any, told)
    director = Director(("file",), every, every, bench.recorder, Holds(), "", bench.admitter)
    director.put(Snapshot("file", (first, second)))
    director.open()
    assert told.refused() == ["second"]
    director.news()
    assert bench.recorder.reasons() == ["OutOfcpu"]
    bench.statuses[first.key] = PodStatus("Succeeded")
    director.news()
    assert told.refused() == []


def test_a_pod_that_waits_for_another_begins_when_that_is_ready() -> None:
    bench, db, web = Bench(), LOW, ported("web", **{AFTER: "low"})
    assert bench.judge(db, web) == {"web": "WaitingForPods"}
    assert bench.recorder.events[0].kind == "Normal"
    bench.statuses[db.key] = PodStatus("Running", (Condition("Ready", "True", 0.0, "", ""),))
    assert bench.judge(db, web) == {}
    bench.statuses.clear()
    assert bench.judge(db, web) == {}


def test_only_pods_below_the_priority_of_the_group_go_down_and_then_all() -> None:
    told = Told()
    every = cast(Any, told)
    director = Director(("file",), every, every, fakes.FakeRecorder(), Holds())
    director.put(Snapshot("file", (LOW, HIGH)))
    director.open()
    director.go_down(20, 7)
    assert {key.name: wish.down for key, wish in told.wishes.items()} == {"low": 20, "high": None}
    director.go_down(10)
    assert {key.name: wish.down for key, wish in told.wishes.items()} == {"low": 10, "high": 10}
