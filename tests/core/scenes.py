"""Values for tests of decisions: a pod, what was observed of it, what is remembered; small names, fixed ids.

An instance of container `app` with restart count 2 has the id `app-2`; the sandbox is `sandbox`; the
generation `1-a` has the uid `uid-a`.  The time is NOW.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from edgelet.core import plan as planner
from edgelet.core.memory import ContainerMemory, PodMemory, Pull, PullState, Stopping
from edgelet.model.actions import Action, Plan, Verb
from edgelet.model.observed import ObservedContainer, ObservedPod, State
from edgelet.model.pod import Container, Exec, Pod, PodKey, Probe
from edgelet.model.status import Terminated
from edgelet.ports import Verdict

NOW = 10_000.0
WALL = 1_700_000_000.0
KEY = PodKey("default", "web-node")
APP = Container("app", "demo")
SIDE = Container("side", "demo")
INIT = Container("init", "demo")
LATER = Container("later", "demo")
SIDECAR = Container("proxy", "demo", restart_policy="Always")
PROBE = Probe(Exec(("true",)))


def pod(*containers: Container, inits: tuple[Container, ...] = (), **fields: object) -> Pod:
    """A pod of generation 1-a; one container `app` unless told otherwise."""
    base = Pod(
        name=KEY.name,
        namespace=KEY.namespace,
        uid="uid-a",
        config_hash="1-a",
        source="file",
        containers=containers or (APP,),
        init_containers=inits,
        short_name="web",
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def newer(base: Pod) -> Pod:
    """The next generation of a pod."""
    return replace(base, uid="uid-b", config_hash="1-b")


def runs(name: str = "app", count: int = 0, **fields: object) -> ObservedContainer:
    """An instance that runs, started 100 s ago."""
    base = ObservedContainer(
        id=f"{name}-{count}",
        name=name,
        state=State.RUNNING,
        restart_count=count,
        image_id="sha256:demo",
        pid=4000 + count,
        created_at=WALL - 101 + count,
        started_at=WALL - 100,
        started_mono=NOW - 100,
        grace=30,
        log_path=f"/logs/{name}/{count}.log",
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def ended(name: str = "app", count: int = 0, code: int | None = 0, ago: float = 1.0, **f: object) -> ObservedContainer:
    """An instance that ended `ago` seconds ago."""
    base = replace(
        runs(name, count),
        state=State.EXITED,
        pid=0,
        exit_code=code,
        finished_at=WALL - ago,
        finished_mono=NOW - ago,
    )
    return replace(base, **f)  # type: ignore[arg-type]


def created(name: str = "app", count: int = 0) -> ObservedContainer:
    """An instance that was never started."""
    return replace(runs(name, count), state=State.CREATED, pid=0, started_at=0.0, started_mono=0.0)


def sandbox(*containers: ObservedContainer, **fields: object) -> ObservedPod:
    """Generation 1-a in Podman, its infra container alive."""
    base = ObservedPod(
        key=KEY,
        id="sandbox",
        uid="uid-a",
        config_hash="1-a",
        source="file",
        boot_id="boot-1",
        infra_id="infra",
        infra_pid=3999,
        created_at=WALL - 200,
        ips=("10.88.0.2",),
        containers=containers,
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def memory(containers: Mapping[str, ContainerMemory] | None = None, **fields: object) -> PodMemory:
    """Memory of generation 1-a after its first sandbox was made."""
    base = PodMemory(
        uid="uid-a", config_hash="1-a", boot_id="boot-1", start_time=WALL - 200, attempt=1, containers=containers or {}
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def fresh(**fields: object) -> PodMemory:
    """Memory of generation 1-a before anything was made."""
    return replace(memory(), attempt=0, **fields)  # type: ignore[arg-type]


def known(count: int = 0, **fields: object) -> ContainerMemory:
    """Memory of a container whose newest instance has that restart count."""
    return replace(ContainerMemory(restart_count=count), **fields)  # type: ignore[arg-type]


def over(code: int = 0, count: int = 0, name: str = "app", **fields: object) -> ContainerMemory:
    """Memory of a container whose newest instance has ended."""
    end = Terminated(code, "Completed" if code == 0 else "Error", container_id=f"{name}-{count}")
    return known(count, last=end, ended=True, **fields)


def stops(container_id: str = "app-0", ago: float = 1.0, grace: float = 30.0, kills: int = 0) -> Stopping:
    """A stop signalled `ago` seconds ago."""
    return Stopping(container_id, NOW - ago, NOW - ago + grace, "asked to", kills)


def verdict(container_id: str = "app-0", failed: str = "", grace: int | None = None, **fields: bool) -> Verdict:
    """What the probes say; started and ready unless told otherwise."""
    return replace(Verdict(container_id, True, True, failed, grace), **fields)  # type: ignore[arg-type]


def pulls(state: PullState, reason: str = "", message: str = "", ago: float = 0.0, delay: float = 0.0) -> Pull:
    """Where an image stands since `ago` seconds."""
    return Pull(state, reason, message, NOW - ago, delay)


def says(action: Action) -> str:
    """An action as a short sentence, without its reason."""
    stops = (Verb.STOP_CONTAINER, Verb.RUN_PRE_STOP, Verb.ANNOUNCE_STOP)
    numbered = action.verb in (Verb.CREATE_CONTAINER, Verb.CREATE_POD, *stops)
    words = [action.verb.value, action.container, action.target, str(action.number) if numbered else ""]
    return " ".join(w for w in words if w)


def spoken(plan: Plan) -> list[str]:
    """The actions of a plan in words."""
    return [says(a) for a in plan.actions]


@dataclass(frozen=True, slots=True)
class Case:
    """A scene and all that its plan must say; `waits` are the waiting reasons by container."""

    name: str
    scene: planner.Scene
    actions: tuple[str, ...] = ()
    wake: float | None = None
    waits: Mapping[str, str] = field(default_factory=dict)
    ending: str = ""
    keeps_data: bool = False
    anew: bool = False

    def check(self) -> None:
        """Plan and compare all of it."""
        made = planner.plan(self.scene)
        assert spoken(made) == list(self.actions)
        assert made.wake_at == self.wake
        assert {name: w.reason for name, w in made.waiting.items()} == dict(self.waits)
        assert (made.ending, made.keep_data, made.anew) == (self.ending, self.keeps_data, self.anew)


def scene(
    wanted: Pod | None, observed: ObservedPod | None, remembered: PodMemory | None = None, **fields: object
) -> planner.Scene:
    """A scene at NOW; memory of a first sandbox in which all containers exist, unless told otherwise."""
    if remembered is None:
        seen = {c.name: known(c.restart_count) for c in observed.containers} if observed else {}
        remembered = memory(seen)
    return replace(planner.Scene(wanted, observed, remembered, NOW), **fields)  # type: ignore[arg-type]
