"""Plays rounds of random trouble, in parts that go on where the one before ended.

    make chaos                                         half an hour; again, and it goes on where it ended
    tests/e2e/chaos --seconds 120 --seed 7             a short one
    tests/e2e/chaos --seed 7 --first 12 --rounds 1     one round again: round N of a seed draws the same troubles

Runs in a mount and network namespace of its own (see `tests.support.net_left`), so that every network
namespace, veth, lease and rule there belongs to it.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.agent import Agent
from tests.e2e.chaos import Chaos
from tests.e2e.chaos_pods import plain
from tests.e2e.faults import Faults
from tests.support import net_left
from tests.support.podman_env import PodmanEnv

NETWORK = ("--pod-network=edgechaos", "--pod-cidr=10.86.0.0/24")
"""A network of the agent's own: on Podman's default one it takes nothing away."""
PART = 2400.0
"""Seconds after which a long run ends a part."""


def rounds(chaos: Chaos, seed: int, first: int, count: int, seconds: float, state: Path | None) -> int:
    """Play until the time or the rounds are over; the number of the next round."""
    number, begin = first, time.monotonic()
    while number < first + count and time.monotonic() - begin < min(seconds, PART):
        chaos.chance = random.Random(seed * 1_000_003 + number)
        try:
            chaos.round()
        except AssertionError as error:
            print(f"seed {seed}, round {number}: {error}", *chaos.story, sep="\n  ", flush=True)
            raise
        number += 1
    if state is not None:
        spent = time.monotonic() - begin
        if spent < seconds:
            state.write_text(f"{seed} {number} {seconds - spent:.0f}")
        else:
            state.unlink(missing_ok=True)
    return number


def _begin(given: argparse.Namespace) -> None:
    """Go on where an earlier part ended."""
    if given.state is not None and given.state.exists():
        seed, first, left = given.state.read_text().split()
        given.seed, given.first, given.seconds = int(seed), int(first), float(left)


@contextlib.contextmanager
def _agent(directory: str) -> Iterator[Agent]:
    podman = PodmanEnv(directory, idle=600.0)
    place = Path(tempfile.mkdtemp(prefix="edge-chaos-"))
    agent = Agent(podman, place)
    try:
        yield agent
    finally:
        agent.force()
        podman.close()


def _chaos(given: argparse.Namespace, agent: Agent) -> Chaos:
    if not given.faults:
        agent.start(*NETWORK)
        made = Chaos(agent, random.Random(given.seed))
        # Podman builds the image of infra containers with its first pod; killed then, it leaves its working container.
        made.wanted["plain"] = 0
        agent.write(plain("plain", 0), name="plain")
        made.settle()
        return made
    return Faults.begin(agent, random.Random(given.seed), min(given.seconds, PART))


def main(words: list[str]) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="chaos")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=10**9)
    parser.add_argument("--state", type=Path)
    parser.add_argument("--faults", action="store_true", help="20 pods behind a Podman that lies")
    given = parser.parse_args(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all is taken away
    net_left.private()
    _begin(given)
    print(f"seed {given.seed}", flush=True)
    with _agent(tempfile.mkdtemp(prefix="edge-")) as agent:
        chaos = _chaos(given, agent)
        try:
            last = rounds(chaos, given.seed, given.first, given.rounds, given.seconds, given.state)
            left = chaos.end()
        except AssertionError as error:
            said = [line for line in agent.log_text().splitlines() if " GET /api/" not in line]
            print(*said[-200:], error, sep="\n")
            return 1
    blank = [f"(an empty namespace, whose nobody can tell: {name})" for name in net_left.blank()]
    print(f"rounds {given.first} to {last}", chaos.counts, *blank, *left, sep="\n  ")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
