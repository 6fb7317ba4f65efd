"""What a look at the runtime teaches: counts never go back, ends are kept, back-offs go on."""

from __future__ import annotations

from dataclasses import replace

import hypothesis
import hypothesis.strategies as st
import pytest

from edgelet.core import memory as memories
from edgelet.core.absorb import absorb, removed
from edgelet.core.backoff import Backoff
from edgelet.core.memory import (
    ContainerMemory,
    Ending,
    PodMemory,
    Pull,
    PullState,
    RestartingAll,
    StartError,
    Stopping,
    Trouble,
)
from edgelet.model.observed import ObservedContainer, ObservedPod
from edgelet.model.status import Terminated, Waiting
from tests.core.scenes import (
    NOW,
    WALL,
    created,
    ended,
    fresh,
    known,
    memory,
    over,
    pod,
    pulls,
    runs,
    sandbox,
    stops,
)

LOST = (137, "ContainerStatusUnknown")


def look(*seen: ObservedContainer, of: ContainerMemory | None = None) -> ContainerMemory:
    """Memory of `app` after one look at these instances."""
    before = memory({"app": of} if of else {})
    return absorb(before, sandbox(*seen), NOW).of("app")


def test_an_unknown_pod_gives_its_identity() -> None:
    found = absorb(PodMemory(boot_id="boot-1"), sandbox(runs(count=4), attempt=2), NOW)
    assert (found.uid, found.config_hash, found.start_time, found.attempt) == ("uid-a", "1-a", WALL - 200, 3)
    assert found.of("app") == known(4)


def test_a_known_pod_keeps_its_identity() -> None:
    before = fresh(start_time=5.0)
    found = absorb(before, sandbox(uid="uid-x", config_hash="1-x"), NOW)
    assert (found.uid, found.config_hash, found.start_time) == ("uid-a", "1-a", 5.0)


@pytest.mark.parametrize(("known_attempt", "seen", "expected"), [(0, 0, 1), (1, 0, 1), (1, 1, 2), (5, 1, 5)])
def test_sandboxes_are_counted(known_attempt: int, seen: int, expected: int) -> None:
    assert absorb(memory(attempt=known_attempt), sandbox(attempt=seen), NOW).attempt == expected


def test_the_first_instance() -> None:
    assert look(created(), of=known(-1, pull=pulls(PullState.READY), base=3)) == known(0, base=3)
    assert look(runs(), of=known(0)) == known(0)


def test_an_end_is_learnt() -> None:
    end = Terminated(3, "Error", WALL - 100, WALL - 1, "", "app-0")
    assert look(ended(code=3), of=known(0)) == known(0, last=end, ended=True)
    stopped = look(ended(code=3), of=known(0, stopping=stops()))
    assert stopped == known(0, last=end, ended=True, stopped=True, stopping=stops())
    assert not look(ended(code=3), of=known(0, stopping=stops("app-7"))).stopped


def test_a_new_instance_forgets_all_about_earlier_tries() -> None:
    before = known(
        0,
        backoff=Backoff(10.0, NOW - 30),
        stopping=stops("app-0"),
        pull=pulls(PullState.READY),
        waiting=Waiting("CreateContainerError"),
        retry_at=NOW + 9,
        failures=4,
        restart_id="app-0",
        stopped=True,
        base=2,
    )
    after = look(ended(ago=20), created(count=1), of=before)
    end = Terminated(0, "Completed", WALL - 100, WALL - 20, "", "app-0")
    assert after == known(1, backoff=Backoff(10.0, NOW - 30), last=end, base=2)


def test_the_back_off_goes_a_step_further_with_each_instance() -> None:
    first = look(ended(), created(count=1), of=known(0))
    assert first.backoff == Backoff(10.0, NOW)
    second = look(ended(), created(count=1), of=known(0, backoff=Backoff(10.0, NOW - 12)))
    assert second.backoff == Backoff(20.0, NOW)
    same = look(ended(), runs(count=1), of=known(1, backoff=Backoff(10.0, NOW - 12)))
    assert same.backoff == Backoff(10.0, NOW - 12)


def test_an_adopted_instance_is_no_restart() -> None:
    assert look(ended(), runs(count=1), of=None).backoff is None
    assert look(runs(count=3), of=known(0)).backoff is None


def test_a_killed_instance_counts_by_the_one_before() -> None:
    first = look(ended(code=143), created(count=1), of=known(0, stopping=stops()))
    assert first.backoff is None
    entry = Backoff(10.0, NOW - 700)
    later = look(
        ended(ago=650), ended(count=1, code=143), created(count=2), of=known(1, stopping=stops("app-1"), backoff=entry)
    )
    assert later.backoff == Backoff(20.0, NOW)
    long_run = look(
        ended(ago=50), ended(count=1, code=143), created(count=2), of=known(1, stopping=stops("app-1"), backoff=entry)
    )
    assert long_run.backoff == Backoff(10.0, NOW)


def test_a_failed_start_is_the_end_of_its_instance() -> None:
    failed = StartError("app-0", "no such file", NOW - 2)
    of_it = look(created(), of=known(0, start_error=failed))
    assert of_it.ended
    assert of_it.last == Terminated(128, "StartError", 0.0, WALL - 101, "no such file", "app-0")
    after = look(created(), created(count=1), of=of_it)
    assert after == known(1, backoff=Backoff(10.0, NOW), last=of_it.last, start_error=failed)


def test_details_that_come_later_are_kept() -> None:
    quick = look(ended(code=137, partial=True), of=known(0))
    restarted = look(ended(code=137, partial=True), runs(count=1), of=quick)
    assert restarted.last is not None
    assert restarted.last.reason == "Error"
    in_full = look(ended(code=137, oom_killed=True), runs(count=1), of=restarted)
    assert in_full.last is not None
    assert in_full.last.reason == "OOMKilled"


def test_an_adopted_pod_tells_its_last_end() -> None:
    adopted = look(ended(code=3), runs(count=1), of=None)
    assert adopted.last is not None
    assert (adopted.last.exit_code, adopted.ended) == (3, False)


UNUSED = ContainerMemory(base=3, last=None)


@pytest.mark.parametrize("container_id", ["app-2", ""])
def test_an_instance_that_was_removed_before_it_was_started_has_not_run(container_id: str) -> None:
    before = memory({"app": known(2, backoff=Backoff(20.0, NOW))})
    after = removed(before, sandbox(created(count=2)), container_id)
    assert after.of("app") == replace(UNUSED, backoff=Backoff(20.0, NOW))
    assert after.of("app").next_count == 3


@pytest.mark.parametrize(
    ("seen", "of", "container_id"),
    [
        (created(count=2), known(2), "app-1"),
        (runs(count=2), known(2), "app-2"),
        (ended(count=2), known(2, ended=True), "app-2"),
        (created(count=2), known(2, ended=True), "app-2"),
        (created(count=1), known(2), "app-1"),
    ],
)
def test_what_has_run_or_is_not_removed_is_remembered(
    seen: ObservedContainer, of: ContainerMemory, container_id: str
) -> None:
    before = memory({"app": of})
    assert removed(before, sandbox(seen), container_id) is before


def test_after_a_reboot_what_is_called_created_has_run() -> None:
    before = memory({"app": known()})
    assert removed(before, sandbox(created(), boot_id="boot-0")) is before


def test_a_container_that_vanished_while_it_ran_leaves_an_unknown_end() -> None:
    after = look(runs(count=1), of=known(0))
    assert after.last is not None
    assert (after.last.exit_code, after.last.reason) == LOST
    assert look(ended(code=3), runs(count=2), of=known(1)).last == after.last
    told = look(runs(count=1), of=over(3))
    assert told.last == over(3).last


def test_an_end_of_a_vanished_instance_is_kept_when_older_ones_are_seen() -> None:
    assert look(ended(code=3), of=over(9, count=1)) == over(9, count=1)
    assert look(of=over(9)) == over(9)


def test_the_end_before_the_newest_instance_counts() -> None:
    older = Terminated(9, "Error", container_id="app-x")
    after = look(ended(code=3), runs(count=1), of=known(0, last=older))
    assert after.last is not None
    assert after.last.exit_code == 3
    assert look(created(), created(count=1), of=known(0, last=older)).last == older


def test_each_container_learns_its_own() -> None:
    found = absorb(memory({"app": known(0)}), sandbox(ended(code=3), runs("side", 2)), NOW)
    assert found.of("app").ended
    assert found.of("side") == known(2)


def test_without_news_memory_stays_the_same_value() -> None:
    before = memory({"app": known(0)})
    assert absorb(before, sandbox(runs()), NOW) is before
    assert absorb(before, None, NOW) is before
    ending = memory(ending=Ending("its manifest is gone", False, 1.0))
    assert absorb(ending, None, NOW) is ending


def test_an_end_that_keeps_the_data_is_complete_when_the_sandbox_is_gone() -> None:
    died = Ending("its sandbox has died", True, 1.0)
    assert absorb(memory(ending=died), None, NOW) == memory()
    assert absorb(memory(ending=died), sandbox(), NOW).ending == died
    assert absorb(memory(ending=replace(died, anew=True)), None, NOW) == memory(anew=True)
    assert absorb(memory(ending=replace(died, keep_data=False)), None, NOW).ending is not None


def test_a_restart_that_was_asked_for_is_not_lost_when_the_sandbox_goes_by_itself() -> None:
    assert absorb(memory(replace_id="sandbox"), None, NOW) == memory(anew=True)
    assert absorb(memory(anew=True), None, NOW) == memory(anew=True)


def test_in_a_sandbox_made_anew_everything_runs_again_and_counts_go_on() -> None:
    before = memory({"app": over(0, count=4), "side": known(-1)}, anew=True)
    after = absorb(before, sandbox(attempt=1), NOW)
    assert (after.anew, after.attempt) == (False, 2)
    assert after.of("app") == ContainerMemory(base=5, last=over(0, count=4).last)
    assert after.of("side") == ContainerMemory()
    assert absorb(before, sandbox(attempt=0), NOW).anew
    with_count = absorb(after, sandbox(created(count=5), attempt=1), NOW)
    assert with_count.of("app") == known(5, base=5, last=over(0, count=4).last)


def test_an_ordinary_new_sandbox_renews_nothing() -> None:
    before = memory({"app": over(0)})
    assert absorb(before, sandbox(attempt=1), NOW).of("app") == over(0)


@hypothesis.given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([runs, ended, created])), max_size=10))
def test_counts_never_go_back(looks: list[tuple[int, object]]) -> None:
    now = fresh()
    highest = -1
    for count, make in looks:
        now = absorb(now, sandbox(make(count=count)), NOW)  # type: ignore[operator]
        highest = max(highest, count)
        assert now.of("app").restart_count == highest


# -- memory ------------------------------------------------------------------------------------------


FULL = memory(
    {
        "app": known(
            3,
            backoff=Backoff(40.0, 77.5),
            last=Terminated(137, "OOMKilled", 1.5, 2.5, "why", "app-3", 9),
            ended=True,
            stopped=True,
            base=2,
        ),
        "side": known(-1),
    },
    attempt=4,
    anew=True,
    ending=Ending("its manifest is gone", True, 12.5, True),
)


def test_memory_survives_the_disk() -> None:
    assert memories.load(memories.dump(FULL), "boot-1") == FULL
    assert memories.load(memories.dump(fresh()), "boot-1") == fresh()
    under_way = memory(restarting=RestartingAll("app", "app-0"))
    assert memories.load(memories.dump(under_way), "boot-1") == under_way


def test_a_stop_under_way_outlives_the_agent_and_not_the_machine() -> None:
    stop = Stopping("app-0", NOW - 3, NOW + 4, "asked to", 1, True, 2.5)
    stopped = memory({"app": known(0, stopping=stop)})
    assert memories.load(memories.dump(stopped), "boot-1") == stopped
    assert memories.load(memories.dump(stopped), "boot-2") == memory({"app": known(0)}, boot_id="boot-2")


def test_what_belongs_to_one_life_stays_behind() -> None:
    passing = memory(
        {"app": known(0, waiting=Waiting("x"), retry_at=9.0, failures=2, restart_id="app-0")},
        trouble=Trouble("no", 1, 2.0),
        replace_id="sandbox",
    )
    assert memories.load(memories.dump(passing), "boot-1") == memory({"app": known(0)})


def test_after_a_reboot_back_offs_are_gone() -> None:
    found = memories.load(memories.dump(FULL), "boot-2")
    assert found.boot_id == "boot-2"
    assert found.of("app") == replace(FULL.of("app"), backoff=None)


def test_a_dump_of_an_earlier_version_is_understood() -> None:
    dumped = memories.dump(FULL)
    del dumped["anew"], dumped["ending"], dumped["containers"]["app"]["stopped"], dumped["containers"]["app"]["base"]
    plain = replace(FULL.of("app"), stopped=False, base=0)
    assert memories.load(dumped, "boot-1") == replace(
        FULL, anew=False, ending=None, containers={"app": plain, "side": known(-1)}
    )


@pytest.mark.parametrize("key", ["uid", "configHash", "bootID", "startTime", "attempt", "containers"])
def test_a_dump_with_a_hole_is_refused(key: str) -> None:
    dumped = memories.dump(FULL)
    del dumped[key]
    with pytest.raises(KeyError):
        memories.load(dumped, "boot-1")


@pytest.mark.parametrize(
    "damage",
    [
        {"containers": 5},
        {"containers": {"app": 5}},
        {"containers": {"app": {"restartCount": "x", "ended": True}}},
        {"containers": {"app": {"restartCount": 1, "ended": True, "backoff": [1]}}},
        {"containers": {"app": {"restartCount": 1, "ended": True, "last": [1]}}},
        {"ending": ["x"]},
        {"attempt": None},
        {"startTime": "x"},
    ],
)
def test_a_dump_of_another_shape_is_refused(damage: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        memories.load(memories.dump(FULL) | damage, "boot-1")


def test_fresh_memory() -> None:
    assert memories.fresh(pod(), "boot-1", 5.0) == PodMemory("uid-a", "1-a", "boot-1", start_time=5.0)


def test_the_same_generation_once_more_goes_on_counting_only() -> None:
    before = memory({"app": over(1, count=2, backoff=Backoff(40.0, 1.0))}, attempt=3, ending=Ending("x", False, 1.0))
    after = memories.once_more(before, 9.0)
    assert after == PodMemory(
        "uid-a", "1-a", "boot-1", {"app": ContainerMemory(base=3, last=over(1, count=2).last)}, start_time=9.0
    )
    again = memories.once_more(after, 10.0)
    assert again.of("app").next_count == 3


def test_impatience_ends_all_waits() -> None:
    waiting = memory(
        {
            "app": known(1, backoff=Backoff(40.0, 1.0), retry_at=99.0, pull=pulls(PullState.FAILED)),
            "side": known(0, pull=pulls(PullState.PULLING), ended=True),
            "init": known(0, pull=pulls(PullState.READY)),
        },
        trouble=Trouble("no", 1, 2.0),
    )
    expected = {"app": known(1), "side": waiting.of("side"), "init": waiting.of("init")}
    assert waiting.impatient() == memory(expected)


def test_memory_that_knows_nothing() -> None:
    assert Pull(PullState.MISSING).retry_at == 0.0
    nothing, container = PodMemory(), ContainerMemory()
    assert (nothing.uid, nothing.config_hash, nothing.boot_id) == ("", "", "")
    assert (nothing.start_time, nothing.attempt, nothing.anew, nothing.replace_id) == (0.0, 0, False, "")
    assert (container.restart_count, container.failures, container.retry_at, container.base) == (-1, 0, 0.0, 0)
    assert (container.ended, container.stopped, container.restart_id, container.next_count) == (False, False, "", 0)


def test_update_changes_one_container() -> None:
    base = memory({"app": known(1)})
    assert base.update("app", failures=2).of("app") == known(1, failures=2)
    assert base.update("side", failures=2).containers == {"app": known(1), "side": known(-1, failures=2)}
    assert base.of("none") == ContainerMemory()


def test_a_failed_pull_may_be_tried_again_after_its_delay() -> None:
    assert pulls(PullState.FAILED, ago=3, delay=10).retry_at == NOW + 7


def observed_pod(*seen: ObservedContainer) -> ObservedPod:
    """A sandbox of these instances."""
    return sandbox(*seen)


def test_the_newest_instance_and_the_one_before() -> None:
    seen = observed_pod(ended(count=2), ended(), ended("side", 1), runs(count=3))
    assert seen.newest("app") == runs(count=3)
    assert seen.before(runs(count=3)) == ended(count=2)
    assert seen.before(ended()) is None
    assert seen.newest("none") is None
    assert seen.by_id("app-2") == ended(count=2)
    assert seen.by_id("app-9") is None
