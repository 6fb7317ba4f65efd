"""What docs/fleet.md promises, on a small fleet: the crowd spreads, backs off and comes back gently."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests import fleet_sim
from tests.fleet_sim import FREQUENCY, Fleet, rate
from tests.support.drawing import Curve, chart

AGENTS = 200


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_a_region_that_gets_its_power_back_spreads_over_half_the_frequency() -> None:
    server = Fleet(AGENTS, 200, lambda now: "200").run()
    mean, peak = rate(server.requests, 100, 200)
    assert mean == pytest.approx(AGENTS / FREQUENCY, rel=0.1)
    assert peak < 3 * mean
    assert rate(server.requests, 0, 20)[1] < AGENTS / 4


def test_an_outage_is_left_in_peace_and_its_end_makes_no_peak() -> None:
    end = 1000
    server = Fleet(AGENTS, end + 300, lambda now: "down" if 100 <= now < end else "200").run()
    assert rate(server.tried, 500, end)[0] < AGENTS / FREQUENCY / 3
    steady = rate(server.requests, 50, 100)[1]
    assert rate(server.requests, end, end + 120)[1] <= 1.5 * steady
    assert sum(server.requests[s] for s in range(end, end + 150)) > AGENTS


def test_nobody_comes_before_retry_after_is_over_and_not_all_at_once() -> None:
    server = Fleet(AGENTS, 130, lambda now: "503" if now < 30 else "200").run()
    assert rate(server.tried, 32, 60)[1] == 0
    assert rate(server.tried, 60, 110)[1] < AGENTS / 5


def test_unchanged_content_is_sent_once_to_each() -> None:
    server = Fleet(AGENTS, 200, lambda now: "200", version=lambda now: 1 + int(now >= 100)).run()
    bodies = (sum(server.bytes_out.values()) - fleet_sim.HEAD * sum(server.requests.values())) / fleet_sim.BODY
    assert bodies == 2 * AGENTS


def test_pictures_are_well_formed(tmp_path: Path) -> None:
    chart(tmp_path / "a.svg", "title", [Curve("one", [(0, 0), (1, 5)]), Curve("two", [(0, 3), (1, 0)])])
    assert len(list(ElementTree.parse(tmp_path / "a.svg").iter("{http://www.w3.org/2000/svg}polyline"))) == 2
