"""The client of the OCI runtime: what the command inherits from it."""

from __future__ import annotations

import os
from pathlib import Path

from edgelet.adapters.runtime_exec import client, files, runtime

# Stands for a runtime: waits for the score, as crun first has much to do, and tells what it is.
SHOW = """#!/bin/sh
for _ in $(seq 200); do
    [ "$(cat /proc/$$/oom_score_adj)" = 777 ] && break
    sleep 0.05
done
cat /proc/$$/oom_score_adj
"""


def test_a_command_has_the_oom_score_of_its_container_and_not_the_agents(tmp_path: Path) -> None:
    program = tmp_path / "runtime"
    program.write_text(SHOW)
    program.chmod(0o755)
    process = {"oomScoreAdj": 777}
    slot = files.Slots(str(tmp_path / "exec")).take(("c", ("true",), False), process)
    with open(tmp_path / "out", "wb") as out:
        known = runtime.Known((str(program), "exec"), {"PATH": os.environ["PATH"]}, process)
        pid = client.spawn(known, slot, "c", (None, out.fileno(), out.fileno()))
    os.waitpid(pid, 0)
    assert (tmp_path / "out").read_text() == "777\n"
