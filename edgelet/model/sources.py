"""What is known about each source of pods and about each file in it (`edgelet get sources`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileState:
    """One file in the manifest directory.

    `pods` are full pod names (`namespace/name`) that run because of this file.  `accepted` False
    with an `error` = the content is refused; `from_last_good` = what runs is an earlier version.
    `skipped` says why the file is not read at all ("" = it is).
    """

    file: str
    pods: tuple[str, ...] = ()
    accepted: bool = True
    warnings: tuple[str, ...] = ()
    error: str = ""
    from_last_good: bool = False
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class SourceState:
    """One source as a whole.

    `location` is the directory or URL (without credentials).  `ok` False = it cannot be read now,
    and `message` says why.  `read_at` / `tried_at` are the epoch seconds of the last successful
    and of the last reading (0 = never).  `from_last_good` = what it gives is not what it says now.
    `problems` are its errors, without warnings.
    """

    name: str
    location: str
    ok: bool = True
    message: str = ""
    pods: int = 0
    read_at: float = 0.0
    tried_at: float = 0.0
    from_last_good: bool = False
    problems: tuple[str, ...] = ()
    files: tuple[FileState, ...] = ()
