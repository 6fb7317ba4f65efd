"""The lock of the root directory, where nothing can be written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from edgelet import errors
from edgelet.app import root


def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    really = os.open

    def refuse(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & (os.O_CREAT | os.O_RDWR):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return really(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse)


def test_a_root_that_was_used_before_is_locked_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = root.lock(str(tmp_path))
    with pytest.raises(errors.StateError, match="another edgelet runs with it"):
        root.lock(str(tmp_path))
    read_only(monkeypatch)
    with pytest.raises(errors.StateError, match="another edgelet runs with it"):
        root.lock(str(tmp_path))
    os.close(first)
    os.close(root.lock(str(tmp_path)))
    assert "read-only file system" in caplog.text


def test_a_root_that_never_was_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_only(monkeypatch)
    with pytest.raises(errors.StateError, match="Read-only file system"):
        root.lock(str(tmp_path))
