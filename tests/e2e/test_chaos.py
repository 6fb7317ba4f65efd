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
SEED = os.environ.get("EDGELET_CHAOS_SEED", "7")
"""The same troubles each time, at moments that the machine decides; the long runs draw theirs."""
AFTER = 900.0
"""Seconds for the first and the last round to settle, and for what is left to be found twice and taken away."""
ENDING = 180.0
"""Seconds that it may take to end when it is told to."""


def run(which: str, *words: str) -> None:
    """One run in namespaces of its own; its story is shown when it fails."""
    if reason := why_not():
        pytest.skip(reason)
    seconds = SECONDS[which]
    if not seconds:
        pytest.skip(f"takes minutes: make {which}, or EDGELET_{which.upper()}_SECONDS=120")
    command = [str(ROOT / "tests" / "e2e" / "chaos"), "--seconds", str(seconds), "--seed", SEED, *words]
    environment = {**os.environ, "PYTHON": sys.executable}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as child:
        try:
            said, _ = child.communicate(timeout=seconds + AFTER)
        except BaseException:
            child.terminate()  # it takes its pods away
            said, _ = child.communicate(timeout=ENDING)
            print(said[-30000:])
            raise
    print(said[-30000:])
    assert child.returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(SECONDS["chaos"] + AFTER + ENDING + 60)
def test_pain_53_56_187_random_trouble_leaves_nothing_behind() -> None:
    run("chaos")


@pytest.mark.slow
@pytest.mark.timeout(SECONDS["faults"] + AFTER + ENDING + 60)
def test_pain_29_a_podman_that_hangs_lies_and_loses_answers_leaves_the_agent_as_it_was() -> None:
    run("faults", "--faults")
