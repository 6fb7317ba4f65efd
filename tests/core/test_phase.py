"""The status of a pod: phase (semantics 3.11), conditions (3.12), containers (3.13), and the line for a person."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from edgelet.core import phase, qos, text
from edgelet.core.memory import ContainerMemory, Ending, PodMemory, StartError, Trouble
from edgelet.core.phase import Facts
from edgelet.model.gate import Gate
from edgelet.model.observed import ObservedPod, State
from edgelet.model.pod import Container, Pod, Resources
from edgelet.model.status import (
    Condition,
    ContainerStatus,
    PodStatus,
    Running,
    Terminated,
    Waiting,
)
from tests.core.scenes import (
    APP,
    INIT,
    LATER,
    NOW,
    PROBE,
    SIDE,
    SIDECAR,
    WALL,
    created,
    ended,
    fresh,
    known,
    memory,
    over,
    pod,
    runs,
    sandbox,
    stops,
    verdict,
)

TWO = pod(APP, SIDE)
INITS = pod(inits=(INIT, LATER))
WITH_SIDECAR = pod(inits=(SIDECAR,))
STARTUP = replace(APP, startup=PROBE)
READINESS = replace(APP, readiness=PROBE)
BACKING_OFF = {"app": Waiting("CrashLoopBackOff", "back-off 10s")}
LOST = Terminated(
    137,
    "ContainerStatusUnknown",
    message="The container could not be located: it was removed, or the power failed while it ran.",
)


def facts(of: Pod, observed: ObservedPod | None, remembered: PodMemory | None = None, **fields: object) -> Facts:
    """Facts at WALL."""
    if remembered is None:
        remembered = memory({c.name: known(c.restart_count) for c in observed.containers}) if observed else fresh()
    return replace(Facts(of, observed, remembered, WALL), **fields)  # type: ignore[arg-type]


def never(*containers: Container, inits: tuple[Container, ...] = ()) -> Pod:
    """A pod of policy Never."""
    return pod(*containers, inits=inits, restart_policy="Never")


def on_failure(*containers: Container, inits: tuple[Container, ...] = ()) -> Pod:
    """A pod of policy OnFailure."""
    return pod(*containers, inits=inits, restart_policy="OnFailure")


PHASES = [
    ("nothing there yet", facts(pod(), None), "Pending"),
    ("an empty sandbox", facts(pod(), sandbox()), "Pending"),
    ("created", facts(pod(), sandbox(created())), "Pending"),
    ("running", facts(pod(), sandbox(runs())), "Running"),
    ("one of two runs, the other never did", facts(TWO, sandbox(runs())), "Pending"),
    ("one of two runs, the other backs off", facts(TWO, sandbox(runs(), ended("side", code=1))), "Running"),
    ("all back off", facts(pod(), sandbox(ended(code=1)), waiting=BACKING_OFF), "Running"),
    ("Always, exit 0", facts(pod(), sandbox(ended())), "Running"),
    ("Never, exit 0", facts(never(), sandbox(ended())), "Succeeded"),
    ("Never, exit 1", facts(never(), sandbox(ended(code=1))), "Failed"),
    ("Never, one of two failed", facts(never(APP, SIDE), sandbox(ended(), ended("side", code=1))), "Failed"),
    ("Never, both ended well", facts(never(APP, SIDE), sandbox(ended(), ended("side"))), "Succeeded"),
    ("Never, one goes on", facts(never(APP, SIDE), sandbox(ended(code=1), runs("side"))), "Running"),
    ("OnFailure, exit 0", facts(on_failure(), sandbox(ended())), "Succeeded"),
    ("OnFailure, exit 1", facts(on_failure(), sandbox(ended(code=1))), "Running"),
    (
        "OnFailure, exit 0 after a failed probe",
        facts(on_failure(), sandbox(ended()), memory({"app": known(stopping=stops())})),
        "Running",
    ),
    (
        "a second instance that is not started yet",
        facts(pod(), sandbox(ended(), created(count=1)), memory({"app": known(1, last=over().last)})),
        "Running",
    ),
    (
        "the first instance after a restart that a person asked for",
        facts(pod(), sandbox(), memory({"app": ContainerMemory(base=1, last=over().last)})),
        "Pending",
    ),
    ("the sandbox is gone, it will be made again", facts(pod(), None, memory({"app": over(1)})), "Running"),
    ("a container has vanished", facts(pod(), sandbox(), memory({"app": known()})), "Running"),
    ("Never, the sandbox is gone", facts(never(), None, memory({"app": known()})), "Failed"),
    ("Never, the sandbox of a completed pod is gone", facts(never(), None, memory({"app": over(0)})), "Succeeded"),
    ("Never, the sandbox is gone before all ran", facts(never(APP, SIDE), None, memory({"app": over(0)})), "Failed"),
    ("Never, nothing has run yet", facts(never(), None), "Pending"),
    (
        "Never, to run again because a person asked",
        facts(never(APP, SIDE), None, memory({"app": over(0)}, anew=True)),
        "Pending",
    ),
    (
        "OnFailure with an init, completed, after a reboot",
        facts(on_failure(inits=(INIT,)), None, memory({"init": over(name="init"), "app": over(0)})),
        "Succeeded",
    ),
    (
        "a start that failed, Never",
        facts(never(), sandbox(created()), memory({"app": known(start_error=StartError("app-0", "no", NOW))})),
        "Failed",
    ),
    ("init runs", facts(INITS, sandbox(runs("init"))), "Pending"),
    ("init ended, the next is not there yet", facts(INITS, sandbox(ended("init"))), "Pending"),
    ("init failed and is repeated", facts(INITS, sandbox(ended("init", code=1))), "Pending"),
    ("init failed for good", facts(never(inits=(INIT,)), sandbox(ended("init", code=1))), "Failed"),
    (
        "init failed for good though the regular ones are remembered to have ended well",
        facts(never(inits=(INIT,)), sandbox(ended("init", code=1)), memory({"init": known(), "app": over(0)})),
        "Failed",
    ),
    (
        "a failed init means nothing once a regular container ran",
        facts(never(inits=(INIT,)), sandbox(ended("init", code=1), runs())),
        "Running",
    ),
    ("inits done, nothing else yet", facts(INITS, sandbox(ended("init"), ended("later"))), "Pending"),
    ("inits done, running", facts(INITS, sandbox(ended("init"), ended("later"), runs())), "Running"),
    ("only a sidecar runs", facts(WITH_SIDECAR, sandbox(runs("proxy"))), "Pending"),
    (
        "a sidecar is down, the regular one runs",
        facts(WITH_SIDECAR, sandbox(ended("proxy", code=1), runs())),
        "Running",
    ),
    (
        "a sidecar does not keep a pod alive, nor fail it",
        facts(never(inits=(SIDECAR,)), sandbox(ended("proxy", code=1), ended())),
        "Succeeded",
    ),
    ("nor does a running one", facts(never(inits=(SIDECAR,)), sandbox(runs("proxy"), ended())), "Succeeded"),
    (
        "a failed sidecar before the start is repeated even under Never",
        facts(never(inits=(SIDECAR,)), sandbox(ended("proxy", code=1))),
        "Pending",
    ),
    (
        "a sidecar that is not started yet",
        facts(pod(inits=(replace(SIDECAR, startup=PROBE),)), sandbox(runs("proxy"))),
        "Pending",
    ),
]


@pytest.mark.parametrize(("of", "expected"), [p[1:] for p in PHASES], ids=[p[0] for p in PHASES])
def test_phase(of: Facts, expected: str) -> None:
    assert phase.status(of).phase == expected


def one(of: Facts, name: str = "app") -> ContainerStatus:
    """The status of one container."""
    made = phase.status(of)
    return next(c for c in made.containers + made.init_containers if c.name == name)


END = Terminated(3, "Error", WALL - 100, WALL - 1, "", "app-0")
REFUSED = Waiting("RunContainerError", "no such file")
START_ERROR = Terminated(128, "StartError", 0.0, WALL - 101, "no such file", "app-0")
NOT_STARTED = known(
    last=START_ERROR, ended=True, waiting=REFUSED, start_error=StartError("app-0", REFUSED.message, NOW)
)
STATES = [
    ("nothing there", facts(pod(), None), Waiting("ContainerCreating"), None),
    ("runs", facts(pod(), sandbox(runs())), Running(WALL - 100), None),
    ("ended", facts(pod(), sandbox(ended(code=3)), memory({"app": known(last=END, ended=True)})), END, None),
    (
        "backs off",
        facts(pod(), sandbox(ended(code=3)), memory({"app": known(last=END, ended=True)}), waiting=BACKING_OFF),
        BACKING_OFF["app"],
        END,
    ),
    (
        "runs again",
        facts(pod(), sandbox(ended(code=3), runs(count=1)), memory({"app": known(1, last=END)})),
        Running(WALL - 100),
        END,
    ),
    (
        "ended twice",
        facts(pod(), sandbox(ended(code=3), ended(count=1)), memory({"app": over(0, count=1)})),
        Terminated(0, "Completed", WALL - 100, WALL - 1, "", "app-1"),
        END,
    ),
    ("runs though something waits", facts(pod(), sandbox(runs()), waiting=BACKING_OFF), Running(WALL - 100), None),
    (
        "could not be made",
        facts(pod(), sandbox(), memory({"app": known(-1, waiting=Waiting("CreateContainerError", "x"))})),
        Waiting("CreateContainerError", "x"),
        None,
    ),
    (
        "vanished and to run again",
        facts(pod(), sandbox(), memory({"app": known(last=END)})),
        Waiting("ContainerCreating"),
        LOST,
    ),
    ("vanished for good", facts(never(), sandbox(), memory({"app": known()})), LOST, None),
    (
        "ended in an earlier sandbox, to run again",
        facts(pod(), sandbox(), memory({"app": known(last=END, ended=True)})),
        Waiting("ContainerCreating"),
        END,
    ),
    (
        "ended in an earlier sandbox, no new one yet",
        facts(pod(), None, memory({"app": known(last=END, ended=True)})),
        END,
        None,
    ),
    (
        "ended well in an earlier sandbox and stays so",
        facts(on_failure(APP, SIDE), sandbox(), memory({"app": over(0), "side": over(1)})),
        over(0).last,
        None,
    ),
    (
        "to run anew",
        facts(pod(), sandbox(), memory({"app": ContainerMemory(base=1, last=END)})),
        Waiting("ContainerCreating"),
        END,
    ),
    (
        "could not be started, to be tried again",
        facts(pod(), sandbox(created()), memory({"app": NOT_STARTED})),
        REFUSED,
        START_ERROR,
    ),
    (
        "could not be started, and waits",
        facts(
            pod(),
            sandbox(created()),
            memory({"app": NOT_STARTED}),
            waiting=BACKING_OFF,
        ),
        BACKING_OFF["app"],
        START_ERROR,
    ),
    (
        "could not be started, and is not to be again",
        facts(never(), sandbox(created()), memory({"app": NOT_STARTED})),
        START_ERROR,
        None,
    ),
    (
        "an earlier one could not be started, this one has ended",
        facts(
            pod(),
            sandbox(ended(count=1)),
            memory({"app": replace(NOT_STARTED, restart_count=1, last=over(0, count=1).last)}),
        ),
        Terminated(0, "Completed", WALL - 100, WALL - 1, "", "app-1"),
        None,
    ),
    ("before its inits", facts(INITS, sandbox(runs("init"))), Waiting("PodInitializing"), None),
    ("after its inits", facts(INITS, sandbox(ended("init"), ended("later"))), Waiting("ContainerCreating"), None),
]


@pytest.mark.parametrize(("of", "state", "last"), [s[1:] for s in STATES], ids=[s[0] for s in STATES])
def test_container_state_and_last_state(of: Facts, state: object, last: Terminated | None) -> None:
    made = one(of)
    assert made.state == state
    assert made.last_state == last


def test_init_containers_not_begun_wait_for_the_pod_to_initialise() -> None:
    assert one(facts(INITS, sandbox(runs("init"))), "later").state == Waiting("PodInitializing")


def test_a08_an_init_container_removed_afterwards_counts_as_done() -> None:
    removed = facts(INITS, sandbox(ended("later"), runs()), memory({"later": over(name="later"), "app": known()}))
    made = one(removed, "init")
    assert made.state == Terminated(0, "Completed", message=text.INIT_STATUS_LOST)
    assert (made.ready, made.last_state) == (True, None)
    assert text.INIT_STATUS_LOST == (
        "Unable to get init container status from container runtime and pod has been initialized,"
        " treat it as exited normally"
    )
    assert phase.status(removed).phase == "Running"
    not_yet = facts(INITS, sandbox(ended("later")))
    assert one(not_yet, "init").state == Waiting("PodInitializing")
    missing_sidecar = facts(WITH_SIDECAR, sandbox(runs()))
    assert isinstance(one(missing_sidecar, "proxy").state, Waiting)


def test_the_fields_of_a_container() -> None:
    made = one(facts(pod(), sandbox(runs(count=2)), memory({"app": known(2, base=9)})))
    assert made.image == "demo"
    assert made.image_id == "sha256:demo"
    assert made.container_id == "podman://app-2"
    assert made.log_path == "/logs/app/2.log"
    assert made.restart_count == 9
    assert (made.started, made.ready) == (True, True)
    none = one(facts(pod(), None))
    assert (none.image_id, none.container_id, none.log_path, none.restart_count) == ("", "", "", 0)


SIGNS = [
    ("runs, no probes", APP, runs(), None, (True, True)),
    ("does not run", APP, ended(), None, (False, False)),
    ("startup not probed yet", STARTUP, runs(), None, (False, False)),
    ("startup not passed", STARTUP, runs(), verdict(started=False), (False, False)),
    ("startup passed", STARTUP, runs(), verdict(), (True, True)),
    ("startup passed by an earlier instance", STARTUP, runs(count=1), verdict(), (False, False)),
    ("startup passed, then it died", STARTUP, ended(), verdict(), (False, False)),
    ("readiness not probed yet", READINESS, runs(), None, (True, False)),
    ("not ready", READINESS, runs(), verdict(ready=False), (True, False)),
    ("ready", READINESS, runs(), verdict(), (True, True)),
    ("ready was an earlier instance", READINESS, runs(count=1), verdict(), (True, False)),
]


@pytest.mark.parametrize(("container", "seen", "said", "expected"), [s[1:] for s in SIGNS], ids=[s[0] for s in SIGNS])
def test_started_and_ready(container: Container, seen: object, said: object, expected: tuple[bool, bool]) -> None:
    verdicts = {"app": said} if said else {}
    made = one(facts(pod(container), sandbox(seen), verdicts=verdicts))  # type: ignore[arg-type]
    assert (made.started, made.ready) == expected


def test_inits_are_ready_once_they_have_exited_well_and_sidecars_while_they_run() -> None:
    of = facts(pod(inits=(SIDECAR, INIT, LATER)), sandbox(runs("proxy"), ended("init"), ended("later", code=1)))
    assert [(c.name, c.ready) for c in phase.status(of).init_containers] == [
        ("proxy", True),
        ("init", True),
        ("later", False),
    ]
    assert not one(facts(INITS, sandbox(runs("init"))), "init").ready


def test_containers_are_sorted_by_name_inits_stand_in_spec_order() -> None:
    made = phase.status(facts(pod(SIDE, APP, inits=(LATER, INIT)), sandbox()))
    assert [c.name for c in made.containers] == ["app", "side"]
    assert [c.name for c in made.init_containers] == ["later", "init"]


def test_what_is_left_of_an_earlier_count_is_a_run() -> None:
    made = facts(pod(), sandbox(created()), memory({"app": known(0, last=over().last)}))
    assert phase.status(made).phase == "Running"


def test_nothing_is_ready_in_a_completed_pod() -> None:
    made = phase.status(facts(never(inits=(INIT,)), sandbox(ended("init"), ended())))
    assert [c.ready for c in made.containers] == [False]


@dataclass(frozen=True, slots=True)
class Signs:
    """Conditions as one line each: type, status, reason, message."""

    of: Facts

    def lines(self) -> list[str]:
        """In order."""
        made = phase.status(self.of).conditions
        return [" ".join(x for x in (c.type, c.status, c.reason, c.message) if x) for c in made]


def test_conditions_of_a_new_pod() -> None:
    unready = "ContainersNotReady containers with unready status: [app side]"
    assert Signs(facts(TWO, None)).lines() == [
        "PodReadyToStartContainers False",
        "Initialized True",
        f"Ready False {unready}",
        f"ContainersReady False {unready}",
        "PodScheduled True",
    ]


def test_conditions_of_a_good_pod() -> None:
    assert Signs(facts(pod(), sandbox(runs()))).lines() == [
        "PodReadyToStartContainers True",
        "Initialized True",
        "Ready True",
        "ContainersReady True",
        "PodScheduled True",
    ]


def test_conditions_while_inits_run() -> None:
    lines = Signs(facts(pod(inits=(SIDECAR, INIT, LATER)), sandbox(runs("proxy"), ended("init", code=1)))).lines()
    assert lines[1] == "Initialized False ContainersNotInitialized containers with incomplete status: [init later]"
    assert lines[2] == "Ready False ContainersNotReady containers with unready status: [app]"


@pytest.mark.parametrize(
    ("seen", "said", "done"),
    [
        (runs("proxy"), None, False),
        (runs("proxy"), verdict("proxy-0"), True),
        (runs("proxy"), verdict("proxy-0", started=False), False),
        (runs("proxy", 1), verdict("proxy-0"), False),
        (ended("proxy"), verdict("proxy-0"), False),
    ],
)
def test_a_sidecar_with_a_startup_probe_is_initialised_once_that_has_passed(
    seen: object, said: object, done: bool
) -> None:
    of = facts(
        pod(inits=(replace(SIDECAR, startup=PROBE),)),
        sandbox(seen),  # type: ignore[arg-type]
        verdicts={"proxy": said} if said else {},
    )
    expected = "Initialized True" if done else "Initialized False ContainersNotInitialized"
    assert Signs(of).lines()[1].startswith(expected)


def test_a_sidecar_that_is_not_ready_makes_the_pod_unready() -> None:
    lines = Signs(facts(WITH_SIDECAR, sandbox(ended("proxy"), runs()))).lines()
    assert lines[2] == "Ready False ContainersNotReady containers with unready status: [proxy]"


def test_conditions_of_ended_pods() -> None:
    assert Signs(facts(never(inits=(INIT,)), sandbox(ended("init"), ended()))).lines() == [
        "PodReadyToStartContainers False",
        "Initialized True PodCompleted",
        "Ready False PodCompleted",
        "ContainersReady False PodCompleted",
        "PodScheduled True",
    ]
    assert Signs(facts(never(), sandbox(ended(code=1)))).lines()[:3] == [
        "PodReadyToStartContainers False",
        "Initialized True",
        "Ready False PodFailed",
    ]


SANDBOXES = [
    (facts(pod(), None), False),
    (facts(pod(), sandbox()), True),
    (facts(pod(), sandbox(ips=())), False),
    (facts(pod(host_network=True), sandbox(ips=())), True),
    (facts(pod(), sandbox(infra_dead=True)), False),
    (facts(pod(), sandbox(boot_id="boot-0")), False),
]


@pytest.mark.parametrize(("of", "expected"), SANDBOXES)
def test_ready_to_start_containers(of: Facts, expected: bool) -> None:
    assert Signs(of).lines()[0] == f"PodReadyToStartContainers {expected}"


def test_a_condition_keeps_its_time_while_it_does_not_change() -> None:
    before = PodStatus(
        "Running",
        conditions=(
            Condition("Ready", "True", 5.0),
            Condition("ContainersReady", "False", 6.0, "ContainersNotReady", "other words"),
        ),
    )
    made = phase.status(facts(pod(READINESS), sandbox(runs()), previous=before)).conditions
    assert {c.type: c.last_transition for c in made} == {
        "PodReadyToStartContainers": WALL,
        "Initialized": WALL,
        "Ready": WALL,
        "ContainersReady": 6.0,
        "PodScheduled": WALL,
    }


ADDRESSES = [
    (facts(pod(), sandbox(runs())), ("10.88.0.2",)),
    (facts(pod(), None), ()),
    (facts(pod(), sandbox(infra_dead=True)), ()),
    (facts(pod(host_network=True), sandbox(ips=()), host_ip="192.0.2.1"), ("192.0.2.1",)),
    (facts(pod(host_network=True), sandbox(ips=())), ()),
    (facts(pod(), sandbox(), host_ip="192.0.2.1"), ("10.88.0.2",)),
]


@pytest.mark.parametrize(("of", "ips"), ADDRESSES)
def test_addresses(of: Facts, ips: tuple[str, ...]) -> None:
    assert phase.status(of).ips == ips


def test_the_fields_of_a_status() -> None:
    made = phase.status(facts(pod(), sandbox(runs()), host_ip="192.0.2.1", held=True))
    assert (made.start_time, made.host_ip, made.qos, made.deleting, made.held) == (
        WALL - 200, "192.0.2.1", "BestEffort", 0.0, True,
    )  # fmt: skip
    going = phase.status(facts(pod(), sandbox(runs()), memory({"app": known()}, ending=Ending("x", False, 7.5))))
    assert (going.deleting, going.held, going.deletion_grace) == (7.5, False, None)
    hurried = phase.status(facts(pod(), sandbox(runs()), grace=4))
    assert hurried.deletion_grace == 4


# -- one line for a person -----------------------------------------------------------------------------

TROUBLE = Trouble("cannot reach Podman: connection refused", 3, NOW)
LINES = [
    ("all is well", facts(pod(), sandbox(runs())), ""),
    ("held", facts(pod(), None, held=True), "stopped by a person; `edgelet start web` runs it again"),
    (
        "held, without a short name",
        facts(pod(short_name=""), None, held=True),
        "stopped by a person; `edgelet start web-node` runs it again",
    ),
    ("being created", facts(pod(), None), "container app is being created"),
    (
        "being pulled",
        facts(pod(), sandbox(), waiting={"app": Waiting("ContainerCreating", "pulling image demo")}),
        "container app is being created: pulling image demo",
    ),
    (
        "image missing",
        facts(pod(), sandbox(), waiting={"app": Waiting("ErrImagePull", "manifest unknown")}),
        "container app: ErrImagePull: manifest unknown",
    ),
    (
        "crashing",
        facts(pod(), sandbox(ended(code=3)), memory({"app": known(last=END, ended=True)}), waiting=BACKING_OFF),
        "container app: CrashLoopBackOff: back-off 10s; last end: exit code 3 (Error)",
    ),
    (
        "the reason is told once",
        facts(pod(), sandbox(created()), memory({"app": NOT_STARTED})),
        "container app: RunContainerError: no such file",
    ),
    (
        "failed",
        facts(never(), sandbox(ended(code=3, message="no disk"))),
        "container app ended: exit code 3 (Error): no disk",
    ),
    ("completed", facts(never(), sandbox(ended())), ""),
    (
        "first trouble of several",
        facts(TWO, sandbox(ended(code=3), ended("side", code=4))),
        "container app ended: exit code 3 (Error)",
    ),
    (
        "the second has trouble",
        facts(TWO, sandbox(runs(), ended("side", code=4))),
        "container side ended: exit code 4 (Error)",
    ),
    (
        "not ready",
        facts(pod(READINESS), sandbox(runs())),
        "container app runs, its readiness probe does not succeed",
    ),
    (
        "not started",
        facts(pod(STARTUP), sandbox(runs())),
        "container app runs, its startup probe has not succeeded yet",
    ),
    ("an init runs", facts(INITS, sandbox(runs("init"))), "init container init runs, the others wait for it"),
    (
        "a sidecar is not started",
        facts(pod(inits=(replace(SIDECAR, startup=PROBE),)), sandbox(runs("proxy"))),
        "container proxy runs, its startup probe has not succeeded yet",
    ),
    ("inits wait", facts(INITS, sandbox()), "container init is being created"),
    (
        "trouble",
        facts(pod(), None, fresh(trouble=TROUBLE)),
        "cannot reach Podman: connection refused (tried 3 times, goes on trying)",
    ),
    (
        "trouble while ending",
        facts(pod(), sandbox(runs()), memory(trouble=TROUBLE, ending=Ending("x", False, 1.0))),
        "cannot reach Podman: connection refused (tried 3 times, goes on trying)",
    ),
    (
        "ending",
        facts(pod(), sandbox(runs()), memory(ending=Ending("its manifest has changed", False, 1.0))),
        "being stopped: its manifest has changed",
    ),
    (
        "a note comes first",
        facts(pod(), None, note="a new version waits"),
        "a new version waits; container app is being created",
    ),
    ("a note alone", facts(pod(), sandbox(runs()), note="a new version waits"), "a new version waits"),
]


@pytest.mark.parametrize(("of", "line"), [x[1:] for x in LINES], ids=[x[0] for x in LINES])
def test_one_line_says_why(of: Facts, line: str) -> None:
    assert phase.status(of).summary == line


# -- small things --------------------------------------------------------------------------------------

FULL = Resources(cpu_limit=100, memory_limit=200, cpu_request=100, memory_request=200)
CLASSES = [
    ((Resources(),), "BestEffort"),
    ((Resources(cpu_limit=0, memory_request=0),), "BestEffort"),
    ((FULL,), "Guaranteed"),
    ((replace(FULL, cpu_request=None, memory_request=None),), "Guaranteed"),
    ((replace(FULL, memory_request=None),), "Guaranteed"),
    ((replace(FULL, cpu_request=50),), "Burstable"),
    ((replace(FULL, memory_request=50),), "Burstable"),
    ((replace(FULL, memory_limit=None),), "Burstable"),
    ((replace(FULL, cpu_limit=None),), "Burstable"),
    ((Resources(cpu_request=1),), "Burstable"),
    ((Resources(memory_request=1),), "Burstable"),
    ((Resources(memory_limit=1),), "Burstable"),
    ((Resources(cpu_limit=1),), "Burstable"),
    ((FULL, FULL), "Guaranteed"),
    ((FULL, Resources()), "Burstable"),
]


@pytest.mark.parametrize(("resources", "expected"), CLASSES)
def test_qos_class(resources: tuple[Resources, ...], expected: str) -> None:
    made = pod(*(replace(APP, name=f"c{n}", resources=r) for n, r in enumerate(resources)))
    assert qos.qos_class(made) == expected


def test_qos_counts_init_containers() -> None:
    assert qos.qos_class(pod(replace(APP, resources=FULL), inits=(INIT,))) == "Burstable"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0s"),
        (10, "10s"),
        (59.6, "1m0s"),
        (60, "1m0s"),
        (160, "2m40s"),
        (300, "5m0s"),
        (3600, "1h0m0s"),
        (3725, "1h2m5s"),
    ],
)
def test_go_duration(seconds: float, expected: str) -> None:
    assert text.go_duration(seconds) == expected


def test_an_unknown_state_is_neither_running_nor_ended() -> None:
    made = one(facts(pod(), sandbox(runs(state=State.UNKNOWN))))
    assert isinstance(made.state, Waiting)


def test_messages_of_a_pod_share_its_bytes_evenly() -> None:
    three = pod(APP, SIDE, inits=(INIT,))
    long = "\N{EURO SIGN}" * 2000
    seen = sandbox(ended("init"), ended(message=long), ended("side", message="x" * 4097), ended("side", 1, message="s"))
    said = {c.name: c for c in phase.status(facts(three, seen)).containers}
    app, side = said["app"].state, said["side"].last_state
    assert isinstance(app, Terminated) and side is not None
    assert app.message == "\N{EURO SIGN}" * 1365  # 4095 of 4096 bytes: no character is torn
    assert side.message == "x" * 4096


def test_after_a_reboot_a_pod_that_may_not_begin_says_so() -> None:
    before = memory({"app": known(last=LOST)})
    waits = phase.status(
        facts(pod(), None, before, gate=Gate("WaitingForPods", "waits for pod db to be Ready", refused=False))
    )
    assert (waits.phase, waits.summary) == ("Running", "waits for pod db to be Ready")
    refused = phase.status(facts(pod(), None, before, gate=Gate("OutOfcpu", "Pod was rejected: no cpu")))
    assert (refused.phase, refused.reason, refused.summary) == ("Failed", "OutOfcpu", "Pod was rejected: no cpu")
    assert refused.message == refused.summary
    done = phase.status(facts(never(), None, memory({"app": over(0)}), gate=Gate("OutOfcpu", "no")))
    assert (done.phase, done.reason) == ("Succeeded", "")
