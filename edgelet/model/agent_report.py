"""How the agent itself is doing: what `edgelet status` and `edgelet get sources` show."""

from __future__ import annotations

from dataclasses import dataclass

from .sources import FileState


@dataclass(frozen=True, slots=True)
class SourceReport:
    """One source of pods.

    `location` is the directory or URL (no credentials in it); `ok` False = it cannot be read now,
    `message` then says why and what to do.  `problems` are sentences about single manifests.
    `read_at` and `tried_at` are the epoch seconds of the last successful and of the last reading (0 =
    never); `from_last_good` = some of what it gives is not what it says now.  `files` is for a directory.
    """

    name: str
    location: str
    ok: bool = True
    message: str = ""
    pods: int = 0
    read_at: float = 0.0
    problems: tuple[str, ...] = ()
    tried_at: float = 0.0
    from_last_good: bool = False
    files: tuple[FileState, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentReport:
    """The agent, its Podman and its sources; `notes` are further sentences an operator should read."""

    node: str
    version: str
    started_at: float = 0.0
    podman_ok: bool = True
    podman_message: str = ""
    podman_version: str = ""
    sources: tuple[SourceReport, ...] = ()
    notes: tuple[str, ...] = ()
