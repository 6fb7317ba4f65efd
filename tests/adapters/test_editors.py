"""Files saved as people and tools save them: the pod never stops, and ends as the last whole file says.

Real inotify, a real thread, real tools where they are installed; where they are not, the system
calls that they were seen to make.  `EDGELET_SAVES` sets the number of saves.  The same with a real
pod behind it is tests/e2e/test_saves.py.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgelet.adapters.files import FileSource
from edgelet.ports import Snapshot
from tests.support.editors import cut_upload, tools
from tests.support.sources import NODE, Sink, manifest

SAVES = int(os.environ.get("EDGELET_SAVES", "60"))


class RealClock:
    """ports.Clock."""

    def monotonic(self) -> float:
        """See ports.Clock."""
        return time.monotonic()

    def time(self) -> float:
        """See ports.Clock."""
        return time.time()


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / "manifests"
    made.mkdir()
    yield made


@pytest.fixture
def started(directory: Path) -> Iterator[tuple[Path, Sink]]:
    path, sink = directory / "web.yaml", Sink()
    path.write_text(manifest("web", "v0"))
    source = FileSource(str(directory), NODE, sink, RealClock(), str(directory.parent / "store"), check_frequency=0.7)
    source.start()
    yield path, sink
    source.stop()


def wait_for(sink: Sink, version: str) -> None:
    deadline = time.monotonic() + 30
    while sink.images() != {"web": version} or sink.errors():
        assert time.monotonic() < deadline, f"{sink.images()} {sink.errors()}, wanted {version}"
        time.sleep(0.005)


def check(snapshots: list[Snapshot], complete: list[str]) -> None:
    """One pod at all times, and only as some whole file said, in the order in which they were saved."""
    shown = [p.containers[0].image for s in snapshots for p in s.pods]
    assert len(shown) == len(snapshots)
    numbers = [complete.index(one) for one in shown]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("how", tools().keys())
def test_one_save_of_each_kind_is_taken_within_a_second(started: tuple[Path, Sink], how: str) -> None:
    path, sink = started
    tools()[how](path, manifest("web", "v1"))
    wait_for(sink, "v1")
    check(sink.snapshots, ["v0", "v1"])


def test_random_saves_at_random_moments_never_stop_the_pod(started: tuple[Path, Sink]) -> None:
    path, sink = started
    chance = random.Random(4)
    complete = ["v0"]
    kinds = sorted(tools().items())
    for number in range(1, SAVES + 1):
        version = f"v{number}"
        if chance.random() < 0.2:
            cut_upload(path, manifest("web", version), chance)
            time.sleep(chance.random() * 0.05)
            # What sed edits has to be whole.
            path.write_text(manifest("web", complete[-1]))
        chance.choice(kinds)[1](path, manifest("web", version))
        complete.append(version)
        if chance.random() < 0.5:
            time.sleep(chance.random() * 0.1)
    wait_for(sink, complete[-1])
    check(sink.snapshots, complete)


def test_a_cut_upload_alone_leaves_the_last_whole_version_running(started: tuple[Path, Sink]) -> None:
    path, sink = started
    text = manifest("web", "v1")
    for length in range(len(text)):
        path.write_text(text[:length])
        if length % 20 == 0:
            time.sleep(0.01)
    time.sleep(0.3)
    check(sink.snapshots, ["v0"])
    path.write_text(text)
    wait_for(sink, "v1")
