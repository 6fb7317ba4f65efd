"""Rates from two looks, and calls that are counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgelet import errors
from edgelet.adapters.cgroups import Cgroups
from edgelet.app.counted import Counted
from edgelet.app.usage import OLD_SECONDS, Looks
from edgelet.model.observed import ObservedPod
from edgelet.model.pod import PodKey
from edgelet.model.usage import Interface, Usage
from tests.core.scenes import KEY, ended, runs, sandbox
from tests.fakes import FakeClock, FakeRuntime


class Groups(Cgroups):
    """CPU seconds by process id, to be set."""

    def __init__(self) -> None:
        self.cpu: dict[int, float] = {}

    @property
    def version(self) -> int:
        """See Cgroups."""
        return 2

    def usage(self, pid: int) -> Usage | None:
        """See Cgroups."""
        return Usage(cpu=self.cpu[pid], memory=10) if pid in self.cpu else None

    def interfaces(self, pid: int) -> tuple[Interface, ...]:
        """See Cgroups."""
        return (Interface("eth0", pid),)


class Box:
    """A pod that runs, and a clock."""

    def __init__(self, tmp_path: Path) -> None:
        self.clock, self.groups = FakeClock(), Groups()
        self.pods: dict[PodKey, ObservedPod] = {KEY: sandbox(ended(count=0), runs(count=1))}
        self.groups.cpu[4001] = 10.0
        self.looks = Looks(lambda: self.pods, self.clock, str(tmp_path), self.groups)

    def rate(self) -> float | None:
        """Of the one container."""
        (pod,) = self.looks.now().pods
        return pod.containers[0].rate


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_two_looks_make_a_rate_and_one_does_not(box: Box) -> None:
    assert box.rate() is None
    box.clock.advance(0.5)
    assert box.rate() is None
    box.clock.advance(1.5)
    box.groups.cpu[4001] = 11.0
    assert box.rate() == pytest.approx(0.5)


def test_looks_in_a_row_do_not_spoil_the_base_of_a_rate(box: Box) -> None:
    box.rate()
    for _ in range(20):
        box.clock.advance(0.25)
        box.groups.cpu[4001] += 0.1
        box.rate()
    assert box.rate() == pytest.approx(0.4, rel=0.3)


def test_an_old_look_says_nothing_about_now(box: Box) -> None:
    box.rate()
    box.clock.advance(OLD_SECONDS + 1)
    assert box.rate() is None


def test_only_the_newest_running_instance_counts_and_the_infra_process_has_the_network(box: Box) -> None:
    (pod,) = box.looks.now().pods
    assert [c.id for c in pod.containers] == ["app-1"]
    assert pod.interfaces == (Interface("eth0", 3999),)
    box.pods = {KEY: sandbox(runs(count=1), host_network=True)}
    assert box.looks.now().pods[0].interfaces == ()


def test_a_container_that_has_just_gone_is_counted_as_failed(box: Box) -> None:
    box.groups.cpu.clear()
    report = box.looks.now()
    assert (report.failed, report.pods[0].containers) == (1, ())
    assert report.node.memory_total > report.node.working_set > 0
    assert report.node.cpu > 0


def test_calls_are_counted_with_their_failures() -> None:
    counted = Counted(FakeRuntime(FakeClock()))
    counted.list()
    counted.list(KEY)
    with pytest.raises(errors.NotFound):
        counted.inspect_container("none")
    found = {c.labels: (c.count, c.errors, sum(c.buckets)) for c in counted.calls()}
    assert found == {("list",): (2, 0, 2), ("inspect_container",): (1, 1, 1)}
