"""Why a pod that is wanted may not begin now: refused on this node, or waiting for another pod."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gate:
    """`reason` and `message` as the pod's status and an event say them.

    `refused` = the node does not take the pod (phase Failed, semantics 1.7.3); else it waits (Pending).
    `ends` = it may not even go on: what runs of it is ended (1.7.4).
    `until` (monotonic seconds) = it is open from then on whatever has happened (None = never by itself).
    """

    reason: str
    message: str
    refused: bool = True
    until: float | None = None
    ends: bool = False

    def closed(self, now: float) -> bool:
        """Whether the pod may still not begin."""
        return self.until is None or now < self.until
