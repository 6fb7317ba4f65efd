"""How long one full pass over all pods takes when nothing has changed: planning, status and bookkeeping.

Budget (design section 6): a pass over 1000 pods under 50 ms, linear from 10.  Runtime and clock are
fakes; what is measured is our own code.  ``python -m tests.bench_planning`` prints the table.
"""

from __future__ import annotations

import gc
import statistics
import time
from dataclasses import replace

from edgelet.core import plan as planner
from edgelet.engine.executor import Executor, Tools
from edgelet.engine.local import Local
from edgelet.engine.observer import Observer
from edgelet.engine.puller import Puller
from edgelet.engine.reconciler import Context, Reconciler
from edgelet.engine.states import States
from edgelet.engine.store import StatusStore
from edgelet.model.pod import Container, Exec, Pod, PodKey, Probe
from tests import fakes

SIZES = (10, 100, 1000)


class _Nothing:
    """Exits and a durable store that do nothing."""

    def watch(self, container_id: str, pid: int, conmon_pid: int) -> None:
        """See engine.observer.Exits."""

    def forget(self, container_id: str) -> None:
        """See engine.observer.Exits."""

    def put(self, key: str, data: bytes) -> None:
        """See engine.states.Store."""

    def remove(self, key: str) -> None:
        """See engine.states.Store."""


def pod(number: int) -> Pod:
    """A pod as people have them: two containers, one of them probed."""
    probe = Probe(Exec(("true",)))
    containers = (Container("app", "demo", liveness=probe, readiness=probe), Container("log", "demo"))
    name = f"pod-{number:04}"
    return Pod(name, "default", f"uid-{name}", f"1-{name}", "file", containers)


class Fleet:
    """That many pods, all up."""

    def __init__(self, size: int) -> None:
        clock = fakes.FakeClock()
        runtime = fakes.FakeRuntime(clock)
        recorder, volumes, nothing = fakes.FakeRecorder(), fakes.FakeVolumes(), _Nothing()
        self.clock, self.runtime, self.probes = clock, runtime, fakes.FakeProbes()
        observer = Observer(runtime, clock, nothing, lambda key: None)
        puller = Puller(runtime, clock, recorder, lambda *_: None)
        self.reconciler = Reconciler(
            Context(
                executor=Executor(
                    Tools(
                        runtime,
                        volumes,
                        observer,
                        puller,
                        recorder,
                        clock,
                        fakes.FakeHooks(),
                        fakes.FakeRepairs(runtime),
                    )
                ),
                observer=observer,
                probes=self.probes,
                hooks=fakes.FakeHooks(),
                recorder=recorder,
                statuses=StatusStore(clock),
                memories=States(nothing, {}, "boot-1"),
                clock=clock,
                boot_id="boot-1",
                host_ip=lambda: "192.0.2.1",
            )
        )
        # Each comes up against an empty runtime: the fake searches all its containers, which is not ours to measure.
        self.locals = [self._up(pod(n)) for n in range(size)]

    def _up(self, wanted: Pod) -> Local:
        made = self.reconciler.step(Local(PodKey(wanted.namespace, wanted.name), desired=wanted)).local
        self.runtime._pods.clear()
        self.runtime._boxes.clear()
        self.runtime.calls.clear()
        return replace(made)

    def step(self) -> float:
        """CPU seconds for one step of every pod."""
        began = time.thread_time()
        self.locals = [self.reconciler.step(local).local for local in self.locals]
        return time.thread_time() - began

    def plan(self) -> float:
        """CPU seconds for one plan of every pod."""
        scenes = [
            replace(local.scene(self.probes.verdicts(local.key), self.clock.monotonic())) for local in self.locals
        ]
        began = time.thread_time()
        for scene in scenes:
            planner.plan(scene)
        return time.thread_time() - began


def measure(size: int, rounds: int = 10) -> tuple[float, float]:
    """Medians, in seconds, of (planning alone, whole steps with status and bookkeeping) over `size` pods."""
    fleet = Fleet(size)
    fleet.step()
    gc.collect()
    plans = statistics.median(fleet.plan() for _ in range(rounds))
    steps = statistics.median(fleet.step() for _ in range(rounds))
    if fleet.runtime.calls:
        raise RuntimeError(f"an idle pass made calls: {fleet.runtime.calls[:3]}")
    return plans, steps


def table(sizes: tuple[int, ...] = SIZES) -> list[tuple[int, float, float]]:
    """(pods, planning seconds, step seconds) for each size."""
    return [(size, *measure(size)) for size in sizes]


def main() -> None:
    """Print the table."""
    for size, plans, steps in table():
        print(f"{size:5} pods: planning {plans * 1000:7.2f} ms, whole pass {steps * 1000:7.2f} ms", flush=True)


if __name__ == "__main__":
    main()
