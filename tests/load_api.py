"""The API under load: 20 gets a second and 20 followed logs while 100 pods run. `python -m tests.load_api`.

The real workers and the real server run in this process, on a fake runtime that takes as long as Podman does;
the clients are another process.  Idle and loaded turns alternate, so a machine that is busy with other things
slows both.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from edgelet.adapters.logs.reader import LogReader
from edgelet.model.layout import Layout
from edgelet.model.observed import Bind, ObservedContainer, ObservedPod
from edgelet.model.pod import Container, Pod
from edgelet.model.status import ContainerStatus
from tests.engine.test_workers import Engine, until
from tests.fakes import FakeClock, FakeRuntime
from tests.support.serving import pod, serving

PODS, FOLLOWERS, GETS = 100, 20, 20
CALL_SECONDS = 0.06
"""What Podman takes for a create, and for a start (design, section 6: 0.122 s together)."""
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


class SlowRuntime(FakeRuntime):
    """Takes its time, and notes when each container was started."""

    def __init__(self) -> None:
        super().__init__(FakeClock(), images=("localhost/bb:1",))
        self.started: dict[str, float] = {}
        self.slow = False

    def create_container(
        self, sandbox: ObservedPod, pod: Pod, container: Container, restart_count: int, binds: tuple[Bind, ...]
    ) -> ObservedContainer:
        """See ports.Runtime."""
        time.sleep(CALL_SECONDS * self.slow)
        return super().create_container(sandbox, pod, container, restart_count, binds)

    def start_container(self, sandbox: ObservedPod, container_id: str) -> ObservedPod:
        """See ports.Runtime."""
        time.sleep(CALL_SECONDS * self.slow)
        found = super().start_container(sandbox, container_id)
        self.started[sandbox.key.name] = time.monotonic()
        return found


class OneLog(LogReader):
    """One file for the containers of each pod."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Layout("", "", ""))
        self._folder = folder

    def locate(self, pod: Pod, status: ContainerStatus, previous: bool) -> str:
        """See contracts.Logs."""
        return str(self._folder / f"{pod.name}.log")


@dataclass
class Figures:
    """Seconds: of restarts in idle and in loaded turns, of requests under load; bytes of followed logs."""

    idle: list[float] = field(default_factory=list)
    loaded: list[float] = field(default_factory=list)
    gets: list[float] = field(default_factory=list)
    followed: int = 0
    burns: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """How much longer exit -> restart takes under load (medians)."""
        return statistics.median(self.loaded) / statistics.median(self.idle)

    @property
    def p99(self) -> float:
        """Seconds within which 99 % of the requests were answered."""
        return statistics.quantiles(self.gets, n=100)[98]

    @property
    def slowness(self) -> float:
        """How much longer than it must a piece of work takes at the worst 1 % of moments: other processes' share."""
        return statistics.quantiles(self.burns, n=100)[98] / min(self.burns)

    def __str__(self) -> str:
        idle, loaded = statistics.median(self.idle), statistics.median(self.loaded)
        gets = statistics.median(self.gets)
        return (
            f"exit -> restart: idle {idle * 1000:.1f} ms, loaded {loaded * 1000:.1f} ms, ratio {self.ratio:.2f}"
            f" ({len(self.idle)} + {len(self.loaded)}); {len(self.gets)} gets: median {gets * 1000:.1f} ms,"
            f" 99 % below {self.p99 * 1000:.1f} ms; {self.followed} bytes of logs followed;"
            f" machine slower by {self.slowness:.1f}, load {os.getloadavg()[0]:.1f}"
        )


def measure(rounds: int, each: int) -> Figures:
    """Idle and loaded turns with `each` restarts."""
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="load-") as name, box(Path(name)) as (engine, runtime, path):
        fresh = iter(range(PODS))
        for _ in range(rounds):
            figures.idle += restarts(engine, runtime, fresh, each)
            with _client(path) as client:
                figures.loaded += restarts(engine, runtime, fresh, each)
            told = json.loads(client.pop())
            figures.gets += told["gets"]
            figures.followed += told["followed"]
            figures.burns += told["burns"]
    return figures


@contextlib.contextmanager
def box(folder: Path) -> Iterator[tuple[Engine, SlowRuntime, str]]:
    runtime = SlowRuntime()
    engine = Engine(runtime=runtime)
    ending = threading.Event()
    writer = threading.Thread(target=_write_logs, args=(folder, ending))
    with serving(folder, OneLog(folder), store=engine.store) as rig:
        engine.puller.start()
        engine.director.open()
        engine.give(*(pod(f"p{n}") for n in range(PODS)))
        until(lambda: len(runtime.started) == PODS, 60)
        runtime.slow = True
        writer.start()
        try:
            yield engine, runtime, rig.socket
        finally:
            ending.set()
            writer.join()
            engine.workers.stop(10)
            engine.puller.stop()


def _write_logs(folder: Path, ending: threading.Event) -> None:
    """Five lines a second in each log."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open(folder / f"p{n}-edge1.log", "ab", buffering=0)) for n in range(FOLLOWERS)]
        while not ending.wait(0.2):
            for file in files:
                file.write(b"2026-11-30T14:00:00Z stdout F " + b"x" * 100 + b"\n")


def restarts(engine: Engine, runtime: SlowRuntime, fresh: Iterator[int], count: int) -> list[float]:
    """Seconds from exit to restart, each of a container that has not ended before: no back-off."""
    found = []
    for _ in range(count):
        name = f"p{next(fresh)}-edge1"
        (target,) = [c for p in runtime.pods() if p.key.name == name for c in p.containers]
        began = time.monotonic()
        runtime.exit(target.id, 1)
        until(lambda name=name, began=began: runtime.started[name] > began, 60)  # type: ignore[misc]
        found.append(runtime.started[name] - began)
        time.sleep(0.05)
    return found


@contextlib.contextmanager
def _client(path: str) -> Iterator[list[str]]:
    """The clients for the time of a with block; what they measured is in the list afterwards."""
    words = [sys.executable, "-m", "tests.load_api", "--client", path]
    told: list[str] = []
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(1)
        yield told
        time.sleep(2)
        told.append(process.communicate("", timeout=120)[0])


# -- the clients' process ----------------------------------------------------------------------------


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self._path)


def _clients(path: str) -> None:
    """Follow and get until the standard input ends, then tell."""
    counts = [0] * FOLLOWERS
    for number in range(FOLLOWERS):
        threading.Thread(target=_follow, args=(path, number, counts), daemon=True).start()
    until(lambda: all(counts), 60)
    print("ready", flush=True)
    ended, times = threading.Event(), list[float]()
    threading.Thread(target=_wait_for_end, args=(ended,), daemon=True).start()
    burns = list[float]()
    threading.Thread(target=_burn, args=(ended, burns), daemon=True).start()
    with ThreadPoolExecutor(16) as pool:
        number, begun = 0, time.monotonic()
        while not ended.wait(max(0.0, begun + number / GETS - time.monotonic())):
            pool.submit(_get, path, number, begun + number / GETS, times)
            number += 1
    print(json.dumps({"gets": times, "followed": sum(counts), "burns": burns}), flush=True)
    os._exit(0)  # the followers hang on their connections


def _wait_for_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


def _burn(ended: threading.Event, burns: list[float]) -> None:
    """The same small piece of work again and again: how much longer it takes at times is the machine's doing."""
    data = bytes(1 << 20)
    while not ended.wait(0.02):
        began = time.monotonic()
        hashlib.sha256(data).digest()
        burns.append(time.monotonic() - began)


def _follow(path: str, number: int, counts: list[int]) -> None:
    connection = _Connection(path)
    connection.request("GET", f"/api/v1/namespaces/default/pods/p{number}-edge1/log?follow=true")
    answer = connection.getresponse()
    while data := answer.read1(65536):
        counts[number] += len(data)


def _get(path: str, number: int, due: float, times: list[float]) -> None:
    """A list as kubectl asks for it, or one pod; the time counts from when it should have been sent."""
    what = "/api/v1/pods" if number % 2 else f"/api/v1/namespaces/default/pods/p{number % PODS}-edge1"
    with contextlib.closing(_Connection(path)) as connection:
        connection.request("GET", what, headers={"Accept": TABLE if number % 2 else "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
    times.append(time.monotonic() - due)


def main() -> None:
    """Measure, or be the clients."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", default="", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--each", type=int, default=10)
    args = parser.parse_args()
    if args.client:
        _clients(args.client)
    else:
        print(measure(args.rounds, args.each))


if __name__ == "__main__":
    main()
