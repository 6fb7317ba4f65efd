"""Events on disk: what a full disk and a power cut leave of the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgelet.adapters.event_file import EventFile
from edgelet.engine.recorder import EventRing
from edgelet.model.pod import PodKey
from edgelet.ports import EventRef
from tests.fakes import FakeClock

REF = EventRef(PodKey("default", "web-n1"), "uid")


def opened(path: Path) -> tuple[EventRing, EventFile]:
    """A ring with what the file holds."""
    ring = EventRing(FakeClock(), "n1")
    file = EventFile(str(path), ring)
    file.load()
    return ring, file


def told(ring: EventRing) -> list[str]:
    """The messages in order."""
    return [event.message for event in ring.events()]


def test_a_line_that_was_cut_off_costs_itself_only(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    ring, file = opened(path)
    for message in ("first", "second"):
        ring.event(REF, "Normal", "R", message)
    file.flush()
    os.truncate(path, path.stat().st_size - 10)
    again, file = opened(path)
    again.event(REF, "Normal", "R", "third")
    file.flush()
    assert told(opened(path)[0]) == ["first", "third"]


def test_events_that_a_full_disk_took_in_part_are_written_once_it_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.jsonl"
    ring, file = opened(path)
    ring.event(REF, "Normal", "R", "first")
    file.flush()
    room = [20]
    write = os.write

    def nearly_full(descriptor: int, data: memoryview) -> int:
        if not room[0]:
            raise OSError(28, "No space left on device")
        taken = write(descriptor, data[: room[0]])
        room[0] -= taken
        return taken

    monkeypatch.setattr(os, "write", nearly_full)
    ring.event(REF, "Normal", "R", "second")
    file.flush()
    monkeypatch.setattr(os, "write", write)
    ring.event(REF, "Normal", "R", "third")
    file.flush()
    assert told(opened(path)[0]) == ["first", "second", "third"]
