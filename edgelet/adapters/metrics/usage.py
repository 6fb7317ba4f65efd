"""What /metrics/resource and /metrics/cadvisor tell, in the kubelet's and cAdvisor's names, labels and units."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...model.usage import ContainerUsage, Interface, NodeUsage, PodUsage, Usage
from .facts import Facts, Metric, Sample

_POD = ("namespace", "pod")
_CONTAINER = ("container", *_POD)
_CADVISOR = ("container", "id", "image", "name", "namespace", "pod")

Read = Callable[[Facts], Iterable[Sample]]


def _node(value: Callable[[NodeUsage], float]) -> Read:
    return lambda facts: [((), value(facts.usage.node))]


def _pods(value: Callable[[Usage], float]) -> Read:
    return lambda facts: ((tuple(p.key), sum(value(c.usage) for c in p.containers)) for p in facts.usage.pods)


def _containers(value: Callable[[ContainerUsage], float | None]) -> Read:
    def read(facts: Facts) -> Iterable[Sample]:
        for pod in facts.usage.pods:
            for container in pod.containers:
                found = value(container)
                if found is not None:
                    yield (container.name, *pod.key), float(found)

    return read


def _cadvisor(value: Callable[[Usage], float], *more: str) -> Read:
    """Of each container, and summed under container="" of its pod; `more` are values of further labels."""

    def read(facts: Facts) -> Iterable[Sample]:
        for pod in facts.usage.pods:
            yield (*_pod_labels(pod), *more), float(sum(value(c.usage) for c in pod.containers))
            for container in pod.containers:
                yield (*_labels(pod, container), *more), float(value(container.usage))

    return read


def _each(value: Callable[[ContainerUsage], float]) -> Read:
    def read(facts: Facts) -> Iterable[Sample]:
        for pod in facts.usage.pods:
            for container in pod.containers:
                yield _labels(pod, container), float(value(container))

    return read


def _network(value: Callable[[Interface], int]) -> Read:
    def read(facts: Facts) -> Iterable[Sample]:
        for pod in facts.usage.pods:
            for interface in pod.interfaces:
                yield (*_pod_labels(pod), interface.name), float(value(interface))

    return read


def _labels(pod: PodUsage, container: ContainerUsage) -> tuple[str, ...]:
    return (container.name, f"/libpod-{container.id}", container.image, container.id, *pod.key)


def _pod_labels(pod: PodUsage) -> tuple[str, ...]:
    return ("", f"/pod-{pod.uid}", "", "", *pod.key)


def _gauge(name: str, text: str, value: Callable[[Usage], float]) -> Metric:
    return Metric(f"container_{name}", "gauge", text, _CADVISOR, _cadvisor(value))


def _counter(name: str, text: str, value: Callable[[Usage], float]) -> Metric:
    return Metric(f"container_{name}", "counter", text, _CADVISOR, _cadvisor(value))


def _traffic(name: str, text: str, value: Callable[[Interface], int]) -> Metric:
    return Metric(f"container_network_{name}_total", "counter", text, (*_CADVISOR, "interface"), _network(value))


RESOURCE = (
    Metric("node_cpu_usage_seconds_total", "counter", "CPU time of the node.", (), _node(lambda n: n.cpu)),
    Metric("node_memory_working_set_bytes", "gauge", "Memory in use.", (), _node(lambda n: n.working_set)),
    Metric("node_swap_usage_bytes", "gauge", "Swap in use.", (), _node(lambda n: n.swap)),
    Metric("pod_cpu_usage_seconds_total", "counter", "CPU time of a pod.", _POD, _pods(lambda u: u.cpu)),
    Metric("pod_memory_working_set_bytes", "gauge", "Working set of a pod.", _POD, _pods(lambda u: u.working_set)),
    Metric("pod_swap_usage_bytes", "gauge", "Swap of a pod.", _POD, _pods(lambda u: u.swap)),
    Metric(
        "container_cpu_usage_seconds_total",
        "counter",
        "CPU time of a container.",
        _CONTAINER,
        _containers(lambda c: c.usage.cpu),
    ),
    Metric(
        "container_memory_working_set_bytes",
        "gauge",
        "Working set of a container.",
        _CONTAINER,
        _containers(lambda c: c.usage.working_set),
    ),
    Metric(
        "container_swap_usage_bytes", "gauge", "Swap of a container.", _CONTAINER, _containers(lambda c: c.usage.swap)
    ),
    Metric(
        "container_start_time_seconds",
        "gauge",
        "Start of a container, seconds since the epoch.",
        _CONTAINER,
        _containers(lambda c: c.started_at),
    ),
    Metric(
        "resource_scrape_error",
        "gauge",
        "1 if the figures of a container could not be read.",
        (),
        lambda f: [((), float(f.usage.failed > 0))],
    ),
)

CADVISOR = (
    Metric(
        "container_cpu_usage_seconds_total",
        "counter",
        "CPU time.",
        (*_CADVISOR, "cpu"),
        _cadvisor(lambda u: u.cpu, "total"),
    ),
    _counter("cpu_user_seconds_total", "CPU time in user mode.", lambda u: u.cpu_user),
    _counter("cpu_system_seconds_total", "CPU time in the kernel.", lambda u: u.cpu_system),
    _counter("cpu_cfs_periods_total", "Periods in which a CPU limit was looked at.", lambda u: u.periods),
    _counter("cpu_cfs_throttled_periods_total", "Periods cut short by the limit.", lambda u: u.throttled_periods),
    _counter("cpu_cfs_throttled_seconds_total", "Time stopped by the limit.", lambda u: u.throttled),
    _gauge("memory_usage_bytes", "Memory, caches included.", lambda u: u.memory),
    _gauge("memory_working_set_bytes", "Memory less inactive caches of files.", lambda u: u.working_set),
    _gauge("memory_rss", "Anonymous memory in bytes.", lambda u: u.rss),
    _gauge("memory_cache", "Caches of files in bytes.", lambda u: u.cache),
    _gauge("memory_mapped_file", "Mapped files in bytes.", lambda u: u.mapped),
    _gauge("memory_swap", "Swap in bytes.", lambda u: u.swap),
    _gauge("memory_max_usage_bytes", "The most memory that was used.", lambda u: u.memory_peak),
    _counter("oom_events_total", "Processes killed for want of memory.", lambda u: u.oom_kills),
    _gauge("processes", "Processes and threads.", lambda u: u.processes),
    _gauge("spec_memory_limit_bytes", "Limit of memory; 0 = none.", lambda u: u.memory_limit or 0),
    Metric(
        "container_start_time_seconds",
        "gauge",
        "Start, seconds since the epoch.",
        _CADVISOR,
        _each(lambda c: c.started_at),
    ),
    Metric("container_last_seen", "gauge", "When these figures were read.", _CADVISOR, _each(lambda c: c.at)),
    _traffic("receive_bytes", "Bytes received.", lambda i: i.rx_bytes),
    _traffic("receive_packets", "Packets received.", lambda i: i.rx_packets),
    _traffic("receive_errors", "Errors while receiving.", lambda i: i.rx_errors),
    _traffic("receive_packets_dropped", "Packets dropped while receiving.", lambda i: i.rx_dropped),
    _traffic("transmit_bytes", "Bytes sent.", lambda i: i.tx_bytes),
    _traffic("transmit_packets", "Packets sent.", lambda i: i.tx_packets),
    _traffic("transmit_errors", "Errors while sending.", lambda i: i.tx_errors),
    _traffic("transmit_packets_dropped", "Packets dropped while sending.", lambda i: i.tx_dropped),
    Metric("machine_memory_bytes", "gauge", "Memory of the machine.", (), _node(lambda n: n.memory_total)),
    Metric("machine_swap_bytes", "gauge", "Swap of the machine.", (), _node(lambda n: n.swap_total)),
)
