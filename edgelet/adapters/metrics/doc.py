"""Writes docs/metrics.md: `python -m edgelet.adapters.metrics.doc > docs/metrics.md`."""

from __future__ import annotations

import sys

from .agent import AGENT, PROBES
from .usage import CADVISOR, RESOURCE

_HEAD = """# Metrics

Made from the tables of metrics by `python -m edgelet.adapters.metrics.doc`; do not edit by hand.

Each path wants a token or client certificate with the role view, see [access](access.md). A scrape asks
Podman nothing: use is read from the control groups (v1 and v2) and /proc. Labels are namespaces, pods,
containers, sources and interfaces of this box, so their number is bounded by the number of its pods.
Memory is what the kernel holds against a limit, shared memory and all; `podman stats` leaves that out on cgroup v2.

    scrape_configs:
      - job_name: edgelet
        scheme: https
        authorization: {credentials_file: /etc/prometheus/edgelet.token}
        tls_config: {ca_file: /etc/prometheus/edgelet-ca.pem}
        metrics_path: /metrics/cadvisor        # and /metrics, /metrics/resource, /metrics/probes
        static_configs: [{targets: ["127.0.0.1:10250"]}]
"""


def render() -> str:
    """The whole page."""
    parts = [_HEAD]
    for path, table in (
        ("/metrics", AGENT),
        ("/metrics/probes", PROBES),
        ("/metrics/resource", RESOURCE),
        ("/metrics/cadvisor", CADVISOR),
    ):
        rows = [f"| `{m.name}` | {m.kind} | {', '.join(f'`{x}`' for x in m.labels)} | {m.help} |" for m in table]
        parts.append("\n".join([f"## {path}\n", "| Name | Type | Labels | |", "|---|---|---|---|", *rows, ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(render())
