"""Rows about time: starting, restarting, editing and removing pods beside bare Podman."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator

from .report import Row, median, spread
from .rig import TELL, Rig, pod

LOOK = 0.1
"""Seconds between two looks at many pods: listing fifty of them fifty times a second would be most of the work."""


def cold_start(rig: Rig, runs: int) -> float:
    """Median seconds of one cold Podman service: from nothing to its first answer."""
    from edgelet.adapters import podman
    from edgelet.adapters.podman import api

    found = []
    for _ in range(runs):
        service = podman.Service(None, str(rig.home / "cold"), idle=3600.0)
        began = time.monotonic()
        api.Api(service).get("pods/json")
        found.append(time.monotonic() - began)
        service.stop()
    return median(found)


def start(rig: Rig, runs: int) -> Iterator[Row]:
    """Manifest renamed in -> the process runs."""
    cold = cold_start(rig, runs)
    rig.start_agent()
    for host in (False, True):
        net = "host network" if host else "bridge"
        plays, bares, ours = [], [], []
        for n in range(runs):
            name = f"bench-{'h' if host else 'b'}{n}"
            file = rig.home / "spool" / "play.yaml"
            file.write_text(pod(name, rig, host_network=host))
            plays.append(rig.timed(lambda: rig.kube_play(file)))
            rig.remove(name)
            bares.append(rig.timed(lambda: rig.bare(name, host)))
            rig.remove(name)
            text = pod(name, rig, host_network=host, grace=0)
            ours.append(rig.timed(lambda: rig.put("pod.yaml", text)))
            rig.drop("pod.yaml")
        value = median(ours)
        how = f"of kube play {median(plays):.3f} + cold service {cold:.3f}; seen {spread(ours)}"
        part = 0.5 if host else 0.8
        yield Row(
            f"start, {net}: beside podman kube play", value, part * median(plays) + cold, how=f"{part:.2f}x {how}"
        )
        if not host:
            how = f"1.10x of bare calls {median(bares):.3f} + cold service {cold:.3f}"
            yield Row(f"start, {net}: beside bare API calls", value, 1.1 * median(bares) + cold, how=how)
    rig.stop_agent()


def restart(rig: Rig, runs: int) -> Iterator[Row]:
    """kill -9 of the container's process -> it runs again, first restart."""
    cold = cold_start(rig, runs)
    rig.start_agent()
    ours, bares = [], []
    rig.bare("bench-peer", False)
    for n in range(runs):
        rig.timed(lambda: rig.put("pod.yaml", pod(f"bench-r{n}", rig, grace=0)))
        pid = _settled(rig)
        ours.append(rig.timed(lambda: os.kill(pid, signal.SIGKILL)))
        rig.drop("pod.yaml")
        bares.append(rig.timed(lambda: _create_and_start(rig, n)))
    rig.remove("bench-peer")
    rig.stop_agent()
    how = f"1.25x of create + start {median(bares):.3f} + cold service {cold:.3f}; seen {spread(ours)}"
    yield Row("kill -9 -> runs again", median(ours), 1.25 * median(bares) + cold, how=how)


def _settled(rig: Rig) -> int:
    """The container's pid, once what its start left to do is done."""
    rig.wait(lambda: rig.ready() == 1)
    time.sleep(0.3)
    rig.wait(lambda: len(rig.containers()) == 1)
    return int(rig.containers()[0]["Pid"])


def _create_and_start(rig: Rig, n: int) -> None:
    name = f"n{n}"
    rig.api.post("containers/create", body=rig.container("bench-peer", name=name), creating=True)
    rig.api.post(f"containers/bench-peer-{name}/start")


def edit(rig: Rig, runs: int) -> Iterator[Row]:
    """Manifest edited -> the new version's process runs (the old one ends on SIGTERM)."""
    rig.start_agent()
    script = "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"
    found = []
    rig.timed(lambda: rig.put("pod.yaml", pod("bench-e", rig, script=script)))
    for n in range(runs):
        time.sleep(0.3)
        found.append(rig.timed(lambda: rig.put("pod.yaml", pod("bench-e", rig, script=f": {n}; {script}"))))
    rig.drop("pod.yaml")
    rig.stop_agent()
    yield Row("manifest edited -> new version runs", median(found), 0.6, how=f"seen {spread(found)}")


def remove(rig: Rig, runs: int) -> Iterator[Row]:
    """Manifest removed -> the process is gone, SIGTERM ignored, grace 1."""
    rig.start_agent()
    found = []
    for n in range(runs):
        script = "trap '' TERM; while :; do sleep 1; done"
        rig.timed(lambda: rig.put("pod.yaml", pod(f"bench-d{n}", rig, grace=1, script=script)))
        pid = _settled(rig)
        descriptor = os.pidfd_open(pid)
        began = time.monotonic()
        (rig.manifests / "pod.yaml").unlink()
        _ended(descriptor)
        found.append(time.monotonic() - began)
        rig.wait(lambda: not rig.pods())
    rig.stop_agent()
    # The file may have been moved away by an editor: half a second of patience comes first (design, section 4).
    yield Row("manifest removed -> gone (SIGTERM ignored, grace 1)", median(found), 2.3, how=f"seen {spread(found)}")


RELIST = 1.0
"""Seconds between two looks of the kubelet's at its containers: what an exit waits for there at the most."""


def notice(rig: Rig, runs: int) -> Iterator[Row]:
    """An exit -> it is in the status; and a liveness probe that fails -> the process is told to end."""
    rig.start_agent()
    seen, decided = [], []
    for n in range(runs):
        rig.timed(lambda: rig.put("pod.yaml", pod(f"bench-x{n}", rig, grace=0)))
        pid = _settled(rig)
        began = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        while rig.ready():
            time.sleep(0.001)
        seen.append(time.monotonic() - began)
        rig.drop("pod.yaml")
        rig.timed(lambda: rig.put("pod.yaml", pod(f"bench-l{n}", rig, script=STOPS, extra=FAILS)))
        began = time.monotonic()
        rig.told(30.0)
        decided.append(time.monotonic() - began)
        rig.drop("pod.yaml")
    rig.stop_agent()
    how = f"0.10x of the kubelet's relist, {RELIST:.0f} s; seen {spread(seen)}"
    yield Row("an exit -> it is in the status", median(seen), 0.1 * RELIST, how=how)
    due = FIRST + (THRESHOLD - 1) * PERIOD
    how = f"1.10x of delay + (threshold - 1) x period = {due} s; seen {spread(decided)}"
    yield Row("liveness fails -> SIGTERM", median(decided), 1.1 * due, how=how)


FIRST, PERIOD, THRESHOLD = 1, 1, 3
STOPS = f"trap '{TELL} exit 0' TERM; while :; do sleep 1000 & wait; done"
FAILS = f"""\
    livenessProbe:
      exec: {{command: ["false"]}}
      initialDelaySeconds: {FIRST}
      periodSeconds: {PERIOD}
      failureThreshold: {THRESHOLD}
"""


def _ended(descriptor: int) -> None:
    import select

    with contextlib.closing(os.fdopen(descriptor)):
        select.select([descriptor], [], [], 60)


PROBED = """\
    ports: [{{containerPort: {port}}}]
    livenessProbe: {{exec: {{command: ["true"]}}, periodSeconds: {period}}}
    readinessProbe: {{httpGet: {{path: /index.html, port: {port}}}, periodSeconds: {period}}}
    startupProbe: {{tcpSocket: {{port: {port}}}, periodSeconds: 1, failureThreshold: 30}}
"""


def probed(name: str, rig: Rig, period: int = 10) -> str:
    """A pod with an exec, an HTTP and a TCP probe."""
    script = "mkdir -p /tmp/w; echo ok > /tmp/w/index.html; exec httpd -f -p 8080 -h /tmp/w"
    return pod(name, rig, grace=0, script=script, extra=PROBED.format(port=8080, period=period))


def many(rig: Rig, runs: int) -> Iterator[Row]:
    """Ten pods with all probes, and fifty plain ones beside fifty kube plays."""
    rig.start_agent()
    ten = [_until_ready(rig, {f"p{i}.yaml": probed(f"bench-p{i}", rig) for i in range(10)}) for _ in range(runs)]
    yield Row("10 pods with exec, HTTP and TCP probes -> all Ready", median(ten), 3.0, how=f"seen {spread(ten)}")
    fifty, plays = [], []
    for _ in range(runs):
        fifty.append(_until_ready(rig, {f"q{i}.yaml": pod(f"bench-q{i}", rig, grace=0) for i in range(50)}))
        plays.append(_fifty_plays(rig))
    rig.stop_agent()
    how = f"0.50x of 50 kube plays {median(plays):.1f}; seen {spread(fifty)}"
    yield Row("50 pods -> all Ready", median(fifty), 0.5 * median(plays), how=how)


def _until_ready(rig: Rig, manifests: dict[str, str]) -> float:
    """Seconds until all of them are Ready."""
    for name, text in manifests.items():
        (rig.home / "spool" / name).write_text(text)
    began = time.monotonic()
    for name in manifests:
        os.rename(rig.home / "spool" / name, rig.manifests / name)
    rig.wait(lambda: rig.ready() == len(manifests), 120, pause=LOOK)
    took = time.monotonic() - began
    rig.clear()
    return took


def _fifty_plays(rig: Rig) -> float:
    began = time.monotonic()
    for i in range(50):
        file = rig.home / "spool" / "play.yaml"
        file.write_text(pod(f"bench-k{i}", rig))
        rig.kube_play(file)
    took = time.monotonic() - began
    rig.command("pod", "rm", "--force", "--time", "0", *(f"bench-k{i}" for i in range(50)))
    return took


def commands(rig: Rig, runs: int) -> Iterator[Row]:
    """`edgelet --version`, and `edgelet run` until its first Podman call."""
    versions = []
    for _ in range(runs):
        began = time.monotonic()
        subprocess.run([rig.edgelet, "--version"], check=True, capture_output=True)
        versions.append(time.monotonic() - began)
    yield Row("edgelet --version", median(versions), 0.15, how=f"seen {spread(versions)}")
    calls = [_first_call(rig) for _ in range(runs)]
    yield Row("edgelet run until the first Podman call", median(calls), 0.5, how=f"seen {spread(calls)}")


def _first_call(rig: Rig) -> float:
    """A listener in Podman's place notes when the first connection comes that asks something."""
    import socket

    path = str(rig.home / "podman-ear.sock")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with socket.socket(socket.AF_UNIX) as ear:
        ear.bind(path)
        ear.listen(8)
        ear.settimeout(10)
        began = time.monotonic()
        agent = subprocess.Popen(
            [rig.edgelet, "run", "--config", "", *rig.places(), f"--podman-socket={path}"],
            stdout=rig.log,
            stderr=rig.log,
        )
        try:
            while True:
                connection, _ = ear.accept()
                with connection:
                    connection.settimeout(1)
                    if connection.recv(1):
                        return time.monotonic() - began
        finally:
            agent.kill()
            agent.wait()
