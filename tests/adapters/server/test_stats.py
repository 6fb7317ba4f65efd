"""What is used, in all its forms, from one look."""

from __future__ import annotations

import http.client
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from edgelet.adapters.metrics import doc, exposition
from edgelet.adapters.metrics.facts import Facts
from edgelet.cli.client import ApiFailure
from edgelet.cli.main import main
from edgelet.core.probes import Kind
from edgelet.engine.counts import Row, Work
from edgelet.engine.probe_tally import BUCKETS, Tally
from edgelet.engine.store import Entry
from edgelet.model.agent_report import AgentReport, SourceReport
from edgelet.model.pod import PodKey
from edgelet.model.usage import ContainerUsage, Interface, NodeUsage, PodUsage, Report, Usage
from tests.adapters.server.test_abuse import raw
from tests.support.serving import NOW, FakeUsages, Rig, pod, running, serving

KEY = PodKey("default", "web-edge1")
USAGE = Usage(cpu=2.5, memory=9 << 20, working_set=8 << 20, rss=7 << 20, memory_limit=16 << 20)
CONTAINER = ContainerUsage("c", "abc", "localhost/bb:1", NOW - 90, NOW, USAGE, 0.25)
NODE = NodeUsage(NOW, NOW - 900, 100.0, 0.5, 4 << 30, 1 << 30, 3 << 30, 1 << 29, disk=(100, 40, 10, 5))
REPORT = Report(
    NODE, (PodUsage(KEY, "uid-web", NOW - 100, (CONTAINER,), (Interface("eth0", 1, 2, 3, 4, 5, 6, 7, 8),)),)
)
TALLY = Tally(KEY, "uid-web", "c", Kind.READINESS, {"successful": 3, "failed": 1}, [3, *[0] * len(BUCKETS)], 0.01)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with serving(tmp_path, usages=FakeUsages(REPORT)) as rig:
        rig.store.put(pod(app="web"), running(restarts=2))
        yield rig


def text(rig: Rig, path: str) -> tuple[str, str]:
    """Media type and text."""
    connection = http.client.HTTPConnection("localhost", timeout=20)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(rig.socket)
    connection.request("GET", path)
    response = connection.getresponse()
    found = response.read().decode()
    connection.close()
    return response.headers["Content-Type"], found


def samples(written: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Samples by name, read by Prometheus' own parser."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(written):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found


def work() -> Work:
    """Two restarts, one of them after a failed try."""
    found = Work()
    found.steps.add(seconds=0.2)
    found.waited.add(seconds=0.001)
    found.restarts.add("OOMKilled")
    found.restarts.add("LivenessProbe")
    found.actions.add("start container", seconds=0.1)
    found.actions.add("start container", seconds=0.1, failed=True)
    return found


def facts() -> Facts:
    """One of everything."""
    source = SourceReport("file", "/etc/kubernetes/manifests", pods=1, read_at=NOW, problems=("a.yaml: bad",))
    return Facts(
        AgentReport("edge1", "0.1.0", NOW, sources=(source,)),
        (Entry(pod(), running(restarts=2), 1, NOW),),
        (TALLY,),
        REPORT,
        (Row(("list",), 5, 1, 0.5, (5, *[0] * len(BUCKETS))),),
        {"starts": 2, "deaths": 1},
        work=work(),
        requests=(Row(("GET", "pods", ""), 2, 0, 0.1, (2, *[0] * len(BUCKETS))), Row(("GET", "pods", "true"), 1)),
        responses=(Row(("200",), 3),),
    )


def test_every_path_is_told_in_prometheus_own_form(rig: Rig) -> None:
    for path in ("/metrics", "/metrics/probes", "/metrics/resource", "/metrics/cadvisor"):
        kind, written = text(rig, path)
        assert kind.startswith("text/plain; version=")
        assert list(text_string_to_metric_families(written))


def test_the_kubelets_names_are_kept() -> None:
    told = samples(exposition.render("", facts()).decode())
    assert told["kubelet_running_pods"] == [({}, 1.0)]
    assert ({"container_state": "running"}, 1.0) in told["kubelet_running_containers"]
    assert told["kubelet_runtime_operations_total"] == [({"operation_type": "list"}, 5.0)]
    assert told["kubelet_runtime_operations_errors_total"] == [({"operation_type": "list"}, 1.0)]
    assert told["kubelet_runtime_operations_duration_seconds_count"] == [({"operation_type": "list"}, 5.0)]
    assert told["edgelet_container_restarts_total"][0][1] == 2.0
    assert told["edgelet_source_problems"] == [({"source": "file"}, 1.0)]
    assert told["edgelet_podman_service_deaths_total"] == [({}, 1.0)]
    assert told["edgelet_restarts_total"] == [({"reason": "LivenessProbe"}, 1.0), ({"reason": "OOMKilled"}, 1.0)]
    assert told["edgelet_actions_total"] == [({"verb": "start container"}, 2.0)]
    assert told["edgelet_action_errors_total"] == [({"verb": "start container"}, 1.0)]
    assert told["edgelet_reconcile_duration_seconds_sum"] == [({}, 0.2)]
    assert told["edgelet_reconcile_wait_seconds_count"] == [({}, 1.0)]
    asked = {"method": "GET", "path": "pods", "server_type": "readwrite"}
    assert ({**asked, "long_running": "true"}, 1.0) in told["kubelet_http_requests_total"]
    assert told["kubelet_http_requests_duration_seconds_count"] == [({"method": "GET", "path": "pods"}, 2.0)]
    assert told["edgelet_http_responses_total"] == [({"code": "200"}, 3.0)]
    assert "process_resident_memory_bytes" in told


def test_requests_are_counted_by_kind_and_never_by_what_a_client_makes_up(rig: Rig) -> None:
    rig.client.get("/api/v1/pods")
    for path in ("/made/up", "/api/v1/namespaces/x/pods/made-up"):
        with pytest.raises(ApiFailure):
            rig.client.get(path)
    for number in range(3):
        raw(rig, f"X{number} / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    wanted = {("GET", "pods", ""): 2, ("GET", "paths", ""): 1, ("other", "paths", ""): 3}
    until = time.monotonic() + 20  # counted once the answer is out
    while {row.labels: row.count for row in rig.services.requests.rows()} != wanted:
        assert time.monotonic() < until, rig.services.requests.rows()
        time.sleep(0.02)
    assert {row.labels for row in rig.services.responses.rows()} == {("200",), ("404",), ("405",)}


def test_probe_results_carry_the_probers_labels() -> None:
    told = samples(exposition.render("probes", facts()).decode())
    labels = {"container": "c", "namespace": "default", "pod": "web-edge1", "probe_type": "Readiness"}
    assert ({**labels, "pod_uid": "uid-web", "result": "successful"}, 3.0) in told["prober_probe_total"]
    assert told["prober_probe_duration_seconds_count"] == [(labels, 3.0)]


def test_use_is_told_as_the_kubelet_and_cadvisor_tell_it() -> None:
    resource = samples(exposition.render("resource", facts()).decode())
    place = {"namespace": "default", "pod": "web-edge1"}
    assert resource["container_cpu_usage_seconds_total"] == [({"container": "c", **place}, 2.5)]
    assert resource["pod_memory_working_set_bytes"] == [(place, float(8 << 20))]
    assert resource["node_cpu_usage_seconds_total"] == [({}, 100.0)]
    assert resource["resource_scrape_error"] == [({}, 0.0)]
    cadvisor = samples(exposition.render("cadvisor", facts()).decode())
    cpu = [value for labels, value in cadvisor["container_cpu_usage_seconds_total"] if labels["container"] == "c"]
    assert cpu == [2.5]
    assert cadvisor["container_network_receive_bytes_total"][0][0]["interface"] == "eth0"
    assert cadvisor["machine_memory_bytes"] == [({}, float(4 << 30))]


@pytest.mark.parametrize("name", ["", "probes", "resource", "cadvisor"])
def test_promtool_finds_nothing_to_complain_about(name: str) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("needs promtool (Debian package prometheus)")
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=exposition.render(name, facts()), capture_output=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_the_page_of_metrics_is_the_codes() -> None:
    page = Path(__file__).parents[3] / "docs/metrics.md"
    assert page.read_text() == doc.render()


def test_the_summary_has_the_kubelets_shape(rig: Rig) -> None:
    found = rig.client.get("/stats/summary")
    node, one = found["node"], found["pods"][0]
    assert (node["nodeName"], node["cpu"]["usageNanoCores"]) == ("edge1", 500_000_000)
    assert node["fs"] == {**node["fs"], "availableBytes": 40, "capacityBytes": 100, "usedBytes": 60, "inodesUsed": 5}
    assert one["podRef"] == {"name": "web-edge1", "namespace": "default", "uid": "uid-web"}
    assert one["containers"][0]["cpu"]["usageCoreNanoSeconds"] == 2_500_000_000
    assert one["containers"][0]["memory"]["availableBytes"] == 8 << 20
    assert one["network"]["rxBytes"] == 1
    brief = rig.client.get("/stats/summary", {"only_cpu_and_memory": "true"})
    assert "fs" not in brief["node"]
    assert "network" not in brief["pods"][0]


def test_metrics_k8s_io_answers_top(rig: Rig) -> None:
    base = "/apis/metrics.k8s.io/v1beta1"
    assert rig.client.get(f"{base}/nodes/edge1")["usage"] == {"cpu": "500000000n", "memory": f"{1 << 20}Ki"}
    listed = rig.client.get(f"{base}/pods")["items"]
    assert listed[0]["containers"] == [{"name": "c", "usage": {"cpu": "250000000n", "memory": "8192Ki"}}]
    assert listed[0]["metadata"]["labels"] == {"app": "web"}
    assert rig.client.get(f"{base}/namespaces/other/pods")["items"] == []
    assert rig.client.get(f"{base}/pods", {"labelSelector": "app=db"})["items"] == []
    assert rig.client.get(f"{base}/namespaces/default/pods/web-edge1")["kind"] == "PodMetrics"
    with pytest.raises(ApiFailure, match="NotFound"):
        rig.client.get(f"{base}/namespaces/default/pods/none")
    with pytest.raises(ApiFailure, match="NotFound"):
        rig.client.get(f"{base}/nodes/none")


def test_top_prints_it(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--socket", rig.socket, "top", "pods"]) == 0
    assert [r.split() for r in capsys.readouterr().out.splitlines()] == [
        ["NAME", "CPU(cores)", "MEMORY(bytes)"],
        ["web-edge1", "250m", "8Mi"],
    ]
    main(["--socket", rig.socket, "top", "pod", "web", "--containers", "--no-headers"])
    assert capsys.readouterr().out.split() == ["web-edge1", "c", "250m", "8Mi"]
    main(["--socket", rig.socket, "top", "node", "--no-headers"])
    assert capsys.readouterr().out.split() == ["edge1", "500m", "12%", "1024Mi", "25%"]
