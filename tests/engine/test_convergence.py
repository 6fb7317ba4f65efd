"""From any state the reconciler brings a pod to what is wanted, breaks no rule on its way, and then rests.

``EDGELET_EXAMPLES=5000 python -m tests.engine.test_convergence`` looks deeper than the test run does, and
prints a histogram of the states that were reached; EDGELET_SHRINK=1 looks for the smallest failure.
"""

from __future__ import annotations

import collections
import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from edgelet import errors
from edgelet.model.gate import Gate
from edgelet.model.hooks import HookState
from edgelet.model.pod import Container, Exec, Lifecycle, Pod, Probe, RestartRule
from tests.engine.world import KEY, World, fault_source, make_pod, settled

EXAMPLES = int(os.environ.get("EDGELET_EXAMPLES", "300"))
REACHED: collections.Counter[str] = collections.Counter()
NAMES = ("app", "side", "third")
INITS = ("init-1", "init-2")
SIDECARS = ("sidecar-1", "sidecar-2")
ALL = (*NAMES, *INITS, *SIDECARS)
PROBE = Probe(Exec(("true",)))
HOOKED = Lifecycle(post_start=Exec(("true",)), pre_stop=Exec(("true",)))
CHANGES = frozenset({"create_pod", "remove_pod", "create_container", "start_container", "signal_container"})


@pytest.fixture(scope="module", autouse=True)
def histogram() -> Iterator[None]:
    """Prints, after the last test of this file, which states were reached how often."""
    REACHED.clear()
    logging.getLogger("edgelet").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("edgelet").setLevel(logging.NOTSET)
    print(f"\nstates reached: {len(REACHED)} kinds in {REACHED.total()} steps")
    for what, count in REACHED.most_common():
        print(f"{count:8} {what}")


@dataclass(frozen=True, slots=True)
class Box:
    """A container in short: the image it needs, when that is pulled, what is probed, whether it is a sidecar."""

    image: str
    pull: str
    probe: str
    grace: int | None
    sidecar: bool
    hook: bool
    policy: str
    rule: str

    def build(self, name: str, init: bool) -> Container:
        """The container; inits that run to their end have no probes."""
        sidecar = init and self.sidecar
        probe = replace(PROBE, termination_grace=self.grace) if sidecar or not init else None
        return Container(
            name.replace("init", "sidecar") if sidecar else name,
            self.image,
            pull_policy=self.pull,
            restart_policy="Always" if sidecar else self.policy if self.policy != "Always" or not init else "",
            restart_rules=(RestartRule(self.rule, "In", (1, 137)),) if self.rule and self.policy else (),
            lifecycle=HOOKED if self.hook and (sidecar or not init) else Lifecycle(),
            liveness=probe if self.probe == "liveness" else None,
            startup=probe if self.probe == "startup" else None,
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """A pod in short."""

    regular: tuple[Box, ...]
    inits: tuple[Box, ...]
    policy: str
    grace: int
    host_network: bool

    def build(self, config_hash: str) -> Pod:
        """The pod."""
        return make_pod(
            config_hash,
            containers=tuple(box.build(name, False) for name, box in zip(NAMES, self.regular, strict=False)),
            init_containers=tuple(box.build(name, True) for name, box in zip(INITS, self.inits, strict=False)),
            restart_policy=self.policy,
            grace=self.grace,
            host_network=self.host_network,
        )


boxes = st.builds(
    Box,
    image=st.sampled_from(("demo", "demo", "other")),
    pull=st.sampled_from(("IfNotPresent", "IfNotPresent", "Always", "Never")),
    probe=st.sampled_from(("", "", "liveness", "startup")),
    grace=st.sampled_from((None, None, 1, 7)),
    sidecar=st.booleans(),
    hook=st.booleans(),
    policy=st.sampled_from(("", "", "", "Always", "OnFailure", "Never")),
    rule=st.sampled_from(("", "Restart", "RestartAllContainers")),
)
shapes = st.builds(
    Shape,
    regular=st.lists(boxes, min_size=1, max_size=3).map(tuple),
    inits=st.lists(boxes, max_size=2).map(tuple),
    policy=st.sampled_from(("Always", "Always", "OnFailure", "Never")),
    grace=st.sampled_from((0, 1, 5, 30)),
    host_network=st.booleans(),
)


@dataclass(frozen=True, slots=True)
class Op:
    """Something that happens: a wish, an accident, or time."""

    verb: str
    which: int = 0
    number: int = 0


VERBS = tuple(
    """edit, edit, edit, remove, readd, hold, release, restart, restart container, exit, exit, exit, oom, infra dies,
    reboot, conmon dies, agent restarts, liveness, started, lose image, container vanishes, pod vanishes,
    ignore SIGTERM, heed SIGTERM, bad command, good command, exits at start, stays up, volume fails, volume works,
    hooks end, hooks fail,
    cut off, back, refuse, admit, time, time, time, wake, relist""".replace("\n    ", " ").split(", ")
)

ops = st.builds(Op, st.sampled_from(VERBS), st.integers(0, 6), st.sampled_from((0, 1, 3, 9, 40, 200, 700)))
scripts = st.lists(st.tuples(ops, st.sampled_from((0, 1, 1, 3))), min_size=1, max_size=16)
generations = st.tuples(shapes, shapes, shapes)


class Play:
    """Applies operations to a world."""

    def __init__(self, world: World, generations: tuple[Pod, ...]) -> None:
        self.world = world
        self.generations = generations
        self.last = generations[0]
        self.boots = 0
        world.runtime.exits_at_start.update(dict.fromkeys(INITS, 0))

    def do(self, op: Op) -> None:
        """One operation."""
        getattr(self, "_" + op.verb.replace(" ", "_").lower())(op)

    def _name(self, op: Op) -> str:
        return ALL[op.which % len(ALL)]

    def _edit(self, op: Op) -> None:
        self.last = self.generations[op.which % len(self.generations)]
        self.world.want(self.last, held=self.world.wish.held)

    def _remove(self, op: Op) -> None:
        self.world.want(None, grace=(None, None, 0, 4)[op.which % 4])

    def _readd(self, op: Op) -> None:
        self.world.want(self.last)

    def _hold(self, op: Op) -> None:
        if self.world.wish.pod is not None:
            self.world.want(self.world.wish.pod, held=True)

    def _release(self, op: Op) -> None:
        self.world.want(self.world.wish.pod)

    def _restart(self, op: Op) -> None:
        self.world.rules.crashes.clear()
        self.world.box.restart()

    def _restart_container(self, op: Op) -> None:
        self.world.rules.crashes.clear()
        self.world.box.restart(self._name(op))

    def _exit(self, op: Op) -> None:
        self.world.exit(self._name(op), op.number % 2)

    def _oom(self, op: Op) -> None:
        self.world.exit(self._name(op), 137, oom=True)

    def _infra_dies(self, op: Op) -> None:
        pod = self.world.pod()
        if pod is not None and pod.infra_pid:
            self.world.runtime.kill_infra(KEY)
            self.world.deliver()

    def _reboot(self, op: Op) -> None:
        self.boots += 1
        self.world.reboot(f"boot-{self.boots + 1}")

    def _conmon_dies(self, op: Op) -> None:
        if self.world.state(self._name(op)) == "running":
            process_too = bool(op.number % 2)
            if process_too:
                self.world.rules.ended(self._name(op))
            self.world.runtime.kill_conmon(self.world.newest(self._name(op)).id, process_too=process_too)
            self.world.deliver()

    def _agent_restarts(self, op: Op) -> None:
        self.world.boot()

    def _liveness(self, op: Op) -> None:
        self._verdict(op, "liveness")

    def _started(self, op: Op) -> None:
        self._verdict(op, "")

    def _verdict(self, op: Op, failed: str) -> None:
        for target in self.world.probes.targets.get(KEY, ()):
            if target.container.name == self._name(op):
                kind = failed and ("startup" if target.container.startup else "liveness")
                self.world.probes.set(KEY, target.container.name, started=not failed, failed=kind)
                probe = target.container.startup or target.container.liveness
                if failed and probe is not None and probe.termination_grace is not None:
                    self.world.rules.graces[target.container_id] = probe.termination_grace
                self.world.box.wake()

    def _lose_image(self, op: Op) -> None:
        name = ("demo", "other")[op.which % 2]
        self.world.runtime.images.pop(name, None)
        self.world.runtime.registry.pop(name, None)

    def _container_vanishes(self, op: Op) -> None:
        pod = self.world.pod()
        newest = pod.newest(self._name(op)) if pod else None
        if newest is not None:
            self.world.vanish(newest.id)

    def _pod_vanishes(self, op: Op) -> None:
        pod = self.world.pod()
        if pod is not None:
            self.world.vanish(pod.id)

    def _ignore_sigterm(self, op: Op) -> None:
        self.world.runtime.ignores_sigterm.add(self._name(op))

    def _heed_sigterm(self, op: Op) -> None:
        self.world.runtime.ignores_sigterm.clear()

    def _bad_command(self, op: Op) -> None:
        self.world.runtime.bad_commands.add(self._name(op))

    def _good_command(self, op: Op) -> None:
        self.world.runtime.bad_commands.clear()

    def _exits_at_start(self, op: Op) -> None:
        self.world.runtime.exits_at_start[self._name(op)] = op.number % 2

    def _hooks_end(self, op: Op) -> None:
        self.world.end_hooks()
        self.world.end_post_start()

    def _hooks_fail(self, op: Op) -> None:
        self.world.end_hooks(HookState.FAILED)
        self.world.end_post_start(HookState.FAILED)

    def _stays_up(self, op: Op) -> None:
        for name in (*NAMES, *SIDECARS):
            self.world.runtime.exits_at_start.pop(name, None)

    def _volume_fails(self, op: Op) -> None:
        self.world.volumes.fail_with = errors.VolumeError("cannot mount volume x: hostPath type check failed")

    def _volume_works(self, op: Op) -> None:
        self.world.volumes.fail_with = None

    def _cut_off(self, op: Op) -> None:
        self.world.runtime.unreachable = True

    def _refuse(self, op: Op) -> None:
        """The node does not take the pod, or it waits for another one: for ever, or for some seconds."""
        until = self.world.clock.monotonic() + op.number if op.which % 2 else None
        self._gate(Gate("NodePorts", "taken", refused=op.which % 3 > 0, until=until))

    def _admit(self, op: Op) -> None:
        self._gate(None)

    def _gate(self, gate: Gate | None) -> None:
        self.world.gate = gate
        self.world.want(self.world.wish.pod, held=self.world.wish.held, grace=self.world.wish.grace)

    def _back(self, op: Op) -> None:
        self.world.runtime.unreachable = False

    def _time(self, op: Op) -> None:
        self.world.run(op.number)

    def _wake(self, op: Op) -> None:
        self.world.box.wake(stale=bool(op.number % 2))

    def _relist(self, op: Op) -> None:
        self.world.relist()

    def peace(self) -> None:
        """From here nothing fails any more."""
        world = self.world
        world.runtime.fault_source = lambda method: None
        world.runtime.unreachable = False
        world.runtime.bad_commands.clear()
        world.volumes.fail_with = None
        self._gate(None)
        for name in ("demo", "other"):
            world.runtime.add_image(name)
        world.runtime.exits_at_start = dict.fromkeys(INITS, 0)
        self._finish_inits()

    def _finish_inits(self) -> None:
        """Inits of an earlier, bad time that hang now end; startup probes succeed."""
        self.world.end_post_start()
        for name in INITS:
            self.world.exit(name, 0)
        for target in self.world.probes.targets.get(KEY, ()):
            if not self.world.probes.verdicts(KEY)[target.container.name].started:
                self.world.probes.set(KEY, target.container.name)
                self.world.box.wake()

    def settle(self) -> None:
        """Bounded time passes; startup probes go on succeeding."""
        self.world.observer.suspect()
        self._relist(Op("relist"))
        for _ in range(60):
            self._finish_inits()
            self.world.run(20)


def note(world: World) -> None:
    """Count the state that was reached."""
    status = world.statuses.newest.get(KEY)
    memory = world.local.memory
    states = ",".join(sorted({type(c.state).__name__ for c in status.containers})) if status else "-"
    marks = [
        ("held", world.wish.held),
        ("removed", world.wish.pod is None),
        ("ending", memory.ending is not None),
        ("restarting all", memory.restarting is not None),
        ("trouble", memory.trouble is not None),
        ("other generation", world.wish.pod is not None and memory.config_hash not in ("", world.wish.pod.config_hash)),
        ("no sandbox", world.pod() is None),
        ("gated", world.gate is not None),
        ("climbing", memory.climb is not None),
        ("backing off", any(w.reason == "CrashLoopBackOff" for w in world.local.waiting.values())),
        ("killed", any(c.stopping and c.stopping.kills for c in memory.containers.values())),
    ]
    what = f"{status.phase if status else 'no status':10} {states:28} {' '.join(m for m, is_so in marks if is_so)}"
    REACHED[what.strip()] += 1
    event(what.strip())


PHASES = (Phase.explicit, Phase.generate, *((Phase.shrink,) if os.environ.get("EDGELET_SHRINK") else ()))
rates, kills = st.sampled_from((0.0, 0.1, 0.3)), st.sampled_from((0.0, 0.03, 0.1))


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(generations, scripts, st.booleans(), rates, kills, st.integers(0, 2**32))
def test_converges_from_any_state_and_then_rests(
    shapes: tuple[Shape, Shape, Shape],
    script: list[tuple[Op, int]],
    warm: bool,
    rate: float,
    kill: float,
    seed: int,
) -> None:
    world = World(images=("demo", "other"))
    generations = tuple(shape.build(f"1-{letter}") for shape, letter in zip(shapes, "abc", strict=True))
    strangers = world.neighbour()
    play = Play(world, generations)
    world.want(generations[0])
    if warm:
        world.run(5)
    world.runtime.fault_source = fault_source(rate, kill, seed)
    for op, steps in script:
        play.do(op)
        for _ in range(steps):
            world.step()
        note(world)
    play.peace()
    play.settle()
    pod = world.wish.pod
    if pod is None or world.wish.held:
        assert world.pod() is None, f"still there: {world.pod()}"
        assert (pod is not None) or not world.volumes.data - {g.uid for g in generations}
    else:
        assert settled(world, pod) == ""
    world.run(2000)
    before = len(world.runtime.calls)
    world.run(5000)
    assert {c.method for c in world.runtime.calls[before:]} & CHANGES == set()
    assert not [c for c in world.runtime.calls if c.method in CHANGES and strangers & set(map(str, c.args))]


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-s", "-p", "no:logging", __file__]))
