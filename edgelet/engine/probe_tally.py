"""Counts tries and their durations for the metrics of semantics 4.9, one tally per probe of a pod."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

from ..core.probes import Kind, Outcome
from ..model.pod import PodKey

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds, as Prometheus' defaults; the last count of a tally is +Inf."""


@dataclass(slots=True)
class Tally:
    """One probe: results by the kubelet's word, durations (seconds) of those that did not fail."""

    key: PodKey
    uid: str
    container: str
    kind: Kind
    results: dict[str, int] = field(default_factory=dict)
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total_seconds: float = 0.0

    def copy(self) -> Tally:
        """A value that does not change any more."""
        return Tally(
            self.key, self.uid, self.container, self.kind, dict(self.results), list(self.buckets), self.total_seconds
        )


class Tallies:
    """All tallies; bounded, because those of a pod go with the pod. Not thread-safe."""

    def __init__(self) -> None:
        self._by_pod: dict[PodKey, dict[tuple[str, str, Kind], Tally]] = {}

    def add(self, key: PodKey, uid: str, container: str, kind: Kind, outcome: Outcome, seconds: float) -> None:
        """Count one try that took that long."""
        tallies = self._by_pod.setdefault(key, {})
        if any(old != uid for old, _, _ in tallies):
            tallies.clear()
        tally = tallies.setdefault((uid, container, kind), Tally(key, uid, container, kind))
        tally.results[outcome.value] = tally.results.get(outcome.value, 0) + 1
        if outcome is not Outcome.FAILURE:
            tally.buckets[bisect.bisect_left(BUCKETS, seconds)] += 1
            tally.total_seconds += seconds

    def forget(self, key: PodKey) -> None:
        """The pod is gone."""
        self._by_pod.pop(key, None)

    def all(self) -> tuple[Tally, ...]:
        """Copies of all."""
        return tuple(t.copy() for tallies in self._by_pod.values() for t in tallies.values())
