"""Rows about weight: memory, CPU, bytes written, and the planner's own cost."""

from __future__ import annotations

import http.client
import json
import os
import resource
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator

from edgelet.engine import observer

from .report import Row, median, spread
from .rig import Rig, pod
from .timing import probed

SETTLE = 12.0
"""Seconds after which the agent's own Podman service has idled out."""
QUIET = 25.0
"""Seconds after which an agent that nobody asks has given back what a request took: a round of its main loop."""
TICKS = os.sysconf("SC_CLK_TCK")


def pss(pid: int) -> float:
    """Proportional set size in MB."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024


def cpu(pid: int) -> float:
    """CPU seconds of a process and of all children that it has reaped."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return sum(int(x) for x in fields[11:15]) / TICKS


def services(rig: Rig) -> list[int]:
    """Pids of Podman services that the agent has started."""
    found = []
    for pid in (int(p) for p in os.listdir("/proc") if p.isdigit()):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace")
        except OSError:
            continue
        if "system\0service" in words and f"{rig.home}/run/" in words:
            found.append(pid)
    return found


def memory(rig: Rig, runs: int) -> Iterator[Row]:
    """PSS of the agent at 10 and 50 pods; its Podman service must be gone when idle."""
    for count, budget in ((10, 40.0), (50, 44.0)):
        found = [_memory_of(rig, count) for _ in range(runs)]
        own, both = [agent for agent, _, _ in found], [agent + service for agent, service, _ in found]
        asked = [agent for _, _, agent in found]
        yield Row(f"memory at {count} pods: agent (PSS)", median(own), budget, "MB", f"seen {spread(own)}")
        how = f"over TLS, every kind; seen {spread(asked)}"
        yield Row(f"memory at {count} pods: agent, after requests", median(asked), budget, "MB", how)
        yield Row(f"memory at {count} pods: agent and Podman service, idle", median(both), 57.0, "MB")


PATHS = (
    *("/healthz", "/pods", "/stats/summary", "/metrics", "/metrics/probes", "/metrics/resource", "/metrics/cadvisor"),
    *("/api", "/apis", "/openapi/v3/api/v1", "/api/v1/pods", "/api/v1/nodes", "/api/v1/events"),
    *("/apis/metrics.k8s.io/v1beta1/pods", "/api/v1/pods?watch=1&timeoutSeconds=1"),
)


def _ask(rig: Rig) -> None:
    """Requests of every kind, as kubectl and Prometheus send them."""
    with open(rig.home / "root/pki/tokens.csv", encoding="ascii") as file:
        token = file.readline().partition(",")[0]
    anybody = ssl._create_unverified_context()
    for path in PATHS * 2:
        connection = http.client.HTTPSConnection("127.0.0.1", rig.port, context=anybody, timeout=60)
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        if answer.status != 200:
            raise RuntimeError(f"GET {path}: {answer.status}")


def _memory_of(rig: Rig, count: int) -> tuple[float, float, float]:
    """(agent, its Podman services, agent after requests) of an agent that has started that many pods itself.

    The port is open all the time.
    """
    rig.start_agent()
    for i in range(count):
        rig.put(f"m{i}.yaml", probed(f"bench-m{i}", rig) if i < 10 else pod(f"bench-m{i}", rig, grace=0))
    rig.wait(lambda: rig.ready() == count, 120)
    time.sleep(SETTLE)
    own, service = pss(rig.agent_pid), sum(pss(p) for p in services(rig))
    _ask(rig)
    time.sleep(QUIET)
    found = own, service, pss(rig.agent_pid)
    rig.clear()
    rig.stop_agent()
    return found


def idle_cpu(rig: Rig, runs: int) -> Iterator[Row]:
    """CPU seconds per minute with 10 pods: without probes, and with exec + HTTP every 10 s."""
    rig.start_agent()
    for i in range(10):
        rig.put(f"i{i}.yaml", pod(f"bench-i{i}", rig, grace=0))
    rig.wait(lambda: rig.ready() == 10)
    time.sleep(SETTLE)
    yield _cpu_row("CPU per minute, 10 pods without probes", rig, runs, 0.15, "")
    rig.clear()
    for i in range(10):
        rig.put(f"j{i}.yaml", probed(f"bench-j{i}", rig))
    rig.wait(lambda: rig.ready() == 10)
    time.sleep(SETTLE)
    bare = _bare_exec_cpu(rig, max(runs, 20))
    budget = 0.15 + 1.15 * 60 * bare
    how = f"0.15 + 1.15x of 60 bare execs at {bare * 1000:.1f} ms"
    yield _cpu_row("CPU per minute, 10 pods, exec + HTTP every 10 s", rig, runs, budget, how)
    rig.clear()
    rig.stop_agent()


def _cpu_row(name: str, rig: Rig, runs: int, budget: float, how: str) -> Row:
    """The median over that many minutes, one after the other."""
    found = []
    for _ in range(runs):
        before = cpu(rig.agent_pid)
        time.sleep(60)
        found.append(cpu(rig.agent_pid) - before)
    return Row(name, median(found), budget, "s", f"{how}; seen {spread(found)}".removeprefix("; "))


def _bare_exec_cpu(rig: Rig, runs: int) -> float:
    """CPU seconds of one `runc exec` of `true`, by the shell's own means."""
    container = rig.containers()[0]["Id"]
    inspected = rig.api.get(f"containers/{container}/json")
    with open(inspected["OCIConfigPath"], encoding="utf-8") as file:
        process = json.load(file)["process"]
    process.update(args=["true"], terminal=False)
    with tempfile.NamedTemporaryFile("w", suffix=".json", dir=rig.home) as spec:
        json.dump(process, spec)
        spec.flush()
        found = []
        for _ in range(runs):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([inspected["OCIRuntime"], "exec", "--process", spec.name, container], check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return median(found)


def exec_probe(rig: Rig, runs: int) -> Iterator[Row]:
    """CPU of one exec probe through the agent's own runner beside a bare exec of the OCI runtime."""
    from edgelet import ports
    from edgelet.adapters.runtime_exec import OciExec
    from edgelet.model.pod import Container, PodKey

    rig.bare("bench-x", True)
    inspected = rig.api.get("containers/bench-x-c/json")
    target = ports.Target(
        key=PodKey("default", "bench-x"),
        uid="x",
        container=Container("c", "x"),
        container_id=inspected["Id"],
        pid=inspected["State"]["Pid"],
        oci_config=inspected["OCIConfigPath"],
        ip="",
        started_mono=0.0,
    )
    runner = OciExec(str(rig.home / "exec"))
    ours = []
    for _ in range(max(runs, 20)):
        before = _whole()
        running = runner.begin(target, ("true",))
        _until_readable(running.fileno())
        running.finish()
        ours.append(_whole() - before)
    bare = _bare_for(rig, inspected, max(runs, 20))
    rig.remove("bench-x")
    limit = max(1.15 * bare, bare + 0.003)
    yield Row(
        "one exec probe: CPU", median(ours) * 1000, limit * 1000, "ms", f"1.15x of {bare * 1000:.1f} ms or + 3 ms"
    )


def _whole() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _until_readable(descriptor: int) -> None:
    import select

    select.select([descriptor], [], [], 10)


def _bare_for(rig: Rig, inspected: dict[str, object], runs: int) -> float:
    with open(str(inspected["OCIConfigPath"]), encoding="utf-8") as file:
        process = json.load(file)["process"]
    process.update(args=["true"], terminal=False)
    path = rig.home / "bare.json"
    path.write_text(json.dumps(process))
    found = []
    for _ in range(runs):
        before = _whole()
        words = [str(inspected["OCIRuntime"]), "exec", "--process", str(path), str(inspected["Id"])]
        pid = os.posix_spawnp(words[0], words, os.environ)
        os.waitpid(pid, 0)
        found.append(_whole() - before)
    return median(found)


def planning(rig: Rig, runs: int) -> Iterator[Row]:
    """CPU of one full pass over 1000 pods in sync on the fake runtime, and how it grows from 10."""
    from tests import bench_planning

    small = bench_planning.measure(10, rounds=200)
    large = bench_planning.measure(1000, rounds=max(runs, 5))
    yield Row("plan of 1000 pods in sync (CPU)", large[0] * 1000, 50.0, "ms")
    yield Row("full pass over 1000 pods in sync (CPU)", large[1] * 1000, 50.0, "ms")
    how = "2x of linear: caches hold ten pods better than a thousand"
    yield Row("planning, per pod: 1000 pods beside 10", large[0] / 1000 / (small[0] / 10), 2.0, "ratio", how)


def soak(rig: Rig, runs: int) -> Iterator[Row]:
    """Growth of the agent over five minutes of probes and crashes: memory, threads and descriptors."""
    rig.start_agent()
    for i in range(5):
        rig.put(f"s{i}.yaml", probed(f"bench-s{i}", rig, period=1))
        rig.put(f"c{i}.yaml", pod(f"bench-c{i}", rig, grace=0, script="sleep 2; exit 1"))
    time.sleep(90)
    before = _held(rig.agent_pid)
    time.sleep(300)
    after = _held(rig.agent_pid)
    rig.clear()
    rig.stop_agent()
    what = ", ".join(
        f"{n} {b:.1f} -> {a:.1f}" for n, b, a in zip(("PSS", "threads", "fds"), before, after, strict=True)
    )
    yield Row(
        "growth of the agent's memory over 5 min of probes and crashes",
        max(after[0] - before[0], 0.001),
        1.0,
        "MB",
        what,
    )


def _held(pid: int) -> tuple[float, int, int]:
    return pss(pid), len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd"))


def written(rig: Rig, runs: int) -> Iterator[Row]:
    """Bytes a day that agent, Podman and conmon write with 10 probed pods, idle.

    Measured over just as long as lies between two full lists: exactly one falls into it.
    """
    rig.start_agent()
    for i in range(10):
        rig.put(f"w{i}.yaml", probed(f"bench-w{i}", rig))
    rig.wait(lambda: rig.ready() == 10)
    time.sleep(SETTLE)
    seconds = observer.RELIST
    before = _written(rig)
    time.sleep(seconds)
    rate = (_written(rig) - before) * 86400 / seconds / 1e6
    yield Row("bytes written a day, 10 probed pods, idle", rate, 1.0, "MB", f"measured over {seconds:.0f} s")
    rig.clear()
    rig.stop_agent()


def _written(rig: Rig) -> int:
    """Bytes sent to storage by the agent, its services and all conmons (what tmpfs takes is not counted)."""
    total = 0
    for pid in [rig.agent_pid, *services(rig), *_conmons(rig)]:
        try:
            with open(f"/proc/{pid}/io", encoding="ascii") as file:
                total += next(int(line.split()[1]) for line in file if line.startswith("write_bytes:"))
        except OSError:
            continue
    return total


def _conmons(rig: Rig) -> list[int]:
    """The conmons of the agent's own containers, told by the container's id."""
    ours = [word.encode() for word in _our_ids(rig)]
    found = []
    for pid in (int(p) for p in os.listdir("/proc") if p.isdigit()):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read()
        except OSError:
            continue
        if b"conmon" in words[:64] and any(word in words for word in ours):
            found.append(pid)
    return found


def _our_ids(rig: Rig) -> set[str]:
    """Ids of all containers in the agent's pods (an infra container writes nothing)."""
    ids: set[str] = set()
    for found in rig.pods():
        for status in found.get("status", {}).get("containerStatuses", []):
            ids.add(status["containerID"].removeprefix("podman://"))
    return ids
