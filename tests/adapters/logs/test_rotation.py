"""Rotation decisions on plain files, with a FIFO in the place of conmon's."""

from __future__ import annotations

import gzip
import logging
import os
import threading
from pathlib import Path

import pytest

from edgelet.adapters.logs import links, rotation
from edgelet.adapters.logs.rotation import LogRotator, Policy
from edgelet.model.observed import ObservedContainer, ObservedPod, State
from edgelet.model.pod import PodKey
from tests.fakes import FakeClock


class Box:
    """One container with its log, its FIFO and a rotator."""

    def __init__(self, tmp_path: Path, max_files: int = 5, links_dir: str = "") -> None:
        self.log = tmp_path / "logs" / "c" / "3.log"
        self.log.parent.mkdir(parents=True)
        self.bundle = tmp_path / "bundle"
        self.bundle.mkdir()
        os.mkfifo(self.bundle / "ctl")
        self.control = os.open(self.bundle / "ctl", os.O_RDONLY | os.O_NONBLOCK)
        self.clock = FakeClock()
        self.containers = [self.container()]
        self.rotator = LogRotator(self.clock, self.pods, Policy(100, max_files), links_dir)

    def container(self, state: State = State.RUNNING, name: str = "c") -> ObservedContainer:
        """The container in that state."""
        config = str(self.bundle / "config.json")
        return ObservedContainer("0123456789abcdef", name, state, oci_config=config, log_path=str(self.log))

    def pods(self) -> tuple[ObservedPod, ...]:
        """What runs."""
        return (ObservedPod(PodKey("default", "web"), "p", "u", "1-x", containers=tuple(self.containers)),)

    def told(self) -> bytes:
        """What conmon was told."""
        try:
            return os.read(self.control, 100)
        except BlockingIOError:
            return b""

    def names(self) -> list[str]:
        """The files in the log directory."""
        return sorted(file.name for file in self.log.parent.iterdir())


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_a_small_log_is_left_alone(box: Box) -> None:
    box.log.write_text("x" * 100)
    box.rotator.pass_once()
    assert box.names() == ["3.log"]
    assert box.told() == b""


def test_a_large_log_is_renamed_and_conmon_told(box: Box) -> None:
    box.log.write_text("x" * 101)
    box.rotator.pass_once()
    assert box.names() == ["3.log.20231114-221320"]
    assert box.told() == b"2 0 0\n"


def test_no_more_files_than_allowed_and_all_but_the_newest_are_compressed(box: Box) -> None:
    for number in range(8):
        box.log.write_text(f"{number}" * 101)
        box.rotator.pass_once()
        box.clock.advance(10)
        box.told()
    box.log.write_text("live")
    *packed, newest, live = [*box.names()[1:], box.names()[0]]
    assert live == "3.log"
    assert len(packed) == 3
    assert all(name.endswith(".gz") for name in packed)
    assert (box.log.parent / newest).read_text() == "7" * 101
    assert gzip.decompress((box.log.parent / packed[0]).read_bytes()) == b"4" * 101


def test_two_files_are_one_live_and_one_rotated(tmp_path: Path) -> None:
    box = Box(tmp_path, max_files=2)
    for _ in range(4):
        box.log.write_text("x" * 101)
        box.rotator.pass_once()
        box.clock.advance(10)
        box.told()
    assert len(box.names()) <= 2


def test_left_overs_of_a_compression_that_was_cut_off_are_removed(box: Box) -> None:
    for name in ("3.log.20231114-220000", "3.log.20231114-220000.gz", "3.log.20231114-220100.tmp"):
        (box.log.parent / name).write_text("")
    box.log.write_text("x" * 101)
    box.rotator.pass_once()
    assert box.names() == ["3.log.20231114-220000.gz", "3.log.20231114-221320"]


def test_a_rotation_that_was_cut_off_before_conmon_heard_is_finished(box: Box) -> None:
    (box.log.parent / "3.log.20231114-220000").write_text("x")
    box.rotator.pass_once()
    assert box.told() == b"", "conmon may just be about to make the new file"
    box.rotator.pass_once()
    assert box.told() == b"2 0 0\n"


def test_conmon_is_asked_once_however_long_it_takes(box: Box) -> None:
    box.log.write_text("x" * 101)
    for _ in range(5):
        box.rotator.pass_once()
    assert box.told() == b"2 0 0\n", "a second request would make it throw away what it wrote after the first"
    box.log.write_text("y" * 101)
    box.clock.advance(10)
    box.rotator.pass_once()
    assert box.told() == b"2 0 0\n"


def test_the_file_that_conmon_is_making_is_left_alone(box: Box) -> None:
    (box.log.parent / "3.log.tmp").write_text("")
    box.log.write_text("x" * 101)
    box.rotator.pass_once()
    assert box.names() == ["3.log.20231114-221320", "3.log.tmp"]


def test_the_log_keeps_its_name_when_conmon_is_gone(box: Box, caplog: pytest.LogCaptureFixture) -> None:
    os.close(box.control)
    box.log.write_text("x" * 101)
    with caplog.at_level(logging.WARNING):
        box.rotator.pass_once()
        box.rotator.pass_once()
    assert box.names() == ["3.log"]
    assert len([r for r in caplog.records if "cannot rotate the log of container c" in r.message]) == 1


def test_ended_containers_are_not_rotated(box: Box) -> None:
    box.containers = [box.container(State.EXITED)]
    box.log.write_text("x" * 101)
    box.rotator.pass_once()
    assert box.names() == ["3.log"]


def test_logs_older_than_the_previous_instance_are_removed(box: Box) -> None:
    kept = ["2.log", "2.log.20231114-220000.gz", "3.log", "notes.txt", "x.log"]
    for name in (*kept, "0.log", "1.log", "1.log.20231114-220000.gz"):
        (box.log.parent / name).write_text("")
    box.rotator.pass_once()
    assert box.names() == kept


def test_a_log_that_is_not_named_by_a_number_prunes_nothing(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_text("")
    rotation.prune(tmp_path / "ctr.log")
    rotation.prune(tmp_path / "gone" / "5.log")
    assert (tmp_path / "0.log").exists()


def test_links_lead_to_the_logs_of_what_runs(tmp_path: Path) -> None:
    shown = tmp_path / "containers"
    box = Box(tmp_path, links_dir=str(shown))
    box.log.write_text("x")
    box.rotator.pass_once()
    name = "web_default_c-0123456789abcdef.log"
    assert os.readlink(shown / name) == str(box.log)
    (shown / "foreign.log").write_text("not a link")
    (shown / "other_default_c-1.log").symlink_to(tmp_path)
    box.containers = [box.container(State.EXITED)]
    box.rotator.pass_once()
    assert (shown / name).is_symlink(), "its log can still be read"
    box.log.unlink()
    box.rotator.pass_once()
    assert sorted(f.name for f in shown.iterdir()) == ["foreign.log", "other_default_c-1.log"]


def test_a_link_to_another_place_is_corrected(tmp_path: Path) -> None:
    box = Box(tmp_path, links_dir=str(tmp_path / "containers"))
    box.log.write_text("x")
    box.rotator.pass_once()
    link = tmp_path / "containers" / "web_default_c-0123456789abcdef.log"
    link.unlink()
    link.symlink_to("/nowhere")
    box.rotator.pass_once()
    assert os.readlink(link) == str(box.log)


def test_link_names_fit_into_a_file_name() -> None:
    name = links.link_name("p" * 250, "default", "c", "0" * 64)
    assert len(name) == 255
    assert name.endswith(".log")


def test_links_that_cannot_be_made_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        links.sync(str(tmp_path / "file"), ())
    assert "cannot keep the log links" in caplog.text


def test_one_failed_pass_does_not_end_rotation(caplog: pytest.LogCaptureFixture) -> None:
    passes: list[int] = []

    def pods() -> tuple[ObservedPod, ...]:
        passes.append(1)
        if len(passes) == 1:
            raise RuntimeError("a fault")
        ended.set()
        return ()

    ended = threading.Event()
    rotator = LogRotator(FakeClock(), pods, period=0.001)
    rotator.start()
    assert ended.wait(10)
    rotator.stop()
    assert "cannot rotate logs this time" in caplog.text


def test_the_thread_starts_and_stops(box: Box) -> None:
    box.rotator.start()
    box.rotator.stop()
