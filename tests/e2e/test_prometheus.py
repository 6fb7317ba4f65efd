"""A real Prometheus scrapes the four paths, and the queries of the usual dashboards give right answers."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.agent import Agent
from tests.e2e.manifests import SERVE, container, exec_probe, pod
from tests.support.ports import free_port

PATHS = ("/metrics", "/metrics/probes", "/metrics/resource", "/metrics/cadvisor")
BUSY = "trap 'exit 0' TERM; while :; do :; done"


@contextlib.contextmanager
def prometheus(agent: Agent, port: int) -> Iterator[int]:
    """One that scrapes the agent every second; its own port."""
    directory = Path(agent.directory) / "prometheus"
    directory.mkdir()
    config = yaml.safe_load(agent.cli("kubeconfig").stdout)
    (directory / "token").write_text(config["users"][0]["user"]["token"])
    job = {
        "scheme": "https",
        "scrape_interval": "1s",
        "scrape_timeout": "1s",
        "authorization": {"credentials_file": str(directory / "token")},
        "tls_config": {"ca_file": str(agent.root / "pki/ca.pem")},
        "static_configs": [{"targets": [f"127.0.0.1:{port}"]}],
    }
    jobs = [{"job_name": path.rpartition("/")[2], "metrics_path": path, **job} for path in PATHS]
    (directory / "config.yml").write_text(json.dumps({"scrape_configs": jobs}))
    own = free_port()
    flags = [
        f"--config.file={directory}/config.yml",
        f"--storage.tsdb.path={directory}/data",
        f"--web.listen-address=127.0.0.1:{own}",
    ]
    with open(directory / "log", "wb") as log:
        process = subprocess.Popen(["prometheus", *flags], stdout=log, stderr=log, cwd=directory)
    try:
        yield own
    finally:
        process.terminate()
        process.wait(20)


def ask(port: int, path: str, **query: str) -> Any:
    """Prometheus' own API."""
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)["data"]


def value(port: int, query: str) -> float:
    """The one value of a query; NaN as long as there is none."""
    found = ask(port, "query", query=query)["result"]
    return float(found[0]["value"][1]) if len(found) == 1 else float("nan")


@pytest.mark.slow
def test_prometheus_scrapes_all_paths_and_dashboards_are_right(agent: Agent) -> None:
    if shutil.which("prometheus") is None:
        pytest.skip("needs prometheus (Debian package prometheus)")
    port = free_port()
    agent.start(f"--port={port}")
    limited = container("app", command=["sh", "-c", BUSY], resources={"limits": {"cpu": "200m"}})
    failing = container(
        "side", readinessProbe=exec_probe("true"), livenessProbe=exec_probe("test", "-e", "/dev/shm/ok")
    )
    failing["command"] = ["sh", "-c", f"[ -e /dev/shm/again ] && touch /dev/shm/ok; touch /dev/shm/again; {SERVE}"]
    agent.write(pod("busy", limited, failing))
    agent.wait("one restart", lambda: agent.restarts("busy", "side") == 1)
    agent.wait_ready("busy")
    with prometheus(agent, port) as own:
        agent.wait("all four to be scraped", lambda: _all_up(own))
        cpu = 'sum(rate(container_cpu_usage_seconds_total{job="cadvisor",pod="busy-n1",container="app"}[10s]))'
        agent.wait("a rate of CPU time", lambda: 0.02 < value(own, cpu) < 0.3)
        memory = 'sum(container_memory_working_set_bytes{job="resource",pod="busy-n1",container="app"})'
        assert 0 < value(own, memory) < 64 << 20
        assert value(own, 'edgelet_container_restarts_total{pod="busy-n1",container="side"}') == 1
        assert value(own, 'edgelet_container_restarts_total{pod="busy-n1",container="app"}') == 0
        assert value(own, 'edgelet_restarts_total{reason="LivenessProbe"}') == 1
        good = 'sum(prober_probe_total{pod="busy-n1",probe_type="Readiness",result="successful"})'
        agent.wait("results of probes", lambda: value(own, good) >= 1)
        bad = 'sum by (pod) (prober_probe_total{pod="busy-n1",probe_type="Liveness",result="failed"})'
        assert value(own, bad) >= 1
        # What dashboards of cAdvisor and of the kubelet ask.
        throttled = 'sum(rate(container_cpu_cfs_throttled_periods_total{pod="busy-n1",container="app"}[10s]))'
        agent.wait("throttling", lambda: value(own, throttled) > 0)
        told = 'container_memory_working_set_bytes{job="cadvisor",pod="busy-n1",container="app"}'
        assert 0 < value(own, told) < 64 << 20
        slow = "histogram_quantile(0.99, sum(kubelet_runtime_operations_duration_seconds_bucket) by (le))"
        agent.wait("latencies of Podman", lambda: not math.isnan(value(own, slow)))
        assert value(own, "kubelet_running_pods") == 1
        assert value(own, 'kubelet_running_containers{container_state="running"}') == 2


def _all_up(port: int) -> bool:
    targets = ask(port, "targets")["activeTargets"]
    assert not [t["lastError"] for t in targets if t["lastError"] and "refused" not in t["lastError"]]
    return [t["health"] for t in targets] == ["up"] * len(PATHS)
