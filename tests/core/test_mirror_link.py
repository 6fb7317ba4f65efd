"""When the API server is asked, and who else renews our Lease (semantics 7.2, 7.4.3), with values only."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.core import mirror_link
from edgelet.core.mirror_link import Churn, Holder, Link


def test_a_lost_link_is_tried_after_waits_that_double_to_five_minutes_and_are_forgotten() -> None:
    link, waits = mirror_link.Link(), []
    for _ in range(12):
        link = mirror_link.failed(link, "gone", 100.0, 1.0, None, 1.0)
        waits.append(link.retry_at - 100.0)
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    assert (link.up, link.since, link.message) == (False, 1.0, "gone")
    link = mirror_link.worked(link, 9.0)
    assert (link.up, link.since, link.failures, link.retry_at) == (True, 9.0, 0, 0.0)
    assert mirror_link.worked(link, 10.0) is link


@given(st.integers(1, 40), st.floats(0, 1, exclude_max=True))
def test_every_wait_has_jitter_in_its_upper_half_and_an_end(failures: int, draw: float) -> None:
    link = replace(mirror_link.Link(), failures=failures - 1)
    wait = mirror_link.failed(link, "", 0.0, 0.0, None, draw).retry_at
    ceiling = min(2.0 ** (failures - 1), mirror_link.RETRY_CAP)
    assert ceiling / 2 <= wait <= ceiling


def test_the_servers_own_wish_is_kept_and_a_change_of_the_network_does_not_break_it() -> None:
    busy = mirror_link.failed(mirror_link.Link(), "429", 0.0, 0.0, 30.0, 0.0)
    assert busy.retry_at == 30.0
    assert mirror_link.network_changed(busy, 1.0) is busy


def test_a_change_of_the_network_ends_a_long_wait_but_not_time_and_again() -> None:
    lost = replace(mirror_link.Link(), failures=9, retry_at=300.0)
    once = mirror_link.network_changed(lost, 10.0)
    assert 10.0 < once.retry_at < 11.0
    again = mirror_link.failed(once, "", 10.5, 0.0, None, 1.0)
    assert mirror_link.network_changed(again, 11.0) is again
    assert mirror_link.network_changed(again, 20.0).retry_at < 21.0


def test_an_own_renewal_whose_answer_was_lost_is_no_clash() -> None:
    holder = mirror_link.trying(mirror_link.Holder(), "t1")
    assert not mirror_link.clash(mirror_link.judged(holder, "t1", True, 5.0), 40.0, 5.0)
    other = mirror_link.judged(holder, "foreign", True, 5.0)
    assert mirror_link.clash(other, 40.0, 5.0)
    assert not mirror_link.clash(other, 40.0, 46.0)
    assert not mirror_link.clash(mirror_link.judged(holder, "foreign", False, 5.0), 40.0, 5.0)


def test_a_mirror_that_does_not_last_is_made_ever_more_rarely_but_an_edit_counts_anew() -> None:
    churn, waits = mirror_link.Churn(), []
    for _ in range(14):
        churn = mirror_link.made(churn, True, 0.0)
        waits.append(mirror_link.may_make_at(churn))
    assert waits[:6] == [0.0, 0.0, 2.0, 4.0, 8.0, 16.0] and waits[-1] == mirror_link.RETRY_CAP
    assert mirror_link.may_make_at(mirror_link.made(churn, False, 1.0)) == 0.0
    assert mirror_link.may_make_at(mirror_link.made(churn, True, 1000.0)) == 0.0


def test_a_link_that_was_never_tried_may_be_tried_at_once() -> None:
    assert (Link().up, Link().since, Link().retry_at, Link().failures) == (False, 0.0, 0.0, 0)


def test_a_link_that_works_again_has_nothing_left_of_its_loss() -> None:
    lost = mirror_link.failed(Link(), "429", 0.0, 5.0, 30.0, 0.0)
    assert mirror_link.worked(lost, 9.0) == Link(up=True, since=9.0)
    shaky = replace(Link(up=True, since=9.0), failures=1, message="once", asked=True)
    assert mirror_link.worked(shaky, 12.0) == Link(up=True, since=9.0)


def test_a_link_is_lost_since_its_first_failure() -> None:
    first = mirror_link.failed(Link(up=True, since=1.0), "gone", 0.0, 7.0, None, 0.5)
    again = mirror_link.failed(first, "still gone", 1.0, 8.0, None, 0.5)
    assert (first.up, first.since, again.since, again.message) == (False, 7.0, 7.0, "still gone")


def test_a_wait_that_the_server_asked_for_is_told_from_one_of_our_own() -> None:
    asked = mirror_link.failed(Link(), "429", 0.0, 5.0, 0.0, 0.0)
    assert asked.asked
    assert not mirror_link.failed(asked, "refused", 0.0, 5.0, None, 0.0).asked


def test_while_the_clock_may_be_wrong_the_waits_end_at_ten_seconds() -> None:
    link = replace(Link(), failures=20)
    assert mirror_link.failed(link, "", 0.0, 0.0, None, 1.0, mirror_link.CLOCK_CAP).retry_at == 10.0


def test_a_change_of_the_network_never_delays_a_try_and_a_link_that_works_is_left_alone() -> None:
    soon = replace(Link(), failures=3, retry_at=10.1)
    assert mirror_link.network_changed(soon, 10.0).retry_at == 10.1
    works = Link(up=True)
    assert mirror_link.network_changed(works, 10.0) is works


@pytest.mark.parametrize(("later", "tried"), [(1.9, False), (2.0, True)])
def test_changes_of_the_network_cause_a_try_every_two_seconds_at_most(later: float, tried: bool) -> None:
    once = mirror_link.network_changed(replace(Link(), retry_at=300.0), 10.0)
    again = mirror_link.network_changed(replace(once, retry_at=300.0), 10.0 + later)
    assert (again.retry_at < 300.0) is tried


def test_one_object_that_is_refused_waits_like_a_lost_link() -> None:
    assert [mirror_link.object_retry(n, 1.0) for n in (1, 2, 3, 30)] == [1, 2, 4, 300]


def test_7_2_a_lease_is_renewed_four_times_in_its_duration() -> None:
    assert mirror_link.renew_interval(40.0) == 10.0


def test_7_2_a_look_at_the_node_comes_up_to_4_percent_late_and_never_early() -> None:
    assert mirror_link.jittered(10.0, 0.0) == 10.0
    assert mirror_link.jittered(10.0, 1.0) == pytest.approx(10.4)


def test_the_last_eight_renewals_of_our_own_are_known_again() -> None:
    holder = Holder()
    for number in range(20):
        holder = mirror_link.trying(holder, f"t{number}")
    assert holder.tried == tuple(f"t{number}" for number in range(12, 20))
    assert all(mirror_link.judged(holder, time, True, 5.0) is holder for time in holder.tried)
    assert mirror_link.judged(holder, "t11", True, 5.0).foreign_at == 5.0


def test_a_lease_without_a_time_accuses_nobody_and_what_is_known_of_our_own_stays() -> None:
    holder = Holder(("t1",))
    assert mirror_link.judged(holder, "", True, 5.0) is holder
    assert mirror_link.judged(holder, "foreign", True, 5.0) == Holder(("t1",), 5.0)


@pytest.mark.parametrize(("now", "suspected"), [(5.0, True), (44.9, True), (45.0, False)])
def test_a_foreign_renewal_is_a_clash_for_one_duration_of_the_lease(now: float, suspected: bool) -> None:
    assert mirror_link.clash(Holder((), 5.0), 40.0, now) is suspected
    assert not mirror_link.clash(Holder(), 40.0, now)


@pytest.mark.parametrize(("later", "count"), [(600.0, 3), (600.1, 1)])
def test_7_4_3_how_often_a_mirror_was_made_is_forgotten_after_ten_quiet_minutes(later: float, count: int) -> None:
    assert mirror_link.made(Churn(2, 100.0), True, 100.0 + later) == Churn(count, 100.0 + later)


def test_7_4_3_the_wait_counts_from_the_last_making() -> None:
    assert mirror_link.may_make_at(Churn(2, 100.0)) == 0.0
    assert mirror_link.may_make_at(Churn(3, 100.0)) == 102.0
