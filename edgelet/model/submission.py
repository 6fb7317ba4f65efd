"""What comes of pods that are submitted through the API: shared words of the store and the server."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from .pod import Pod
from .problems import Problem


class Expect(enum.Enum):
    """What must be there before: POST wants nothing, PUT wants the pod, apply takes both."""

    ANY = "any"
    NEW = "new"
    EXISTING = "existing"


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one submitted pod: `verb` is kubectl's "created", "configured" or "unchanged"."""

    pod: Pod
    verb: str
    warnings: tuple[Problem, ...] = ()
