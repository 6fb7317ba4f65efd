"""A fleet on a virtual clock: thousands of real `UrlSource`s poll one simulated server.

Run ``python -m tests.fleet_sim`` from the checkout to print the table of docs/fleet.md and to draw
its pictures again (some minutes for 50,000 agents); ``--quick`` leaves the largest fleet out.
"""

from __future__ import annotations

import argparse
import heapq
import logging
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from edgelet.adapters.url import UrlSource
from edgelet.adapters.url.failures import FetchError
from edgelet.adapters.url.fetch import Reply, Validators
from edgelet.core import polling
from edgelet.model.decode import Decoded
from edgelet.model.pod import Container, Pod
from edgelet.ports import Snapshot
from tests.fakes import FakeClock
from tests.support.drawing import Curve, chart
from tests.support.shaky import ShakyFiles

FREQUENCY = 20.0
BODY = 2000
"""Bytes of a manifest of three pods or so."""

HEAD = 160
"""Bytes of a reply's head, as measured on the wire by tests/url_bytes.py."""

POD = Pod("web", "default", "web", "1-a", "http", (Container("c", "i"),))


@dataclass
class Server:
    """Answers by `script(seconds since the start) -> "200", "503" or "down"`; counts by the second."""

    clock: FakeClock
    script: Callable[[float], str]
    version: Callable[[float], int] = lambda now: 1
    requests: Counter[int] = field(default_factory=Counter)
    tried: Counter[int] = field(default_factory=Counter)
    bytes_out: Counter[int] = field(default_factory=Counter)
    started: float = 0.0

    def __call__(self, held: Validators) -> Reply:
        """One request, as `fetch.Fetcher` would make it."""
        now = self.clock.monotonic() - self.started
        answer, second = self.script(now), int(now)
        self.tried[second] += 1
        if answer == "down":
            raise FetchError("the server cannot be reached")
        self.requests[second] += 1
        self.bytes_out[second] += HEAD
        if answer == "503":
            raise FetchError("overloaded", retry_after=60.0)
        etag = f'"{self.version(now)}"'
        if held.etag == etag:
            return Reply(None, held)
        self.bytes_out[second] += BODY
        return Reply(b"v%d\n" % self.version(now), Validators(etag))


class Nowhere:
    """A sink that nobody reads."""

    def put(self, snapshot: Snapshot) -> None:
        """See ports.Sink."""


class NoDisk(ShakyFiles):
    """Files that are written nowhere."""

    def create(self, path: str, mode: int) -> int:
        """See Files."""
        return 0

    def write(self, descriptor: int, data: bytes) -> None:
        """See Files."""

    def sync(self, descriptor: int) -> None:
        """See Files."""

    def close(self, descriptor: int) -> None:
        """See Files."""

    def rename(self, source: str, target: str) -> None:
        """See Files."""

    def sync_directory(self, path: str) -> None:
        """See Files."""

    def make_directory(self, path: str, mode: int) -> None:
        """See Files."""


def _decode(data: bytes, shown: str) -> Decoded:
    return Decoded((POD,))


@dataclass
class Fleet:
    """`agents` sources that all start at second 0, within `spread` seconds, with last known good pods."""

    agents: int
    seconds: float
    script: Callable[[float], str]
    version: Callable[[float], int] = lambda now: 1
    spread: float = 1.0
    seed: int = 1

    def run(self) -> Server:
        """Play it; the server has the counts."""
        clock, chance = FakeClock(monotonic=0.0), random.Random(self.seed)
        server = Server(clock, self.script, self.version)
        due: list[tuple[float, int]] = []
        sources = [self._source(clock, server, chance) for _ in range(self.agents)]
        for number in range(self.agents):
            wait = chance.random() * self.spread + polling.first_delay(FREQUENCY, True, chance.random())
            heapq.heappush(due, (wait, number))
        while due and due[0][0] < self.seconds:
            at, number = heapq.heappop(due)
            clock.advance(at - clock.monotonic())
            source = sources[number]
            source.step()
            heapq.heappush(due, (source.wake_at(), number))
        return server

    def _source(self, clock: FakeClock, server: Server, chance: random.Random) -> UrlSource:
        return UrlSource(
            "https://fleet.example/pods",
            "edge1",
            Nowhere(),
            clock,
            "/nowhere",
            check_frequency=FREQUENCY,
            decode=_decode,
            fetch=server,
            draw=chance.random,
            files=NoDisk(),
        )


WARM, OUTAGE, AFTER = 300, 3600, 600


def outage(now: float) -> str:
    """Five minutes of work, an hour of nothing, work again."""
    return "down" if WARM <= now < WARM + OUTAGE else "200"


def overload(now: float) -> str:
    """Five minutes of 503 with Retry-After: 60, in the middle."""
    return "503" if WARM <= now < 2 * WARM else "200"


def rate(counter: Counter[int], begin: int, end: int) -> tuple[float, int]:
    """Mean and peak per second over whole seconds."""
    values = [counter[s] for s in range(begin, end)]
    return sum(values) / len(values), max(values)


def caught_up(server: Server, agents: int) -> int:
    """Seconds after the outage until as many requests as agents were answered."""
    total, second = 0, WARM + OUTAGE
    while total < agents and second < WARM + OUTAGE + 4000:
        total += server.requests[second]
        second += 1
    return second - WARM - OUTAGE


# -- the report -------------------------------------------------------------------------------


def _row(agents: int) -> tuple[str, Server]:
    server = Fleet(agents, WARM + OUTAGE + AFTER, outage).run()
    steady = rate(server.requests, 120, WARM)
    start = rate(server.requests, 0, 30)
    silent = rate(server.tried, WARM + 600, WARM + OUTAGE)
    back = rate(server.requests, WARM + OUTAGE, WARM + OUTAGE + 120)
    down = rate(server.bytes_out, 120, WARM)[0]
    wait = caught_up(server, agents)
    cells = [
        f"{agents:,}", f"{steady[0]:,.1f} / {steady[1]:,}", f"{start[1]:,}", f"{silent[0]:,.1f}", f"{back[1]:,}",
        f"{back[1] / (agents / FREQUENCY):.2f}", f"{wait} s", f"{down / 1000:,.1f} kB/s",
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |", server


def _smooth(counter: Counter[int], seconds: range, width: int = 5) -> list[tuple[float, float]]:
    return [(s, sum(counter[s + i] for i in range(width)) / width) for s in seconds if s % width == 0]


def _policies(agents: int) -> list[tuple[str, Server]]:
    """The chosen way beside others, by changing its constants for a run."""
    names = ("BACKOFF_CAP", "first_delay", "after_success", "after_failure")
    chosen = {name: getattr(polling, name) for name in names}
    results = []
    try:
        for cap in (40.0, 120.0, 600.0):
            polling.BACKOFF_CAP = cap
            results.append((f"cap {cap:.0f} s", Fleet(agents, WARM + OUTAGE + AFTER, outage).run()))
        polling.first_delay = lambda frequency, last_good, draw: 0.0
        polling.after_success = lambda frequency, first, draw: frequency
        polling.after_failure = lambda frequency, failures, retry_after, draw, cap=None: frequency
        results.append(("no jitter, no back-off", Fleet(agents, WARM + OUTAGE + AFTER, outage).run()))
    finally:
        for name, value in chosen.items():
            setattr(polling, name, value)
    return results


def main() -> int:
    """Print the table, draw the pictures."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--quick", action="store_true", help="leave the fleet of 50,000 out")
    parser.add_argument("--pictures", type=Path, default=Path(__file__).parents[1] / "docs" / "pictures")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    sizes = (10, 1000) if options.quick else (10, 1000, 50_000)
    server = Server(FakeClock(), outage)
    for agents in sizes:
        row, server = _row(agents)
        print(row, flush=True)
    seconds = range(0, WARM + OUTAGE + AFTER)
    curves = [Curve("tried", _smooth(server.tried, seconds)), Curve("answered", _smooth(server.requests, seconds))]
    title = f"{sizes[-1]:,} agents, one hour of outage: requests per second"
    chart(options.pictures / "fleet-outage.svg", title, curves)
    _draw_others(options.pictures)
    return 0


def _draw_others(pictures: Path) -> None:
    agents, curves = 1000, []
    for name, server in _policies(agents):
        begin = WARM + OUTAGE - 60
        curves.append(Curve(name, [(s - 60, server.requests[begin + s]) for s in range(0, 260)]))
        back = rate(server.requests, WARM + OUTAGE, WARM + OUTAGE + 120)
        silent = rate(server.tried, WARM + 600, WARM + OUTAGE)[0]
        waited = caught_up(server, agents)
        print(
            f"{name}: peak {back[1]}/s, {silent:.1f} tries/s while down, as many answers as agents after {waited} s",
            flush=True,
        )
    chart(pictures / "fleet-recovery.svg", "1,000 agents, the server returns at 0 s: requests per second", curves)
    server = Fleet(agents, 3 * WARM, overload).run()
    busy = Curve("requests", [(s, float(server.requests[s])) for s in range(200, 800)])
    chart(pictures / "fleet-retry-after.svg", "1,000 agents, 503 with Retry-After: 60 from 300 s to 600 s", [busy])
    change = Fleet(agents, WARM, lambda now: "200", version=lambda now: 1 + int(now >= 150)).run()
    sent = Curve("sent", [(s, change.bytes_out[s] / 1000) for s in range(100, 220)])
    chart(pictures / "fleet-change.svg", "1,000 agents, new content at 150 s: kB per second", [sent])


if __name__ == "__main__":
    sys.exit(main())
