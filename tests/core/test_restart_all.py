"""RestartAllContainers and rules about exit codes (semantics 3.5), step by step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgelet.core import absorb, phase, restart, restart_all
from edgelet.core.backoff import Backoff
from edgelet.core.memory import RESTARTING_ALL, RestartingAll
from edgelet.model.pod import RestartRule
from edgelet.model.status import Terminated
from tests.core.scenes import APP, INIT, NOW, SIDE, WALL, Case, ended, known, memory, pod, runs, sandbox, scene, stops

ALL_42 = RestartRule("RestartAllContainers", "In", (42,))
AGAIN_3 = RestartRule("Restart", "In", (3, 4))
REST = RestartRule("Restart", "NotIn", (0, 5))
RULED = replace(APP, restart_policy="Never", restart_rules=(AGAIN_3, ALL_42))
PAIR = pod(RULED, SIDE, inits=(INIT,), restart_policy="Never")


@pytest.mark.parametrize(
    ("rules", "policy", "code", "expected"),
    [
        ((AGAIN_3,), "Never", 3, True),
        ((AGAIN_3,), "Never", 4, True),
        ((AGAIN_3,), "Never", 5, False),
        ((AGAIN_3,), "OnFailure", 5, True),
        ((AGAIN_3,), "OnFailure", 0, False),
        ((REST,), "Never", 1, True),
        ((REST,), "Never", 5, False),
        ((ALL_42,), "Never", 42, True),
        ((AGAIN_3,), "", 3, False),
    ],
)
def test_a_rule_wins_over_the_policy(rules: tuple[RestartRule, ...], policy: str, code: int, expected: bool) -> None:
    container = replace(APP, restart_policy=policy, restart_rules=rules)
    assert restart.again(pod(container, restart_policy="Never"), container, Terminated(code, "Error")) is expected


def test_the_first_rule_that_matches_counts() -> None:
    both = replace(
        APP, restart_policy="Never", restart_rules=(AGAIN_3, RestartRule("RestartAllContainers", "In", (3,)))
    )
    assert restart.rule(both, Terminated(3, "Error")) is AGAIN_3


def test_a_container_policy_takes_the_place_of_the_pods() -> None:
    own = replace(APP, restart_policy="OnFailure")
    assert restart.again(pod(own, restart_policy="Never"), own, Terminated(1, "Error"))
    assert not restart.again(pod(own), own, Terminated(0, "Completed"))
    init = replace(INIT, restart_policy="OnFailure")
    assert restart.again(pod(inits=(init,), restart_policy="Never"), init, Terminated(1, "Error"))
    never = replace(INIT, restart_policy="Never")
    assert not restart.again(pod(inits=(never,)), never, Terminated(1, "Error"))


@pytest.mark.parametrize(
    ("policy", "own", "rules", "expected"),
    [
        ("Never", "", (), True),
        ("Never", "Always", (), False),
        ("Never", "Never", (AGAIN_3,), False),
        ("Always", "Never", (), True),
        ("Always", "", (), False),
    ],
)
def test_a_pod_gives_up_if_none_of_its_containers_runs_twice(
    policy: str, own: str, rules: tuple[RestartRule, ...], expected: bool
) -> None:
    container = replace(APP, restart_policy=own, restart_rules=rules)
    assert restart.gives_up(pod(container, restart_policy=policy)) is expected


WHY = RestartingAll("app", "app-0", NOW - 1)
UNDER_WAY = memory({n: known() for n in ("app", "side", "init")}, restarting=WHY)

CASES = [
    Case(
        "it is noted first",
        scene(PAIR, sandbox(ended("init"), ended(code=42), runs("side"))),
        ("restart all containers after the end of container app app-0",),
    ),
    Case(
        "not for another code: the policy decides",
        scene(PAIR, sandbox(ended("init"), ended(code=1), runs("side"))),
    ),
    Case(
        "not for an end that we brought about",
        scene(
            PAIR,
            sandbox(ended("init"), ended(code=42), runs("side")),
            memory({"init": known(), "side": known(), "app": known(stopping=stops())}),
        ),
    ),
    Case(
        "not before the back-off of that container is over",
        scene(
            PAIR,
            sandbox(ended("init"), ended(code=42), runs("side")),
            memory({"init": known(), "side": known(), "app": known(backoff=Backoff(10, NOW - 20))}),
        ),
        wake=NOW + 9,
        waits={"app": "CrashLoopBackOff"},
    ),
    Case(
        "what runs is ended without grace",
        scene(PAIR, sandbox(ended("init"), ended(code=42), runs("side")), UNDER_WAY),
        ("stop container side side-0 0",),
    ),
    Case(
        "and is waited for",
        scene(
            PAIR,
            sandbox(ended("init"), ended(code=42), runs("side")),
            replace(UNDER_WAY, containers={"side": known(stopping=stops("side-0", grace=2))}),
        ),
        wake=NOW + 1,
    ),
    Case(
        "then all are removed but the one that asked for it",
        scene(PAIR, sandbox(ended("init"), ended("side", 1), ended("side"), ended(code=42)), UNDER_WAY),
        ("remove container init init-0", "remove container side side-1", "remove container side side-0"),
    ),
    Case("which goes last", scene(PAIR, sandbox(ended(code=42)), UNDER_WAY), ("remove container app app-0",)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_all_containers_run_again_step_by_step(case: Case) -> None:
    case.check()


def test_when_all_are_gone_all_count_as_new() -> None:
    before = memory(
        {"app": known(2, backoff=Backoff(10, 5.0)), "side": known(0, backoff=Backoff(40, 5.0))}, restarting=WHY
    )
    after = absorb.absorb(before, sandbox(), NOW)
    assert after.restarting is None
    assert (after.of("app").restart_count, after.of("app").next_count, after.of("side").next_count) == (-1, 3, 1)
    assert after.of("app").backoff == Backoff(10, NOW)  # the run was long enough to forget the 10 s before
    assert after.of("side").backoff is None
    assert after.of("side").last == RESTARTING_ALL
    again = absorb.absorb(after, sandbox(runs("side", 1)), NOW)
    assert (again.of("side").restart_count, again.of("side").last) == (1, RESTARTING_ALL)


def test_the_back_off_of_the_one_that_asked_doubles() -> None:
    before = memory({"app": known(2, backoff=Backoff(20, NOW - 31))}, restarting=WHY)
    assert absorb.absorb(before, sandbox(), NOW).of("app").backoff == Backoff(40, NOW)


def test_a_container_that_never_ran_has_no_end() -> None:
    before = memory({"app": known(), "side": known(-1)}, restarting=WHY)
    after = absorb.absorb(before, sandbox(), NOW)
    assert (after.of("side").last, after.of("side").next_count) == (None, 0)


def test_nothing_is_new_while_one_is_left() -> None:
    assert absorb.absorb(UNDER_WAY, sandbox(ended(code=42)), NOW).restarting == WHY


def test_the_condition_is_there_for_pods_with_such_rules_only() -> None:
    def told(wanted: object, remembered: object) -> list[tuple[str, str]]:
        facts = phase.Facts(wanted, sandbox(runs()), remembered, WALL)  # type: ignore[arg-type]
        return [(c.type, c.status) for c in phase.status(facts).conditions if c.type == "AllContainersRestarting"]

    assert told(PAIR, UNDER_WAY) == [("AllContainersRestarting", "True")]
    assert told(PAIR, memory()) == [("AllContainersRestarting", "False")]
    assert told(pod(), memory()) == []
    assert not restart_all.uses(pod(replace(APP, restart_rules=(AGAIN_3,))))
