"""What metrics are made of, and the row of a table of metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...engine.counts import Row, Work
from ...engine.probe_tally import Tally
from ...engine.store import Entry
from ...model.agent_report import AgentReport
from ...model.usage import Report

Sample = tuple[tuple[str, ...], float]
"""Label values in the order of the metric's labels, and the value."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One look at everything.

    `calls` are to Podman by operation, `requests` to the API by (method, path, long-running), `responses` by code.
    """

    agent: AgentReport
    entries: tuple[Entry, ...] = ()
    probes: tuple[Tally, ...] = ()
    usage: Report = field(default_factory=Report)
    calls: tuple[Row, ...] = ()
    service: Mapping[str, Any] = field(default_factory=dict)
    cgroup_version: int = 2
    work: Work = field(default_factory=Work)
    requests: tuple[Row, ...] = ()
    responses: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """One row: `read` gives the samples (for a histogram: `Histogram` values by `histograms`)."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()
    read: Callable[[Facts], Iterable[Sample]] = lambda facts: ()
    histograms: Callable[[Facts], Iterable[Histogram]] | None = None


@dataclass(frozen=True, slots=True)
class Histogram:
    """Label values; counts per bucket (not cumulated, the last is +Inf); the sum."""

    labels: tuple[str, ...]
    buckets: tuple[int, ...]
    total: float
