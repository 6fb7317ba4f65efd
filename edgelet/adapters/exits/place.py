"""Where conmon writes exit files: told by any conmon that runs, and remembered for the time when none does."""

from __future__ import annotations

import logging
import os

from ... import durable
from ...core import conmon
from ...errors import StateError

log = logging.getLogger(__name__)


class Place:
    """`directory`: all containers of one Podman share it (``<Podman's tmpdir>/exits``).

    `path` is a file that outlives the agent, not the boot, "" = none: after a restart the only conmon of a
    container may have died, and its exit file would go where Podman does not look.
    """

    def __init__(self, path: str = "", default: str = conmon.DEFAULT_EXIT_DIR) -> None:
        self._path = path
        self.directory = _read(path) or default

    def learn(self, directory: str) -> None:
        """What a conmon has told, "" = nothing."""
        if not directory or directory == self.directory:
            return
        self.directory = directory
        if self._path:
            try:
                durable.write(self._path, os.fsencode(directory))
            except StateError as error:
                log.warning("%s", error)


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            found = os.fsdecode(file.read(4096))
    except OSError:
        return ""
    return found if os.path.isabs(found) and os.path.isdir(found) else ""
