"""Stories of one pod, told through the reconciler on a virtual clock: what a person, Podman or the power does to it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from edgelet import errors
from edgelet.engine.workers import Wish
from edgelet.model.gate import Gate
from edgelet.model.hooks import HookKind, HookState
from edgelet.model.observed import State
from edgelet.model.pod import Container, Exec, ImageSource, Lifecycle, Pod, Probe, Sleep, Volume, VolumeMount
from edgelet.model.status import Running, Terminated, Waiting
from tests.engine.world import KEY, World, make_pod

APP = Container("app", "demo")
INIT = Container("init", "demo")
PROBED = replace(APP, liveness=Probe(Exec(("true",))))
READINESS = replace(APP, readiness=Probe(Exec(("true",))))


@pytest.fixture
def world() -> World:
    """A machine with the images demo and other."""
    return World(images=("demo", "other"))


def up(world: World, pod: Pod | None = None) -> World:
    """The pod has been wanted and all its containers have been started."""
    world.want(pod or make_pod())
    world.pump()
    return world


def count(world: World, name: str = "app") -> int:
    """The container's restart count."""
    made = world.status.containers + world.status.init_containers
    return next(c.restart_count for c in made if c.name == name)


def reasons(world: World) -> list[str]:
    """Reasons of the events so far."""
    return world.recorder.reasons()


def test_a_pod_comes_up_with_as_few_calls_as_there_can_be(world: World) -> None:
    up(world)
    assert [c.method for c in world.runtime.calls[1:]] == [
        "create_pod",
        "start_container",  # of its sandbox
        "create_container",
        "start_container",
    ]
    assert reasons(world) == ["Pulled", "Created", "Started"]
    assert world.recorder.events[0].message == (
        'Container image "demo" already present on machine and can be accessed by the pod'
    )
    assert world.status.phase == "Running"
    assert world.status.summary == ""
    assert world.statuses.phases == ["Pending", "Running"]


def test_a_host_network_pod_of_one_container_has_the_nodes_address(world: World) -> None:
    up(world, make_pod(host_network=True))
    assert [c.method for c in world.runtime.calls[1:]] == ["create_pod", "create_container", "start_container"]
    assert world.status.ips == ("192.0.2.1",)


def test_a25_a_crashing_container_is_started_as_the_kubelet_does(world: World) -> None:
    world.runtime.exits_at_start["app"] = 1
    times = world.times("start_container")
    up(world, make_pod(host_network=True))
    world.run(1000)
    assert times == [0, 0, 10, 30, 70, 150, 310, 610, 910]
    assert count(world) == 8
    assert world.status.containers[0].state == Waiting(
        "CrashLoopBackOff", "back-off 5m0s restarting failed container=app pod=web-node_default(uid-a)"
    )
    backoffs = [e for e in world.recorder.events if e.reason == "BackOff"]
    assert len(backoffs) == 8
    assert backoffs[0].kind == "Warning"
    assert backoffs[0].message == "Back-off restarting failed container app in pod web-node_default(uid-a)"


def test_a_good_run_starts_the_back_off_anew(world: World) -> None:
    up(world)
    for _ in range(4):
        world.exit("app", 1)
        world.run(100)
    world.run(700)
    world.exit("app", 1)
    world.pump()
    assert world.runtime.running() == ["app"]


def test_a_removed_pod_ends_with_its_grace_and_leaves_nothing(world: World) -> None:
    up(world, make_pod(grace=5))
    world.runtime.ignores_sigterm.add("app")
    world.want(None)
    world.run(4.9)
    assert world.runtime.running() == ["app"]
    assert world.runtime.signals("app") == ["SIGTERM"]
    world.run(0.2)
    assert world.pod() is None
    assert world.volumes.removed == ["uid-a"]
    assert world.store.entries == {}
    assert KEY not in world.statuses.newest
    assert "Killing" in reasons(world)


@pytest.mark.parametrize("grace", [0, 1, 2])
def test_even_without_grace_two_seconds_are_given(world: World, grace: int) -> None:
    up(world, make_pod(grace=grace))
    world.runtime.ignores_sigterm.add("app")
    world.want(None)
    world.run(1.9)
    assert world.runtime.signals("app") == ["SIGTERM"]
    world.run(0.2)
    assert world.pod() is None


def test_a_kill_that_did_nothing_is_repeated(world: World) -> None:
    up(world, make_pod(grace=2))
    world.runtime.kill_conmon("app")
    world.deliver = lambda: None  # type: ignore[method-assign]
    world.want(None)
    world.run(13)
    sent = [c.args[1] for c in world.runtime.called("signal_container")]
    assert sent == ["SIGTERM", "SIGKILL", "SIGKILL"]
    assert [done for done, _ in world.repairs.done] == ["settle"]


def test_a03_a_manifest_that_goes_and_comes_back_goes_on_counting(world: World) -> None:
    up(world)
    world.runtime.ignores_sigterm.add("app")
    world.want(None)
    world.run(1)
    world.want(make_pod())
    world.run(1)
    assert world.status.deleting > 0
    world.run(30)
    assert world.runtime.running() == ["app"]
    assert count(world) == 1
    assert world.volumes.removed == ["uid-a"]
    assert world.status.deleting == 0


def test_a_never_pod_that_goes_and_comes_back_runs_again(world: World) -> None:
    up(world, make_pod(restart_policy="Never"))
    world.want(None)
    world.step()
    world.want(make_pod(restart_policy="Never"))
    world.run(40)
    assert world.runtime.running() == ["app"]
    assert world.status.phase == "Running"


def test_an_end_under_way_is_carried_through_by_the_next_agent(world: World) -> None:
    up(world)
    world.runtime.ignores_sigterm.add("app")
    world.want(None)
    world.run(1)
    world.want(make_pod())
    world.run(1)
    world.boot()
    world.run(40)
    assert count(world) == 1
    assert world.volumes.removed == ["uid-a"]


def test_a_generation_that_is_replaced_while_the_agent_restarts_keeps_its_counts(world: World) -> None:
    up(world)
    world.exit("app", 1)
    world.pump()
    world.runtime.ignores_sigterm.add("app")
    world.want(make_pod("1-b"))
    world.run(1)
    world.boot()
    world.run(1)
    world.want(make_pod())
    world.run(40)
    assert (world.runtime.pods()[0].config_hash, count(world)) == ("1-a", 2)


# -- a person ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "code"), [("Always", 0), ("OnFailure", 0), ("Never", 0), ("Never", 1)])
def test_a_restart_by_a_person_runs_every_pod_again(world: World, policy: str, code: int) -> None:
    up(world, make_pod(restart_policy=policy))
    world.exit("app", code)
    world.run(20)
    world.box.restart()
    world.run(40)
    assert world.runtime.running() == ["app"]
    assert world.status.phase == "Running"
    assert count(world) == (2 if policy == "Always" else 1)
    assert world.volumes.removed == []


def test_a_restart_outlives_the_agent_that_was_asked(world: World) -> None:
    up(world, make_pod(restart_policy="Never"))
    world.exit("app", 0)
    world.run(5)
    world.box.restart()
    world.runtime.fail("create_pod")
    world.step()
    assert world.pod() is None
    world.boot()
    world.run(5)
    assert world.runtime.running() == ["app"]


def test_a_restart_of_a_never_pod_that_lost_its_sandbox(world: World) -> None:
    up(world, make_pod(restart_policy="Never"))
    world.vanish(world.runtime.pods()[0].id)
    world.observer.relist()
    world.run(5)
    assert (world.pod(), world.status.phase) == (None, "Failed")
    world.box.restart()
    world.run(5)
    assert world.runtime.running() == ["app"]


def test_a_restart_ends_a_back_off(world: World) -> None:
    world.runtime.exits_at_start["app"] = 1
    up(world)
    world.run(100)
    world.runtime.exits_at_start.clear()
    world.box.restart()
    world.pump()
    assert world.runtime.running() == ["app"]


def test_one_container_can_be_restarted(world: World) -> None:
    up(world, make_pod(containers=(APP, Container("side", "demo")), restart_policy="Never"))
    sandbox = world.runtime.pods()[0].id
    world.box.restart("app")
    world.run(3)
    assert world.runtime.running() == ["app", "side"]
    assert (count(world, "app"), count(world, "side")) == (1, 0)
    assert world.runtime.pods()[0].id == sandbox


def test_a_completed_container_can_be_restarted(world: World) -> None:
    up(world, make_pod(containers=(APP, Container("side", "demo")), restart_policy="Never"))
    world.exit("app")
    world.pump()
    world.box.restart("app")
    world.run(3)
    assert world.runtime.running() == ["app", "side"]


def test_a_pod_that_a_person_stopped_stays_stopped_and_keeps_its_data(world: World) -> None:
    up(world)
    world.want(make_pod(), held=True)
    world.run(5)
    assert world.pod() is None
    assert world.status.held
    assert world.status.summary == "stopped by a person; `edgelet start web` runs it again"
    world.boot()
    world.box.wish(Wish(make_pod(), True))
    world.run(600)
    assert world.pod() is None
    assert world.volumes.removed == []
    world.want(make_pod())
    world.run(5)
    assert (world.runtime.running(), count(world)) == (["app"], 1)


def test_a_completed_pod_that_is_stopped_and_started_runs_again(world: World) -> None:
    up(world, make_pod(restart_policy="Never"))
    world.exit("app")
    world.run(5)
    world.want(make_pod(restart_policy="Never"), held=True)
    world.run(5)
    world.boot()
    world.box.wish(Wish(make_pod(restart_policy="Never"), True))
    world.run(5)
    world.want(make_pod(restart_policy="Never"))
    world.run(5)
    assert world.runtime.running() == ["app"]


# -- a changed manifest ----------------------------------------------------------------------------------

NEXT = make_pod("1-b", containers=(replace(APP, image="new"),))


def test_a_new_version_waits_for_its_image_while_the_old_one_serves(world: World) -> None:
    up(world)
    world.want(NEXT)
    world.run(8)
    assert world.runtime.running() == ["app"]
    assert world.status.phase == "Running"
    assert world.status.summary.startswith("a new version waits for image new: cannot pull new")
    world.runtime.registry["new"] = world.runtime.images["demo"]
    world.run(40)
    assert world.runtime.pods()[0].config_hash == "1-b"
    assert world.status.summary == ""
    assert (count(world), world.volumes.removed) == (0, ["uid-a"])


def test_meanwhile_a_crash_of_the_old_version_is_mended_though_its_policy_is_always(world: World) -> None:
    up(world, make_pod(containers=(replace(APP, pull_policy="Always"),)))
    world.want(NEXT)
    world.run(2)
    world.exit("app", 1)
    world.run(2)
    assert world.runtime.running() == ["app"]
    assert len(world.runtime.called("pull")) == 3
    assert count(world) == 1


def test_going_back_to_the_old_version_touches_nothing(world: World) -> None:
    up(world)
    world.want(NEXT)
    world.run(2)
    world.want(make_pod())
    world.run(100)
    assert len(world.runtime.called("create_pod")) == 1
    assert world.status.summary == ""


def test_a_version_edited_while_the_agent_was_down(world: World) -> None:
    up(world)
    world.wish = Wish(NEXT)
    world.boot()
    world.run(3)
    assert world.runtime.running() == ["app"]
    assert world.status.phase == "Pending"
    assert "a new version waits for image new" in world.status.summary
    assert world.status.containers[0].state == Waiting("ContainerCreating")
    world.runtime.add_image("new")
    world.run(20)
    assert world.runtime.pods()[0].config_hash == "1-b"


def test_only_the_last_of_many_edits_is_run(world: World) -> None:
    up(world)
    world.runtime.ignores_sigterm.add("app")
    for n in range(20):
        world.want(make_pod(f"1-{n}"))
        world.run(0.1)
    world.run(60)
    assert [c.args[0].config_hash for c in world.runtime.called("create_pod")] == ["1-a", "1-19"]  # type: ignore[attr-defined]


def test_failed_pulls_of_a_new_version_back_off(world: World) -> None:
    up(world)
    times = world.times("pull")
    world.want(NEXT)
    world.run(200)
    assert times == [0, 10, 30, 70, 150]


# -- images ----------------------------------------------------------------------------------------------


def test_image_pull_back_off(world: World) -> None:
    up(world, make_pod(containers=(replace(APP, image="far"),)))
    assert world.status.containers[0].state == Waiting("ErrImagePull", "cannot pull far: manifest unknown")
    world.run(15)
    state = world.status.containers[0].state
    assert state == Waiting("ImagePullBackOff", 'Back-off pulling image "far": cannot pull far: manifest unknown')
    backoff = next(e for e in world.recorder.events if e.reason == "BackOff")
    assert (backoff.kind, backoff.message) == ("Normal", 'Back-off pulling image "far"')
    world.run(300)
    assert len(world.runtime.called("pull")) == 6
    world.runtime.registry["far"] = world.runtime.images["demo"]
    world.run(300)
    assert world.runtime.running() == ["app"]
    assert "Pulled" in reasons(world)


def test_an_image_that_may_not_be_pulled_is_waited_for(world: World) -> None:
    up(world, make_pod(containers=(replace(APP, image="far", pull_policy="Never"),)))
    state = world.status.containers[0].state
    assert state == Waiting("ErrImageNeverPull", 'Container image "far" is not present with pull policy of Never')
    world.run(60)
    assert world.runtime.called("pull") == []
    world.runtime.add_image("far")
    world.run(11)
    assert world.runtime.running() == ["app"]


@pytest.mark.parametrize("policy", ["Always", "IfNotPresent", "Never"])
def test_a_name_that_no_image_can_have_is_told_and_asks_nobody(world: World, policy: str) -> None:
    up(world, make_pod(containers=(replace(APP, image="q.io/UP:1", pull_policy=policy),)))
    said = (
        'Failed to apply default image tag "q.io/UP:1": couldn\'t parse image reference "q.io/UP:1": invalid reference'
        " format: repository name (UP) must be lowercase"
    )
    world.run(200)
    assert world.status.containers[0].state == Waiting("InvalidImageName", said)
    assert {(e.kind, e.message) for e in world.recorder.events if e.reason == "InspectFailed"} == {("Warning", said)}
    assert not world.runtime.called("pull") and not world.runtime.called("create_container")


def with_image(policy: str = "IfNotPresent") -> Pod:
    """A pod that mounts the files of an image."""
    app = replace(APP, mounts=(VolumeMount("v", "/v"),))
    return make_pod(containers=(app,), volumes=(Volume("v", ImageSource("far", policy)),))


@pytest.mark.parametrize("policy", ["Always", "IfNotPresent"])
def test_the_image_of_a_volume_is_pulled_before_the_container_is_made(world: World, policy: str) -> None:
    world.runtime.registry["far"] = replace(world.runtime.images["demo"], layers=("/top", "/bottom"))
    up(world, with_image(policy))
    world.run(5)
    assert world.runtime.running() == ["app"]
    assert [c.args for c in world.runtime.called("pull")] == [("far",)]
    assert ("spec.containers{app}", "Pulled") not in {
        (e.ref.field_path, e.reason) for e in world.recorder.events if "far" in e.message
    }
    assert world.volumes.layers["v"] == ("/top", "/bottom")


def test_a_volume_whose_image_cannot_be_had_holds_up_its_container(world: World) -> None:
    up(world, with_image())
    assert world.status.containers[0].state == Waiting("ErrImagePull", "cannot pull far: manifest unknown")
    world.run(15)
    state = world.status.containers[0].state
    assert isinstance(state, Waiting) and state.reason == "ImagePullBackOff"
    world.runtime.registry["far"] = world.runtime.images["demo"]
    world.run(300)
    assert world.runtime.running() == ["app"]


def test_a_new_version_waits_for_the_image_of_its_volume(world: World) -> None:
    up(world)
    world.want(replace(with_image(), config_hash="1-b"))
    world.run(5)
    assert "a new version waits for image far" in world.status.summary
    assert world.runtime.running() == ["app"]
    world.runtime.registry["far"] = world.runtime.images["demo"]
    world.run(300)
    assert world.volumes.layers["v"] == ()
    assert world.runtime.running() == ["app"]


def test_a_present_image_serves_when_the_registry_does_not(world: World) -> None:
    world.runtime.fail("pull", errors.PullFailed("cannot pull demo: no route to host"))
    up(world, make_pod(containers=(replace(APP, pull_policy="Always"),)))
    assert world.runtime.running() == ["app"]
    assert "PullFailedUsingPresent" in reasons(world)


def test_an_image_that_is_there_and_is_not_makes_no_busy_loop(world: World) -> None:
    up(world)
    world.exit("app", 1)
    world.runtime.fail("create_container", errors.ImageMissing("cannot create: no image demo"), times=1000)
    world.run(60)
    assert len(world.runtime.called("create_container")) < 20
    assert isinstance(world.status.containers[0].state, Waiting)


# -- failures of the runtime -------------------------------------------------------------------------------

CALLS = ["create_pod", "create_container", "start_container", "list"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("method", CALLS)
def test_a_call_that_fails_or_whose_answer_is_lost_is_made_good(world: World, method: str, after: bool) -> None:
    world.runtime.fail(method, after=after)
    world.want(make_pod())
    world.run(10)
    assert world.runtime.running() == ["app"]
    assert world.status.summary == ""
    assert world.local.memory.trouble is None
    assert (count(world), len(world.runtime.pods()[0].containers)) == (0, 1)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("method", ["signal_container", "remove_pod", "inspect_container", "list"])
def test_so_it_is_when_a_pod_ends(world: World, method: str, after: bool) -> None:
    up(world)
    world.runtime.fail(method, after=after)
    world.want(None)
    world.run(10)
    assert world.pod() is None
    assert world.local.memory.uid == ""


def test_a_lost_answer_leaves_the_back_off_as_it_is(world: World) -> None:
    up(world)
    for expected in (10.0, 20.0, 40.0):
        world.exit("app", 1)
        world.runtime.fail("create_container", after=True)
        world.run(60)
        entry = world.local.memory.of("app").backoff
        assert entry is not None
        assert entry.delay == expected


def test_a_sandbox_whose_removal_was_not_answered_is_made_only_once(world: World) -> None:
    up(world)
    world.runtime.kill_infra(KEY)
    world.deliver()
    world.runtime.fail("remove_pod", after=True)
    world.run(10)
    assert len(world.runtime.called("create_pod")) == 2
    assert world.runtime.running() == ["app"]


def test_podman_away_is_told_and_tried_again_ever_more_seldom(world: World) -> None:
    up(world)
    world.exit("app", 1)
    world.runtime.unreachable = True
    before = len(world.runtime.calls)
    world.run(300)
    assert 10 < len(world.runtime.calls) - before < 40
    assert "cannot reach Podman: connection refused (tried" in world.status.summary
    world.runtime.unreachable = False
    world.run(16)
    assert world.runtime.running() == ["app"]
    assert world.status.summary == ""


def test_waits_are_told_truly_while_podman_is_away(world: World) -> None:
    world.runtime.exits_at_start["app"] = 1
    up(world)
    world.run(20)
    world.runtime.unreachable = True
    world.box.wake(stale=True)
    world.pump()
    assert "cannot reach Podman" in world.status.summary
    state = world.status.containers[0].state
    assert isinstance(state, Waiting)
    assert state.reason == "CrashLoopBackOff"


def test_news_do_not_shorten_the_wait_after_trouble(world: World) -> None:
    up(world)
    world.exit("app", 1)
    world.runtime.unreachable = True
    world.pump()
    before = len(world.runtime.calls)
    for _ in range(50):
        world.box.wake(stale=True)
        world.pump()
    assert len(world.runtime.calls) == before


def test_trouble_is_told_once(world: World) -> None:
    world.runtime.fail("create_pod", times=3)
    world.want(make_pod())
    world.run(60)
    failed = [e for e in world.recorder.events if e.reason == "FailedCreatePodSandBox"]
    assert [e.message for e in failed] == ["Failed to create pod sandbox: cannot create_pod: injected"]
    assert world.runtime.running() == ["app"]


def test_a_foreign_pod_of_our_name_is_left_alone(world: World) -> None:
    world.runtime.taken_names.add(f"{KEY.name}_{KEY.namespace}")
    world.want(make_pod())
    world.run(60)
    assert world.pod() is None
    assert "the name is in use" in world.status.summary
    assert {c.method for c in world.runtime.calls} == {"list", "create_pod"}
    assert len(world.runtime.calls) < 30


def test_a_volume_that_cannot_be_mounted(world: World) -> None:
    world.volumes.fail_with = errors.VolumeError("cannot mount /dev/x: hostPath type check failed")
    world.want(make_pod())
    world.run(60)
    assert world.pod() is None
    assert [e.reason for e in world.recorder.events] == ["FailedMount"]
    assert "hostPath type check failed" in world.status.summary
    world.volumes.fail_with = None
    world.run(16)
    assert world.runtime.running() == ["app"]


def test_a_mount_that_fails_later_is_the_container_s(world: World) -> None:
    up(world)
    world.volumes.fail_with = errors.VolumeError("cannot use subPath ../x", "CreateContainerConfigError")
    world.exit("app", 1)
    world.run(300)
    assert world.status.containers[0].state == Waiting("CreateContainerConfigError", "cannot use subPath ../x")
    assert reasons(world).count("Failed") == 1
    world.volumes.fail_with = None
    world.run(61)
    assert world.runtime.running() == ["app"]


def test_a_container_runs_without_a_termination_message_where_the_disk_takes_none(world: World) -> None:
    up(world)
    world.volumes.message_fails = errors.VolumeError("cannot create the termination message file")
    world.exit("app", 1)
    world.run(20)
    assert (world.runtime.running(), count(world)) == (["app"], 1)
    assert [c.name for c in world.status.containers if c.ready] == ["app"]


def test_a_container_that_podman_refuses_to_make(world: World) -> None:
    world.runtime.fail("create_container", errors.Permanent("cannot create: invalid option"), times=3)
    up(world)
    assert world.status.containers[0].state == Waiting("CreateContainerError", "cannot create: invalid option")
    world.run(80)
    assert world.runtime.running() == ["app"]
    assert count(world) == 0


def test_a_command_that_does_not_exist(world: World) -> None:
    world.runtime.bad_commands.add("app")
    up(world)
    world.run(100)
    assert count(world) == 4
    state, last = world.status.containers[0].state, world.status.containers[0].last_state
    assert isinstance(state, Waiting)
    assert state.reason == "CrashLoopBackOff"
    assert last is not None
    assert (last.exit_code, last.reason) == (128, "StartError")
    told = [w for w in world.statuses.waits if w.reason != "ContainerCreating"]
    assert told[0].message == last.message
    # Each try tells why it failed, also when the back-off follows at once.
    reasons_in_turn = [reason for reason, _ in itertools.groupby(w.reason for w in told)]
    assert reasons_in_turn == ["RunContainerError", "CrashLoopBackOff"] * 4
    assert len(world.runtime.pods()[0].containers) == 2
    failed = next(e for e in world.recorder.events if e.reason == "Failed")
    assert (failed.kind, failed.message[:7]) == ("Warning", "Error: ")


def test_a_command_that_does_not_exist_fails_a_never_pod(world: World) -> None:
    world.runtime.bad_commands.add("app")
    up(world, make_pod(restart_policy="Never"))
    assert world.status.phase == "Failed"
    assert isinstance(world.status.containers[0].state, Terminated)


# -- accidents --------------------------------------------------------------------------------------------


def test_an_agent_that_comes_back_touches_nothing(world: World) -> None:
    up(world, make_pod(containers=(PROBED,)))
    world.exit("app", 1)
    world.run(5)
    before = len(world.runtime.calls)
    world.boot()
    world.run(100)
    assert [c.method for c in world.runtime.calls[before:]] == ["list"]
    assert count(world) == 1
    assert isinstance(world.status.containers[0].last_state, Terminated)
    assert [t.container_id for t in world.probes.targets[KEY]] == [world.runtime.pods()[0].containers[-1].id]


def test_the_back_off_survives_the_agent(world: World) -> None:
    world.runtime.exits_at_start["app"] = 1
    up(world)
    world.run(75)
    assert count(world) == 4
    world.boot()
    world.run(70)
    assert count(world) == 4
    world.run(10)
    assert count(world) == 5


def test_after_a_reboot_all_begins_again_and_counts_go_on(world: World) -> None:
    world.runtime.exits_at_start["init"] = 0
    up(world, make_pod(init_containers=(INIT,)))
    world.reboot("boot-2")
    world.run(5)
    assert world.runtime.running() == ["app"]
    assert (count(world), count(world, "init")) == (1, 1)
    assert world.runtime.pods()[0].boot_id == "boot-2"
    assert world.runtime.pods()[0].attempt == 1
    assert "SandboxChanged" in reasons(world)
    last = world.status.containers[0].last_state
    assert last is not None
    assert (last.exit_code, last.reason) == (137, "ContainerStatusUnknown")


def test_after_a_reboot_a_never_pod_stays_down_and_has_failed(world: World) -> None:
    up(world, make_pod(restart_policy="Never"))
    world.reboot("boot-2")
    world.run(5)
    assert (world.runtime.running(), world.status.phase) == ([], "Failed")


def test_after_a_reboot_a_completed_pod_is_left_as_it_is(world: World) -> None:
    world.runtime.exits_at_start["init"] = 0
    up(world, make_pod(restart_policy="OnFailure", init_containers=(INIT,)))
    world.exit("app", 0)
    world.run(5)
    assert world.status.phase == "Succeeded"
    world.reboot("boot-2")
    world.run(5)
    assert world.status.phase == "Succeeded"
    world.vanish(world.runtime.pods()[0].id)
    world.observer.relist()
    world.run(5)
    assert (world.pod(), world.status.phase) == (None, "Succeeded")


def test_a_dead_sandbox_is_replaced_and_what_had_completed_stays_so(world: World) -> None:
    up(world, make_pod(restart_policy="OnFailure", containers=(APP, Container("side", "demo"))))
    world.exit("app", 0)
    world.pump()
    world.runtime.kill_infra(KEY)
    world.deliver()
    world.run(5)
    assert world.runtime.running() == ["side"]
    assert world.status.phase == "Running"
    assert isinstance(world.status.containers[0].state, Terminated)


def test_what_we_stopped_for_a_dead_sandbox_runs_again_whatever_its_code(world: World) -> None:
    up(world, make_pod(restart_policy="OnFailure"))
    world.runtime.ignores_sigterm.add("app")
    world.runtime.kill_infra(KEY)
    world.deliver()
    world.pump()
    world.exit("app", 0)
    world.run(5)
    assert world.runtime.running() == ["app"]


def test_a_vanished_container_is_made_again(world: World) -> None:
    up(world)
    world.vanish(world.runtime.pods()[0].containers[0].id)
    world.run(5)
    assert world.runtime.running() == ["app"]
    assert count(world) == 1
    last = world.status.containers[0].last_state
    assert last is not None
    assert last.reason == "ContainerStatusUnknown"


def test_a_vanished_pod_is_made_again(world: World) -> None:
    up(world)
    world.vanish(world.runtime.pods()[0].id)
    world.observer.relist()
    world.run(5)
    assert world.runtime.running() == ["app"]


@pytest.mark.parametrize(("policy", "runs"), [("Always", True), ("OnFailure", True), ("Never", False)])
def test_pain_1_a_failed_liveness_probe_restarts_as_the_policy_says(world: World, policy: str, runs: bool) -> None:
    up(world, make_pod(containers=(PROBED,), restart_policy=policy, grace=4))
    world.runtime.ignores_sigterm.add("app")
    world.probes.set(KEY, "app", failed="liveness")
    world.box.wake()
    world.run(1)
    world.exit("app", 0)
    world.run(1)
    assert bool(world.runtime.running()) is runs
    killing = next(e for e in world.recorder.events if e.reason == "Killing")
    assert killing.message == "Container app failed liveness probe, will be restarted"
    assert killing.ref.field_path == "spec.containers{app}"


def test_repeated_liveness_failures_are_not_delayed(world: World) -> None:
    up(world, make_pod(containers=(PROBED,)))
    for expected in (1, 2, 3, 4):
        world.run(40)
        world.probes.set(KEY, "app", failed="liveness")
        world.box.wake()
        world.run(1)
        assert count(world) == expected
        assert world.runtime.running() == ["app"]


def test_an_unready_container_goes_on_running(world: World) -> None:
    up(world, make_pod(containers=(READINESS,)))
    ready = {c.type: c.status for c in world.status.conditions}["Ready"]
    assert (ready, world.status.containers[0].ready) == ("False", False)
    world.probes.set(KEY, "app", ready=True)
    world.box.wake()
    world.run(1)
    assert world.status.containers[0].ready
    assert isinstance(world.status.containers[0].state, Running)
    assert world.status.containers[0].restart_count == 0


def test_readiness_goes_on_while_a_pod_ends_and_stops_with_its_container(world: World) -> None:
    up(world, make_pod(containers=(READINESS,)))
    assert [t.terminating for t in world.probes.targets[KEY]] == [False]
    world.probes.set(KEY, "app", ready=True)
    world.runtime.ignores_sigterm.add("app")
    world.want(None)
    world.run(1)
    assert [t.terminating for t in world.probes.targets[KEY]] == [True]
    assert world.status.containers[0].ready
    world.run(40)
    assert set(world.probes.forgotten) == {KEY}


def test_what_the_prober_is_told(world: World) -> None:
    up(world, make_pod(containers=(APP, replace(PROBED, name="probed"))))
    (target,) = world.probes.targets[KEY]
    seen = world.newest("probed")
    assert (target.key, target.uid, target.container.name, target.container_id) == (KEY, "uid-a", "probed", seen.id)
    assert (target.pid, target.oci_config, target.started_mono) == (seen.pid, seen.oci_config, seen.started_mono)
    assert (target.ip, target.field_path) == (world.runtime.pods()[0].ips[0], "spec.containers{probed}")
    world.exit("probed", 1)
    world.runtime.unreachable = True
    world.pump()
    assert world.probes.targets[KEY] == ()


def test_on_the_host_s_network_probes_have_no_address_of_their_own(world: World) -> None:
    up(world, make_pod(containers=(PROBED,), host_network=True))
    assert [t.ip for t in world.probes.targets[KEY]] == [""]


def test_an_exit_that_was_seen_without_its_code_is_asked_for(world: World) -> None:
    up(world, make_pod(restart_policy="OnFailure"))
    instance = world.runtime.pods()[0].containers[0]
    world.runtime.on_change = lambda: None
    world.exit("app", 0)
    world.exits.forget(instance.id)
    world.observer.exited(instance.id, None, "pidfd")
    world.run(5)
    assert world.status.phase == "Succeeded"
    assert world.status.containers[0].state == Terminated(
        0, "Completed", instance.started_at, world.runtime.pods()[0].containers[0].finished_at, "", instance.id
    )


def test_the_out_of_memory_flag_is_learnt_after_the_restart(world: World) -> None:
    up(world)
    world.exit("app", 137, oom=True)
    world.run(1)
    last = world.status.containers[0].last_state
    assert last is not None
    assert last.reason == "OOMKilled"


def test_old_dead_instances_are_removed(world: World) -> None:
    world.runtime.exits_at_start["app"] = 1
    up(world)
    world.run(400)
    seen = world.runtime.pods()[0].containers
    assert [c.restart_count for c in seen] == [5, 6]
    assert {c.state for c in seen} == {State.EXITED}


def test_a_completed_pod_has_its_sandbox_stopped_and_is_asked_nothing_more(world: World) -> None:
    up(world, make_pod(restart_policy="Never"))
    world.exit("app", 0)
    world.run(5)
    assert world.runtime.pods()[0].infra_dead
    before = len(world.runtime.calls)
    world.run(10_000)
    assert len(world.runtime.calls) == before
    assert world.status.phase == "Succeeded"


def test_a_store_that_is_damaged_costs_the_counts_only(world: World) -> None:
    up(world)
    world.exit("app", 1)
    world.run(5)
    world.store.entries["uid-a"] = b"\xff{"
    world.boot()
    world.run(5)
    assert count(world) == 1
    world.store.entries["uid-a"] = b'{"uid": 5}'
    world.boot()
    world.run(5)
    assert count(world) == 1


def test_each_instance_gets_a_file_for_its_message_unless_none_is_wanted_or_a_volume_is_there(world: World) -> None:
    mounted = VolumeMount("v", "/dev/termination-log/")
    up(
        world,
        make_pod(
            containers=(
                APP,
                Container("silent", "demo", termination_message_path=""),
                Container("own", "demo", mounts=(mounted,)),
            )
        ),
    )
    binds = {n: [b.target for b in world.runtime.binds_of(world.newest(n).id)] for n in ("app", "silent", "own")}
    assert binds == {
        "app": ["/dev/termination-log", "/etc/hosts"],
        "silent": ["/etc/hosts"],
        "own": ["/dev/termination-log/", "/etc/hosts"],
    }


def test_the_signal_is_the_one_that_the_image_asks_for(world: World) -> None:
    world.runtime.images["demo"] = replace(world.runtime.images["demo"], stop_signal="SIGUSR1")
    up(world)
    world.want(None)
    world.run(40)
    assert [c.args[1] for c in world.runtime.called("signal_container")] == ["SIGUSR1"]
    assert world.pod() is None


def test_an_end_that_fails_is_told_once_and_tried_again(world: World) -> None:
    up(world)
    world.runtime.fail("remove_pod", times=2)
    world.want(None)
    world.run(10)
    told = [(e.kind, e.message) for e in world.recorder.events if e.reason == "FailedKillPod"]
    assert told == [("Warning", "error killing pod: cannot remove_pod: injected")]
    assert world.pod() is None


HOOKED = replace(APP, lifecycle=Lifecycle(pre_stop=Sleep(3)))


def test_a_pre_stop_hook_is_run_and_heard_of_before_the_signal(world: World) -> None:
    up(world, make_pod(containers=(HOOKED,), grace=20))
    world.want(None)
    world.run(6.5)
    ((kind, target, handler, limit),) = world.hooks.begun
    assert (kind, target.container_id, handler, limit) == (HookKind.PRE_STOP, world.newest("app").id, Sleep(3), 27.0)
    assert world.runtime.signals("app") == []
    world.end_hooks()
    world.pump()
    assert world.pod() is None
    assert [e.message for e in world.recorder.events if e.reason == "Killing"] == ["Stopping container app"]


def test_a_hook_that_hangs_is_not_waited_for_longer_than_the_grace(world: World) -> None:
    world.runtime.ignores_sigterm.add("app")
    up(world, make_pod(containers=(HOOKED,), grace=20))
    signals = world.times("signal_container")
    world.want(None)
    world.run(60)
    assert signals == [20, 22]
    assert world.pod() is None
    assert world.hooks.states(KEY) == {}


def test_the_next_agent_runs_the_hook_of_a_pod_that_it_does_not_know(world: World) -> None:
    up(world, make_pod(containers=(HOOKED,), grace=20))
    world.want(None)
    world.boot()
    world.pump()
    assert [(begun[0], begun[3]) for begun in world.hooks.begun] == [(HookKind.PRE_STOP, 27.0)]  # its grace, and 7 s
    world.end_hooks()
    world.pump()
    assert world.pod() is None


GREETED = Container("first", "demo", lifecycle=Lifecycle(post_start=Exec(("greet",))))


def test_a21_the_next_container_waits_for_the_post_start_hook_of_the_one_before(world: World) -> None:
    up(world, make_pod(containers=(GREETED, APP)))
    world.run(100)
    ((kind, target, handler, _),) = world.hooks.begun
    assert (kind, target.container_id, handler) == (
        HookKind.POST_START,
        world.newest("first").id,
        Exec(("greet",)),
    )
    assert world.runtime.running() == ["first"]
    world.end_post_start()
    world.pump()
    assert world.runtime.running() == ["app", "first"]


def test_a_post_start_hook_that_fails_ends_the_container_which_then_backs_off(world: World) -> None:
    up(world, make_pod(containers=(GREETED,)))
    starts = world.times("start_container")
    for _ in range(3):
        world.end_post_start(HookState.FAILED)
        world.run(60)
    assert starts == [0, 70, 140]  # 10 s and 20 s after the ends at 60 s and 120 s
    assert [e.message for e in world.recorder.events if e.reason == "Killing"] == ["FailedPostStartHook"] * 3


def test_the_next_agent_does_not_greet_again(world: World) -> None:
    up(world, make_pod(containers=(GREETED, APP)))
    world.boot()
    world.pump()
    assert world.hooks.begun == []
    assert world.runtime.running() == ["app", "first"]


# ---- repair -----------------------------------------------------------------------------------------


def repairs(world: World) -> list[str]:
    """What the repair ladder did, as its events say it."""
    return [e.message for e in world.recorder.events if e.reason in ("Repairing", "RepairFailed")]


def test_pain_61_a_container_that_cannot_be_started_is_made_anew_and_then_its_sandbox(world: World) -> None:
    world.runtime.fail("start_container", times=7)
    up(world, make_pod(host_network=True))  # no sandbox of its own to be started
    world.run(200)
    assert [r.partition(":")[0].split()[:2] for r in repairs(world)] == [["remove", "container"], ["remove", "pod"]]
    assert world.runtime.running() == ["app"]
    assert world.status.phase == "Running"
    assert world.local.memory.climb is None
    assert count(world) == 2
    assert world.status.containers[0].last_state is None  # those that were never started are no ends


def test_pain_46_a_start_that_nothing_helps_is_reported_once_and_goes_on_being_tried(world: World) -> None:
    world.runtime.fail("start_container", times=500)
    up(world, make_pod(host_network=True))  # no sandbox of its own to be started
    world.run(1500)
    told = repairs(world)
    assert [r.split(":")[0].rsplit(" ", 1)[0] for r in told[:3]][:1] == ["remove container app"]
    assert world.repairs.done == [("renew_service", "")]
    assert [r for r in told if "df -h" in r] == told[-1:]
    tried = len(world.runtime.called("start_container"))
    world.run(100)
    assert len(world.runtime.called("start_container")) > tried


def test_pain_44_46_a_container_that_no_kill_ends_is_ended_without_podman(world: World) -> None:
    up(world)
    deaf = world.runtime.signal_container
    world.runtime.signal_container = lambda container_id, signal: None  # type: ignore[method-assign]
    world.want(None)
    world.run(60)
    assert [done for done, _ in world.repairs.done] == ["settle"]
    assert world.runtime.pods() == ()
    assert len(repairs(world)) == 1
    world.runtime.signal_container = deaf  # type: ignore[method-assign]


def test_a_pod_that_cannot_be_removed_is_settled_and_then_the_service_restarted(world: World) -> None:
    up(world)
    world.runtime.fail("remove_pod", times=8)
    world.want(None)
    world.run(300)
    assert [done for done, _ in world.repairs.done] == ["settle", "settle", "renew_service"]
    assert world.runtime.pods() == ()


def test_a_damaged_image_is_removed_and_pulled_again(world: World) -> None:
    world.runtime.registry["demo"] = world.runtime.images["demo"]
    world.runtime.fail("create_container", errors.Damaged("cannot create: layer not known"))
    up(world)
    world.run(30)
    assert world.repairs.done == [("drop_image", "demo")]
    assert world.runtime.running() == ["app"]
    assert "Pulling" in reasons(world)


def test_a_name_that_a_foreign_pod_has_is_reported_with_advice(world: World) -> None:
    world.runtime.taken_names.add("web-node_default")
    up(world)
    world.run(120)
    assert [r for r in repairs(world) if "rename or remove" in r]
    assert world.repairs.done == []
    world.runtime.taken_names.clear()
    world.run(60)
    assert world.runtime.running() == ["app"]


def test_a_person_begins_the_ladder_anew(world: World) -> None:
    world.runtime.fail("start_container", times=500)
    up(world)
    world.run(600)
    assert world.local.memory.climb is not None
    world.box.hurry()
    world.pump()
    assert world.local.memory.climb is None or world.local.memory.climb.rung < 5


# ---- admission and order ----------------------------------------------------------------------------

REFUSED = Gate("NodePorts", "Pod was rejected: Predicate NodePorts failed: pod default/a holds host port TCP 80")
WAITS = Gate("WaitingForPods", "waits for pod db to be Ready", refused=False)


def gated(world: World, gate: Gate | None, pod: Pod | None = None) -> None:
    """The pod is wanted, and may begin or not."""
    world.wish = Wish(pod or make_pod(), gate=gate)
    world.box.wish(world.wish)
    world.pump()


def test_a_refused_pod_makes_nothing_and_says_why_until_it_may_begin(world: World) -> None:
    gated(world, REFUSED)
    world.run(100)
    assert [c.method for c in world.runtime.calls] == ["list"]
    assert (world.status.phase, world.status.reason) == ("Failed", "NodePorts")
    assert world.status.message == world.status.summary == REFUSED.message
    gated(world, None)
    assert (world.status.phase, world.status.reason, world.status.message) == ("Running", "", "")


def test_a_pod_that_waits_for_another_is_pending_and_begins_at_its_timeout(world: World) -> None:
    gated(world, replace(WAITS, until=world.clock.monotonic() + 60))
    world.run(59)
    assert (world.status.phase, world.status.summary) == ("Pending", "waits for pod db to be Ready")
    assert world.runtime.running() == []
    world.run(2)
    assert world.runtime.running() == ["app"]
    assert world.status.summary == ""


def test_a_new_version_that_is_refused_leaves_the_old_one_running(world: World) -> None:
    up(world)
    gated(world, REFUSED, make_pod("1-b"))
    world.runtime.exit("app", 1)
    world.run(100)
    assert world.runtime.running() == ["app"]
    assert count(world) == 1
    assert "a new version may not begin: Pod was rejected" in world.status.summary
    gated(world, None, make_pod("1-b"))
    world.run(60)
    assert world.runtime.running() == ["app"]
    assert count(world) == 0


def test_what_runs_is_not_ended_by_a_gate(world: World) -> None:
    up(world)
    gated(world, REFUSED)
    assert world.runtime.running() == ["app"]
    assert world.status.phase == "Running"


def test_a_pod_that_makes_room_ends_in_order_keeps_its_data_and_runs_again(world: World) -> None:
    up(world)
    gated(world, Gate("Preempting", "Preempted in order to admit critical pod", ends=True))
    world.run(60)
    assert world.runtime.running() == []
    assert world.runtime.called("remove_pod")
    assert (world.status.phase, world.status.reason) == ("Failed", "Preempting")
    assert not world.volumes.removed
    gated(world, None)
    world.run(60)
    assert world.runtime.running() == ["app"]
    assert (world.status.phase, world.status.reason) == ("Running", "")


# ---- reports of users -------------------------------------------------------------------------------


def test_pain_32_an_init_container_runs_once_however_often_the_app_crashes(world: World) -> None:
    world.runtime.exits_at_start["init"] = 0
    up(world, make_pod(init_containers=(INIT,)))
    for _ in range(3):
        world.runtime.exit("app", 1)
        world.run(60)
    assert count(world) == 3
    made = [c.args[2].name for c in world.runtime.called("create_container")]  # type: ignore[attr-defined]
    assert made.count("init") == 1


@pytest.mark.parametrize(("policy", "phase", "tries"), [("Never", "Failed", 1), ("Always", "Pending", 4)])
def test_pain_34_a_failing_init_container_is_tried_again_as_the_policy_says(
    world: World, policy: str, phase: str, tries: int
) -> None:
    world.runtime.exits_at_start["init"] = 1
    up(world, make_pod(init_containers=(INIT,), restart_policy=policy))
    world.run(40)
    assert len(world.runtime.called("create_container")) == tries
    assert world.status.phase == phase
    assert world.runtime.running() == []


def test_pain_58_how_a_container_ended_is_known_after_a_reboot(world: World) -> None:
    up(world)
    world.runtime.exits_at_start["app"] = 4
    world.runtime.exit("app", 3)
    world.run(5)
    world.reboot("boot-2")
    world.runtime.exits_at_start.clear()
    world.run(60)
    (app,) = world.status.containers
    assert isinstance(app.state, Running)
    assert isinstance(app.last_state, Terminated)
    assert app.last_state.exit_code == 4
