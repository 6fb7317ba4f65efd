"""Container logs under load: rotated, and no line lost."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from tests.e2e.agent import Agent
from tests.e2e.manifests import SERVE, container, pod

LINES = 20_000
BURST = 300
LIMIT = 300_000
"""Bytes. A line has about 65 as conmon writes it: 1.3 MB in all, at most 200 kB between two looks at the size."""


def test_rotation_under_load_loses_no_line(agent: Agent) -> None:
    pace = f"[ $((i % {BURST})) = 0 ] && sleep 0.1"
    script = (
        f"i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); echo line $i of the load; {pace}; done; echo finished; {SERVE}"
    )
    agent.start(
        f"--container-log-max-size={LIMIT}", "--container-log-max-files=200", "--container-log-monitor-interval=1s"
    )
    agent.write(pod("load", container(script=script)))
    agent.wait("the last line", lambda: "finished" in tail(agent), 60)
    agent.wait("a rotation", lambda: len(files(agent)) > 2)
    found = [int(n) for path in files(agent) for n in re.findall(r"line (\d+) of the load", read(path))]
    assert sorted(found) == list(range(1, LINES + 1))
    # As with kubectl that is the present file, which may have been begun a moment ago.
    agent.wait("the present file to be told", lambda: agent.cli("logs", "load").stdout.splitlines() == present(agent))


def directory(agent: Agent) -> Path:
    """Where the logs of the container are."""
    return agent.logs / f"default_load-n1_{agent.pod('load')['metadata']['uid']}" / "app"


def files(agent: Agent) -> list[Path]:
    """All log files, the old ones included."""
    return [p for p in directory(agent).iterdir() if not p.name.endswith(".tmp")]


def read(path: Path) -> str:
    """A log file, compressed or not."""
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


def present(agent: Agent) -> list[str]:
    """The lines of the present log file, without time and stream."""
    return [line.split(" ", 3)[3] for line in read(directory(agent) / "0.log").splitlines()]


def tail(agent: Agent) -> str:
    """The end of the present log file."""
    if not agent.pod("load"):
        return ""
    path = directory(agent) / "0.log"
    return path.read_text()[-200:] if path.exists() else ""


def test_logs_follow_the_kubelets_layout(agent: Agent) -> None:
    agent.start().write(pod("load", container(script="echo hello; exit 0"), restartPolicy="OnFailure"))
    agent.wait("its end", lambda: agent.phase("load") == "Succeeded")
    (path,) = files(agent)
    assert path.name == "0.log"
    assert re.fullmatch(r"\S+ stdout F hello\n", path.read_text())
