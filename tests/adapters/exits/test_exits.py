"""Exits seen at once: by conmon's exit file, by its absence, and by hand where conmon is dead."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import queue
import resource
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgelet.adapters import exits
from edgelet.adapters.exits import proc, watcher
from edgelet.errors import StateError
from tests.engine import probing
from tests.support.podman_env import PodmanEnv

ID = "0123456789abcdef" * 4


class Stage:
    """A container of two ordinary processes: a `conmon` and its child; and a watcher."""

    def __init__(self, directory: Path) -> None:
        self.exit_dir = directory
        self.reports: queue.Queue[exits.Report] = queue.Queue()
        place = exits.Place(default=str(directory))
        self.watcher = exits.ExitWatcher(lambda *report: self.reports.put(report), place=place)
        self.conmons: list[subprocess.Popen[str]] = []

    def container(self, script: str = "exec sleep 1000", container_id: str = ID) -> tuple[int, int]:
        """Start one; pid and conmon pid."""
        body = f"sh -c {script!r} & echo $!; wait"
        argv = ["conmon", "-c", body, "x", "-c", container_id, "--exit-dir", str(self.exit_dir)]
        conmon = subprocess.Popen(argv, executable="/bin/sh", stdout=subprocess.PIPE, text=True)
        self.conmons.append(conmon)
        if conmon.stdout is None:
            raise AssertionError("no pipe")
        pid = int(conmon.stdout.readline())
        return pid, conmon.pid

    def write(self, code: str, name: str = ID) -> None:
        """What conmon does when its container has ended."""
        temporary = self.exit_dir / f".{name}.XXXX"
        temporary.write_text(code)
        temporary.rename(self.exit_dir / name)

    def report(self, seconds: float = 20.0) -> exits.Report:
        return self.reports.get(timeout=seconds)

    def close(self) -> None:
        self.watcher.stop()
        for conmon in self.conmons:
            conmon.kill()
            conmon.wait()
            if conmon.stdout is not None:
                conmon.stdout.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    one = Stage(tmp_path)
    one.watcher.start()
    yield one
    one.close()
    assert one.reports.empty(), "an exit is told once"
    assert len(os.listdir("/proc/self/fd")) <= before


def test_the_exit_file_gives_the_code_at_once(stage: Stage) -> None:
    pid, conmon = stage.container()
    stage.watcher.watch(ID, pid, conmon)
    began = time.monotonic()
    stage.write("42\n")
    assert stage.report() == (ID, 42, exits.EXIT_FILE)
    assert time.monotonic() - began < 5
    os.kill(pid, signal.SIGKILL)


def test_files_of_containers_nobody_watches_are_nobodys_business(stage: Stage) -> None:
    pid, conmon = stage.container()
    stage.watcher.watch(ID, pid, conmon)
    stage.watcher.watch("other", 0, 0)
    stage.watcher.forget("other")
    stage.write("1", "f" * 64)
    stage.write("1", "other")
    stage.write("7")
    assert stage.report() == (ID, 7, exits.EXIT_FILE)
    os.kill(pid, signal.SIGKILL)


def test_a_file_that_came_before_the_watch_is_found(stage: Stage) -> None:
    pid, conmon = stage.container("exit 3")
    stage.write("3")
    probing.wait_until(
        lambda: not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_text()
    )
    stage.watcher.watch(ID, pid, conmon)
    assert stage.report() == (ID, 3, exits.EXIT_FILE)


def test_an_end_without_a_file_is_lost_after_a_second(stage: Stage) -> None:
    pid, conmon = stage.container("exec sleep 1000")
    os.kill(conmon, signal.SIGSTOP)
    stage.watcher.watch(ID, pid, conmon)
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    assert stage.report() == (ID, None, exits.LOST)
    assert 0.9 < time.monotonic() - began < 15


def test_both_gone_before_the_watch_is_an_ordinary_exit_and_podman_can_learn_of_it(stage: Stage) -> None:
    pid, conmon = stage.container()
    for number in (conmon, pid):
        os.kill(number, signal.SIGKILL)
    stage.conmons[0].wait()
    probing.wait_until(lambda: not proc.is_inside(pid, ID, conmon))
    stage.watcher.watch(ID, pid, conmon)
    assert stage.report() == (ID, None, exits.LOST)
    assert (stage.exit_dir / ID).read_text() == "137"


@pytest.mark.parametrize("alive", [True, False])
def test_an_infra_container_that_ended_without_a_conmon_gets_its_exit_file(stage: Stage, alive: bool) -> None:
    """Nobody tells the conmon of an infra container; without the file Podman would call it running for ever."""
    own = uuid.uuid4().hex * 2  # all processes are looked at, those of tests beside this one too
    pid, conmon = stage.container(container_id=own)
    os.kill(conmon, signal.SIGSTOP if alive else signal.SIGKILL)
    if not alive:
        stage.conmons[0].wait()
    os.kill(pid, signal.SIGKILL)
    stage.watcher.watch(own, pid, 0)
    assert stage.report() == (own, None, exits.LOST)
    assert (stage.exit_dir / own).exists() is not alive


def test_an_orphan_is_ended_and_told_once(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    pid, conmon = stage.container()
    stage.watcher.watch(ID, pid, conmon)
    os.kill(conmon, signal.SIGKILL)
    assert stage.report() == (ID, 137, exits.CONMON_DIED)
    assert "SIGTERM" in caplog.text and "SIGKILL" not in caplog.text
    assert (stage.exit_dir / ID).read_text() == "137"
    (stage.exit_dir / ID).write_text("7")
    stage.watcher.settle(ID)
    stage.watcher.settle("other")
    assert [(stage.exit_dir / name).read_text() for name in (ID, "other")] == ["7", "137"]


def test_an_orphan_that_ignores_sigterm_is_killed_after_two_seconds(stage: Stage) -> None:
    pid, conmon = stage.container(f'trap "" TERM; touch {stage.exit_dir}/up; while true; do sleep 0.1; done')
    probing.wait_until((stage.exit_dir / "up").exists)
    stage.watcher.watch(ID, pid, conmon)
    began = time.monotonic()
    os.kill(conmon, signal.SIGKILL)
    assert stage.report() == (ID, 137, exits.CONMON_DIED)
    assert 1.9 < time.monotonic() - began < 15
    assert not proc.is_inside(pid, ID, conmon)


@contextlib.contextmanager
def no_descriptors() -> Iterator[None]:
    """This process may open nothing more for a while."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_descriptors_nobody_is_taken_for_dead_and_the_watch_begins_later(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watcher, "AGAIN_SECONDS", 0.05)
    pid, conmon_pid = stage.container()
    with no_descriptors():
        stage.watcher.watch(ID, pid, conmon_pid)
        stage.watcher.watch("f" * 64, pid, conmon_pid)
        stage.watcher.forget("f" * 64)
        with pytest.raises(queue.Empty):
            stage.report(0.3)
        with pytest.raises(OSError, match="Too many open files"):
            proc.is_conmon(conmon_pid, ID)
        with pytest.raises(OSError, match="Too many open files"):
            proc.is_inside(pid, ID, conmon_pid)
    until = time.monotonic() + 20
    while ID not in stage.watcher._watched:
        assert time.monotonic() < until
        time.sleep(0.01)
    os.kill(conmon_pid, 0)
    os.kill(pid, signal.SIGKILL)
    stage.write("137")
    assert stage.report() == (ID, 137, exits.EXIT_FILE)
    assert caplog.text.count("cannot watch for exits: Too many open files") == 1


def test_a_number_that_belongs_to_somebody_else_is_not_touched(stage: Stage) -> None:
    """After a long absence of the agent the pids that Podman tells may be other people's processes."""
    bystander = subprocess.Popen(["sleep", "1000"])
    try:
        stage.watcher.watch(ID, bystander.pid, bystander.pid)
        assert stage.report() == (ID, None, exits.LOST)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_watch_twice_and_forget_twice(stage: Stage) -> None:
    pid, conmon = stage.container()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        stage.watcher.watch(ID, pid, conmon)
    assert len(os.listdir("/proc/self/fd")) == before + 2
    stage.watcher.forget(ID)
    stage.watcher.forget(ID)
    assert len(os.listdir("/proc/self/fd")) == before
    stage.write("9")
    os.kill(pid, signal.SIGKILL)


def test_a_hundred_exits_at_once(stage: Stage) -> None:
    pid, conmon = stage.container()
    names = [f"{number:064x}" for number in range(100)]
    stage.watcher.watch(ID, pid, conmon)
    for name in names:
        stage.watcher.watch(name, 0, 0)
    for number, name in enumerate(names):
        stage.write(str(number), name)
    assert sorted(stage.report() for _ in names) == [(name, number, "exit-file") for number, name in enumerate(names)]
    os.kill(pid, signal.SIGKILL)
    stage.watcher.forget(ID)


def test_an_exit_directory_that_is_not_there_costs_speed_only(stage: Stage, tmp_path: Path) -> None:
    stage.exit_dir = tmp_path / "gone"
    pid, conmon = stage.container()
    os.kill(conmon, signal.SIGSTOP)
    stage.watcher.watch(ID, pid, conmon)
    os.kill(pid, signal.SIGKILL)
    assert stage.report() == (ID, None, exits.LOST)


@pytest.mark.parametrize("text", ["", "x", "1 2"])
def test_an_exit_file_with_nonsense_is_no_code(tmp_path: Path, text: str) -> None:
    (tmp_path / ID).write_text(text)
    assert exits.read_exit_file(str(tmp_path), ID) is None


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="cannot write exit file"):
        exits.write_exit_file(str(tmp_path / "gone"), ID, 1)


def test_the_end_of_the_thread_is_told(tmp_path: Path) -> None:
    said: list[str] = []

    def broken(*_: object) -> None:
        raise RuntimeError("boom")

    watcher = exits.ExitWatcher(broken, said.append)
    watcher.start()
    bystander = subprocess.Popen(["sleep", "1000"])
    bystander.kill()
    bystander.wait()
    watcher.watch("x", bystander.pid, 0)
    probing.wait_until(lambda: len(said) == 1)
    assert said == ["the exit watcher has ended: boom"]
    watcher.stop()


# ---- real Podman ------------------------------------------------------------------------------


@pytest.mark.podman
@pytest.mark.parametrize("victim", ["container", "conmon", "both"])
def test_real_containers(podman_env: PodmanEnv, victim: str) -> None:
    reports: queue.Queue[exits.Report] = queue.Queue()
    watcher = exits.ExitWatcher(lambda *report: reports.put(report))
    watcher.start()
    container_id = podman_env.run("run", "-d", podman_env.image, "sleep", "1000").strip()
    try:
        state = json.loads(podman_env.run("inspect", container_id))[0]["State"]
        pid, conmon = state["Pid"], state["ConmonPid"]
        assert exits.exit_dir_of(conmon) == f"{podman_env.storage.tmpdir}/exits"
        watcher.watch(container_id, pid, conmon)
        for number in {"container": [pid], "conmon": [conmon], "both": [conmon, pid]}[victim]:
            os.kill(number, signal.SIGKILL)
        how = exits.EXIT_FILE if victim == "container" else exits.CONMON_DIED
        assert reports.get(timeout=20) == (container_id, 137, how)
        status = podman_env.run("inspect", "--format", "{{.State.Status}} {{.State.ExitCode}}", container_id)
        assert status.strip() in ("exited 137", "stopped 137"), "Podman believes it, too"
    finally:
        watcher.stop()
        podman_env.run("rm", "-f", "-t", "0", container_id)
    assert reports.empty()


def test_the_place_of_exit_files_outlives_the_agent(tmp_path: Path) -> None:
    file = tmp_path / "exit-directory"
    place = exits.Place(str(file), "/run/libpod/exits")
    assert place.directory == "/run/libpod/exits"
    place.learn("")
    assert not file.exists()
    place.learn(str(tmp_path))
    assert exits.Place(str(file)).directory == str(tmp_path)


@pytest.mark.parametrize("found", [b"", b"relative", b"/there/is/none", b"\0", b"\xff"])
def test_a_place_that_is_none_is_not_believed(tmp_path: Path, found: bytes) -> None:
    file = tmp_path / "exit-directory"
    file.write_bytes(found)
    assert exits.Place(str(file), "/d").directory == "/d"


def test_a_place_that_cannot_be_kept_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = exits.Place(str(tmp_path / "none" / "exit-directory"))
    place.learn(str(tmp_path))
    assert place.directory == str(tmp_path) and "exit-directory" in caplog.text
