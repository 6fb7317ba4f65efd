"""Termination messages read from a file or from a log (semantics 3.14.2, 3.14.3)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from edgelet.adapters.logs import last_words
from edgelet.model.observed import ObservedContainer, State

FALLBACK = "FallbackToLogsOnError"


@pytest.fixture
def ended(tmp_path: Path) -> ObservedContainer:
    """A container that has failed, with a file for its message (not there yet) and a log of two lines."""
    (tmp_path / "0.log").write_bytes(
        b"2026-01-01T00:00:00.000000001Z stdout F one\n2026-01-01T00:00:00.000000002Z stderr P two\n"
    )
    return ObservedContainer(
        id="c",
        name="app",
        state=State.EXITED,
        exit_code=1,
        log_path=str(tmp_path / "0.log"),
        message_file=str(tmp_path / "message"),
    )


def test_a_file_is_the_message(ended: ObservedContainer) -> None:
    Path(ended.message_file).write_bytes(b"bye\n")
    assert last_words.read(ended) == "bye\n"
    assert last_words.read(replace(ended, message_policy=FALLBACK)) == "bye\n"


def test_the_last_4096_bytes_count_and_broken_text_is_shown_as_such(ended: ObservedContainer) -> None:
    Path(ended.message_file).write_bytes(b"a" * 5000 + b"\xff")
    assert last_words.read(ended) == "a" * 4095 + "\N{REPLACEMENT CHARACTER}"


def test_without_a_file_there_is_none(ended: ObservedContainer) -> None:
    assert last_words.read(ended) == ""
    assert last_words.read(replace(ended, message_file="")) == ""


@pytest.mark.parametrize("code", [1, None])
def test_the_log_stands_in_after_an_error(ended: ObservedContainer, code: int | None) -> None:
    assert last_words.read(replace(ended, message_policy=FALLBACK, exit_code=code)) == "one\ntwo"
    assert last_words.read(replace(ended, message_policy=FALLBACK, message_file="", exit_code=code)) == "one\ntwo"


def test_the_log_does_not_stand_in_after_success(ended: ObservedContainer) -> None:
    assert last_words.read(replace(ended, message_policy=FALLBACK, exit_code=0)) == ""


def test_80_lines_and_2048_bytes_of_a_log(ended: ObservedContainer) -> None:
    entry = b"2026-01-01T00:00:00.000000001Z stdout F %03d %s\n"
    seen = replace(ended, message_policy=FALLBACK)
    Path(ended.log_path).write_bytes(b"".join(entry % (n, b"") for n in range(200)))
    assert last_words.read(seen) == "".join(f"{n:03} \n" for n in range(120, 200))
    Path(ended.log_path).write_bytes(b"".join(entry % (n, b"x" * 95) for n in range(200)))
    assert last_words.read(seen) == "".join(f"{n:03} {'x' * 95}\n" for n in range(179, 200))[-2048:]


def test_trouble_in_reading_is_told_in_place_of_the_message(ended: ObservedContainer) -> None:
    os.mkdir(ended.message_file)
    assert last_words.read(ended) == f"Error on reading termination log {ended.message_file}: Is a directory"
    gone = replace(ended, message_file="", message_policy=FALLBACK, log_path="/nowhere/0.log")
    assert last_words.read(gone).startswith("Error on reading termination message from logs: ")


def test_a_pipe_or_a_link_in_its_place_is_not_waited_for_nor_followed(ended: ObservedContainer) -> None:
    os.mkfifo(ended.message_file)
    assert last_words.read(ended) == f"Error on reading termination log {ended.message_file}: Illegal seek"
    os.unlink(ended.message_file)
    os.symlink("/etc/passwd", ended.message_file)
    assert "Too many levels of symbolic links" in last_words.read(ended)
