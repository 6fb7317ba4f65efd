"""The client of the OCI runtime: what the command inherits from it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from edgelet import errors
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


@pytest.mark.parametrize("whole", [False, True])
def test_an_emptied_directory_costs_one_try_at_most(tmp_path: Path, whole: bool) -> None:
    directory = tmp_path / "exec"
    slots, key = files.Slots(str(directory)), ("c", ("true",), False)
    slot = slots.take(key, {})
    slots.give_back(slot)
    if whole:
        shutil.rmtree(directory)
    else:
        os.unlink(slot.process_file)
    again = slots.take(key, {})
    assert os.path.exists(again.process_file)
    assert again != slot


def test_a_directory_that_takes_no_file_is_told_in_the_same_words_each_time(tmp_path: Path) -> None:
    slots = files.Slots(str(tmp_path / "exec"))
    slots.take(("c", ("true",), False), {})
    shutil.rmtree(tmp_path / "exec")
    (tmp_path / "exec").write_text("in the way")
    said = set()
    for _ in range(2):
        with pytest.raises(errors.ExecError, match="cannot write into") as caught:
            slots.take(("c", ("false",), False), {})
        said.add(str(caught.value))
    assert len(said) == 1
