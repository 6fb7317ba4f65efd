"""activeDeadlineSeconds (semantics 3.10): when it is over, what follows, and which clock counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgelet.core import deadline, phase
from edgelet.core import memory as memories
from edgelet.core.memory import PodMemory
from tests.core.scenes import (
    APP,
    NOW,
    WALL,
    Case,
    created,
    ended,
    fresh,
    known,
    memory,
    newer,
    pod,
    runs,
    sandbox,
    scene,
    stops,
)

SHORT = pod(active_deadline=60)
FAILED = deadline.FAILURE


def active(ago: float, **fields: object) -> PodMemory:
    """Memory of a pod that is active since `ago` seconds."""
    return replace(memory({"app": known()}), active_from=NOW - ago, **fields)  # type: ignore[arg-type]


CASES = [
    Case("before it is over it is waited for", scene(SHORT, sandbox(runs()), active(59)), wake=NOW + 1),
    Case("then the pod fails", scene(SHORT, sandbox(runs()), active(60)), ("fail pod",)),
    Case("without one nothing is waited for", scene(pod(), sandbox(runs()), active(1e6))),
    Case(
        "a pod that failed is stopped",
        scene(SHORT, sandbox(runs()), active(60, failed=FAILED)),
        ("stop container app app-0 30",),
    ),
    Case(
        "with its grace period",
        scene(SHORT, sandbox(runs()), replace(active(99, failed=FAILED), containers={"app": known(stopping=stops())})),
        wake=NOW + 29,
    ),
    Case("its sandbox too", scene(SHORT, sandbox(ended()), active(99, failed=FAILED)), ("stop container infra 0",)),
    Case("nothing is started any more", scene(SHORT, sandbox(created(), infra_pid=0), active(99, failed=FAILED))),
    Case("no sandbox is made any more", scene(SHORT, None, active(99, failed=FAILED))),
    Case("over before there is one", scene(SHORT, None, replace(fresh(), active_from=NOW - 60)), ("fail pod",)),
    Case(
        "unless a person wants it anew",
        scene(SHORT, None, active(99, failed=FAILED, anew=True)),
        ("create pod 1",),
    ),
    Case(
        "a restart that was asked for goes on",
        scene(SHORT, sandbox(), active(99, failed=FAILED, replace_id="sandbox")),
        ("remove pod sandbox",),
        ending="a restart was asked for",
        keeps_data=True,
        anew=True,
    ),
    Case(
        "a pod that has completed in time does not fail", scene(
            replace(SHORT, restart_policy="Never"), sandbox(ended(), infra_pid=0), active(99)
        )
    ),
    Case(
        "an old version fails too while the new one's image is pulled",
        scene(newer(pod(replace(APP, image="new"))), sandbox(runs()), active(60), old=SHORT),
        ("pull image app new", "fail pod"),
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_pod_fails_at_its_deadline_and_stays_so(case: Case) -> None:
    case.check()


def test_an_earlier_wake_is_kept() -> None:
    Case(
        "a stop under way",
        scene(
            SHORT, sandbox(runs()), replace(active(30), containers={"app": known(stopping=stops(grace=5))})
        ),
        wake=NOW + 4,
    ).check()  # fmt: skip


def test_it_counts_from_the_pods_start() -> None:
    begun = deadline.begin(memory(), NOW, WALL)
    assert begun.active_from == NOW - 200  # the pod is 200 s old
    assert deadline.begin(begun, NOW + 5, WALL + 9999) is begun  # a clock that is set changes nothing
    assert deadline.begin(memory(), NOW, WALL - 9999).active_from == NOW  # a clock that went back neither
    assert deadline.begin(PodMemory(), NOW, WALL) == PodMemory()


def test_memory_of_it_survives_the_agent_and_its_end_the_machine() -> None:
    kept = replace(memory(), active_from=NOW - 7)
    assert memories.load(memories.dump(kept), "boot-1").active_from == NOW - 7
    assert memories.load(memories.dump(kept), "boot-2").active_from == 0
    failed = replace(kept, failed=FAILED)
    assert memories.load(memories.dump(failed), "boot-2").failed == FAILED
    assert deadline.due(SHORT, failed) is None


def test_how_it_is_told() -> None:
    told = phase.status(phase.Facts(SHORT, sandbox(ended()), active(99, failed=FAILED), WALL))
    assert (told.phase, told.reason) == ("Failed", "DeadlineExceeded")
    assert told.message == "Pod was active on the node longer than the specified deadline"
    assert {c.reason for c in told.conditions if c.type in ("Ready", "ContainersReady")} == {"PodFailed"}
    assert told.summary == "DeadlineExceeded: Pod was active on the node longer than the specified deadline"
