"""Pods behind a Podman that hangs, cuts, delays, fails, lies and loses answers: the fault proxy's run.

`tests/e2e/chaos --faults`.  As `Chaos`, with twenty pods and a proxy between the agent and Podman that spoils a
part of all calls while a round lasts.  At the end the agent is as small as it was: memory, threads, descriptors.
It is compared with an agent that has worked for a while without faults: what it keeps for watchers (the newest 1000
events, the newest 256 changes of a status) is well filled then, and every module that work needs is loaded.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.e2e import chaos_pods
from tests.e2e.agent import Agent
from tests.e2e.chaos import Chaos
from tests.support.podman_proxy import FAULTS, Proxy

PODS = 20
RATE = 0.15
"""Part of the calls that is spoilt."""
GROWTH_KB = 2 * 1024
"""Memory that may be more at the end than at the beginning: what Python keeps of its busiest moment."""
WARM = 480.0
"""Seconds of work without faults before the first look, in a long run."""

QUIET = 30.0
"""Seconds that the agent has to give memory back."""
SHOWN = 25
"""Rounds between two looks at the agent's size on the way."""


@dataclass(frozen=True, slots=True)
class Size:
    """What a process holds: kB of memory of its own, threads, descriptors."""

    memory: int
    threads: int
    descriptors: int

    @classmethod
    def of(cls, pid: int) -> Size:
        """As the kernel counts it."""
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        # not what is mapped from files: that part changes with who else on the machine runs Python
        memory = next(int(line.split()[1]) for line in lines if line.startswith("Pss_Anon:"))
        threads = len(os.listdir(f"/proc/{pid}/task"))
        return cls(memory, threads, len(os.listdir(f"/proc/{pid}/fd")))


@dataclass
class Faults(Chaos):
    """One run; see the module."""

    proxy: Proxy | None = None
    warm: float = 0.0
    first: Size | None = None
    played: int = 0

    @classmethod
    def begin(cls, agent: Agent, chance: random.Random, seconds: float) -> Faults:
        """Start all pods while Podman behaves; a fifth of `seconds`, at most WARM, goes by before it does not."""
        path = str(agent.directory / "proxy.sock")
        proxy = Proxy(path, agent.env.service)
        proxy.choose = lambda request: "pass"
        agent.start(f"--podman-socket={path}")
        makers = (chaos_pods.plain, chaos_pods.memory, chaos_pods.host, chaos_pods.stubborn)
        kinds = {f"{makers[n % 4].__name__}{n}": makers[n % 4] for n in range(PODS - 1)}
        made = cls(agent, chance, kinds={**kinds, "job": chaos_pods.job}, proxy=proxy)
        for name in made.kinds:
            made.wanted[name] = 0
            agent.write(made.kinds[name](name, 0), name=name)
        made.settle()
        made.before = made.identity()
        made.warm = time.monotonic() + min(WARM, seconds / 5)
        return made

    def troubles(self) -> list[Callable[[], None]]:
        """Podman alone is the trouble; the rest makes it work."""
        weights = (
            (self.edit, 5),
            (self.delete, 1),
            (self.away_and_back, 1),
            (self.kill_container, 3),
            (self.restart, 1),
        )
        return [trouble for trouble, weight in weights for _ in range(weight)]

    def round(self) -> None:
        """As ever, with the proxy at work."""
        chance = random.Random(self.chance.random())
        if time.monotonic() < self.warm:
            super().round()
            return
        if self.first is None:
            self._whole()
            time.sleep(QUIET)
            self.first = Size.of(self.agent.pid)
            print(f"at first {self.first}", flush=True)
        self._spoil(chance)
        super().round()
        self.played += 1
        if self.played % SHOWN == 0 and self.agent.running:
            print(f"after {self.played} rounds {Size.of(self.agent.pid)}", flush=True)

    def _spoil(self, chance: random.Random) -> None:
        assert self.proxy is not None
        self.proxy.seconds = chance.choice((0.2, 2.0, 25.0)) if chance.random() < 0.3 else 0.3
        self.proxy.choose = lambda request: chance.choice(FAULTS) if chance.random() < RATE else "pass"

    def quiet(self) -> None:
        """Podman behaves again."""
        assert self.proxy is not None
        self.proxy.choose = lambda request: "pass"

    def end(self) -> list[str]:
        """What is left, and what has grown."""
        assert self.proxy is not None
        self._whole()
        grown = self.grown()
        print(dict(self.proxy.counts), flush=True)
        try:
            return [*grown, *super().end()]
        finally:
            self.proxy.close()

    def _whole(self) -> None:
        """All pods are there."""
        for name in sorted(set(self.kinds) - set(self.wanted)):
            self.wanted[name] = self.version
            self.agent.write(self.kinds[name](name, self.version), name=name)
        self.settle()
        self.before = self.identity()

    def grown(self) -> list[str]:
        """In which respects the agent is not as it was, once it has been quiet: it gives memory back then."""
        end = time.monotonic() + QUIET
        while (found := self._grown()) and time.monotonic() < end:
            time.sleep(1)
        return found

    def _grown(self) -> list[str]:
        if self.first is None:
            return ["no round was played with faults"]
        now = Size.of(self.agent.pid)
        print(f"at first {self.first}, at the end {now}", flush=True)
        found = []
        if now.memory > self.first.memory + GROWTH_KB:
            found.append(f"memory has grown from {self.first.memory} to {now.memory} kB")
        if now.threads > self.first.threads + 4:
            found.append(f"threads have grown from {self.first.threads} to {now.threads}")
        if now.descriptors > self.first.descriptors + 4:
            found.append(f"descriptors have grown from {self.first.descriptors} to {now.descriptors}")
        return found
