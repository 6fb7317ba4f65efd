"""Reading logs: tails, times, parts of lines, rotation while following, limits, which file is meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet import errors
from edgelet.adapters.logs import lines, reader
from edgelet.adapters.logs.reader import LogFile, LogReader
from edgelet.model.layout import Layout
from edgelet.model.logs import LogOptions
from edgelet.model.status import ContainerStatus, Running, Terminated, Waiting
from tests.support.serving import NOW, pod


def entry(text: str, second: int = 0, tag: str = "F", stream: str = "stdout") -> str:
    """One line of a log file."""
    return f"2026-11-30T14:00:{second:02d}.123456789+00:00 {stream} {tag} {text}\n"


def log(tmp_path: Path, *entries: str) -> Path:
    """A log file."""
    path = tmp_path / "0.log"
    path.write_text("".join(entries))
    return path


def everything(file: LogFile) -> bytes:
    """All there is for now."""
    out = b""
    while (piece := file.read()) is not None:
        out += piece
    return out


def read(path: Path, **options: object) -> str:
    """All of it with these options."""
    file = LogFile(str(path), LogOptions(**options))  # type: ignore[arg-type]
    try:
        return everything(file).decode()
    finally:
        file.close()


def test_lines_come_without_their_stamps_and_parts_are_joined(tmp_path: Path) -> None:
    path = log(tmp_path, entry("one"), entry("tw", tag="P"), entry("o"), entry("", stream="stderr"))
    assert read(path) == "one\ntwo\n\n"


def test_stamps_stand_once_before_each_line(tmp_path: Path) -> None:
    path = log(tmp_path, entry("tw", 1, "P"), entry("o", 2), entry("x", 3))
    assert read(path, timestamps=True) == (
        "2026-11-30T14:00:01.123456789+00:00 two\n2026-11-30T14:00:03.123456789+00:00 x\n"
    )


@pytest.mark.parametrize(("count", "expected"), [(0, ""), (1, "c\n"), (2, "b\nc\n"), (9, "a\nb\nc\n")])
def test_the_tail_is_so_many_lines(tmp_path: Path, count: int, expected: str) -> None:
    assert read(log(tmp_path, entry("a"), entry("b"), entry("c")), tail_lines=count) == expected


@given(st.lists(st.binary(max_size=30), max_size=40), st.integers(0, 45), st.booleans(), st.integers(1, 50))
def test_the_tail_starts_at_the_last_lines_whatever_the_block_size(
    texts: list[bytes], count: int, whole: bool, block: int
) -> None:
    parts = [text.replace(b"\n", b"") for text in texts]
    data = b"\n".join(parts) + (b"\n" if whole and parts else b"")
    file = os.memfd_create("log")
    before = reader.BLOCK
    reader.BLOCK = block
    try:
        os.write(file, data)
        start = reader.tail_start(file, count)
    finally:
        reader.BLOCK = before
        os.close(file)
    expected = _lines(data)
    assert data[start:] == b"".join(expected[max(0, len(expected) - count) :])


def _lines(data: bytes) -> list[bytes]:
    """Split after each newline only."""
    pieces = data.split(b"\n")
    return [piece + b"\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def test_since_leaves_out_what_is_older(tmp_path: Path) -> None:
    path = log(tmp_path, entry("a", 1), entry("b", 2), entry("c", 3))
    since = lines.moment(b"2026-11-30T14:00:02Z")
    assert read(path, since=since) == "b\nc\n"
    assert read(path, since=since, tail_lines=1) == "c\n"


def test_stamps_of_another_zone_are_understood(tmp_path: Path) -> None:
    path = log(tmp_path, "2026-11-30T15:30:00.5+01:30 stdout F east\n")
    assert read(path, since=lines.moment(b"2026-11-30T14:00:00Z")) == "east\n"
    assert read(path, since=lines.moment(b"2026-11-30T14:00:01Z")) == ""


def test_no_more_bytes_than_the_limit(tmp_path: Path) -> None:
    path = log(tmp_path, entry("abcdef"), entry("ghi"))
    assert read(path, limit_bytes=8) == "abcdef\ng"
    file = LogFile(str(path), LogOptions(limit_bytes=3))
    everything(file)
    assert file.full
    file.close()


def test_garbage_between_entries_is_left_out(tmp_path: Path) -> None:
    path = log(tmp_path, "\0\0\0\n", "torn\n", entry("good"), "2026 stdout\n")
    assert read(path) == "good\n"


def test_a_log_is_followed_over_a_rotation_without_loss(tmp_path: Path) -> None:
    path = log(tmp_path, entry("a"))
    file = LogFile(str(path), LogOptions(follow=True))
    assert everything(file) == b"a\n"
    with path.open("a") as old:
        path.rename(tmp_path / "0.log.20261130-140000")
        assert everything(file) == b""  # renamed, not made anew yet: conmon still writes to the old one
        old.write(entry("b"))
        old.flush()
        assert everything(file) == b"b\n"
        old.write(entry("c"))
    path.write_text(entry("d"))
    assert everything(file) == b"c\nd\n"
    file.close()


def test_a_log_that_was_cut_is_read_from_its_new_start(tmp_path: Path) -> None:
    path = log(tmp_path, entry("a long line before"))
    file = LogFile(str(path), LogOptions(follow=True))
    assert everything(file) == b"a long line before\n"
    path.write_text(entry("b"))
    assert everything(file) == b"b\n"
    file.close()


def test_a_line_is_shown_once_it_is_whole(tmp_path: Path) -> None:
    whole = entry("slow")
    path = log(tmp_path, whole[:40])
    file = LogFile(str(path), LogOptions(follow=True))
    assert everything(file) == b""
    with path.open("a") as more:
        more.write(whole[40:])
    assert everything(file) == b"slow\n"
    file.close()


def test_a_line_without_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"x" * (3 << 20) + b"\n" + entry("after").encode())
    assert read(path) == "after\n"


def test_a_missing_log_is_not_found_and_a_link_is_not_followed(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFound, match="not there"):
        LogFile(str(tmp_path / "0.log"), LogOptions())
    (tmp_path / "secret").write_text("x")
    (tmp_path / "0.log").symlink_to(tmp_path / "secret")
    with pytest.raises(errors.StateError, match="cannot read the log"):
        LogFile(str(tmp_path / "0.log"), LogOptions())


ENDED = Terminated(1, "Error", NOW, NOW)


@pytest.fixture
def container_dir(tmp_path: Path) -> Path:
    layout = Layout(str(tmp_path), str(tmp_path), str(tmp_path / "logs"))
    path = Path(layout.log_path("default", "web-edge1", "uid-web", "c", 3)).parent
    path.mkdir(parents=True)
    for number in (2, 3):
        (path / f"{number}.log").write_text("")
    return path


@pytest.mark.parametrize("known", [True, False], ids=["path known", "path from the layout"])
@pytest.mark.parametrize(
    ("state", "last", "previous", "file"),
    [
        (Running(NOW), None, False, "3.log"),
        (Running(NOW), ENDED, True, "2.log"),
        (ENDED, None, False, "3.log"),
        (ENDED, ENDED, True, "2.log"),
        (Waiting("CrashLoopBackOff"), ENDED, False, "3.log"),
        (Waiting("CrashLoopBackOff"), ENDED, True, "3.log"),
    ],
)
def test_the_right_instance_is_shown(
    tmp_path: Path, container_dir: Path, state: object, last: Terminated | None, previous: bool, file: str, known: bool
) -> None:
    log_path = str(container_dir / "3.log") if known else ""
    status = ContainerStatus("c", "i", state, last, restart_count=3, log_path=log_path)  # type: ignore[arg-type]
    logs = LogReader(Layout(str(tmp_path), str(tmp_path), str(tmp_path / "logs")))
    assert logs.locate(pod(), status, previous) == str(container_dir / file)


def test_an_instance_that_never_ran_leaves_the_log_to_the_one_before(tmp_path: Path, container_dir: Path) -> None:
    made = str(container_dir / "4.log")
    status = ContainerStatus("c", "i", Waiting("ContainerCreating"), ENDED, restart_count=4, log_path=made)
    logs = LogReader(Layout(str(tmp_path), str(tmp_path), str(tmp_path / "logs")))
    for previous in (False, True):
        assert logs.locate(pod(), status, previous) == str(container_dir / "3.log")


@pytest.mark.parametrize(
    ("state", "previous", "says"),
    [
        (Waiting("ImagePullBackOff"), False, 'container "c" in pod "web-edge1" is waiting to start: trying and'),
        (Waiting("PodInitializing"), False, "is waiting to start: PodInitializing"),
        (Running(NOW), True, 'previous terminated container "c" in pod "web-edge1" not found'),
    ],
)
def test_there_may_be_nothing_to_show(tmp_path: Path, state: object, previous: bool, says: str) -> None:
    logs = LogReader(Layout(str(tmp_path), str(tmp_path), str(tmp_path)))
    with pytest.raises(errors.NotFound, match=says):
        logs.locate(pod(), ContainerStatus("c", "i", state), previous)  # type: ignore[arg-type]
