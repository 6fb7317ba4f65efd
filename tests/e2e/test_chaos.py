"""Random trouble, short: desired = running, nothing left, nothing restarted without a cause, nothing grown."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.e2e.agent import ROOT
from tests.support.podman_env import why_not

SECONDS = {
    "chaos": float(os.environ.get("EDGELET_CHAOS_SECONDS", "0")),
    "faults": float(os.environ.get("EDGELET_FAULTS_SECONDS", "0")),
}
AFTER = 900.0
"""Seconds for the first and the last round to settle, and for what is left to be found twice and taken away."""


def run(which: str, *words: str) -> None:
    """One run in namespaces of its own; its story is shown when it fails."""
    if reason := why_not():
        pytest.skip(reason)
    seconds = SECONDS[which]
    if not seconds:
        pytest.skip(f"takes minutes: make {which}, or EDGELET_{which.upper()}_SECONDS=120")
    command = [str(ROOT / "tests" / "e2e" / "chaos"), "--seconds", str(seconds), *words]
    environment = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=seconds + AFTER, check=False
    )
    print(done.stdout[-30000:], done.stderr[-5000:])
    assert done.returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(SECONDS["chaos"] + AFTER + 60)
def test_pain_53_56_187_random_trouble_leaves_nothing_behind() -> None:
    run("chaos")


@pytest.mark.slow
@pytest.mark.timeout(SECONDS["faults"] + AFTER + 60)
def test_pain_29_a_podman_that_hangs_lies_and_loses_answers_leaves_the_agent_as_it_was() -> None:
    run("faults", "--faults")
