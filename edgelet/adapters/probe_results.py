"""Keeps the verdicts of probes over a restart of the agent: one small file, on tmpfs, never synced.

It is worth nothing after a reboot, when every container is another one; so no disk is written.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping

from .. import errors

log = logging.getLogger(__name__)

MAX_BYTES = 1 << 20


class ProbeResults:
    """engine.prober.Results on the file `path`, best below the run directory."""

    def __init__(self, path: str) -> None:
        self._path = path

    def load(self) -> Mapping[str, tuple[bool, bool]]:
        """(started, ready) by container id; nothing when there is no such file, or a damaged one."""
        try:
            with open(self._path, "rb") as file:
                read = json.loads(file.read(MAX_BYTES))
            return {str(key): (started is True, ready is True) for key, (started, ready) in read.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            log.warning("cannot read %s, probes begin anew: %s", self._path, errors.cause(error))
            return {}

    def save(self, results: Mapping[str, tuple[bool, bool]]) -> None:
        """Replace them all; a failure is logged, it costs a moment of unreadiness after the next restart."""
        temporary = f"{self._path}.new"
        try:
            with open(temporary, "w", encoding="ascii") as file:
                json.dump(results, file)
            os.rename(temporary, self._path)
        except OSError as error:
            log.warning("cannot write %s: %s", self._path, errors.cause(error))
