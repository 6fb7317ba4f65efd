"""Rotation through the real conmon: no line lost under load."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import pytest

from edgelet.adapters.logs.rotation import LogRotator, Policy
from edgelet.model.observed import ObservedContainer, ObservedPod, State
from edgelet.model.pod import PodKey
from tests.fakes import FakeClock
from tests.support.podman_env import PodmanEnv

NAME = "logrotation-test"
LINES = 30000
WRITER = (
    f"i=0; while [ $i -lt {LINES} ]; do echo line $i; i=$((i+1)); [ $((i % 300)) = 0 ] && sleep 0.03; done; "
    "echo the end; sleep 60"
)


@pytest.mark.podman
def test_no_line_is_lost_when_a_log_is_rotated_under_load(tmp_path: Path, podman_env: PodmanEnv) -> None:
    log = tmp_path / "c" / "0.log"
    log.parent.mkdir()
    where = ("--log-driver", "k8s-file", "--log-opt", f"path={log}")
    podman_env.run("run", "-d", "--name", NAME, *where, podman_env.image, "sh", "-c", WRITER)
    try:
        config = json.loads(podman_env.run("inspect", NAME))[0]["OCIConfigPath"]
        container = ObservedContainer("id", "c", State.RUNNING, oci_config=config, log_path=str(log))
        pod = ObservedPod(PodKey("default", "web"), "p", "u", "1-x", containers=(container,))
        clock = FakeClock()
        rotator = LogRotator(clock, lambda: (pod,), Policy(max_size=100_000, max_files=1000))
        deadline = time.monotonic() + 40
        while not ended(log) and time.monotonic() < deadline:
            rotator.pass_once()
            clock.advance(1)
            time.sleep(0.05)
        assert len(list(log.parent.iterdir())) >= 4, "rotated several times while it was written"
        assert written(log).splitlines() == [*(f"line {number}" for number in range(LINES)), "the end"]
    finally:
        podman_env.run("rm", "-f", "-t", "0", NAME)


def ended(log: Path) -> bool:
    """Whether the writer has written its last line: into the live file or the newest rotated one."""
    return any(b"the end" in file.read_bytes() for file in log.parent.iterdir() if file.suffix != ".gz")


def written(log: Path) -> str:
    """All that the container wrote, over all files."""
    files = sorted(log.parent.glob("0.log.*"))
    raw = b"".join(gzip.decompress(f.read_bytes()) if f.suffix == ".gz" else f.read_bytes() for f in files)
    pieces = []
    for line in (raw + log.read_bytes()).decode().splitlines():
        _, _, tag, *rest = line.split(" ", 3)
        pieces.append("".join(rest) + ("" if tag == "P" else "\n"))
    return "".join(pieces)
