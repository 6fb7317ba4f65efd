"""What real Podman makes of our bodies, seen from inside the containers. Needs root and Podman."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Mapping

import pytest

from edgelet import errors
from edgelet.adapters import podman
from edgelet.adapters.volumes import HostVolumes
from edgelet.model.observed import Bind, ObservedContainer, ObservedPod, State
from edgelet.model.pod import (
    Container,
    EmptyDir,
    EnvVar,
    Pod,
    Port,
    Resources,
    SecurityContext,
    Volume,
    VolumeMount,
)
from tests.support.podman_env import IMAGE, PodmanEnv

pytestmark = pytest.mark.podman

SLEEP = ("sh", "-c", "exec sleep 1000")
STUBBORN = ("sh", "-c", "trap '' TERM; while :; do sleep 1; done")


def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait for what another process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


class Bench:
    """One runtime on the isolated Podman, and the pods a test made with it."""

    def __init__(self, env: PodmanEnv, owner: str = "bench") -> None:
        self.env = env
        self.runtime = env.runtime(owner)
        self.volumes = HostVolumes(env.layout)

    def pod(self, *containers: Container, name: str = "p", **fields: object) -> Pod:
        base = Pod(f"{name}-n", "default", f"uid-{name}", "1-abc", "file", containers or (self.container(),))
        return dataclasses.replace(base, **fields)  # type: ignore[arg-type]

    def container(self, *command: str, name: str = "c", **fields: object) -> Container:
        base = Container(name, IMAGE, command=command or SLEEP)
        return dataclasses.replace(base, **fields)  # type: ignore[arg-type]

    def up(self, pod: Pod) -> tuple[ObservedPod, ObservedContainer]:
        """Create the pod and start its first container."""
        sandbox = self.runtime.create_pod(pod, 0)
        return sandbox, self.start(sandbox, pod, pod.all_containers[0])

    def start(
        self, sandbox: ObservedPod, pod: Pod, container: Container, count: int = 0, extra: tuple[Bind, ...] = ()
    ) -> ObservedContainer:
        binds = self.volumes.binds(pod, container) + extra
        made = self.runtime.create_container(sandbox, pod, container, count, binds)
        found = self.runtime.start_container(sandbox, made.id).by_id(made.id)
        assert found is not None
        return found

    def twice(self, pod: Pod) -> tuple[ObservedPod, ObservedContainer, ObservedContainer]:
        """Let its container end, start it again, and let that one end."""
        sandbox, first = self.up(pod)
        self.ended(first)
        second = self.start(sandbox, pod, pod.containers[0], 1)
        self.ended(second)
        return sandbox, first, second

    def inside(self, container: ObservedContainer, script: str) -> str:
        return self.env.run("exec", container.id, "sh", "-c", script).strip()

    def ended(self, container: ObservedContainer) -> ObservedContainer:
        """Wait until it has exited."""
        until(lambda: self.runtime.inspect_container(container.id).state is State.EXITED)
        return self.runtime.inspect_container(container.id)

    def log(self, container: ObservedContainer) -> str:
        with open(container.log_path, encoding="utf-8") as file:
            return file.read()


@pytest.fixture
def bench(podman_env: PodmanEnv) -> Iterator[Bench]:
    made = Bench(podman_env)
    yield made
    for pod in made.runtime.list():
        made.runtime.remove_pod(pod.id)
        made.volumes.remove(pod.uid)


# ---- life of a pod ----


def test_a_log_that_cannot_be_written_is_told_before_conmon_fails_without_a_word(bench: Bench) -> None:
    pod = bench.pod(name="nolog")
    sandbox = bench.runtime.create_pod(pod, 0)
    path = bench.env.layout.log_path(pod.namespace, pod.name, pod.uid, "c", 0)
    os.makedirs(path)  # a directory is in the way, even for root
    with pytest.raises(errors.VolumeError, match=f"cannot make the log file {path}: Is a directory") as caught:
        bench.runtime.create_container(sandbox, pod, pod.containers[0], 0, ())
    assert caught.value.reason == "CreateContainerConfigError"
    os.rmdir(path)
    assert bench.start(sandbox, pod, pod.containers[0]).running


def test_a_pod_lives_and_ends(bench: Bench) -> None:
    pod = bench.pod(name="life")
    sandbox, container = bench.up(pod)
    assert container.state is State.RUNNING
    assert container.pid > 0
    assert container.conmon_pid > 0
    assert os.path.exists(container.oci_config)
    (seen,) = bench.runtime.list()
    assert seen.key == pod.key
    assert (seen.uid, seen.config_hash, seen.source, seen.grace) == (pod.uid, "1-abc", "file", 30)
    assert seen.infra_pid > 0
    assert seen.ips[0].count(".") == 3
    assert seen.containers == (container,)
    bench.runtime.signal_container(container.id, "SIGKILL")
    dead = bench.ended(container)
    assert (dead.exit_code, dead.pid, dead.oom_killed) == (137, 0, False)
    assert dead.started_at == container.started_at
    assert bench.runtime.list()[0].containers == (dead,)
    bench.runtime.remove_pod(sandbox.id)
    assert bench.runtime.list() == ()


def test_monotonic_times_are_those_of_the_kernel(bench: Bench) -> None:
    _, container = bench.up(bench.pod(name="times"))
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert now - 5 < container.started_mono <= now
    bench.runtime.signal_container(container.id, "SIGKILL")
    dead = bench.ended(container)
    assert dead.started_mono == container.started_mono
    assert container.started_mono <= dead.finished_mono <= time.clock_gettime(time.CLOCK_BOOTTIME)
    # the kernel counts from the process's birth, Podman from when it was let go
    born_before = (dead.finished_mono - dead.started_mono) - (dead.finished_at - dead.started_at)
    assert -0.05 < born_before < 5


def test_a_fresh_runtime_sees_the_same_as_the_one_that_made_it(bench: Bench) -> None:
    bench.up(bench.pod(name="adopt"))
    mine, theirs = bench.runtime.list(), bench.env.runtime("bench").list()
    assert mine == theirs


def test_a_list_costs_two_calls_while_nothing_changes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    pod = bench.pod(bench.container(), bench.container("false", name="done"), name="cheap")
    sandbox, _ = bench.up(pod)
    bench.ended(bench.start(sandbox, pod, pod.containers[1]))
    asked: list[str] = []
    get = bench.runtime._api.get

    def counted(path: str, params: Mapping[str, str] | None = None, *, timeout: float = 20.0) -> object:
        asked.append(path)
        return get(path, params, timeout=timeout)

    monkeypatch.setattr(bench.runtime._api, "get", counted)
    until(lambda: bench.runtime.list()[0].containers[1].state is State.EXITED)

    def cheap() -> bool:
        asked.clear()
        bench.runtime.list()
        return asked == ["pods/json", "containers/json"]

    # one look may fall between an end and its time, or between `stopped` and `exited`: it must stay cheap after
    until(lambda: all([cheap() for _ in range(3)]))


def test_an_exit_code_and_its_log(bench: Bench) -> None:
    pod = bench.pod(bench.container("sh", "-c", "echo out; echo err >&2; exit 7"), name="exit")
    _, container = bench.up(pod)
    dead = bench.ended(container)
    assert dead.exit_code == 7
    assert dead.log_path == bench.env.layout.log_path("default", "exit-n", "uid-exit", "c", 0)
    lines = sorted(line.split(" ", 1)[1] for line in bench.log(dead).splitlines())
    assert lines == ["stderr F err", "stdout F out"]


def test_the_second_instance_is_newest(bench: Bench) -> None:
    pod = bench.pod(bench.container("false"), name="again")
    _, _, second = bench.twice(pod)
    newest = bench.runtime.list(pod.key)[0].newest("c")
    assert newest is not None
    assert (newest.id, newest.restart_count) == (second.id, 1)


def test_what_a_pod_has_no_more_is_forgotten_with_its_next_list(bench: Bench) -> None:
    pod = bench.pod(bench.container("false"), name="forgotten")
    sandbox, first, second = bench.twice(pod)
    bench.runtime.list(pod.key)
    bench.runtime.remove_container(first.id)
    bench.runtime.list(pod.key)
    assert not bench.runtime.owns(first.id)
    assert bench.runtime.owns(second.id)
    bench.runtime.remove_pod(sandbox.id)
    bench.runtime.list(pod.key)
    assert not bench.runtime.owns(second.id)


@pytest.mark.parametrize("what", ["pod", "container"])
def test_forced_removal_does_not_wait_for_a_stubborn_container(bench: Bench, what: str) -> None:
    sandbox, container = bench.up(bench.pod(bench.container(*STUBBORN), name=f"stub{what}"))
    begin = time.monotonic()
    if what == "pod":
        bench.runtime.remove_pod(sandbox.id)
    else:
        bench.runtime.remove_container(container.id)
    assert time.monotonic() - begin < 8, "it was given its grace period of 30 s"
    assert not os.path.exists(f"/proc/{container.pid}")


# ---- host network, no infra ----


def test_a_host_network_pod_of_one_container_has_no_infra(bench: Bench) -> None:
    pod = bench.pod(name="host", host_network=True)
    sandbox, container = bench.up(pod)
    assert (sandbox.infra_id, sandbox.infra_dead, sandbox.host_network) == ("", False, True)
    assert os.readlink(f"/proc/{container.pid}/ns/net") == os.readlink("/proc/self/ns/net")
    assert bench.inside(container, "hostname") == os.uname().nodename
    (seen,) = bench.runtime.list()
    assert (seen.ips, seen.infra_pid, seen.containers) == ((), 0, (container,))


def test_a_host_network_pod_of_two_containers_has_one(bench: Bench) -> None:
    first, second = bench.container(name="a"), bench.container(name="b")
    pod = bench.pod(first, second, name="host2", host_network=True)
    sandbox, one = bench.up(pod)
    two = bench.start(sandbox, pod, second)
    assert sandbox.infra_id
    for container in (one, two):
        assert os.readlink(f"/proc/{container.pid}/ns/net") == os.readlink("/proc/self/ns/net")
    assert os.readlink(f"/proc/{one.pid}/ns/ipc") == os.readlink(f"/proc/{two.pid}/ns/ipc")


# ---- namespaces and network ----


def test_containers_of_a_pod_share_net_and_ipc_not_pid(bench: Bench) -> None:
    first, second = bench.container(name="a"), bench.container(name="b")
    pod = bench.pod(first, second, name="share", hostname="chosen")
    sandbox, one = bench.up(pod)
    two = bench.start(sandbox, pod, second)
    for kind, same in (("net", True), ("ipc", True), ("uts", True), ("pid", False)):
        equal = os.readlink(f"/proc/{one.pid}/ns/{kind}") == os.readlink(f"/proc/{two.pid}/ns/{kind}")
        assert equal is same, kind
    assert bench.inside(two, "hostname") == "chosen"


def test_shared_process_namespace(bench: Bench) -> None:
    first, second = bench.container(name="a"), bench.container(name="b")
    pod = bench.pod(first, second, name="pids", share_process_namespace=True)
    sandbox, one = bench.up(pod)
    two = bench.start(sandbox, pod, second)
    assert os.readlink(f"/proc/{one.pid}/ns/pid") == os.readlink(f"/proc/{two.pid}/ns/pid")


def test_host_pid_and_ipc(bench: Bench) -> None:
    _, container = bench.up(bench.pod(name="hostns", host_pid=True, host_ipc=True))
    for kind in ("pid", "ipc"):
        assert os.readlink(f"/proc/{container.pid}/ns/{kind}") == os.readlink(f"/proc/self/ns/{kind}"), kind


def test_a_published_port_answers(bench: Bench) -> None:
    server = bench.container("sh", "-c", "echo hello >/tmp/index.html; exec httpd -f -p 8080 -h /tmp")
    ports = (Port(8080, host_port=28080, host_ip="127.0.0.1"),)
    sandbox, container = bench.up(bench.pod(dataclasses.replace(server, ports=ports), name="port"))
    del sandbox
    import http.client

    def answers() -> bool:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", 28080, timeout=2)
            connection.request("GET", "/index.html")
            return connection.getresponse().read() == b"hello\n"
        except OSError:
            return False

    until(answers)
    assert container.running


def test_a_taken_host_port_is_temporary_and_named(bench: Bench) -> None:
    import socket

    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        container = bench.container(ports=(Port(80, host_port=port, host_ip="127.0.0.1"),))
        with pytest.raises(errors.Temporary, match="address already in use"):
            bench.up(bench.pod(container, name="busy"))


# ---- process ----


def test_environment_and_arguments(bench: Bench) -> None:
    script = "echo $B; echo $(A) $1 $$(A)"
    env = (EnvVar("A", "x"), EnvVar("B", "$(A)y $(C)"))
    container = bench.container("sh", "-c", script, "name", args=("arg-$(B)",), env=env)
    _, made = bench.up(bench.pod(container, name="env"))
    bench.ended(made)
    lines = [line.split(" ", 3)[3] for line in bench.log(made).splitlines() if " stdout " in line]
    assert lines[0] == "xy $(C)"


@pytest.mark.parametrize(
    ("command", "args", "expected"),
    [
        ((), (), "entry cmd"),
        ((), ("mine",), "entry mine"),
        (("echo", "own"), (), "own"),
        (("echo", "own"), ("mine",), "own mine"),
    ],
)
def test_command_and_args_against_the_image(
    bench: Bench, command: tuple[str, ...], args: tuple[str, ...], expected: str
) -> None:
    bench.env.add_image("localhost/entry:1", 'ENTRYPOINT ["echo","entry"]', 'CMD ["cmd"]')
    container = Container("c", "localhost/entry:1", command=command, args=args)
    _, made = bench.up(bench.pod(container, name="entry", uid=f"uid-{len(expected)}{len(command)}"))
    bench.ended(made)
    assert bench.log(made).splitlines()[-1].split(" ", 3)[3] == expected


def test_working_directory_is_made(bench: Bench) -> None:
    _, made = bench.up(bench.pod(bench.container(working_dir="/not/there/yet"), name="cwd"))
    assert os.readlink(f"/proc/{made.pid}/cwd") == "/not/there/yet"


def test_the_image_s_stop_signal_and_health_check(bench: Bench) -> None:
    bench.env.add_image("localhost/sig:1", "STOPSIGNAL SIGUSR1")
    container = Container("c", "localhost/sig:1", command=SLEEP)
    _, made = bench.up(bench.pod(container, name="sig"))
    assert made.stop_signal == "SIGUSR1"
    assert "NONE" in bench.env.run("inspect", made.id, "--format", "{{json .Config.Healthcheck}}")


# ---- security ----


def status_of(pid: int, field: str) -> str:
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(line.split(":", 1)[1].strip() for line in file if line.startswith(field + ":"))


def test_user_group_and_no_new_privileges(bench: Bench) -> None:
    security = SecurityContext(run_as_user=1234, run_as_group=2345, allow_privilege_escalation=False)
    _, made = bench.up(bench.pod(bench.container(security=security), name="user"))
    assert status_of(made.pid, "Uid").split()[0] == "1234"
    assert status_of(made.pid, "Gid").split()[0] == "2345"
    assert status_of(made.pid, "NoNewPrivs") == "1"
    assert status_of(made.pid, "Seccomp") == "0"


def test_capabilities(bench: Bench) -> None:
    security = SecurityContext(add_capabilities=("NET_ADMIN",), drop_capabilities=("ALL",))
    _, made = bench.up(bench.pod(bench.container(security=security), name="caps"))
    assert int(status_of(made.pid, "CapEff"), 16) == 1 << 12


def test_privileged_has_what_this_process_may_give(bench: Bench) -> None:
    _, made = bench.up(bench.pod(bench.container(security=SecurityContext(privileged=True)), name="priv"))
    assert int(status_of(made.pid, "CapEff"), 16) >> 21 & 1, "CAP_SYS_ADMIN"
    assert bench.inside(made, "ls /dev").count("\n") > 15


def test_read_only_root(bench: Bench) -> None:
    security = SecurityContext(read_only_root_filesystem=True)
    _, made = bench.up(bench.pod(bench.container(security=security), name="ro"))
    assert bench.inside(made, "touch /x 2>/dev/null && echo written || echo refused") == "refused"


# ---- limits ----


def _cgroup_file(pid: int, v1: str, v2: str) -> str:
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
        groups = {line.split(":")[1]: line.strip().split(":", 2)[2] for line in file}
    controller, name = v1.split("/")
    path = next((f"/sys/fs/cgroup/{controller}{p}/{name}" for c, p in groups.items() if controller in c.split(",")), "")
    with open(path or f"/sys/fs/cgroup{groups['']}/{v2}", encoding="utf-8") as file:
        return file.read().strip()


def test_limits_reach_the_kernel(bench: Bench) -> None:
    resources = Resources(cpu_limit=250, cpu_request=100, memory_limit=64 << 20)
    _, made = bench.up(bench.pod(bench.container(resources=resources), name="limits"))
    assert _cgroup_file(made.pid, "memory/memory.limit_in_bytes", "memory.max") == str(64 << 20)
    assert _cgroup_file(made.pid, "cpu/cpu.cfs_quota_us", "cpu.max").split()[0] == "25000"
    assert _cgroup_file(made.pid, "pids/pids.max", "pids.max") == "max"


def test_oom_score_is_as_the_kubelet_sets_it_as_far_as_this_process_may(bench: Bench) -> None:
    resources = Resources(cpu_limit=250, memory_limit=64 << 20)
    _, made = bench.up(bench.pod(bench.container(resources=resources), name="oom"))
    facts = podman.facts(podman.read())
    with open(f"/proc/{made.pid}/oom_score_adj", encoding="utf-8") as file:
        assert int(file.read()) == max(-997, facts.oom_min)
    _, other = bench.up(bench.pod(name="oom2"))
    with open(f"/proc/{other.pid}/oom_score_adj", encoding="utf-8") as file:
        assert int(file.read()) == 1000


TOLD = os.path.exists("/sys/fs/cgroup/cgroup.controllers") or os.access("/dev/kmsg", os.R_OK)


@pytest.mark.skipif(not TOLD, reason="no kernel log, and conmon 2.1 on cgroup v1 often ends before the OOM event")
def test_an_oom_kill_is_told(bench: Bench) -> None:
    hungry = bench.container(
        "sh", "-c", "x=a; while :; do x=$x$x$x$x; done", resources=Resources(memory_limit=16 << 20)
    )
    _, made = bench.up(bench.pod(hungry, name="hungry"))
    dead = bench.ended(made)
    assert dead.oom_killed
    assert dead.exit_code == 137


# ---- volumes ----


def test_a_memory_volume_is_a_tmpfs_inside(bench: Bench) -> None:
    container = bench.container(mounts=(VolumeMount("m", "/mem"),))
    pod = bench.pod(container, name="mem", volumes=(Volume("m", EmptyDir("Memory", 1 << 20)),))
    _, made = bench.up(pod)
    row = bench.inside(made, "grep ' /mem ' /proc/mounts")
    assert row.split()[2] == "tmpfs"
    assert "full" in bench.inside(made, "dd if=/dev/zero of=/mem/x bs=1M count=2 2>/dev/null || echo full")


def test_a_device_is_handed_in(bench: Bench) -> None:
    device = Bind("/dev/null", "/dev/mine", kind="device")
    pod = bench.pod(name="dev")
    sandbox = bench.runtime.create_pod(pod, 0)
    made = bench.start(sandbox, pod, pod.containers[0], 0, (device,))
    assert bench.inside(made, "echo x >/dev/mine && stat -c %F /dev/mine") == "character special file"


# ---- refusals ----


def test_a_command_that_is_not_there_is_permanent(bench: Bench) -> None:
    pod = bench.pod(bench.container("/no/such/thing"), name="nocmd")
    sandbox = bench.runtime.create_pod(pod, 0)
    made = bench.runtime.create_container(sandbox, pod, pod.containers[0], 0, ())
    with pytest.raises(errors.Permanent, match="/no/such/thing"):
        bench.runtime.start_container(sandbox, made.id)
    assert bench.runtime.inspect_container(made.id).state is State.CREATED


def test_a_command_that_is_not_executable_is_permanent(bench: Bench) -> None:
    with pytest.raises(errors.Permanent):
        bench.up(bench.pod(bench.container("/etc"), name="noexec"))


def test_an_image_that_is_not_there(bench: Bench) -> None:
    pod = bench.pod(Container("c", "localhost/none:1"), name="noimg")
    sandbox = bench.runtime.create_pod(pod, 0)
    with pytest.raises(errors.ImageMissing, match="localhost/none:1"):
        bench.runtime.create_container(sandbox, pod, pod.containers[0], 0, ())
    assert bench.runtime.image("localhost/none:1") is None
    with pytest.raises(errors.PullFailed):
        bench.runtime.pull("localhost/none:1")


def test_what_is_known_of_an_image(bench: Bench) -> None:
    bench.env.add_image("localhost/user:1", "USER 1000", "STOPSIGNAL SIGINT")
    found = bench.runtime.image("localhost/user:1")
    assert found is not None
    assert (found.user, found.stop_signal) == ("1000", "SIGINT")
    assert found.id.startswith("sha256:")
    assert found.size > 500_000
    assert "@sha256:" in found.digest


def test_another_owner_s_pods_are_neither_seen_nor_touched(bench: Bench) -> None:
    other = Bench(bench.env, "other")
    sandbox, container = other.up(other.pod(name="same"))
    try:
        assert bench.runtime.list() == ()
        for touch in (
            lambda: bench.runtime.remove_pod(sandbox.id),
            lambda: bench.runtime.remove_container(container.id),
            lambda: bench.runtime.signal_container(container.id, "SIGKILL"),
            lambda: bench.runtime.start_container(sandbox, container.id),
            lambda: bench.runtime.inspect_container(container.id),
        ):
            with pytest.raises(errors.NotFound):
                touch()
        bench.up(bench.pod(name="same"))
        assert [p.key for p in other.runtime.list()] == [p.key for p in bench.runtime.list()]
        assert os.path.exists(f"/proc/{container.pid}")
    finally:
        other.runtime.remove_pod(sandbox.id)
