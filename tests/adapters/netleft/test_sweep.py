"""The sweeper on a real Podman, and on what it must leave alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.net_left import APART
from tests.support.podman_env import why_not

ROOT = Path(__file__).parents[3]


@pytest.mark.timeout(600)
def test_pain_53_56_187_what_a_podman_has_forgotten_goes_and_a_running_pod_keeps_its_network() -> None:
    if reason := why_not():
        pytest.skip(reason)
    words = [*APART, sys.executable, "-m", "tests.adapters.netleft.inside"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    kinds = {line.split()[0] for line in set(said["before"]) - set(said["good"])}
    assert kinds == {"network", "link", "lease", "rule"}
    assert any(line.startswith("network namespace") for line in said["told"])
    assert any(line.startswith("rules of the firewall for tcp 28082") for line in said["told"])
    assert any(line.startswith("leases of") for line in said["told"])
    assert said["again"] == 64
