"""What is done to a pod, scene by scene: every branch of the planner, and its answers whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgelet.core import plan as planner
from edgelet.core.backoff import Backoff
from edgelet.core.memory import Ending, PodMemory, Pull, PullState, StartError, Trouble
from edgelet.model.hooks import HookKind, HookState
from edgelet.model.observed import State
from edgelet.model.pod import Container, Exec
from edgelet.model.status import Waiting
from tests.core import scenes
from tests.core.scenes import (
    APP,
    INIT,
    LATER,
    NOW,
    PROBE,
    SIDE,
    SIDECAR,
    Case,
    created,
    ended,
    fresh,
    known,
    memory,
    newer,
    over,
    pod,
    pulls,
    runs,
    sandbox,
    scene,
    stops,
    verdict,
)

TWO = (APP, SIDE)
ALWAYS = Container("app", "demo", pull_policy="Always")
PROBED = replace(APP, liveness=PROBE)
STARTUP = replace(SIDECAR, startup=PROBE)
TROUBLE = Trouble("cannot reach Podman", 3, NOW + 4)


def ending(reason: str, keep_data: bool, anew: bool = False) -> Ending:
    """An end under way."""
    return Ending(reason, keep_data, 1.0, anew)


BEGIN = [
    Case("nothing wanted, nothing there", scene(None, None, PodMemory(boot_id="boot-1"))),
    Case("a new pod gets a sandbox", scene(pod(), None, fresh()), ("create pod 0",)),
    Case("a sandbox that vanished is made again", scene(pod(), None, memory({"app": known()})), ("create pod 1",)),
    Case("a held pod is not begun", scene(pod(), None, fresh(), held=True)),
    Case(
        "a Never pod whose container ran is not begun again",
        scene(pod(restart_policy="Never"), None, memory({"app": known()})),
    ),
    Case(
        "nor one of which only a part ran",
        scene(pod(*TWO, restart_policy="Never"), None, memory({"app": over()})),
    ),
    Case(
        "a Never pod of which nothing ran yet gets a sandbox",
        scene(pod(restart_policy="Never"), None, memory()),
        ("create pod 1",),
    ),
    Case(
        "a Never pod runs again when a person asked",
        scene(pod(restart_policy="Never"), None, memory({"app": over()}, anew=True)),
        ("create pod 1",),
    ),
    Case(
        "a completed OnFailure pod is not begun again",
        scene(pod(restart_policy="OnFailure"), None, memory({"app": over(0)})),
    ),
    Case(
        "a failed OnFailure pod is begun again",
        scene(pod(restart_policy="OnFailure"), None, memory({"app": over(1)})),
        ("create pod 1",),
    ),
    Case(
        "a completed OnFailure pod runs again when a person asked",
        scene(pod(restart_policy="OnFailure"), None, memory({"app": over(0)}, anew=True)),
        ("create pod 1",),
    ),
    Case(
        "an OnFailure pod that ended with 0 because its sandbox died is begun again",
        scene(pod(restart_policy="OnFailure"), None, memory({"app": over(0, stopped=True)})),
        ("create pod 1",),
    ),
    Case(
        "one of two OnFailure containers is left to run",
        scene(pod(*TWO, restart_policy="OnFailure"), None, memory({"app": over(0), "side": over(3)})),
        ("create pod 1",),
    ),
    Case("an Always pod is begun again after exit 0", scene(pod(), None, memory({"app": over(0)})), ("create pod 1",)),
    Case("data of a removed pod goes", scene(None, None, memory()), ("remove data uid-a",)),
    Case("data of the old generation goes first", scene(newer(pod()), None, memory()), ("remove data uid-a",)),
    Case(
        "data of a held pod goes when its manifest changed",
        scene(newer(pod()), None, memory(), held=True),
        ("remove data uid-a",),
    ),
    Case(
        "a manifest that came back while its pod was ending starts from nothing",
        scene(pod(), None, memory(ending=ending("its manifest is gone", False))),
        ("remove data uid-a",),
    ),
    Case(
        "an end that keeps the data is followed by a new sandbox",
        scene(pod(), None, memory(ending=ending("its sandbox has died", True))),
        ("create pod 1",),
    ),
    Case("trouble holds all back", scene(pod(), None, fresh(trouble=TROUBLE)), wake=NOW + 4),
    Case(
        "trouble is over at its time",
        scene(pod(), None, fresh(trouble=replace(TROUBLE, retry_at=NOW))),
        ("create pod 0",),
    ),
]

END = [
    Case(
        "a removed pod is stopped",
        scene(None, sandbox(runs())),
        ("stop container app app-0 30",),
        ending="its manifest is gone",
    ),
    Case(
        "all its containers at once, each with its own grace",
        scene(None, sandbox(runs(grace=5), runs("side", grace=None))),
        ("stop container app app-0 5", "stop container side side-0 30"),
        ending="its manifest is gone",
    ),
    Case(
        "it waits for the grace period",
        scene(None, sandbox(runs()), memory({"app": known(stopping=stops())})),
        wake=NOW + 29,
        ending="its manifest is gone",
    ),
    Case(
        "then kills",
        scene(None, sandbox(runs()), memory({"app": known(stopping=stops(ago=30))})),
        ("kill container app app-0",),
        ending="its manifest is gone",
    ),
    Case(
        "one is killed while another is waited for",
        scene(
            None,
            sandbox(runs(), runs("side")),
            memory({"app": known(stopping=stops(ago=31)), "side": known(stopping=stops("side-0"))}),
        ),
        ("kill container app app-0",),
        wake=NOW + 29,
        ending="its manifest is gone",
    ),
    Case(
        "the sandbox goes when nothing runs any more",
        scene(None, sandbox(ended(code=143), created("side"))),
        ("remove pod sandbox",),
        ending="its manifest is gone",
    ),
    Case(
        "a held pod keeps its data, and runs again however it ended",
        scene(pod(), sandbox(runs()), held=True),
        ("stop container app app-0 30",),
        ending="stopped by a person",
        keeps_data=True,
        anew=True,
    ),
    Case(
        "a held pod that is removed loses its data",
        scene(None, sandbox(ended()), held=True),
        ("remove pod sandbox",),
        ending="its manifest is gone",
    ),
    Case(
        "an end is never taken back",
        scene(pod(), sandbox(runs()), memory({"app": known()}, ending=ending("its manifest is gone", False))),
        ("stop container app app-0 30",),
        ending="its manifest is gone",
    ),
    Case(
        "nor is it by a newer version",
        scene(newer(pod()), sandbox(runs()), memory({"app": known()}, ending=ending("its sandbox has died", True))),
        ("stop container app app-0 30",),
        ending="its sandbox has died",
        keeps_data=True,
    ),
    Case(
        "an end that would keep data does not, once the pod is removed",
        scene(None, sandbox(ended()), memory({"app": over()}, ending=ending("its sandbox has died", True))),
        ("remove pod sandbox",),
        ending="its sandbox has died",
    ),
    Case(
        "whoever deletes a pod may give it less time",
        scene(None, sandbox(runs()), grace=3),
        ("stop container app app-0 3",),
        ending="its manifest is gone",
    ),
    Case(
        "also when its end has begun already",
        scene(
            None,
            sandbox(runs()),
            memory({"app": known(stopping=stops())}, ending=ending("its manifest is gone", False)),
            grace=10,
        ),
        wake=NOW + 9,
        ending="its manifest is gone",
    ),
    Case(
        "a pod that is wanted is not hurried",
        scene(pod(), sandbox(runs()), held=True, grace=3),
        ("stop container app app-0 30",),
        ending="stopped by a person",
        keeps_data=True,
        anew=True,
    ),
    Case(
        "a hurried end stays hurried when the pod is wanted anew",
        scene(
            pod(),
            sandbox(runs()),
            memory({"app": known(stopping=stops())}, ending=ending("its sandbox has died", True)),
            grace=3,
        ),
        wake=NOW + 2,
        ending="its sandbox has died",
        keeps_data=True,
    ),
    Case(
        "a created container is not signalled",
        scene(None, sandbox(created())),
        ("remove pod sandbox",),
        ending="its manifest is gone",
    ),
]

READY = pulls(PullState.READY)
NEW = PodMemory("uid-b", "1-b", "boot-1")
CHANGED = "its manifest has changed"
CHANGE = [
    Case(
        "a new version's image is fetched while the old one runs",
        scene(newer(pod()), sandbox(runs()), old=pod(), incoming=NEW),
        ("pull image app demo",),
    ),
    Case(
        "nothing is asked twice while it is fetched",
        scene(newer(pod()), sandbox(runs()), old=pod(), incoming=NEW.update("app", pull=pulls(PullState.PULLING))),
    ),
    Case(
        "once it is there the old one is stopped",
        scene(newer(pod()), sandbox(runs()), old=pod(), incoming=NEW.update("app", pull=READY)),
        ("stop container app app-0 30",),
        ending=CHANGED,
    ),
    Case(
        "and removed",
        scene(newer(pod()), sandbox(ended()), old=pod(), incoming=NEW.update("app", pull=READY)),
        ("remove pod sandbox",),
        ending=CHANGED,
    ),
    Case(
        "all images must be there",
        scene(newer(pod(*TWO)), sandbox(runs()), old=pod(), incoming=NEW.update("app", pull=READY)),
        ("pull image side demo",),
    ),
    Case(
        "a failed fetch waits, the old version runs",
        scene(
            newer(pod()),
            sandbox(runs()),
            old=pod(),
            incoming=NEW.update("app", pull=pulls(PullState.FAILED, "ErrImagePull", "no", 4, 10)),
        ),
        wake=NOW + 6,
    ),
    Case(
        "it is tried again at its time",
        scene(
            newer(pod()),
            sandbox(runs()),
            old=pod(),
            incoming=NEW.update("app", pull=pulls(PullState.FAILED, "ErrImagePull", "no", 10, 10)),
        ),
        ("pull image app demo",),
    ),
    Case(
        "meanwhile the old version is kept alive",
        scene(
            newer(pod()),
            sandbox(ended(code=1)),
            old=pod(),
            incoming=NEW.update("app", pull=pulls(PullState.FAILED, "ErrImagePull", "no", 4, 10)),
        ),
        ("create container app 1",),
        wake=NOW + 6,
    ),
    Case(
        "with its own waits",
        scene(
            newer(pod()),
            sandbox(ended(code=1)),
            memory({"app": known(backoff=Backoff(10.0, NOW - 5))}),
            old=pod(),
            incoming=NEW.update("app", pull=pulls(PullState.FAILED, "ErrImagePull", "no", 0, 100)),
        ),
        wake=NOW + 9,
        waits={"app": "CrashLoopBackOff"},
    ),
    Case(
        "a version that nobody knows runs on while all of it runs",
        scene(newer(pod()), sandbox(runs()), incoming=NEW),
        ("pull image app demo",),
    ),
    Case(
        "it waits for a failed fetch too",
        scene(
            newer(pod()),
            sandbox(runs()),
            incoming=NEW.update("app", pull=pulls(PullState.FAILED, "ErrImagePull", "no", 4, 10)),
        ),
        wake=NOW + 6,
    ),
    Case(
        "it is not worth keeping when a part of it has ended",
        scene(newer(pod()), sandbox(runs(), ended("side")), incoming=NEW),
        ("stop container app app-0 30",),
        ending=CHANGED,
    ),
    Case(
        "an older dead instance beside a running one is nothing bad",
        scene(newer(pod()), sandbox(ended(), runs(count=1)), incoming=NEW),
        ("pull image app demo",),
    ),
    Case(
        "a sandbox without containers is not worth keeping",
        scene(newer(pod()), sandbox(), incoming=NEW),
        ("remove pod sandbox",),
        ending=CHANGED,
    ),
    Case(
        "a spec of yet another generation is of no use",
        scene(newer(pod()), sandbox(runs()), old=replace(pod(), config_hash="1-z"), incoming=NEW),
        ("pull image app demo",),
    ),
    Case(
        "and keeps nothing that has ended",
        scene(newer(pod()), sandbox(ended()), old=replace(pod(), config_hash="1-z"), incoming=NEW),
        ("remove pod sandbox",),
        ending=CHANGED,
    ),
    Case(
        "a dead sandbox is replaced at once, images or not",
        scene(newer(pod()), sandbox(runs(), infra_dead=True), old=pod(), incoming=NEW),
        ("stop container app app-0 30",),
        ending=CHANGED,
    ),
    Case(
        "so is one of an earlier boot",
        scene(newer(pod()), sandbox(created(), boot_id="boot-0"), old=pod(), incoming=NEW),
        ("remove pod sandbox",),
        ending=CHANGED,
    ),
]

DOWN = [
    Case("a machine that goes down begins nothing", scene(pod(), None, fresh(), down=5)),
    Case("it lets its containers end in time", scene(pod(), sandbox(runs()), down=5), ("stop container app app-0 5",)),
    Case(
        "waits for them",
        scene(pod(), sandbox(runs()), memory({"app": known(stopping=stops(grace=5))}), down=5),
        wake=NOW + 4,
    ),
    Case("and leaves the rest to the next boot", scene(pod(), sandbox(ended(code=143)), down=5)),
    Case(
        "a container that ends well because it was told to has completed nothing",
        scene(pod(restart_policy="OnFailure"), sandbox(runs()), down=5),
        ("stop container app app-0 5",),
        ending="the machine is going down",
        keeps_data=True,
        anew=True,
    ),
    Case("one that had completed before has", scene(pod(restart_policy="OnFailure"), sandbox(ended()), down=5)),
    Case(
        "an end under way is hurried",
        scene(pod(), sandbox(runs()), memory({"app": known()}, ending=ending("its sandbox has died", True)), down=5),
        ("stop container app app-0 5",),
        ending="its sandbox has died",
        keeps_data=True,
    ),
    Case(
        "a removed pod likewise",
        scene(None, sandbox(runs()), down=5),
        ("stop container app app-0 5",),
        ending="its manifest is gone",
    ),
]

INITS = pod(inits=(INIT, LATER))
WITH_SIDECAR = pod(inits=(SIDECAR, INIT))
GATED = pod(inits=(STARTUP, INIT))
KEEP = [
    Case("a good pod is left alone", scene(pod(), sandbox(runs()))),
    Case("a new sandbox gets its container", scene(pod(), sandbox()), ("create container app 0",)),
    Case("which is started", scene(pod(), sandbox(created())), ("start container app app-0",)),
    Case(
        "regular containers begin in spec order, one after the other",
        scene(pod(*TWO), sandbox()),
        ("create container app 0",),
    ),
    Case("the second after the first", scene(pod(*TWO), sandbox(runs())), ("create container side 0",)),
    Case(
        "one that backs off does not hold up the next",
        scene(pod(*TWO), sandbox(ended(ago=2)), memory({"app": known(backoff=Backoff(10.0, NOW - 3))})),
        ("create container side 0",),
        wake=NOW + 8,
        waits={"app": "CrashLoopBackOff"},
    ),
    Case(
        "one whose image is pulled does",
        scene(pod(*TWO), sandbox(), memory({"app": known(-1, pull=pulls(PullState.PULLING))})),
        waits={"app": "ContainerCreating"},
    ),
    Case("a crashed container is made again", scene(pod(), sandbox(ended(code=1))), ("create container app 1",)),
    Case(
        "a container of unknown state is removed first",
        scene(pod(), sandbox(runs(state=State.UNKNOWN))),
        ("remove container app app-0",),
    ),
    Case("an older dead instance is kept", scene(pod(), sandbox(ended(), runs(count=1)))),
    Case(
        "one still older is not",
        scene(pod(), sandbox(ended(), ended(count=1), runs(count=2))),
        ("remove container app app-0",),
    ),
    Case(
        "nor are two",
        scene(pod(), sandbox(ended(), ended(count=1), ended(count=2), runs(count=3))),
        ("remove container app app-0", "remove container app app-1"),
    ),
    Case(
        "tidying up waits while there is something better to do",
        scene(pod(), sandbox(ended(), ended(count=1), ended(count=2))),
        ("create container app 3",),
    ),
    Case(
        "an exit of which only the code is known is looked into at leisure",
        scene(pod(), sandbox(ended(partial=True), runs(count=1))),
        ("inspect container app app-0",),
    ),
    Case("but not before the restart", scene(pod(), sandbox(ended(partial=True, code=1))), ("create container app 1",)),
    Case(
        "an exit without a code is looked into before it is judged",
        scene(pod(restart_policy="OnFailure"), sandbox(ended(partial=True, code=None))),
        ("inspect container app app-0",),
    ),
    Case(
        "and when even that tells no code it counts as failed",
        scene(pod(restart_policy="OnFailure"), sandbox(ended(code=None))),
        ("create container app 1",),
    ),
    Case(
        "a dead sandbox is ended and made anew",
        scene(pod(), sandbox(runs(), infra_dead=True)),
        ("stop container app app-0 30",),
        ending="its sandbox has died",
        keeps_data=True,
    ),
    Case(
        "a sandbox of an earlier boot likewise",
        scene(pod(), sandbox(created(), boot_id="boot-0")),
        ("remove pod sandbox",),
        ending="the machine was restarted",
        keeps_data=True,
    ),
    Case(
        "a restart that a person asked for",
        scene(pod(), sandbox(runs()), memory({"app": known()}, replace_id="sandbox")),
        ("stop container app app-0 30",),
        ending="a restart was asked for",
        keeps_data=True,
        anew=True,
    ),
    Case(
        "a restart asked for of an earlier sandbox is done already",
        scene(pod(), sandbox(runs()), memory({"app": known()}, replace_id="before")),
    ),
    Case(
        "a completed pod is restarted too when a person asks",
        scene(pod(restart_policy="Never"), sandbox(ended()), memory({"app": over()}, replace_id="sandbox")),
        ("remove pod sandbox",),
        ending="a restart was asked for",
        keeps_data=True,
        anew=True,
    ),
    Case(
        "one container restarted by a person is stopped first",
        scene(pod(grace=7), sandbox(runs()), memory({"app": known(restart_id="app-0")})),
        ("stop container app app-0 7",),
    ),
    Case(
        "and waited for",
        scene(pod(), sandbox(runs()), memory({"app": known(restart_id="app-0", stopping=stops())})),
        wake=NOW + 29,
    ),
    Case(
        "and made again even under Never",
        scene(
            pod(restart_policy="Never"),
            sandbox(ended(code=143)),
            memory({"app": known(restart_id="app-0", stopping=stops())}),
        ),
        ("create container app 1",),
    ),
    Case(
        "and is no longer meant once there is a newer instance",
        scene(pod(), sandbox(ended(), runs(count=1)), memory({"app": known(1, restart_id="app-0")})),
    ),
]

PROBES = [
    Case(
        "a container that fails its liveness probe is stopped",
        scene(pod(PROBED, grace=9), sandbox(runs()), verdicts={"app": verdict(failed="liveness")}),
        ("stop container app app-0 9",),
    ),
    Case(
        "with the probe's own grace if it has one",
        scene(pod(PROBED, grace=9), sandbox(runs()), verdicts={"app": verdict(failed="liveness", grace=0)}),
        ("stop container app app-0 0",),
    ),
    Case(
        "a verdict on an earlier instance counts for nothing",
        scene(pod(PROBED), sandbox(runs(count=1)), verdicts={"app": verdict("app-0", failed="liveness")}),
    ),
    Case("a good verdict changes nothing", scene(pod(PROBED), sandbox(runs()), verdicts={"app": verdict()})),
    Case(
        "a stop once begun goes on without the verdict",
        scene(pod(PROBED), sandbox(runs()), memory({"app": known(stopping=stops(grace=5))})),
        wake=NOW + 4,
    ),
    Case(
        "and ends in a kill",
        scene(pod(PROBED), sandbox(runs()), memory({"app": known(stopping=stops(ago=5, grace=5))})),
        ("kill container app app-0",),
    ),
    Case(
        "which is repeated",
        scene(pod(PROBED), sandbox(runs()), memory({"app": known(stopping=stops(ago=20, grace=20, kills=1))})),
        ("kill container app app-0",),
    ),
    Case(
        "a stop of an earlier instance is over",
        scene(pod(PROBED), sandbox(runs(count=1)), memory({"app": known(1, stopping=stops("app-0"))})),
    ),
    Case(
        "an ended container is not stopped for its last verdict",
        scene(pod(PROBED), sandbox(ended(code=1)), verdicts={"app": verdict(failed="liveness")}),
        ("create container app 1",),
    ),
    Case(
        "a killed container runs again under OnFailure though it ended with 0",
        scene(
            pod(PROBED, restart_policy="OnFailure"), sandbox(ended(code=0)), memory({"app": known(stopping=stops())})
        ),
        ("create container app 1",),
    ),
    Case(
        "but not under Never",
        scene(
            pod(PROBED, restart_policy="Never"), sandbox(ended(), infra_pid=0), memory({"app": known(stopping=stops())})
        ),
    ),
    Case(
        "a killed container is measured by the one before it, hence starts at once",
        scene(
            pod(PROBED), sandbox(ended(code=143)), memory({"app": known(stopping=stops(), backoff=Backoff(300.0, NOW))})
        ),
        ("create container app 1",),
    ),
    Case(
        "a container with a preStop hook runs that first",
        scene(pod(PROBED), sandbox(runs(pre_stop=Exec(("true",)))), verdicts={"app": verdict(failed="liveness")}),
        ("run the preStop hook of container app app-0 30",),
    ),
    Case(
        "a sidecar is killed likewise",
        scene(
            WITH_SIDECAR,
            sandbox(runs("proxy"), ended("init"), runs()),
            verdicts={"proxy": verdict("proxy-0", failed="startup")},
        ),
        ("stop container proxy proxy-0 30",),
    ),
    Case(
        "a condemned container holds up no other",
        scene(pod(*TWO), sandbox(runs()), verdicts={"app": verdict(failed="liveness")}),
        ("stop container app app-0 30", "create container side 0"),
    ),
]

INIT_CASES = [
    Case("the first init container comes first", scene(INITS, sandbox()), ("create container init 0",)),
    Case("it is started", scene(INITS, sandbox(created("init"))), ("start container init init-0",)),
    Case("and waited for", scene(INITS, sandbox(runs("init")))),
    Case("then the next", scene(INITS, sandbox(ended("init"))), ("create container later 0",)),
    Case("which is waited for too", scene(INITS, sandbox(ended("init"), runs("later")))),
    Case("then the regular ones", scene(INITS, sandbox(ended("init"), ended("later"))), ("create container app 0",)),
    Case(
        "progress counts from the last one that has an instance, so one removed meanwhile is not repeated",
        scene(INITS, sandbox(ended("later")), memory({"init": over(name="init"), "later": over(name="later")})),
        ("create container app 0",),
    ),
    Case(
        "one that failed before it is not repeated either", scene(INITS, sandbox(ended("init", code=1), runs("later")))
    ),
    Case(
        "in a new sandbox they run again from the first",
        scene(INITS, sandbox(), memory({"init": over(name="init"), "later": over(name="later"), "app": over()})),
        ("create container init 1",),
    ),
    Case("a failed init is repeated", scene(INITS, sandbox(ended("init", code=1))), ("create container init 1",)),
    Case(
        "with back-off",
        scene(INITS, sandbox(ended("init", code=1)), memory({"init": known(backoff=Backoff(10.0, NOW))})),
        wake=NOW + 9,
        waits={"init": "CrashLoopBackOff"},
    ),
    Case(
        "killed for want of memory it has failed even with 0",
        scene(INITS, sandbox(ended("init", oom_killed=True))),
        ("create container init 1",),
    ),
    Case(
        "under OnFailure it is repeated too",
        scene(replace(INITS, restart_policy="OnFailure"), sandbox(ended("init", code=1))),
        ("create container init 1",),
    ),
    Case(
        "under Never the pod has failed for good, its sandbox is stopped",
        scene(replace(INITS, restart_policy="Never"), sandbox(ended("init", code=1))),
        ("stop container infra 0",),
    ),
    Case(
        "once a regular container exists no init is run again",
        scene(INITS, sandbox(runs()), memory({"init": over(name="init"), "later": over(name="later"), "app": known()})),
    ),
    Case(
        "be it only one of two regular containers",
        scene(replace(INITS, containers=TWO), sandbox(ended("init", code=1), runs())),
        ("create container side 0",),
    ),
    Case("not even one that had failed", scene(INITS, sandbox(ended("init", code=1), runs()))),
    Case("a sidecar runs beside", scene(WITH_SIDECAR, sandbox()), ("create container proxy 0",)),
    Case(
        "the next init waits until it runs",
        scene(WITH_SIDECAR, sandbox(created("proxy"))),
        ("start container proxy proxy-0",),
    ),
    Case("then the init begins", scene(WITH_SIDECAR, sandbox(runs("proxy"))), ("create container init 0",)),
    Case(
        "a sidecar that backs off before the start of the pod is waited for",
        scene(WITH_SIDECAR, sandbox(ended("proxy", code=1)), memory({"proxy": known(backoff=Backoff(10.0, NOW))})),
        wake=NOW + 9,
        waits={"proxy": "CrashLoopBackOff"},
    ),
    Case(
        "one that backs off later is not",
        scene(
            WITH_SIDECAR,
            sandbox(ended("proxy", code=1), ended("init"), ended(code=1)),
            memory({"proxy": known(backoff=Backoff(10.0, NOW)), "init": over(name="init"), "app": known()}),
        ),
        ("create container app 1",),
        wake=NOW + 9,
        waits={"proxy": "CrashLoopBackOff"},
    ),
    Case(
        "a sidecar that ended is started again, with any policy and code",
        scene(replace(WITH_SIDECAR, restart_policy="Never"), sandbox(ended("proxy"), ended("init"), runs())),
        ("create container proxy 1",),
    ),
    Case(
        "a missing one as well",
        scene(
            WITH_SIDECAR,
            sandbox(ended("init"), runs()),
            memory({"proxy": known(), "init": over(name="init"), "app": known()}),
        ),
        ("create container proxy 1",),
    ),
    Case(
        "one that ended before a later init ran is started again, and waited for",
        scene(WITH_SIDECAR, sandbox(ended("proxy"), ended("init"))),
        ("create container proxy 1",),
    ),
    Case("a startup probe of a sidecar is waited for", scene(GATED, sandbox(runs("proxy")))),
    Case(
        "also when it says: not yet",
        scene(GATED, sandbox(runs("proxy")), verdicts={"proxy": verdict("proxy-0", started=False)}),
    ),
    Case(
        "or speaks of an earlier instance",
        scene(GATED, sandbox(runs("proxy", 1)), verdicts={"proxy": verdict("proxy-0")}),
    ),
    Case(
        "until it has succeeded",
        scene(GATED, sandbox(runs("proxy")), verdicts={"proxy": verdict("proxy-0")}),
        ("create container init 0",),
    ),
    Case(
        "not so once the pod is initialised",
        scene(GATED, sandbox(runs("proxy", 1), ended("init"), ended(code=1))),
        ("create container app 1",),
    ),
    Case("a sidecar alone", scene(pod(inits=(SIDECAR,)), sandbox(runs("proxy"))), ("create container app 0",)),
    Case(
        "an init of that policy is waited for as any other",
        scene(pod(inits=(INIT, SIDECAR)), sandbox(ended("init"))),
        ("create container proxy 0",),
    ),
]

DONE = pod(restart_policy="Never")
FINISH = [
    Case("a completed pod's sandbox is stopped", scene(DONE, sandbox(ended())), ("stop container infra 0",)),
    Case(
        "and waited for",
        scene(DONE, sandbox(ended()), memory({"app": known(), "": known(-1, stopping=stops("infra", 1, 2))})),
        wake=NOW + 1,
    ),
    Case(
        "and killed",
        scene(DONE, sandbox(ended()), memory({"app": known(), "": known(-1, stopping=stops("infra", 2, 2))})),
        ("kill container infra",),
    ),
    Case("then nothing", scene(DONE, sandbox(ended(), infra_pid=0))),
    Case("nor when it died by itself", scene(DONE, sandbox(ended(), infra_dead=True))),
    Case("nor after a reboot", scene(DONE, sandbox(ended(), infra_pid=0, boot_id="boot-0"))),
    Case(
        "its exit is looked into",
        scene(DONE, sandbox(ended(partial=True), infra_pid=0)),
        ("inspect container app app-0",),
    ),
    Case(
        "its sidecars are stopped first",
        scene(replace(WITH_SIDECAR, restart_policy="Never"), sandbox(runs("proxy", grace=4), ended("init"), ended())),
        ("stop container proxy proxy-0 4",),
    ),
    Case(
        "and waited for",
        scene(
            replace(WITH_SIDECAR, restart_policy="Never"),
            sandbox(runs("proxy"), ended("init"), ended()),
            memory({"app": over(), "init": over(name="init"), "proxy": known(stopping=stops("proxy-0"))}),
        ),
        wake=NOW + 29,
    ),
    Case(
        "a container that is not done keeps the pod",
        scene(pod(*TWO, restart_policy="Never"), sandbox(ended(), runs("side"))),
    ),
    Case(
        "one that never ran is started even under Never",
        scene(pod(*TWO, restart_policy="Never"), sandbox(ended())),
        ("create container side 0",),
    ),
    Case("OnFailure: exit 0 stays", scene(pod(*TWO, restart_policy="OnFailure"), sandbox(ended(), runs("side")))),
    Case(
        "OnFailure: another code does not",
        scene(pod(*TWO, restart_policy="OnFailure"), sandbox(ended(code=2), runs("side"))),
        ("create container app 1",),
    ),
    Case(
        "a created container is started even under Never",
        scene(DONE, sandbox(created())),
        ("start container app app-0",),
    ),
    Case(
        "a vanished container under Never stays away",
        scene(DONE, sandbox(), memory({"app": known()})),
        ("stop container infra 0",),
    ),
    Case(
        "a vanished container under Always is made again",
        scene(pod(), sandbox(), memory({"app": known()})),
        ("create container app 1",),
    ),
    Case(
        "a start that failed counts as an end under Never",
        scene(
            DONE, sandbox(created(), infra_pid=0), memory({"app": known(start_error=StartError("app-0", "no", NOW))})
        ),
    ),
    Case(
        "and is tried again under Always",
        scene(pod(), sandbox(created()), memory({"app": known(start_error=StartError("app-0", "no", NOW))})),
        ("create container app 1",),
    ),
    Case(
        "with back-off from then on",
        scene(
            pod(),
            sandbox(created(count=1)),
            memory({"app": known(1, start_error=StartError("app-1", "no", NOW - 3), backoff=Backoff(10.0, NOW - 3))}),
        ),
        wake=NOW + 7,
        waits={"app": "CrashLoopBackOff"},
    ),
]

IMAGES = [
    Case("policy Always asks first", scene(pod(ALWAYS), sandbox()), ("pull image app demo",)),
    Case(
        "and creates when it is there",
        scene(pod(ALWAYS), sandbox(), memory({"app": known(-1, pull=READY)})),
        ("create container app 0",),
    ),
    Case(
        "a missing image is pulled",
        scene(pod(), sandbox(), memory({"app": known(-1, pull=pulls(PullState.MISSING))})),
        ("pull image app demo",),
    ),
    Case(
        "ImagePullBackOff",
        scene(
            pod(), sandbox(), memory({"app": known(-1, pull=pulls(PullState.FAILED, "ImagePullBackOff", "no", 5, 20))})
        ),
        wake=NOW + 15,
        waits={"app": "ImagePullBackOff"},
    ),
    Case(
        "holds up no other container",
        scene(
            pod(*TWO),
            sandbox(),
            memory({"app": known(-1, pull=pulls(PullState.FAILED, "ErrImageNeverPull", "no", 5, 20))}),
        ),
        ("create container side 0",),
        wake=NOW + 15,
        waits={"app": "ErrImageNeverPull"},
    ),
    Case(
        "until its time",
        scene(
            pod(), sandbox(), memory({"app": known(-1, pull=pulls(PullState.FAILED, "ImagePullBackOff", "no", 20, 20))})
        ),
        ("pull image app demo",),
    ),
    Case(
        "a crash waits before its image is asked for",
        scene(pod(ALWAYS), sandbox(ended()), memory({"app": known(backoff=Backoff(10.0, NOW))})),
        wake=NOW + 9,
        waits={"app": "CrashLoopBackOff"},
    ),
    Case(
        "a container that could not be made waits",
        scene(
            pod(),
            sandbox(),
            memory({"app": known(-1, retry_at=NOW + 5, waiting=Waiting("CreateContainerError", "no"))}),
        ),
        wake=NOW + 5,
        waits={"app": "CreateContainerError"},
    ),
    Case(
        "and is tried again at its time",
        scene(pod(), sandbox(), memory({"app": known(-1, retry_at=NOW)})),
        ("create container app 0",),
    ),
]


@pytest.mark.parametrize("case", [*BEGIN, *END], ids=lambda c: c.name)
def test_a_pod_begins_and_ends(case: Case) -> None:
    case.check()


@pytest.mark.parametrize("case", DOWN, ids=lambda c: c.name)
def test_the_machine_goes_down(case: Case) -> None:
    case.check()


@pytest.mark.parametrize("case", CHANGE, ids=lambda c: c.name)
def test_a_changed_manifest(case: Case) -> None:
    case.check()


@pytest.mark.parametrize("case", KEEP, ids=lambda c: c.name)
def test_a_pod_is_kept_as_it_should_be(case: Case) -> None:
    case.check()


@pytest.mark.parametrize("case", PROBES, ids=lambda c: c.name)
def test_probes_condemn(case: Case) -> None:
    case.check()


@pytest.mark.parametrize("case", INIT_CASES, ids=lambda c: c.name)
def test_init_containers_and_sidecars(case: Case) -> None:
    case.check()


@pytest.mark.parametrize("case", [*FINISH, *IMAGES], ids=lambda c: c.name)
def test_ends_and_images(case: Case) -> None:
    case.check()


REASONS = [
    (scene(pod(), None, fresh()), "not there yet"),
    (scene(pod(), None, memory()), "its sandbox is gone"),
    (scene(None, None, memory()), "its manifest is gone"),
    (scene(newer(pod()), None, memory()), "its manifest has changed"),
    (scene(pod(), None, memory(ending=ending("its end had begun", False))), "its end had begun"),
    (scene(None, sandbox(ended())), "its manifest is gone"),
    (scene(None, sandbox(runs())), "Stopping container app"),
    (scene(pod(), sandbox(runs()), memory({"app": known(restart_id="app-0")})), "Stopping container app"),
    (
        scene(pod(PROBED), sandbox(runs()), verdicts={"app": verdict(failed="liveness")}),
        "Container app failed liveness probe, will be restarted",
    ),
    (scene(pod(), sandbox(runs()), memory({"app": known(stopping=stops(ago=31))})), "grace period is over"),
    (scene(DONE, sandbox(ended())), "the pod has completed"),
    (scene(pod(), sandbox(runs(state=State.UNKNOWN))), "its state is unknown"),
    (scene(pod(), sandbox(ended(), ended(count=1), runs(count=2))), "an older dead instance"),
    (scene(pod(), sandbox(ended(partial=True), runs(count=1))), "it has ended"),
    (scene(pod(), sandbox(ended(partial=True, code=None))), "it has ended, the code is not known"),
    (scene(pod(), sandbox(created())), "created"),
    (scene(pod(), sandbox()), "not running yet"),
    (scene(pod(), sandbox(ended(code=3))), "ended with exit code 3 (Error)"),
    (scene(pod(ALWAYS), sandbox()), "policy Always"),
    (scene(newer(pod()), sandbox(runs()), incoming=NEW), "a new version of the pod needs it"),
]


@pytest.mark.parametrize(("of", "reason"), REASONS, ids=[reason for _, reason in REASONS])
def test_every_action_says_why(of: planner.Scene, reason: str) -> None:
    assert [a.reason for a in planner.plan(of).actions] == [reason]


def test_a_pull_says_for_which_generation_it_is() -> None:
    both = scene(
        newer(pod(ALWAYS)),
        sandbox(ended(code=1)),
        old=pod(ALWAYS),
        incoming=NEW.update("app", pull=pulls(PullState.FAILED, "ErrImagePull", "no", 10, 10)),
    )
    assert [a.config_hash for a in planner.plan(both).actions] == ["1-b", "1-a"]


def test_waiting_messages() -> None:
    waits = planner.plan(
        scene(pod(), sandbox(ended(ago=2)), memory({"app": known(backoff=Backoff(160.0, NOW - 3))}))
    ).waiting
    assert waits == {
        "app": Waiting("CrashLoopBackOff", "back-off 2m40s restarting failed container=app pod=web-node_default(uid-a)")
    }
    pulling = planner.plan(scene(pod(), sandbox(), memory({"app": known(-1, pull=pulls(PullState.PULLING))}))).waiting
    assert pulling == {"app": Waiting("ContainerCreating", "pulling image demo")}
    failed = memory({"app": known(-1, pull=pulls(PullState.FAILED, "ErrImagePull", "manifest unknown", 0, 10))})
    assert planner.plan(scene(pod(), sandbox(), failed)).waiting == {"app": Waiting("ErrImagePull", "manifest unknown")}


EARLIEST = [
    scene(
        newer(pod(*TWO)),
        sandbox(runs(), runs("side")),
        incoming=NEW.update("app", pull=pulls(PullState.FAILED, "no", "no", 0, 50)).update(
            "side", pull=pulls(PullState.FAILED, "no", "no", 0, 20)
        ),
    ),
    scene(
        replace(pod(inits=(SIDECAR, replace(SIDECAR, name="proxy-2"))), restart_policy="Never"),
        sandbox(runs("proxy"), runs("proxy-2"), ended()),
        memory(
            {
                "proxy": known(stopping=stops("proxy-0", 1, 51)),
                "proxy-2": known(stopping=stops("proxy-2-0", 1, 21)),
                "app": over(),
            }
        ),
    ),
]


EARLIEST.append(
    scene(
        None,
        sandbox(runs(), runs("side")),
        memory({"app": known(stopping=stops("app-0", 1, 51)), "side": known(stopping=stops("side-0", 1, 21))}),
    )
)


@pytest.mark.parametrize("of", EARLIEST)
def test_the_earliest_of_two_waits_counts(of: planner.Scene) -> None:
    made = planner.plan(of)
    assert (made.actions, made.wake_at) == ((), NOW + 20)


def test_a_container_that_was_only_made_is_started_before_the_next_is_made() -> None:
    assert scenes.spoken(planner.plan(scene(pod(*TWO), sandbox(created())))) == ["start container app app-0"]


ALL_ALWAYS = pod(ALWAYS, replace(ALWAYS, name="side"))


def test_images_of_one_pod_are_asked_for_one_after_the_other() -> None:
    assert scenes.spoken(planner.plan(scene(ALL_ALWAYS, sandbox()))) == ["pull image app demo"]
    missing = memory({n: known(-1, pull=pulls(PullState.MISSING)) for n in ("app", "side")})
    assert scenes.spoken(planner.plan(scene(pod(*TWO), sandbox(), missing))) == ["pull image app demo"]


@pytest.mark.parametrize(
    "first", [pulls(PullState.PULLING), pulls(PullState.FAILED, "no", "no", 0, 9), pulls(PullState.READY)]
)
def test_images_of_a_new_version_are_asked_for_all_at_once(first: Pull) -> None:
    changed = scene(newer(pod(*TWO)), sandbox(runs()), incoming=NEW.update("app", pull=first))
    assert scenes.spoken(planner.plan(changed)) == ["pull image side demo"]


def test_a_number_is_never_given_twice() -> None:
    made = planner.plan(scene(pod(), sandbox(ended(count=3)), memory({"app": known(1)})))
    assert scenes.spoken(made) == ["create container app 4"]
    made = planner.plan(scene(pod(), sandbox(ended(count=1)), memory({"app": known(3)})))
    assert scenes.spoken(made) == ["create container app 4"]
    made = planner.plan(scene(pod(), sandbox(), memory({"app": known(-1, base=6)})))
    assert scenes.spoken(made) == ["create container app 6"]


def test_a_back_off_is_over_at_its_very_time() -> None:
    waits = memory({"app": known(backoff=Backoff(10.0, NOW - 11))})
    assert scenes.spoken(planner.plan(scene(pod(), sandbox(ended(ago=10)), waits))) == ["create container app 1"]


def test_a_container_of_unknown_state_holds_up_the_next() -> None:
    assert scenes.spoken(planner.plan(scene(pod(*TWO), sandbox(runs(state=State.UNKNOWN))))) == [
        "remove container app app-0"
    ]


def test_what_runs_is_never_tidied_away() -> None:
    assert planner.plan(scene(pod(), sandbox(runs(), ended(count=1), runs(count=2)))).actions == ()


def test_instances_are_counted_per_container() -> None:
    both = sandbox(ended(), runs(count=1), ended("side"), runs("side", 1))
    assert planner.plan(scene(pod(*TWO), both)).actions == ()


def test_the_earliest_wait_decides_when_to_look_again() -> None:
    several = memory({"app": known(backoff=Backoff(40.0, NOW)), "side": known(backoff=Backoff(10.0, NOW))})
    assert planner.plan(scene(pod(*TWO), sandbox(ended(), ended("side")), several)).wake_at == NOW + 9


def test_scenes_are_what_they_say() -> None:
    assert scenes.spoken(planner.plan(scene(pod(), None, fresh()))) == ["create pod 0"]


POST = ("app-0", HookKind.POST_START)
STARTING = [
    ("runs", HookState.RUNNING, [], [], ""),
    ("is done", HookState.DONE, ["create container side 0"], ["create container later 0"], ""),
    ("was not begun by this agent", None, ["create container side 0"], ["create container later 0"], ""),
    ("has failed", HookState.FAILED, ["stop container app app-0 30"], None, "FailedPostStartHook"),
]


@pytest.mark.parametrize(("name", "state", "regular", "sidecar", "reason"), STARTING, ids=[s[0] for s in STARTING])
def test_the_next_container_waits_while_a_post_start_hook(
    name: str, state: HookState | None, regular: list[str], sidecar: list[str] | None, reason: str
) -> None:
    hooks = {POST: state} if state else {}
    made = planner.plan(scene(pod(*TWO), sandbox(runs()), memory({"app": known()}, hooks=hooks)))
    assert scenes.spoken(made) == regular
    assert made.wake_at is None
    if reason:
        assert [a.reason for a in made.actions] == [reason]
    inits = (replace(SIDECAR, name="app"), LATER)
    gated = planner.plan(scene(pod(SIDE, inits=inits), sandbox(runs()), memory({"app": known()}, hooks=hooks)))
    assert scenes.spoken(gated) == (regular if sidecar is None else sidecar)


def test_a_post_start_hook_of_a_dead_instance_holds_nothing_up() -> None:
    remembered = memory({"app": over()}, hooks={POST: HookState.RUNNING})
    made = planner.plan(scene(pod(*TWO), sandbox(ended()), remembered))
    assert scenes.spoken(made) == ["create container app 1"]


def test_a_pre_stop_hook_holds_no_start_up() -> None:
    remembered = memory({"app": known()}, hooks={("app-0", HookKind.PRE_STOP): HookState.FAILED})
    assert scenes.spoken(planner.plan(scene(pod(*TWO), sandbox(runs()), remembered))) == ["create container side 0"]
