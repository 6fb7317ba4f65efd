"""Commands in real containers by their own OCI runtime: as the container itself, and gone when they must go."""

from __future__ import annotations

import gc
import os
import select
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgelet import ports
from edgelet.adapters import exits
from edgelet.adapters.runtime_exec import OciExec
from edgelet.errors import ExecError
from tests.adapters.runtime_exec.conftest import MakeTarget
from tests.engine import probing

pytestmark = pytest.mark.podman

SOAK = int(os.environ.get("EDGELET_SOAK", "0"))
"""How many time-outs the soak test makes; 0 = a few."""

HIDERS = """
(sleep 1001 &)
(setsid sleep 1002 &)
setsid sh -c 'sleep 1003 & sleep 1004' &
trap '' TERM
sleep 1005
"""
"""A command whose children hide: by a double fork, in a session of their own, both at once."""


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[OciExec]:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    one = OciExec(str(tmp_path / "exec"))
    yield one
    one.close()
    assert not (tmp_path / "exec").exists() or os.listdir(tmp_path / "exec") == []
    assert len(os.listdir("/proc/self/fd")) <= before


def wait(running: ports.Running, seconds: float = 20.0) -> bool:
    """Drain until it has ended; False when it has not within that time."""
    poll = select.poll()
    poll.register(running.fileno(), select.POLLIN)
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        output = running.output_fileno()
        if output >= 0:
            poll.register(output, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(left * 1000)}
        if output in ready:
            running.drain()
            if running.output_fileno() < 0:
                poll.unregister(output)
        if running.fileno() in ready:
            return True
    return False


def run(runner: OciExec, target: ports.Target, *command: str) -> ports.ExecResult:
    running = runner.begin(target, command)
    assert wait(running), "the command did not end"
    return running.finish()


def alive(target: ports.Target) -> list[str]:
    """Command lines of all that lives in the container besides its first process; the dead do not count."""
    namespace = os.readlink(f"/proc/{target.pid}/ns/pid")
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(name) == target.pid or os.readlink(f"/proc/{name}/ns/pid") != namespace:
                continue
            state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
            if state not in "ZX":
                found.append(Path(f"/proc/{name}/cmdline").read_text().replace("\0", " ") or name)
        except OSError:
            continue
    return found


def children() -> list[tuple[str, str]]:
    """Pid and state of the children of this process."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == os.getpid():
            found.append((name, state))
    return found


def sleepers(target: ports.Target) -> int:
    """How many sleep in the container."""
    return sum(line.startswith("sleep 100") for line in alive(target))


def test_pain_14_exit_code_and_output_of_a_container_in_a_store_of_its_own(
    runner: OciExec, make_target: MakeTarget
) -> None:
    target = make_target()
    result = run(runner, target, "sh", "-c", "echo out; echo err >&2; exit 3")
    assert result.exit_code == 3
    assert sorted(result.output.splitlines()) == [b"err", b"out"], "both streams; runc may mix their order"
    assert run(runner, target, "true") == ports.ExecResult(0)
    assert run(runner, target, "sh", "-c", "kill -9 $$").exit_code == 137


def test_a_command_that_is_not_there_is_an_error_not_a_failure(runner: OciExec, make_target: MakeTarget) -> None:
    running = runner.begin(make_target(), ("/no/such/command",))
    assert wait(running)
    with pytest.raises(ExecError, match="no such file or directory"):
        running.finish()


def test_a_container_that_is_gone_is_an_error(runner: OciExec, make_target: MakeTarget, podman_env: object) -> None:
    target = make_target(command=("sh", "-c", "exit 0"))
    probing.wait_until(lambda: not os.path.exists(f"/proc/{target.pid}"))
    with pytest.raises(ExecError):
        run(runner, target, "true")


def test_the_command_is_confined_as_the_container_is(runner: OciExec, make_target: MakeTarget) -> None:
    options = "--user 1000:2000 --workdir /tmp --env WHO=me --cap-drop all --cap-add chown --read-only"
    limits = "--ulimit nofile=1234:1234 --ulimit nproc=999:999"
    target = make_target(*options.split(), *limits.split(), "--security-opt", "no-new-privileges")
    script = "id -u; id -g; pwd; echo $WHO; ulimit -n; cat /proc/self/status /proc/self/cgroup"
    lines = run(runner, target, "sh", "-c", script).output.decode().splitlines()
    assert lines[:5] == ["1000", "2000", "/tmp", "me", "1234"]
    first = Path(f"/proc/{target.pid}/status").read_text().splitlines()
    for name in ("Uid", "Gid", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"):
        assert [x for x in lines if x.startswith(name + ":")] == [x for x in first if x.startswith(name + ":")]
    for group in Path(f"/proc/{target.pid}/cgroup").read_text().splitlines():
        assert group in lines


def test_a_chatty_command_is_not_blocked_and_its_output_is_bounded(runner: OciExec, make_target: MakeTarget) -> None:
    result = run(runner, make_target(), "sh", "-c", "dd if=/dev/zero bs=1000 count=10000 2>&1; exit 4")
    assert (result.exit_code, len(result.output)) == (4, 10 * 1024)


def test_pain_22_a_timeout_ends_the_whole_tree(runner: OciExec, make_target: MakeTarget) -> None:
    target = make_target()
    running = runner.begin(target, ("sh", "-c", HIDERS))
    probing.wait_until(lambda: sleepers(target) == 5)
    began = time.monotonic()
    running.abort()
    assert time.monotonic() - began < 5, "it does not wait"
    assert wait(running, 20)
    assert running.finish().timed_out
    probing.wait_until(lambda: alive(target) == [], 20)


def test_a_command_beside_the_one_that_is_ended_goes_on(runner: OciExec, make_target: MakeTarget) -> None:
    target = make_target()
    same = ("sh", "-c", "(setsid sleep 1001 &) ; sleep 1002")
    first, second = runner.begin(target, same), runner.begin(target, same)
    probing.wait_until(lambda: sleepers(target) == 4, 20)
    first.kill()
    probing.wait_until(lambda: sleepers(target) == 2, 20)
    second.kill()
    probing.wait_until(lambda: alive(target) == [], 20)


@pytest.mark.parametrize("milliseconds", [0, 5, 10, 15, 20, 25, 30, 40, 50])
def test_a_command_can_be_ended_at_any_moment_of_its_start(
    runner: OciExec, make_target: MakeTarget, milliseconds: int
) -> None:
    target = make_target()
    running = runner.begin(target, ("sleep", "1001"))
    time.sleep(milliseconds / 1000)
    running.abort()
    assert wait(running, 20)
    assert running.finish().timed_out
    probing.wait_until(lambda: alive(target) == [], 20)


def test_kill_leaves_nothing_and_may_come_after_the_end(runner: OciExec, make_target: MakeTarget) -> None:
    target = make_target()
    running = runner.begin(target, ("sleep", "1001"))
    probing.wait_until(lambda: len(alive(target)) == 1)
    running.kill()
    assert alive(target) == []
    running.kill()
    assert running.finish().timed_out


def test_process_files_are_written_once_and_go_with_the_container(
    runner: OciExec, make_target: MakeTarget, tmp_path: Path
) -> None:
    target = make_target()
    for _ in range(3):
        run(runner, target, "true")
    run(runner, target, "false")
    assert len(os.listdir(tmp_path / "exec")) == 2
    busy = runner.begin(target, ("sleep", "1001"))
    runner.forget(target.container_id)
    assert len(os.listdir(tmp_path / "exec")) <= 2, "one process file, perhaps a pid file"
    busy.kill()
    assert os.listdir(tmp_path / "exec") == []


def test_without_its_conmon_a_container_is_still_found(runner: OciExec, make_target: MakeTarget) -> None:
    target = make_target()
    parent = int(Path(f"/proc/{target.pid}/stat").read_text().rpartition(")")[2].split()[1])
    exit_dir = exits.exit_dir_of(parent)
    os.kill(parent, 9)
    probing.wait_until(lambda: str(parent) not in Path(f"/proc/{target.pid}/stat").read_text().split()[3:4])
    assert run(runner, target, "echo", "hi") == ports.ExecResult(0, b"hi\n")
    os.kill(target.pid, 9)
    exits.write_exit_file(exit_dir, target.container_id, 137)


@pytest.mark.timeout(3600 if SOAK else 120)
def test_nothing_is_left_after_many_timeouts(runner: OciExec, make_target: MakeTarget, tmp_path: Path) -> None:
    """EDGELET_SOAK=1000 for the full run; no process, descriptor, pid file or zombie of ours."""
    if not shutil.which("catatonit", path=f"{os.environ['PATH']}:/usr/libexec/podman:/usr/lib/podman"):
        pytest.skip("needs catatonit, to have a first process that collects orphans")
    target = make_target("--init")
    idle = alive(target)
    descriptors = len(os.listdir("/proc/self/fd"))
    for _ in range(SOAK or 10):
        running = runner.begin(target, ("sh", "-c", "(setsid sleep 1001 &) ; sleep 1002 & sleep 1003"))
        time.sleep(0.08)
        running.abort()
        assert wait(running, 20)
        running.finish()
    probing.wait_until(lambda: alive(target) == idle, 20)
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert [name for name in os.listdir(tmp_path / "exec") if name.endswith(".pid")] == []
    assert len(os.listdir(tmp_path / "exec")) == 1
    assert [child for child in children() if child[1] == "Z"] == []
