"""Verdicts kept over a restart of the agent: read back as written, and harmless when damaged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgelet.adapters.probe_results import ProbeResults


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "probes.json"
    ProbeResults(str(path)).save({"a": (True, False), "b": (True, True)})
    assert ProbeResults(str(path)).load() == {"a": (True, False), "b": (True, True)}
    ProbeResults(str(path)).save({})
    assert ProbeResults(str(path)).load() == {}
    assert os.listdir(tmp_path) == ["probes.json"]


def test_nothing_saved_is_nothing_known(tmp_path: Path) -> None:
    assert ProbeResults(str(tmp_path / "none")).load() == {}


@pytest.mark.parametrize(
    "text", [b"", b"[]", b'{"a": 1}', b'{"a": [1]}', b"{\xff", b'{"a": [true, true]', b"null", b"[" * 100_000]
)
def test_a_damaged_file_is_nothing_known(tmp_path: Path, text: bytes, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "p").write_bytes(text)
    assert ProbeResults(str(tmp_path / "p")).load() == {}
    assert "probes begin anew" in caplog.text


def test_only_true_is_true(tmp_path: Path) -> None:
    (tmp_path / "p").write_text('{"a": ["yes", 1]}')
    assert ProbeResults(str(tmp_path / "p")).load() == {"a": (False, False)}


def test_a_directory_that_is_gone_is_told_and_no_more(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ProbeResults(str(tmp_path / "gone" / "p")).save({})
    assert "cannot write" in caplog.text
