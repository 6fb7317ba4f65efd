"""What /metrics and /metrics/probes tell: the kubelet's and prober's names where they have one, else edgelet_*."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from ...engine.counts import Row
from ...engine.store import Entry
from ...model.agent_report import LinkReport, SourceReport
from ...model.status import ContainerStatus, Running, Terminated, Waiting
from .facts import Facts, Histogram, Metric, Sample

_STATES: tuple[tuple[type[object], str], ...] = ((Running, "running"), (Terminated, "exited"), (Waiting, "created"))
_POD = ("namespace", "pod")


def _containers(facts: Facts) -> Iterable[tuple[Entry, ContainerStatus]]:
    for entry in facts.entries:
        for container in (*entry.status.init_containers, *entry.status.containers):
            yield entry, container


def _running_pods(facts: Facts) -> Iterable[Sample]:
    running = {e.pod.key for e, c in _containers(facts) if isinstance(c.state, Running)}
    yield (), len(running)


def _running_containers(facts: Facts) -> Iterable[Sample]:
    found = Counter(name for _, c in _containers(facts) for kind, name in _STATES if isinstance(c.state, kind))
    yield from (((name,), float(found[name])) for _, name in _STATES)


def _desired(facts: Facts) -> Iterable[Sample]:
    """By whether they are static, in the kubelet's spelling: "true" or nothing."""
    found = Counter("" if e.pod.source == "api" else "true" for e in facts.entries if not e.status.deleting)
    yield from (((static,), float(found[static])) for static in ("", "true"))


def _ready(facts: Facts) -> Iterable[Sample]:
    for entry in facts.entries:
        ready = any(c.type == "Ready" and c.status == "True" for c in entry.status.conditions)
        yield tuple(entry.pod.key), float(ready)


def _restarts(facts: Facts) -> Iterable[Sample]:
    for entry, container in _containers(facts):
        yield (*entry.pod.key, container.name), float(container.restart_count)


def _last_exit(facts: Facts) -> Iterable[Sample]:
    """The reason of the newest end of each container that has ended at all."""
    for entry, container in _containers(facts):
        last = container.state if isinstance(container.state, Terminated) else container.last_state
        if last is not None:
            yield (*entry.pod.key, container.name, last.reason), 1.0


def _sources(value: Callable[[SourceReport], float]) -> Callable[[Facts], Iterable[Sample]]:
    return lambda facts: (((s.name,), value(s)) for s in facts.agent.sources)


Rows = Callable[[Facts], Iterable[Row]]


def _counts(rows: Rows, *more: str) -> Callable[[Facts], Iterable[Sample]]:
    """How many of each; `more` are values of further labels."""
    return lambda facts: (((*r.labels, *more), float(r.count)) for r in rows(facts))


def _failures(rows: Rows) -> Callable[[Facts], Iterable[Sample]]:
    return lambda facts: ((r.labels, float(r.errors)) for r in rows(facts))


def _seconds(rows: Rows) -> Callable[[Facts], Iterable[Histogram]]:
    return lambda facts: (Histogram(r.labels, r.buckets, r.seconds) for r in rows(facts))


def _short_requests(facts: Facts) -> Iterable[Row]:
    """Those whose end does not lie with the client."""
    return (Row(r.labels[:2], r.count, r.errors, r.seconds, r.buckets) for r in facts.requests if not r.labels[2])


def _probe_results(facts: Facts) -> Iterable[Sample]:
    for tally in facts.probes:
        for result, count in sorted(tally.results.items()):
            yield (tally.container, *tally.key, tally.uid, tally.kind.value, result), float(count)


def _probe_seconds(facts: Facts) -> Iterable[Histogram]:
    for tally in facts.probes:
        labels = (tally.container, *tally.key, tally.kind.value)
        yield Histogram(labels, tuple(tally.buckets), tally.total_seconds)


def _link(value: Callable[[LinkReport], float]) -> Callable[[Facts], Iterable[Sample]]:
    """Nothing where no API server is configured."""
    return lambda facts: [((), value(facts.agent.link))] if facts.agent.link else []


AGENT = (
    Metric("kubelet_running_pods", "gauge", "Pods with a running container.", (), _running_pods),
    Metric("kubelet_running_containers", "gauge", "Containers by state.", ("container_state",), _running_containers),
    Metric("kubelet_desired_pods", "gauge", "Pods that are wanted.", ("static",), _desired),
    Metric("kubelet_active_pods", "gauge", "Pods that are wanted and taken in.", ("static",), _desired),
    Metric("kubelet_node_name", "gauge", "The node's name.", ("node",), lambda f: [((f.agent.node,), 1.0)]),
    Metric("kubelet_cgroup_version", "gauge", "1 or 2.", (), lambda f: [((), float(f.cgroup_version))]),
    Metric(
        "kubelet_runtime_operations_total",
        "counter",
        "Calls to Podman.",
        ("operation_type",),
        _counts(lambda f: f.calls),
    ),
    Metric(
        "kubelet_runtime_operations_errors_total",
        "counter",
        "Calls to Podman that failed.",
        ("operation_type",),
        _failures(lambda f: f.calls),
    ),
    Metric(
        "kubelet_runtime_operations_duration_seconds",
        "histogram",
        "How long calls to Podman took.",
        ("operation_type",),
        histograms=_seconds(lambda f: f.calls),
    ),
    Metric(
        "kubelet_http_requests_total",
        "counter",
        "Requests to the API; long_running are watches, followed logs, exec and attach.",
        ("method", "path", "long_running", "server_type"),
        _counts(lambda f: f.requests, "readwrite"),
    ),
    Metric(
        "kubelet_http_requests_duration_seconds",
        "histogram",
        "How long requests to the API took, long-running ones apart.",
        ("method", "path"),
        histograms=_seconds(_short_requests),
    ),
    Metric(
        "edgelet_http_responses_total",
        "counter",
        "Answers of the API by status code.",
        ("code",),
        _counts(lambda f: f.responses),
    ),
    Metric(
        "edgelet_reconcile_duration_seconds",
        "histogram",
        "How long a worker took to look at its pod and do what was to be done, Podman's time included.",
        histograms=_seconds(lambda f: f.work.steps.rows()),
    ),
    Metric(
        "edgelet_reconcile_wait_seconds",
        "histogram",
        "How long news of a pod (an exit, a manifest, a probe) waited until its worker took them up.",
        histograms=_seconds(lambda f: f.work.waited.rows()),
    ),
    Metric(
        "edgelet_actions_total",
        "counter",
        "What was done to pods.",
        ("verb",),
        _counts(lambda f: f.work.actions.rows()),
    ),
    Metric(
        "edgelet_action_errors_total",
        "counter",
        "What was tried and failed; it is tried again.",
        ("verb",),
        _failures(lambda f: f.work.actions.rows()),
    ),
    Metric(
        "edgelet_restarts_total",
        "counter",
        "Containers started again since the agent's start, by why: how the one before ended, or what ended it.",
        ("reason",),
        _counts(lambda f: f.work.restarts.rows()),
    ),
    Metric("edgelet_info", "gauge", "Version of the agent.", ("version",), lambda f: [((f.agent.version,), 1.0)]),
    Metric(
        "edgelet_start_time_seconds",
        "gauge",
        "When the agent started, seconds since the epoch.",
        (),
        lambda f: [((), f.agent.started_at)],
    ),
    Metric("edgelet_podman_up", "gauge", "Whether Podman answers.", (), lambda f: [((), float(f.agent.podman_ok))]),
    Metric(
        "edgelet_podman_service_starts_total",
        "counter",
        "Starts of edgelet's own Podman service.",
        (),
        lambda f: [((), float(f.service.get("starts", 0)))],
    ),
    Metric(
        "edgelet_podman_service_deaths_total",
        "counter",
        "Deaths of edgelet's own Podman service.",
        (),
        lambda f: [((), float(f.service.get("deaths", 0)))],
    ),
    Metric("edgelet_source_up", "gauge", "Whether a source can be read.", ("source",), _sources(lambda s: float(s.ok))),
    Metric("edgelet_source_pods", "gauge", "Pods that a source gives.", ("source",), _sources(lambda s: float(s.pods))),
    Metric(
        "edgelet_source_problems",
        "gauge",
        "Manifests of a source that cannot be used as they are.",
        ("source",),
        _sources(lambda s: float(len(s.problems))),
    ),
    Metric(
        "edgelet_source_last_read_timestamp_seconds",
        "gauge",
        "Last successful reading of a source, seconds since the epoch.",
        ("source",),
        _sources(lambda s: s.read_at),
    ),
    Metric("edgelet_link_up", "gauge", "Whether the API server answers.", (), _link(lambda r: float(r.up))),
    Metric(
        "edgelet_link_last_heartbeat_timestamp_seconds",
        "gauge",
        "Last renewal of the node's lease, seconds since the epoch.",
        (),
        _link(lambda r: r.heartbeat),
    ),
    Metric(
        "edgelet_link_pending",
        "gauge",
        "Mirror pods and events that the API server has not been told yet.",
        (),
        _link(lambda r: float(r.pending)),
    ),
    Metric(
        "edgelet_link_problems",
        "gauge",
        "Things that the API server refuses.",
        (),
        _link(lambda r: float(len(r.problems))),
    ),
    Metric(
        "edgelet_link_requests_total",
        "counter",
        "Requests to the API server.",
        (),
        _link(lambda r: float(r.requests)),
    ),
    Metric("edgelet_pod_ready", "gauge", "Whether a pod is Ready.", _POD, _ready),
    Metric(
        "edgelet_pod_held",
        "gauge",
        "Whether a person has stopped the pod.",
        _POD,
        lambda f: ((tuple(e.pod.key), float(e.status.held)) for e in f.entries),
    ),
    Metric(
        "edgelet_container_restarts_total",
        "counter",
        "Restarts of a container since its pod was made.",
        (*_POD, "container"),
        _restarts,
    ),
    Metric(
        "edgelet_container_last_terminated_reason",
        "gauge",
        "Why a container ended last; always 1.",
        (*_POD, "container", "reason"),
        _last_exit,
    ),
)

PROBES = (
    Metric(
        "prober_probe_total",
        "counter",
        "Probes of a container by result.",
        ("container", *_POD, "pod_uid", "probe_type", "result"),
        _probe_results,
    ),
    Metric(
        "prober_probe_duration_seconds",
        "histogram",
        "How long probes took that did not fail.",
        ("container", *_POD, "probe_type"),
        histograms=_probe_seconds,
    ),
)
