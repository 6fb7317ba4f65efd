"""Probe decisions: when the next try is due, what is published and when a container is to be killed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.core import probes
from edgelet.core.probes import Effect, Instance, Kind, Outcome
from edgelet.model.pod import Container, Probe, TcpSocket

START = 100.0
OUTCOMES = {"+": Outcome.SUCCESS, "-": Outcome.FAILURE, "?": Outcome.ERRORED}


def probe(**changes: int) -> Probe:
    return dataclasses.replace(Probe(TcpSocket(80)), **changes)  # type: ignore[arg-type]


def of(kinds: dict[str, Probe], now: float = START, started: bool = False, ready: bool = False) -> Instance:
    container = dataclasses.replace(Container("c", "i"), **kinds)  # type: ignore[arg-type]
    return probes.begin(container, START, now, started=started, ready=ready)


def instance(now: float = START, **kinds: Probe) -> Instance:
    return of(kinds, now)


def play(inst: Instance, kind: Kind, outcomes: str) -> tuple[Instance, list[Effect]]:
    """Feed one outcome per due tick; each comes at the moment it is due."""
    effects = []
    for sign in outcomes:
        due = probes.due(inst, kind)
        inst, effect = probes.result(inst, kind, OUTCOMES[sign], due if due is not None else START)
        effects.append(effect)
    return inst, effects


def states(inst: Instance) -> tuple[bool, bool, Kind | None]:
    return inst.started, inst.ready, inst.failed


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ({}, (True, True, None)),
        ({"liveness": probe()}, (True, True, None)),
        ({"readiness": probe()}, (True, False, None)),
        ({"startup": probe()}, (False, False, None)),
        ({"startup": probe(), "readiness": probe()}, (False, False, None)),
    ],
    ids=["no-probes", "liveness-starts-good", "readiness-starts-bad", "startup-starts-unknown", "all-wait-for-startup"],
)
def test_initial_values(kinds: dict[str, Probe], expected: tuple[bool, bool, Kind | None]) -> None:
    assert states(of(kinds)) == expected


@pytest.mark.parametrize(
    ("kind", "changes", "outcomes", "expected"),
    [
        ("readiness", {}, "+", (True, True, None)),
        ("readiness", {"success_threshold": 3}, "++", (True, False, None)),
        ("readiness", {"success_threshold": 3}, "+++", (True, True, None)),
        ("readiness", {"success_threshold": 3}, "++-++", (True, False, None)),
        ("readiness", {}, "+--", (True, True, None)),
        ("readiness", {}, "+---", (True, False, None)),
        ("readiness", {}, "+--+--", (True, True, None)),
        ("readiness", {}, "+---+", (True, True, None)),
        ("readiness", {"failure_threshold": 2}, "+-???-", (True, False, None)),
        ("liveness", {}, "--", (True, True, None)),
        ("liveness", {}, "---", (True, True, Kind.LIVENESS)),
        ("liveness", {}, "--+--", (True, True, None)),
        ("liveness", {"failure_threshold": 1}, "-", (True, True, Kind.LIVENESS)),
        ("liveness", {}, "?????????", (True, True, None)),
        ("startup", {}, "--", (False, False, None)),
        ("startup", {}, "---", (False, False, Kind.STARTUP)),
        ("startup", {}, "--+", (True, True, None)),
        ("startup", {}, "--???+", (True, True, None)),
    ],
)
def test_thresholds(
    kind: str, changes: dict[str, int], outcomes: str, expected: tuple[bool, bool, Kind | None]
) -> None:
    inst, _ = play(of({kind: probe(**changes)}), Kind[kind.upper()], outcomes)
    assert states(inst) == expected


def test_a_container_seen_for_the_first_time_has_shown_nothing_yet() -> None:
    container = Container("c", "i", startup=probe(), readiness=probe())
    assert states(probes.begin(container, START, START)) == (False, False, None)
    begun, _ = play(probes.begin(container, START, START), Kind.STARTUP, "+")
    assert states(begun) == (True, False, None)


def test_words_are_the_kubelets() -> None:
    assert [k.value for k in Kind] == ["Startup", "Liveness", "Readiness"]
    assert [o.value for o in Outcome] == ["successful", "failed", "unknown"]


def test_published_once_and_only_when_it_changes() -> None:
    _, effects = play(instance(readiness=probe()), Kind.READINESS, "-++---")
    none, published = Effect.NONE, Effect.PUBLISHED
    assert effects == [none, published, none, none, none, published]


def test_a_probe_that_cannot_be_executed_is_tried_three_times_at_once_then_ignored() -> None:
    inst = instance(liveness=probe(period=7, failure_threshold=1))
    inst, effects = play(inst, Kind.LIVENESS, "??")
    assert effects == [Effect.RETRY, Effect.RETRY]
    assert probes.due(inst, Kind.LIVENESS) == START
    inst, effects = play(inst, Kind.LIVENESS, "?")
    assert effects == [Effect.IGNORED]
    assert probes.due(inst, Kind.LIVENESS) == START + 7
    assert states(inst) == (True, True, None)
    assert play(inst, Kind.LIVENESS, "?")[1] == [Effect.RETRY], "the next tick has three tries again"


def test_retries_do_not_add_up_over_a_good_try() -> None:
    _, effects = play(instance(readiness=probe()), Kind.READINESS, "??+?")
    assert effects == [Effect.RETRY, Effect.RETRY, Effect.PUBLISHED, Effect.RETRY]


@pytest.mark.parametrize(
    ("delay", "now", "due"),
    [(0, START, START), (5, START, START + 5), (5, START + 2, START + 5), (5, START + 60, START + 60)],
    ids=["no-delay", "delay", "seen-during-the-delay", "seen-long-after"],
)
def test_pain_4_first_try_is_at_start_plus_initial_delay(delay: int, now: float, due: float) -> None:
    inst = instance(now=now, readiness=probe(initial_delay=delay, period=300))
    assert probes.due(inst, Kind.READINESS) == due


@pytest.mark.parametrize(
    ("took", "due"),
    [(0.0, 110.0), (9.9, 110.0), (10.0, 110.0), (12.0, 110.0), (19.9, 110.0), (20.1, 120.0), (35.0, 130.0)],
)
def test_ticks_stay_on_the_grid_and_one_missed_tick_is_made_up(took: float, due: float) -> None:
    inst, _ = probes.result(instance(liveness=probe()), Kind.LIVENESS, Outcome.SUCCESS, START + took)
    assert probes.due(inst, Kind.LIVENESS) == due


def test_a11_liveness_and_readiness_wait_for_startup_then_begin_at_once() -> None:
    inst = instance(startup=probe(period=3), liveness=probe(), readiness=probe(initial_delay=60))
    assert probes.due(inst, Kind.LIVENESS) is None and probes.due(inst, Kind.READINESS) is None
    inst, _ = play(inst, Kind.STARTUP, "-")
    now = START + 3.5
    inst, effect = probes.result(inst, Kind.STARTUP, Outcome.SUCCESS, now)
    assert effect is Effect.PUBLISHED
    assert probes.due(inst, Kind.STARTUP) is None, "it stops after success"
    assert probes.due(inst, Kind.LIVENESS) == now
    assert probes.due(inst, Kind.READINESS) == START + 60, "never before its own initial delay"


def test_after_a_failure_that_kills_the_probe_is_held_and_readiness_goes_on() -> None:
    inst, _ = play(instance(liveness=probe(), readiness=probe()), Kind.LIVENESS, "---")
    assert probes.due(inst, Kind.LIVENESS) is None
    assert probes.due(inst, Kind.READINESS) == START
    again, effect = probes.result(inst, Kind.LIVENESS, Outcome.SUCCESS, START + 50)
    assert (again, effect) == (inst, Effect.NONE), "a late result changes nothing"
    inst, _ = play(instance(startup=probe(), readiness=probe()), Kind.STARTUP, "---")
    assert [probes.due(inst, k) for k in Kind] == [None, None, None]


def test_grace_is_the_failed_probes_own() -> None:
    kinds = {"liveness": probe(termination_grace=3, failure_threshold=1), "startup": probe(termination_grace=9)}
    assert of(kinds).grace is None
    failed, _ = play(of(kinds), Kind.STARTUP, "---")
    assert failed.grace == 9
    started, _ = play(of(kinds), Kind.STARTUP, "+")
    failed, _ = play(started, Kind.LIVENESS, "-")
    assert failed.grace == 3


def test_what_was_known_before_the_agent_was_restarted_is_kept() -> None:
    kinds = {"startup": probe(), "readiness": probe(), "liveness": probe()}
    inst = of(kinds, START + 500, started=True, ready=True)
    assert states(inst) == (True, True, None)
    assert [probes.due(inst, k) for k in Kind] == [None, START + 500, START + 500]
    assert states(of(kinds, START + 500, started=True)) == (True, False, None)


def test_ready_is_never_true_before_started() -> None:
    inst = of({"startup": probe(), "readiness": probe()}, ready=True)
    assert states(inst) == (False, False, None)


def test_termination_stops_liveness_and_startup_only() -> None:
    inst = probes.terminate(instance(liveness=probe(), readiness=probe()))
    assert [probes.due(inst, k) for k in Kind] == [None, None, START]
    inst = probes.terminate(instance(startup=probe(), readiness=probe()))
    assert [probes.due(inst, k) for k in Kind] == [None, None, None]
    assert states(inst) == (False, False, None)
    assert probes.terminate(instance()) == instance()


def test_a_skipped_try_moves_the_tick_only() -> None:
    inst, _ = play(instance(liveness=probe(failure_threshold=2)), Kind.LIVENESS, "-?")
    skipped = probes.skipped(inst, Kind.LIVENESS, START + 12)
    assert probes.due(skipped, Kind.LIVENESS) == START + 20
    assert play(skipped, Kind.LIVENESS, "-")[0].failed is Kind.LIVENESS, "the run goes on"
    assert probes.skipped(instance(), Kind.LIVENESS, START) == instance()


def test_results_for_a_probe_that_is_not_there_change_nothing() -> None:
    assert probes.result(instance(), Kind.READINESS, Outcome.SUCCESS, START) == (instance(), Effect.NONE)
    assert [probes.due(instance(), k) for k in Kind] == [None, None, None]


def reference(results: Sequence[bool], good: int, bad: int, initial: bool) -> bool:
    """What is published after `results`, by looking back over the whole history (4.1.5)."""
    published = initial
    for at in range(len(results)):
        for value, threshold in ((True, good), (False, bad)):
            last = results[max(at + 1 - threshold, 0) : at + 1]
            if len(last) == threshold and all(r is value for r in last):
                published = value
    return published


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 5), st.integers(1, 5))
def test_readiness_is_what_the_history_says(results: list[bool], good: int, bad: int) -> None:
    inst = instance(readiness=probe(success_threshold=good, failure_threshold=bad))
    inst, _ = play(inst, Kind.READINESS, "".join("+" if r else "-" for r in results))
    assert inst.ready is reference(results, good, bad, initial=False)


@given(
    st.lists(st.tuples(st.sampled_from(list(Kind)), st.sampled_from("+-?"), st.floats(0, 40)), max_size=60),
    st.integers(0, 20),
    st.integers(1, 15),
)
def test_invariants_over_any_history(events: list[tuple[Kind, str, float]], delay: int, period: int) -> None:
    """Gating, one kill per instance, and never two tries of a tick, whatever happens."""
    one = probe(initial_delay=delay, period=period)
    inst = instance(startup=one, liveness=one, readiness=one)
    kills, now = 0, START
    for kind, sign, wait in events:
        due = probes.due(inst, kind)
        if due is None:
            continue
        assert due >= START + delay
        assert kind is Kind.STARTUP or inst.started
        assert inst.started is False or kind is not Kind.STARTUP
        now = max(now, due) + wait
        before = inst
        inst, effect = probes.result(inst, kind, OUTCOMES[sign], now)
        kills += inst.failed is not None and before.failed is None
        after = probes.due(inst, kind)
        assert effect is Effect.RETRY or after is None or after > due
        assert effect is Effect.RETRY or after is None or after > now - 2 * period
        assert (effect is Effect.PUBLISHED) >= (states(inst) != states(before))
        if inst.failed:
            assert probes.due(inst, inst.failed) is None
    assert kills <= 1
