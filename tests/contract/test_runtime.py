"""ports.Runtime: the fake answers as real Podman did in the same run, call by call and fault by fault."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from edgelet.model.observed import ObservedContainer, ObservedPod
from tests.contract import worlds
from tests.contract.worlds import FakeWorld, RealWorld, Transcript, World, container, pod
from tests.support.podman_env import IMAGE

pytestmark = pytest.mark.podman

Scenario = Callable[[World, Transcript], None]


def same(real: RealWorld, scenario: Scenario) -> Transcript:
    """Play it on both, compare, and hand back what happened."""
    fake, mine, theirs = FakeWorld(), Transcript(), Transcript()
    scenario(real, theirs)
    scenario(fake, mine)
    for number, (fakes, podmans) in enumerate(itertools.zip_longest(mine.lines, theirs.lines)):
        assert fakes == podmans, f"step {number}\nfake   {fakes}\nPodman {podmans}"
    return theirs


# ---- each method, each fault ----


def made(world: World) -> tuple[ObservedPod, ObservedContainer]:
    """A pod with one created container."""
    wanted = pod()
    sandbox = world.runtime.create_pod(wanted, 0)
    return sandbox, world.runtime.create_container(sandbox, wanted, wanted.containers[0], 0, world.binds)


def running(world: World) -> tuple[ObservedPod, ObservedContainer]:
    """A pod with one running container."""
    sandbox, created = made(world)
    after = world.runtime.start_container(sandbox, created.id)
    return after, inside(after, created.id)


def inside(sandbox: ObservedPod, container_id: str) -> ObservedContainer:
    """That container, as the answer to its start tells it."""
    found = sandbox.by_id(container_id)
    assert found is not None
    return found


def create_pod(world: World) -> Callable[[], object]:
    return lambda: world.runtime.create_pod(pod(), 1)


def remove_pod(world: World) -> Callable[[], object]:
    sandbox, _ = running(world)
    return lambda: world.runtime.remove_pod(sandbox.id)


def create_container(world: World) -> Callable[[], object]:
    wanted = pod()
    sandbox = world.runtime.create_pod(wanted, 0)
    return lambda: world.runtime.create_container(sandbox, wanted, wanted.containers[0], 2, world.binds)


def start_container(world: World) -> Callable[[], object]:
    sandbox, created = made(world)
    return lambda: world.runtime.start_container(sandbox, created.id)


def signal_container(world: World) -> Callable[[], object]:
    _, started = running(world)
    return lambda: world.runtime.signal_container(started.id, "SIGKILL")


def remove_container(world: World) -> Callable[[], object]:
    _, started = running(world)
    return lambda: world.runtime.remove_container(started.id)


def inspect_container(world: World) -> Callable[[], object]:
    _, started = running(world)
    return lambda: world.runtime.inspect_container(started.id)


def list_all(world: World) -> Callable[[], object]:
    running(world)
    return world.runtime.list


def list_one(world: World) -> Callable[[], object]:
    sandbox, _ = running(world)
    return lambda: world.runtime.list(sandbox.key)


def image(world: World) -> Callable[[], object]:
    return lambda: world.runtime.image(IMAGE)


METHODS = {
    "create_pod": create_pod,
    "remove_pod": remove_pod,
    "create_container": create_container,
    "start_container": start_container,
    "signal_container": signal_container,
    "remove_container": remove_container,
    "inspect_container": inspect_container,
    "list": list_all,
    "list of one": list_one,
    "image": image,
}


@pytest.mark.parametrize(("method", "fault"), list(itertools.product(METHODS, worlds.FAULTS)))
def test_every_method_under_every_fault(real: RealWorld, method: str, fault: str) -> None:
    def scenario(world: World, told: Transcript) -> None:
        call = METHODS[method](world)
        world.fault(method.removesuffix(" of one"), fault)
        told.call(f"{method} under {fault}", call)
        world.fault(method.removesuffix(" of one"), "none")
        if method == "signal_container" and fault in ("none", "after"):
            world.settle(lambda: not world.runtime.list()[0].containers[0].running)
        told.see(world)
        told.call("again", call)
        if method == "signal_container":
            world.settle(lambda: not world.runtime.list()[0].containers[0].running)
        told.see(world)

    told = same(real, scenario)
    expected = {"before": "Temporary", "after": "Temporary", "refuse": "Unreachable"}
    assert fault == "none" or told.lines[0][1] == expected[fault]


@pytest.mark.parametrize("fault", worlds.FAULTS)
def test_a_pull_that_cannot_work_under_every_fault(real: RealWorld, fault: str) -> None:
    def scenario(world: World, told: Transcript) -> None:
        world.fault("pull", fault)
        told.call("pull", lambda: world.runtime.pull("localhost/nowhere:1"))
        world.fault("pull", "none")
        told.call("image", lambda: world.runtime.image("localhost/nowhere:1"))

    same(real, scenario)


# ---- refusals ----


def test_names_are_taken_once(real: RealWorld) -> None:
    def scenario(world: World, told: Transcript) -> None:
        wanted = pod()
        sandbox, _ = made(world)
        told.call("same pod", lambda: world.runtime.create_pod(wanted, 0))
        only = wanted.containers[0]
        told.call("same container", lambda: world.runtime.create_container(sandbox, wanted, only, 0, world.binds))
        told.call("next instance", lambda: world.runtime.create_container(sandbox, wanted, only, 1, world.binds))
        told.see(world)

    assert [line[1] for line in same(real, scenario).lines[:2]] == ["Conflict", "Conflict"]


def test_a_name_that_somebody_else_took(real: RealWorld) -> None:
    def scenario(world: World, told: Transcript) -> None:
        world.take_name(pod())
        told.call("create", lambda: world.runtime.create_pod(pod(), 0))
        told.see(world)

    assert same(real, scenario).lines == [("create", "Conflict"), ("list", ())]


def test_what_is_not_there(real: RealWorld) -> None:
    gone = "c0ffee" * 10 + "abcd"

    def scenario(world: World, told: Transcript) -> None:
        wanted = pod()
        sandbox = world.runtime.create_pod(wanted, 0)
        missing = container(image="localhost/none:1")
        told.call("no image", lambda: world.runtime.create_container(sandbox, wanted, missing, 0, ()))
        told.call("image", lambda: world.runtime.image("localhost/none:1"))
        told.call("remove container", lambda: world.runtime.remove_container(gone))
        told.call("remove pod", lambda: world.runtime.remove_pod(gone))
        told.call("signal", lambda: world.runtime.signal_container(gone, "SIGTERM"))
        told.call("start", lambda: world.runtime.start_container(sandbox, gone))
        told.call("inspect", lambda: world.runtime.inspect_container(gone))
        world.runtime.remove_pod(sandbox.id)
        only = wanted.containers[0]
        told.call("no pod", lambda: world.runtime.create_container(sandbox, wanted, only, 0, world.binds))
        told.call("list of none", lambda: world.runtime.list(wanted.key))

    same(real, scenario)


def test_a_command_that_is_not_there(real: RealWorld) -> None:
    def scenario(world: World, told: Transcript) -> None:
        wanted = pod(world.broken("c"))
        sandbox = world.runtime.create_pod(wanted, 0)
        created = world.runtime.create_container(sandbox, wanted, wanted.containers[0], 0, ())
        told.call("start", lambda: world.runtime.start_container(sandbox, created.id))
        told.see(world)
        told.call("start again", lambda: world.runtime.start_container(sandbox, created.id))
        told.call("remove", lambda: world.runtime.remove_container(created.id))
        told.see(world)

    assert same(real, scenario).lines[0] == ("start", "Permanent")


# ---- the life of a container ----


def test_starting_twice_and_starting_what_has_ended(real: RealWorld) -> None:
    def scenario(world: World, told: Transcript) -> None:
        sandbox, started = running(world)
        told.call("start again", lambda: world.runtime.start_container(sandbox, started.id))
        world.exit("c", 3)
        told.see(world)
        told.call("signal the dead", lambda: world.runtime.signal_container(started.id, "SIGTERM"))
        told.call("start the dead", lambda: world.runtime.start_container(sandbox, started.id))
        told.see(world)

    same(real, scenario)


@pytest.mark.parametrize("code", [0, 1, 255])
def test_exit_codes(real: RealWorld, code: int) -> None:
    def scenario(world: World, told: Transcript) -> None:
        _, started = running(world)
        world.exit("c", code)
        told.call("inspect", lambda: world.runtime.inspect_container(started.id))
        told.see(world)

    same(real, scenario)


def test_signals_to_the_polite_and_to_the_stubborn(real: RealWorld) -> None:
    def scenario(world: World, told: Transcript) -> None:
        wanted = pod(container("polite"), world.stubborn("stubborn"))
        sandbox = world.runtime.create_pod(wanted, 0)
        for each in wanted.containers:
            created = world.runtime.create_container(sandbox, wanted, each, 0, world.binds)
            told.call(f"start {each.name}", lambda i=created.id: world.runtime.start_container(sandbox, i))  # type: ignore[misc]
        world.settle(lambda: len(world.runtime.list()[0].containers) == 2)
        world.settle(lambda: all(world.polite(c) for c in world.runtime.list()[0].containers))
        for seen in world.runtime.list()[0].containers:
            world.runtime.signal_container(seen.id, "SIGTERM")
        world.settle(lambda: [c.running for c in world.runtime.list()[0].containers] == [False, True])
        told.see(world)
        for seen in world.runtime.list()[0].containers:
            world.runtime.signal_container(seen.id, "SIGKILL")
        world.settle(lambda: not any(c.running for c in world.runtime.list()[0].containers))
        told.see(world)

    same(real, scenario)


def test_instances_of_one_container_in_order(real: RealWorld) -> None:
    def scenario(world: World, told: Transcript) -> None:
        wanted = pod()
        sandbox = world.runtime.create_pod(wanted, 0)
        for count in range(3):
            created = world.runtime.create_container(sandbox, wanted, wanted.containers[0], count, world.binds)
            world.runtime.start_container(sandbox, created.id)
            world.exit("c", count)
        told.see(world)
        first = world.runtime.list()[0].containers[0]
        world.runtime.remove_container(first.id)
        told.see(world)

    same(real, scenario)


# ---- the outside world ----


@pytest.mark.parametrize("kind", ["pod", "container"])
def test_somebody_removes_it_behind_our_back(real: RealWorld, kind: str) -> None:
    def scenario(world: World, told: Transcript) -> None:
        sandbox, started = running(world)
        world.vanish(sandbox.id if kind == "pod" else started.id, kind)
        told.see(world)
        told.call("inspect", lambda: world.runtime.inspect_container(started.id))
        told.call("signal", lambda: world.runtime.signal_container(started.id, "SIGTERM"))
        told.call("remove", lambda: world.runtime.remove_container(started.id))
        told.call("remove pod", lambda: world.runtime.remove_pod(sandbox.id))
        told.see(world)

    same(real, scenario)


def test_an_infra_container_that_dies(real: RealWorld) -> None:
    def scenario(world: World, told: Transcript) -> None:
        sandbox, _ = running(world)
        world.kill_infra(world.runtime.list()[0])
        told.see(world)
        told.call("remove pod", lambda: world.runtime.remove_pod(sandbox.id))
        told.see(world)

    same(real, scenario)


def test_a_start_revives_a_dead_infra_container(real: RealWorld) -> None:
    def scenario(world: World, told: Transcript) -> None:
        wanted = pod()
        sandbox, _ = running(world)
        world.kill_infra(world.runtime.list()[0])
        world.exit("c", 0)
        next_one = world.runtime.create_container(sandbox, wanted, wanted.containers[0], 1, world.binds)
        told.call("start", lambda: world.runtime.start_container(sandbox, next_one.id))
        told.see(world)

    same(real, scenario)


def test_the_infra_container_can_be_signalled(real: RealWorld) -> None:
    def scenario(world: World, told: Transcript) -> None:
        _, started = running(world)
        world.runtime.remove_container(started.id)
        infra = world.runtime.list()[0].infra_id
        told.call("signal", lambda: world.runtime.signal_container(infra, "SIGKILL"))
        world.settle(lambda: world.runtime.list()[0].infra_dead)
        told.see(world)

    same(real, scenario)


def test_a_container_without_its_conmon_is_removed(real: RealWorld) -> None:
    def scenario(world: World, told: Transcript) -> None:
        _, started = running(world)
        world.kill_conmon(started, process_too=False)
        told.see(world)
        told.call("remove", lambda: world.runtime.remove_container(started.id))
        told.see(world)

    same(real, scenario)


def test_a_container_without_its_conmon_is_killed(real: RealWorld) -> None:
    def scenario(world: World, told: Transcript) -> None:
        _, started = running(world)
        world.kill_conmon(started, process_too=False)
        told.call("signal", lambda: world.runtime.signal_container(started.id, "SIGKILL"))
        # Whether Podman notes the end depends on who reaps the process, so what it lists now is not compared.
        told.call("remove", lambda: world.runtime.remove_container(started.id))
        told.see(world)

    same(real, scenario)


def test_a_dead_container_without_its_conmon_is_said_to_run(real: RealWorld) -> None:
    def scenario(world: World, told: Transcript) -> None:
        _, started = running(world)
        world.kill_conmon(started, process_too=True)
        told.see(world)
        told.call("signal", lambda: world.runtime.signal_container(started.id, "SIGTERM"))
        told.call("remove", lambda: world.runtime.remove_container(started.id))
        told.call("remove again", lambda: world.runtime.remove_container(started.id))
        told.see(world)

    same(real, scenario)


def test_the_exit_file_written_by_hand_tells_podman(real: RealWorld) -> None:
    def scenario(world: World, told: Transcript) -> None:
        _, started = running(world)
        world.kill_conmon(started, process_too=True)
        told.see(world)
        world.repair(started)
        told.call("inspect", lambda: world.runtime.inspect_container(started.id))
        told.see(world)
        told.call("remove", lambda: world.runtime.remove_container(started.id))
        told.see(world)

    same(real, scenario)


def test_a_reboot(real: RealWorld) -> None:
    def scenario(world: World, told: Transcript) -> None:
        wanted = pod(container("gone"), container("stays"))
        sandbox = world.runtime.create_pod(wanted, 0)
        for each in wanted.containers:
            created = world.runtime.create_container(sandbox, wanted, each, 0, world.binds)
            world.runtime.start_container(sandbox, created.id)
        world.exit("gone", 4)
        told.see(world)
        world.reboot()
        told.see(world)
        told.call("remove pod", lambda: world.runtime.remove_pod(sandbox.id))
        told.see(world)

    same(real, scenario)


@pytest.mark.parametrize("count", [1, 2])
def test_host_network(real: RealWorld, count: int) -> None:
    def scenario(world: World, told: Transcript) -> None:
        wanted = pod(*(container(f"c{i}") for i in range(count)), host_network=True)
        sandbox = world.runtime.create_pod(wanted, 0)
        told.see(world)
        for each in wanted.containers:
            created = world.runtime.create_container(sandbox, wanted, each, 0, world.binds)
            world.runtime.start_container(sandbox, created.id)
        told.see(world)
        told.call("remove pod", lambda: world.runtime.remove_pod(sandbox.id))
        told.see(world)

    same(real, scenario)
