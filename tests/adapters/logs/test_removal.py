"""The logs of a pod go with it, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgelet import errors
from edgelet.adapters.logs import removal


def test_only_the_logs_of_that_pod_are_removed(tmp_path: Path) -> None:
    for name in ("default_web_a", "default_web_b", "default_db_ab", "a", "x_a"):
        (tmp_path / name / "c").mkdir(parents=True)
        (tmp_path / name / "c" / "0.log").write_text("")
    for _ in range(2):
        removal.remove(str(tmp_path), "a")
    assert sorted(d.name for d in tmp_path.iterdir()) == ["a", "default_db_ab", "default_web_b", "x_a"]


def test_no_uid_and_no_directory_remove_nothing(tmp_path: Path) -> None:
    (tmp_path / "default_web_").mkdir()
    removal.remove(str(tmp_path), "")
    removal.remove(str(tmp_path / "nowhere"), "a")
    assert (tmp_path / "default_web_").exists()


def test_what_cannot_be_removed_is_named(tmp_path: Path) -> None:
    (tmp_path / "default_web_a").write_text("a file, not a directory")
    with pytest.raises(errors.StateError, match="cannot delete the logs of pod a"):
        removal.remove(str(tmp_path), "a")
