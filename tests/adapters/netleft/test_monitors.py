"""A container that a Podman had made in the runtime, and forgot before it noted that."""

from __future__ import annotations

import time

import pytest

from edgelet.adapters.netleft import Facts, Sweeper, monitors
from edgelet.core import leftovers
from edgelet.core.conmon import Conmon
from tests.support.podman_env import PodmanEnv

SECONDS = 60.0


def initialized(env: PodmanEnv) -> str:
    """The id of a container that the runtime has created and nobody has started."""
    made = env.run("create", "--network", "host", env.image, "sleep", "1000").strip()
    env.run("container", "init", made)
    return made


def watched(container: str) -> list[leftovers.Monitor]:
    return list(monitors.read(lambda c: c.container_id == container))


def test_pain_53_a_forgotten_container_ends_and_one_that_podman_knows_stays(
    own_podman: PodmanEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "PATIENCE", 0.5)
    forgotten, known, foreign = (initialized(own_podman) for _ in range(3))
    assert all(len(watched(c)) == 1 for c in (forgotten, known, foreign))
    told: list[str] = []

    def ours(monitor: Conmon) -> bool:
        return monitor.container_id in (forgotten, known)

    sweeper = Sweeper(lambda: Facts(frozenset({known}), frozenset(), ()), told.append, ours)
    sweeper.start()
    sweeper.suspect()
    end = time.monotonic() + SECONDS
    while watched(forgotten) and time.monotonic() < end:
        time.sleep(0.1)
    sweeper.stop()
    assert not watched(forgotten)
    assert told == [f"container {forgotten[:12]}, which Podman knows no more"]
    assert len(watched(known)) == len(watched(foreign)) == 1


def test_a_monitor_that_is_another_process_by_now_is_let_be(own_podman: PodmanEnv) -> None:
    made = initialized(own_podman)
    (seen,) = watched(made)
    monitors.remove(leftovers.Monitor(seen.pid, "1", seen.conmon))
    assert watched(made) == [seen]
