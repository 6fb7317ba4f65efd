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
class LinkReport:
    """The link to a cluster's API server.

    `since` (epoch seconds) = when `up` became what it is, 0 = never tried; `heartbeat` = the last
    renewal of the Lease; `pending` things are not told yet; `problems` what the server refuses.
    """

    server: str
    up: bool = False
    message: str = ""
    since: float = 0.0
    heartbeat: float = 0.0
    registered: bool = False
    pending: int = 0
    requests: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentReport:
    """The agent, its Podman and its sources; `notes` are further sentences an operator should read.

    `link` None = the box stands alone.
    """

    node: str
    version: str
    started_at: float = 0.0
    podman_ok: bool = True
    podman_message: str = ""
    podman_version: str = ""
    sources: tuple[SourceReport, ...] = ()
    notes: tuple[str, ...] = ()
    link: LinkReport | None = None
