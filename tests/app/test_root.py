"""The lock of the root directory, where nothing can be written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from edgelet import errors
from edgelet.app import machine, root


def read_only(root_dir: str) -> int:
    try:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), f"{root_dir}/lock")
    except OSError as error:
        raise errors.StateError(f"cannot lock {root_dir}/lock: Read-only file system") from error


def test_a_root_that_was_used_before_is_locked_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = root.lock(str(tmp_path))
    with pytest.raises(errors.StateError, match="another edgelet runs with it"):
        root.lock(str(tmp_path))
    monkeypatch.setattr(machine, "lock", read_only)
    with pytest.raises(errors.StateError, match="another edgelet runs with it"):
        root.lock(str(tmp_path))
    os.close(first)
    os.close(root.lock(str(tmp_path)))
    assert "read-only file system" in caplog.text


def test_a_root_that_never_was_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "lock", read_only)
    with pytest.raises(errors.StateError, match="Read-only file system"):
        root.lock(str(tmp_path))
