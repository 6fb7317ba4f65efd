"""Random lives of two pods, played on the fake and on real Podman: every answer must be the same."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from edgelet.model.observed import ObservedContainer, ObservedPod
from edgelet.model.pod import Pod
from tests.contract.worlds import FakeWorld, RealWorld, Transcript, World, container, pod

pytestmark = pytest.mark.podman

STEPS = 40
GONE = "c0ffee" * 10 + "abcd"
PODS = tuple(pod(container(f"a{i}"), container(f"b{i}"), name=f"random{i}") for i in range(2))


@dataclass(frozen=True)
class Step:
    """What to do to which pod and container; `number` is a restart count or an exit code."""

    verb: str
    pod: int
    container: int
    number: int


WEIGHTS = {
    "create pod": 4, "create": 6, "start": 8, "term": 3, "kill": 2, "exit": 4, "remove": 3, "remove pod": 1,
    "vanish": 1, "vanish pod": 1, "kill infra": 1, "inspect": 2,
}  # fmt: skip


def life(seed: int) -> list[Step]:
    dice = random.Random(seed)
    verbs = dice.choices(list(WEIGHTS), weights=list(WEIGHTS.values()), k=STEPS)
    return [Step(v, dice.randrange(2), dice.randrange(2), dice.randrange(3)) for v in verbs]


class Player:
    """Does steps to one world; knows things by name, as the ids differ."""

    def __init__(self, world: World, told: Transcript) -> None:
        self.world = world
        self.told = told
        self.table: dict[str, Callable[[Step, ObservedPod | None, ObservedContainer | None], None]] = {
            "create pod": self.create_pod,
            "create": self.create,
            "start": self.start,
            "term": self.term,
            "kill": self.kill,
            "exit": self.exit,
            "remove": self.remove,
            "remove pod": self.remove_pod,
            "vanish": self.vanish,
            "vanish pod": self.vanish_pod,
            "kill infra": self.kill_infra,
            "inspect": self.inspect,
        }

    def play(self, step: Step) -> None:
        sandbox = self.sandbox(PODS[step.pod])
        name = PODS[step.pod].containers[step.container].name
        self.table[step.verb](step, sandbox, sandbox.newest(name) if sandbox else None)
        for wanted in PODS:
            self.told.see(self.world, wanted.key)

    def sandbox(self, wanted: Pod) -> ObservedPod | None:
        return next(iter(self.world.runtime.list(wanted.key)), None)

    def create_pod(self, step: Step, sandbox: ObservedPod | None, seen: ObservedContainer | None) -> None:
        self.told.call("create pod", lambda: self.world.runtime.create_pod(PODS[step.pod], step.number))

    def create(self, step: Step, sandbox: ObservedPod | None, seen: ObservedContainer | None) -> None:
        if sandbox is None:
            return
        wanted = PODS[step.pod]
        spec = wanted.containers[step.container]
        binds = self.world.binds
        self.told.call("create", lambda: self.world.runtime.create_container(sandbox, wanted, spec, step.number, binds))

    def start(self, step: Step, sandbox: ObservedPod | None, seen: ObservedContainer | None) -> None:
        if sandbox is not None:
            target = seen.id if seen else GONE
            self.told.call("start", lambda: self.world.runtime.start_container(sandbox, target))

    def term(self, step: Step, sandbox: ObservedPod | None, seen: ObservedContainer | None) -> None:
        if seen is not None and seen.running:
            self.world.settle(lambda: self.world.polite(seen))
        self._signal("SIGTERM", seen)

    def kill(self, step: Step, sandbox: ObservedPod | None, seen: ObservedContainer | None) -> None:
        self._signal("SIGKILL", seen)

    def _signal(self, signal: str, seen: ObservedContainer | None) -> None:
        target = seen.id if seen else GONE
        self.told.call(signal, lambda: self.world.runtime.signal_container(target, signal))
        if seen is not None:
            self.world.settle(lambda: not self._runs(target))

    def _runs(self, target: str) -> bool:
        return any(c.running for p in self.world.runtime.list() for c in p.containers if c.id == target)

    def exit(self, step: Step, sandbox: ObservedPod | None, seen: ObservedContainer | None) -> None:
        if seen is not None and seen.running:
            self.world.exit(seen.name, step.number)

    def remove(self, step: Step, sandbox: ObservedPod | None, seen: ObservedContainer | None) -> None:
        target = seen.id if seen else GONE
        self.told.call("remove", lambda: self.world.runtime.remove_container(target))

    def remove_pod(self, step: Step, sandbox: ObservedPod | None, seen: ObservedContainer | None) -> None:
        target = sandbox.id if sandbox else GONE
        self.told.call("remove pod", lambda: self.world.runtime.remove_pod(target))

    def vanish(self, step: Step, sandbox: ObservedPod | None, seen: ObservedContainer | None) -> None:
        if seen is not None:
            self.world.vanish(seen.id, "container")

    def vanish_pod(self, step: Step, sandbox: ObservedPod | None, seen: ObservedContainer | None) -> None:
        if sandbox is not None:
            self.world.vanish(sandbox.id, "pod")

    def kill_infra(self, step: Step, sandbox: ObservedPod | None, seen: ObservedContainer | None) -> None:
        if sandbox is not None and sandbox.infra_pid:
            self.world.kill_infra(sandbox)

    def inspect(self, step: Step, sandbox: ObservedPod | None, seen: ObservedContainer | None) -> None:
        target = seen.id if seen else GONE
        self.told.call("inspect", lambda: self.world.runtime.inspect_container(target))


@pytest.mark.parametrize("seed", range(3))
def test_any_life_of_two_pods_is_the_same_on_both(real: RealWorld, seed: int) -> None:
    theirs, mine = Transcript(), Transcript()
    podmans, fakes = Player(real, theirs), Player(FakeWorld(), mine)
    for number, step in enumerate(life(seed)):
        podmans.play(step)
        fakes.play(step)
        for said, wanted in itertools.zip_longest(mine.lines, theirs.lines):
            assert said == wanted, f"seed {seed}, step {number}: {step}\nfake   {said}\nPodman {wanted}"
