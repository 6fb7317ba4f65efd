"""docs/conformance.md is what the table says, names tests that exist, and leaves out no rule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import conformance
from tests.support import inverted

SPEC = conformance.ROOT.parent / "shared" / "spec" / "kubelet-semantics.md"
SECTIONS = ("1.5", "1.6", "1.7", "3.", "4.", "9.")


def test_the_page_is_made_from_the_table() -> None:
    assert conformance.PAGE.read_text() == conformance.render({}), "run python -m tests.conformance"


def test_every_test_that_is_named_exists() -> None:
    named = {test for rule in conformance.rules() for test in rule.tests}
    assert named - conformance.known_tests().keys() == set()


def test_what_is_said_to_be_done_has_a_test() -> None:
    assert [r.number for r in conformance.rules() if r.verdict != conformance.MISSING and not r.tests] == []


def test_every_rule_that_is_kept_has_an_inversion_that_still_applies() -> None:
    every = inverted.table()
    kept = {r.number for r in conformance.rules() if r.verdict != conformance.MISSING}
    assert {i.rule for i in every} == kept, "each rule needs a block in tests/inversions.txt: make inversions"
    assert [why for i in every if (why := inverted.stale(i))] == []


def test_no_rule_is_left_out() -> None:
    if not SPEC.exists():
        pytest.skip("the numbered rules are not on this machine")
    text = SPEC.read_text()
    numbered = re.findall(r"^\| (\d+(?:\.\d+)+) \|", text, re.MULTILINE)
    wanted = [n for n in numbered if n.startswith(SECTIONS)]
    assert set(wanted) - {r.number for r in conformance.rules()} == set()


def test_outcomes_of_a_run_are_told(tmp_path: Path) -> None:
    report = tmp_path / "run.xml"
    report.write_text(
        '<testsuite><testcase name="test_phase[a]"/><testcase name="test_phase[b]"><failure/></testcase>'
        '<testcase name="test_orphans"/><testcase name="test_orphans"><skipped/></testcase></testsuite>'
    )
    ended = conformance.outcomes([report])
    assert ended == {"test_phase": "failed", "test_orphans": "passed"}
    page = conformance.render(ended)
    assert "`test_phase` (failed)" in page
    assert "`test_counters` (not run)" in page
