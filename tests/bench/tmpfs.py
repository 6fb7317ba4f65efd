"""A /run that a reboot empties, for machines that keep theirs on disk.

What the agent, Podman and the OCI runtime write to /run costs an ordinary machine no flash.  Where
/run is no tmpfs, the row that counts written bytes runs in a mount namespace with one, on a Podman
storage of its own (the machine's Podman would take the empty /run for a reboot).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

INSIDE = "EDGELET_BENCH_INSIDE"


def needed() -> bool:
    """Whether /run is on a disk, and we are not inside already."""
    if os.environ.get(INSIDE):
        return False
    kind = subprocess.run(["stat", "-f", "-c", "%T", "/run"], capture_output=True, check=True)
    return kind.stdout.strip() != b"tmpfs"


def run(row: str) -> int:
    """Run one row of the bench inside; its exit code."""
    home = Path(tempfile.mkdtemp(prefix="edgelet-bench-"))
    try:
        (home / "bin").mkdir()
        wrapper = home / "bin" / "podman"
        flags = f"--root {home}/storage --runroot /run/podman-bench/runroot --tmpdir /run/podman-bench/tmp"
        wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("podman")} {flags} "$@"\n')
        wrapper.chmod(0o755)
        script = f"mount -t tmpfs tmpfs /run && mkdir /run/podman-bench && exec {sys.executable} -m tests.bench {row}"
        return subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
            env={**os.environ, INSIDE: "1", "PATH": f"{home}/bin:{os.environ['PATH']}"},
            check=False,
        ).returncode
    finally:
        shutil.rmtree(home, ignore_errors=True)
