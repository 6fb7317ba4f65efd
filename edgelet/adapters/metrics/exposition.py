"""Writes tables of metrics as text for Prometheus; imports prometheus-client, so import it late."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client import CONTENT_TYPE_LATEST, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from ...engine.probe_tally import BUCKETS
from .agent import AGENT, PROBES
from .facts import Facts, Metric
from .usage import CADVISOR, RESOURCE

CONTENT_TYPE = CONTENT_TYPE_LATEST

TABLES = {"": AGENT, "probes": PROBES, "resource": RESOURCE, "cadvisor": CADVISOR}
"""What comes after /metrics/ -> its metrics."""

_BOUNDS = (*(str(bound) for bound in BUCKETS), "+Inf")


def render(name: str, facts: Facts) -> bytes:
    """The answer to /metrics/NAME ("" = /metrics, which also tells of this process)."""
    return generate_latest(_Once(TABLES[name], facts, process=not name))


class _Once(Collector):
    """One answer: nothing is registered anywhere."""

    def __init__(self, table: Iterable[Metric], facts: Facts, process: bool) -> None:
        self._table, self._facts, self._process = table, facts, process

    def collect(self) -> Iterator[Family]:
        """All families."""
        if self._process:
            yield from ProcessCollector(registry=None).collect()
        for metric in self._table:
            yield _family(metric, self._facts)


def _family(metric: Metric, facts: Facts) -> Family:
    if metric.histograms is not None:
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for found in metric.histograms(facts):
            counts = accumulate(found.buckets)
            histogram.add_metric(found.labels, list(zip(_BOUNDS, counts, strict=True)), found.total)
        return histogram
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = kind(metric.name, metric.help, labels=metric.labels)
    for labels, value in metric.read(facts):
        family.add_metric(labels, value)
    return family
