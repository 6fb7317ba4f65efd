"""What is stale of pods' networks, and what only looks like it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.core.conmon import Conmon
from edgelet.core.leftovers import Left, Monitor, Sight, stale
from edgelet.model.network import Lease, Rule, Space

OLD, NEW = "10.88.0.2", "10.88.0.3"
OURS = frozenset({OLD, NEW})
SPACE = Space("/run/netns/netns-old", 11, frozenset({OLD}))
LIVE = Space("/run/netns/netns-new", 12, frozenset({NEW}), busy=True)
LEASE = Lease("podman", "10.88.0.0/16", OLD, "a" * 64)
LIVE_LEASE = Lease("podman", "10.88.0.0/16", NEW, "b" * 64)


def rules(address: str, holder: str, port: str) -> list[Rule]:
    """What netavark makes for one published port."""
    return [
        Rule(f"jump {holder[0]} {port}", port, "N", holder=holder),
        Rule(f"mark {port}", port, "N"),
        Rule(f"dnat {address} {port}", port, "N", address=address),
    ]


SIGHT = Sight(
    (SPACE, LIVE),
    (LEASE, LIVE_LEASE),
    (*rules(OLD, "a" * 64, "tcp 8080"), *rules(NEW, "b" * 64, "tcp 9090")),
    frozenset({"b" * 64}),
    frozenset({LIVE.path}),
)


def test_all_of_a_pod_that_is_gone_is_stale_and_nothing_of_one_that_runs() -> None:
    left = stale(SIGHT, OURS)
    assert left == Left(frozenset({SPACE}), frozenset({LEASE}), frozenset(rules(OLD, "a" * 64, "tcp 8080")))


@pytest.mark.parametrize(
    "spared",
    [
        {"spaces": (replace(SPACE, busy=True), LIVE)},
        {"named": frozenset({SPACE.path, LIVE.path})},
    ],
)
def test_a_namespace_that_somebody_uses_or_names_keeps_all_that_goes_with_it(spared: dict[str, object]) -> None:
    assert not stale(replace(SIGHT, **spared), OURS)  # type: ignore[arg-type]


def test_what_is_of_another_network_is_never_touched() -> None:
    assert not stale(SIGHT, frozenset({NEW}))


def test_a_lease_of_a_container_that_exists_is_kept_and_its_rules_too() -> None:
    left = stale(replace(SIGHT, containers=frozenset({"a" * 64, "b" * 64})), OURS)
    assert (left.leases, left.rules) == (frozenset(), frozenset())


def test_a_namespace_without_address_may_be_anybodys_and_stays() -> None:
    bare = Space("/run/netns/netns-bare", 13)
    assert not stale(Sight((bare,)), OURS)
    assert stale(Sight((replace(bare, addresses=frozenset({OLD})),)), OURS)


def test_the_port_of_a_dead_rule_may_have_a_living_one_whose_marks_stay() -> None:
    both = (*rules(OLD, "a" * 64, "tcp 80"), *rules(NEW, "b" * 64, "tcp 80"))
    left = stale(replace(SIGHT, rules=both), OURS)
    assert {r.text for r in left.rules} == {"jump a tcp 80", f"dnat {OLD} tcp 80"}


def test_only_what_was_stale_twice_counts() -> None:
    once, twice = stale(SIGHT, OURS), stale(replace(SIGHT, leases=()), OURS)
    assert once.both(twice) == replace(once, leases=frozenset())
    assert not once.both(Left())


@given(st.lists(st.tuples(st.sampled_from([OLD, NEW, "10.99.0.9"]), st.booleans(), st.booleans(), st.booleans())))
def test_no_address_that_a_process_has_is_ever_taken_away(rows: list[tuple[str, bool, bool, bool]]) -> None:
    spaces = tuple(Space(f"/s{n}", n + 1, frozenset({a}), busy) for n, (a, busy, _, _) in enumerate(rows))
    leases = tuple(Lease("podman", "x", a, f"c{n}") for n, (a, _, leased, _) in enumerate(rows) if leased)
    known = frozenset(f"c{n}" for n, row in enumerate(rows) if row[3])
    walls = tuple(r for n, (a, _, _, _) in enumerate(rows) for r in rules(a, f"c{n}", f"tcp {n}"))
    left = stale(Sight(spaces, leases, walls, known), OURS)
    used = {a for a, busy, _, _ in rows if busy} | {a for a, *_ in rows if a not in OURS}
    assert not {x.address for x in left.leases} & used
    assert not {r.address for r in left.rules} & used
    assert not {a for s in left.spaces for a in s.addresses} - OURS
    assert not any(s.busy for s in left.spaces)
    assert not {x.holder for x in left.leases} & known


def monitor(container: str, pid: int = 7, since: str = "100") -> Monitor:
    """A conmon for that container."""
    return Monitor(pid, since, Conmon(container))


def test_a_monitor_of_a_container_that_podman_forgot_is_stale_and_one_that_podman_knows_is_not() -> None:
    forgotten, known = monitor("a" * 64), monitor("b" * 64, 8)
    left = stale(Sight(containers=frozenset({"b" * 64}), monitors=(forgotten, known)), OURS)
    assert left == Left(monitors=frozenset({forgotten}))
    assert left


def test_a_monitor_must_be_the_same_process_at_both_looks() -> None:
    first, later = (stale(Sight(monitors=(monitor("a" * 64, since=s),)), OURS) for s in ("100", "900"))
    assert not first.both(later)
    assert first.both(first) == first
