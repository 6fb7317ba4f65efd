"""The repair ladder: which step comes after how many failures, for whom, and what it never does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgelet import errors
from edgelet.core import repair
from edgelet.core.memory import Climb, Kind, Trouble
from edgelet.core.plan import plan
from edgelet.model.actions import Action, Verb
from edgelet.model.observed import ObservedPod
from edgelet.model.pod import Container
from tests.core.scenes import NOW, created, ended, known, memory, pod, runs, sandbox, scene

FAILED = Trouble("cannot do it", 3, NOW, Verb.START_CONTAINER, "app-0", "app", 3)


def climbs(verb: Verb, observed: ObservedPod | None, container: str = "app", target: str = "app-0") -> list[str]:
    """All rungs in order, in words, when nothing helps."""
    found: list[str] = []
    climb = None
    while True:
        failing = replace(FAILED, verb=verb, container=container, target=target)
        actions = repair.rung(pod(), observed, memory({"app": known()}, trouble=failing, climb=climb))
        if not actions:
            return found
        found += [f"{a.verb.name} {a.target}".rstrip() for a in actions]
        climb = Climb(verb, actions[0].rung)


ALL = [
    (Verb.START_CONTAINER, sandbox(created()), ["REMOVE_CONTAINER app-0", "REMOVE_POD sandbox", "RENEW_SERVICE"]),
    (Verb.START_CONTAINER, sandbox(created(), runs("side")), ["REMOVE_CONTAINER app-0", "RENEW_SERVICE"]),
    (Verb.START_CONTAINER, sandbox(runs()), ["RENEW_SERVICE"]),
    (Verb.CREATE_CONTAINER, sandbox(), ["REMOVE_POD sandbox", "RENEW_SERVICE"]),
    (Verb.CREATE_CONTAINER, sandbox(runs("side")), ["RENEW_SERVICE"]),
    (Verb.CREATE_POD, None, ["RENEW_SERVICE"]),
    (Verb.STOP_CONTAINER, sandbox(runs()), ["SETTLE_CONTAINER app-0", "RENEW_SERVICE"]),
    (Verb.KILL_CONTAINER, sandbox(runs()), ["SETTLE_CONTAINER app-0", "RENEW_SERVICE"]),
    (Verb.REMOVE_CONTAINER, sandbox(ended()), ["SETTLE_CONTAINER app-0", "RENEW_SERVICE"]),
    (
        Verb.REMOVE_POD,
        sandbox(ended(), ended("side")),
        ["SETTLE_CONTAINER app-0", "SETTLE_CONTAINER side-0", "SETTLE_CONTAINER infra", "RENEW_SERVICE"],
    ),
    (Verb.REMOVE_POD, sandbox(ended(), infra_id=""), ["SETTLE_CONTAINER app-0", "RENEW_SERVICE"]),
]


@pytest.mark.parametrize(("verb", "observed", "rungs"), ALL)
def test_pain_46_from_gentle_to_rough_and_a_report_at_the_end(
    verb: Verb, observed: ObservedPod | None, rungs: list[str]
) -> None:
    report = "REPORT" if verb is Verb.CREATE_POD else "REPORT app-0"
    target = "" if verb is Verb.CREATE_POD else "app-0"
    assert climbs(verb, observed, target=target) == [*rungs, report]


@pytest.mark.parametrize("verb", [Verb.PULL_IMAGE, Verb.REMOVE_DATA, Verb.INSPECT_CONTAINER, Verb.RUN_PRE_STOP])
def test_other_steps_have_no_ladder(verb: Verb) -> None:
    assert climbs(verb, sandbox(runs())) == []


@pytest.mark.parametrize(("tries", "climbs"), [(0, False), (1, False), (2, False), (3, True), (4, True)])
def test_three_failures_of_the_same_step_come_first(tries: int, climbs: bool) -> None:
    failing = memory({"app": known()}, trouble=replace(FAILED, tries=tries))
    assert bool(repair.rung(pod(), sandbox(created()), failing)) is climbs


def test_without_trouble_or_without_a_known_step_nothing_is_repaired() -> None:
    assert repair.rung(pod(), sandbox(created()), memory()) == ()
    assert repair.rung(pod(), sandbox(created()), memory(trouble=replace(FAILED, verb=None))) == ()


def test_the_ladder_of_another_step_begins_at_its_foot() -> None:
    failing = memory({"app": known()}, trouble=FAILED, climb=Climb(Verb.REMOVE_POD, 3))
    (action,) = repair.rung(pod(), sandbox(created()), failing)
    assert action == Action(Verb.REMOVE_CONTAINER, "it cannot be started", "app", "app-0", rung=2)


def test_a_pod_that_would_not_be_made_again_is_not_removed() -> None:
    never = pod(restart_policy="Never")
    failing = memory({"app": known()}, trouble=FAILED, climb=Climb(Verb.START_CONTAINER, 2))
    assert [a.verb for a in repair.rung(never, sandbox(created()), failing)] == [Verb.RENEW_SERVICE]
    assert [a.verb for a in repair.rung(pod(), sandbox(created()), failing)] == [Verb.REMOVE_POD]
    assert [a.verb for a in repair.rung(None, sandbox(created()), failing)] == [Verb.RENEW_SERVICE]


DAMAGED = replace(FAILED, tries=1, kind=Kind.DAMAGED)


def test_a_damaged_image_is_fetched_anew_at_once() -> None:
    actions = repair.rung(pod(), sandbox(created()), memory(trouble=DAMAGED))
    assert [(a.verb, a.target, a.rung) for a in actions] == [
        (Verb.REMOVE_CONTAINER, "app-0", 1),
        (Verb.RENEW_IMAGE, "demo", 1),
    ]
    creating = memory(trouble=replace(DAMAGED, verb=Verb.CREATE_CONTAINER, target=""))
    assert [a.verb for a in repair.rung(pod(), sandbox(), creating)] == [Verb.RENEW_IMAGE]


def test_an_image_that_may_not_be_pulled_is_kept() -> None:
    kept = pod(Container("app", "demo", pull_policy="Never"))
    assert [a.verb for a in repair.rung(kept, sandbox(created()), memory(trouble=DAMAGED))] == [Verb.REMOVE_CONTAINER]
    assert Verb.RENEW_IMAGE not in [a.verb for a in repair.rung(None, sandbox(created()), memory(trouble=DAMAGED))]
    other = memory(trouble=replace(DAMAGED, container="gone"))
    assert Verb.RENEW_IMAGE not in [a.verb for a in repair.rung(pod(), sandbox(created()), other)]


@pytest.mark.parametrize(
    ("verb", "observed", "verbs"),
    [
        (Verb.CREATE_POD, None, [Verb.REPORT]),
        (Verb.START_POD, sandbox(), [Verb.REMOVE_POD, Verb.REPORT]),
        (Verb.KILL_CONTAINER, sandbox(runs()), [Verb.SETTLE_CONTAINER, Verb.RENEW_SERVICE, Verb.REPORT]),
    ],
)
def test_podman_is_not_restarted_for_what_one_pod_asks_of_it(
    verb: Verb, observed: ObservedPod | None, verbs: list[Verb]
) -> None:
    trouble, taken, climb = replace(FAILED, verb=verb, kind=Kind.REFUSED), [], Climb(verb, 0)
    while actions := repair.rung(pod(), observed, memory({"app": known()}, trouble=trouble, climb=climb)):
        taken.append(actions[0].verb)
        climb = Climb(verb, actions[0].rung)
        if taken[-1] is Verb.REPORT:
            break
    assert taken == verbs


ADVICE = [
    (replace(FAILED, verb=Verb.CREATE_POD, kind=Kind.TAKEN), "rename or remove one of them"),
    (replace(FAILED, verb=Verb.REMOVE_POD), "processes in state D"),
    (replace(FAILED, verb=Verb.KILL_CONTAINER), "processes in state D"),
    (replace(FAILED, verb=Verb.CREATE_POD), "a disk that is full (df -h) or read-only"),
    (replace(FAILED, verb=Verb.START_POD, kind=Kind.REFUSED), "change its manifest"),
    (replace(FAILED, verb=Verb.KILL_CONTAINER, kind=Kind.REFUSED), "processes in state D"),
]


@pytest.mark.parametrize(("trouble", "advice"), ADVICE)
def test_the_report_says_what_failed_and_what_a_person_can_do(trouble: Trouble, advice: str) -> None:
    assert trouble.verb is not None
    climb = Climb(trouble.verb, len(repair.LADDERS[trouble.verb]) - 1)
    (action,) = repair.rung(pod(), sandbox(), memory(trouble=trouble, climb=climb))
    assert action.verb is Verb.REPORT
    assert action.reason.startswith("cannot do it; ")
    assert advice in action.reason


def test_a_name_that_is_taken_is_no_fault_of_the_service() -> None:
    taken = memory(trouble=replace(FAILED, verb=Verb.CREATE_POD, kind=Kind.TAKEN))
    assert [a.verb for a in repair.rung(pod(), None, taken)] == [Verb.REPORT]


def test_the_service_is_told_why() -> None:
    failing = memory(trouble=FAILED, climb=Climb(Verb.START_CONTAINER, 3))
    (action,) = repair.rung(pod(), sandbox(runs()), failing)
    assert action.reason == "3 times in a row it could not start container app"


@pytest.mark.parametrize(
    ("kills", "verb", "rung"),
    [
        (0, Verb.KILL_CONTAINER, 0),
        (1, Verb.KILL_CONTAINER, 0),
        (2, Verb.SETTLE_CONTAINER, 2),
        (3, Verb.REMOVE_CONTAINER, 3),
        (4, Verb.RENEW_SERVICE, 4),
        (5, Verb.REPORT, 5),
        (6, Verb.KILL_CONTAINER, 0),
    ],
)
def test_pain_44_what_no_sigkill_ends_is_ended_in_other_ways(kills: int, verb: Verb, rung: int) -> None:
    action = repair.unkillable("app", "app-0", kills)
    assert (action.verb, action.container, action.target, action.rung) == (verb, "app", "app-0", rung)


# ---- counting ---------------------------------------------------------------------------------------

START = Action(Verb.START_CONTAINER, "created", "app", "app-0")
NEXT = Trouble("again", 9, NOW + 1)
LOST = errors.Temporary("again")


def after(before: Trouble | None, action: Action | None, error: Exception = LOST) -> tuple[Verb | None, int, Kind]:
    """What is known of the failing step after one more failure."""
    now = repair.troubled(before, action, error, NEXT)
    assert (now.message, now.failures, now.retry_at) == ("again", 9, NOW + 1)
    return now.verb, now.tries, now.kind


def test_failures_of_the_same_step_add_up_whatever_instance_it_is_for() -> None:
    first = repair.troubled(None, START, LOST, NEXT)
    assert (first.verb, first.tries, first.target, first.container) == (Verb.START_CONTAINER, 1, "app-0", "app")
    again = repair.troubled(first, replace(START, target="app-1"), LOST, NEXT)
    assert (again.tries, again.target) == (2, "app-1")
    assert after(first, replace(START, container="side"))[1] == 1
    assert after(first, replace(START, verb=Verb.CREATE_CONTAINER)) == (Verb.CREATE_CONTAINER, 1, Kind.OTHER)


def test_a_podman_that_does_not_answer_says_nothing_about_the_step() -> None:
    gone = errors.Unreachable("again")
    assert after(None, START, gone) == (None, 0, Kind.OTHER)
    assert after(FAILED, START, gone) == (Verb.START_CONTAINER, 3, Kind.OTHER)
    assert after(FAILED, None) == (Verb.START_CONTAINER, 3, Kind.OTHER)
    assert after(None, None) == (None, 0, Kind.OTHER)
    assert after(None, replace(START, verb=Verb.CREATE_POD), errors.VolumeError("again")) == (None, 0, Kind.OTHER)


def test_a_rung_that_failed_leaves_the_step_it_was_for_ready_for_the_next() -> None:
    rung = Action(Verb.REMOVE_CONTAINER, "why", "app", "app-0", rung=1)
    assert after(replace(FAILED, tries=1), rung) == (Verb.START_CONTAINER, repair.PATIENCE, Kind.OTHER)
    left = repair.troubled(DAMAGED, rung, LOST, NEXT)
    assert (left.target, left.container, left.kind) == ("app-0", "app", Kind.DAMAGED)
    assert after(None, rung) == (None, 0, Kind.OTHER)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.Damaged("x"), Kind.DAMAGED),
        (errors.Conflict("x"), Kind.TAKEN),
        (errors.TimedOut("x"), Kind.OTHER),
        (errors.Permanent("x"), Kind.REFUSED),
    ],
)
def test_the_kind_of_a_failure(error: errors.RuntimeFailure, kind: Kind) -> None:
    assert after(None, START, error) == (Verb.START_CONTAINER, 1, kind)


def test_the_planner_repairs_only_a_step_that_is_still_to_be_done() -> None:
    stuck = memory({"app": known()}, trouble=FAILED)
    assert [a.verb for a in plan(scene(pod(), sandbox(created()), stuck)).actions] == [Verb.REMOVE_CONTAINER]
    assert plan(scene(pod(), sandbox(runs()), stuck)).actions == ()
    assert (
        plan(scene(pod(), sandbox(created()), replace(stuck, trouble=replace(FAILED, retry_at=NOW + 1)))).wake_at
        == NOW + 1
    )
    gone = plan(scene(None, sandbox(ended()), memory(trouble=replace(FAILED, verb=Verb.REMOVE_POD, container=""))))
    assert [a.verb for a in gone.actions] == [Verb.SETTLE_CONTAINER, Verb.SETTLE_CONTAINER]
    assert gone.ending
