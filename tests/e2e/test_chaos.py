"""Two minutes of random trouble: desired = running, nothing left, nothing restarted without a cause."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.e2e.agent import ROOT
from tests.support.podman_env import why_not

SECONDS = float(os.environ.get("EDGELET_CHAOS_SECONDS", "120"))
AFTER = 900.0
"""Seconds for the last round to settle, and for what is left to be found twice and taken away."""


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + AFTER + 60)
def test_pain_53_56_187_random_trouble_leaves_nothing_behind() -> None:
    if reason := why_not():
        pytest.skip(reason)
    words = [str(ROOT / "tests" / "e2e" / "chaos"), "--seconds", str(SECONDS)]
    environment = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=SECONDS + AFTER, check=False)
    print(done.stdout[-30000:], done.stderr[-5000:])
    assert done.returncode == 0
