"""Who may begin, over time: one that matters more gets its place when another one has left, and gives it back."""

from __future__ import annotations

from dataclasses import replace

from edgelet.core.admission import Capacity
from edgelet.engine.admitter import Admitter, Surroundings
from edgelet.model.observed import ObservedPod
from edgelet.model.pod import Container, Pod, PodKey, Resources
from edgelet.model.status import PodStatus
from tests import fakes
from tests.core.scenes import pod


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
