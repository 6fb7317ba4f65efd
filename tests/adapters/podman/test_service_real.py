"""The embedded Podman service as a process: on demand, idle, killed, failing to start."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edgelet import errors
from edgelet.adapters import podman
from edgelet.adapters.podman.api import Api
from edgelet.model.observed import State
from edgelet.model.pod import Container, Pod
from tests.support.podman_env import IMAGE, PodmanEnv, SystemClock

pytestmark = pytest.mark.podman


def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait for what another process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def service_pid(service: podman.Service) -> int:
    """The process that listens on the service's own socket."""
    path = str(service.describe()["socket"])
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if f"unix://{path}".encode() in words and b"service" in words:
                return int(entry)
    raise LookupError("no service runs")


@pytest.fixture
def service(podman_env: PodmanEnv) -> Iterator[podman.Service]:
    made = podman_env.new_service(idle=5.0, name="s")
    yield made
    made.stop()


def test_nothing_runs_until_the_first_call(service: podman.Service) -> None:
    assert service.describe()["starts"] == 0
    assert Api(service).get("images/json")
    told = service.describe()
    assert (told["starts"], told["deaths"], told["running"], told["embedded"]) == (1, 0, True, True)


def test_it_ends_when_idle_and_comes_back(podman_env: PodmanEnv) -> None:
    service = podman_env.new_service(idle=0.2, name="i")
    try:
        api = Api(service)
        assert api.get("images/json")
        pid = service_pid(service)
        until(lambda: not os.path.exists(f"/proc/{pid}"))
        assert not service.describe()["running"]
        assert api.get("images/json")
        assert (service.describe()["starts"], service.describe()["deaths"]) == (2, 0)
    finally:
        service.stop()


def test_killed_between_two_calls_it_is_started_again(service: podman.Service) -> None:
    api = Api(service)
    assert api.get("images/json")
    os.kill(service_pid(service), signal.SIGKILL)
    until(lambda: not service.describe()["running"])
    assert api.get("images/json")
    told = service.describe()
    assert (told["starts"], told["deaths"]) == (2, 1)
    assert "ended" in told["lastError"]


def test_killed_under_a_call_the_call_is_temporary_and_the_next_one_works(service: podman.Service) -> None:
    api = Api(service)
    assert api.get("images/json")
    pid = service_pid(service)
    os.kill(pid, signal.SIGSTOP)
    caught: list[BaseException] = []

    def call() -> None:
        try:
            api.post("images/prune", timeout=20)
        except errors.RuntimeFailure as error:
            caught.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    time.sleep(0.2)  # the request is in the socket of a process that stands still
    os.kill(pid, signal.SIGKILL)
    thread.join(10)
    assert isinstance(caught[0], errors.Temporary)
    assert api.get("images/json")


def test_containers_survive_the_service_and_have_left_its_session(podman_env: PodmanEnv) -> None:
    service = podman_env.new_service(name="v")
    runtime = podman.Podman(
        service, "survive", podman_env.layout, SystemClock(), boot_id="b", facts=podman.facts(podman.read())
    )
    pod = Pod("v-n", "default", "uid-v", "1-v", "file", (Container("c", IMAGE, command=("sleep", "1000")),))
    sandbox = runtime.create_pod(pod, 0)
    try:
        made = runtime.create_container(sandbox, pod, pod.containers[0], 0, ())
        started = runtime.start_container(sandbox, made.id).by_id(made.id)
        assert started is not None
        pid = service_pid(service)
        os.killpg(pid, signal.SIGKILL)
        until(lambda: not service.describe()["running"])
        assert os.path.exists(f"/proc/{started.pid}")
        assert os.path.exists(f"/proc/{started.conmon_pid}")
        assert os.getsid(started.conmon_pid) != os.getsid(os.getpid())
        assert runtime.list()[0].containers == (started,)
        os.kill(started.pid, signal.SIGKILL)
        until(lambda: runtime.list()[0].containers[0].state is State.EXITED)
    finally:
        runtime.remove_pod(sandbox.id)
        service.stop()


def test_the_service_is_out_of_reach_of_ctrl_c(service: podman.Service) -> None:
    Api(service).get("images/json")
    assert os.getpgid(service_pid(service)) != os.getpgid(os.getpid())


def test_a_call_after_stop_says_so(service: podman.Service) -> None:
    service.stop()
    with pytest.raises(errors.Unreachable, match="stopping"):
        Api(service).get("images/json")


def test_two_runtimes_of_one_storage_at_once_start_one_service_each(service: podman.Service) -> None:
    api = Api(service)
    answers: list[object] = []
    threads = [threading.Thread(target=lambda: answers.append(api.get("images/json"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert service.describe()["starts"] == 1


def test_a_host_socket_that_answers_is_used_and_one_that_stops_is_replaced(podman_env: PodmanEnv) -> None:
    path = f"{podman_env.directory}/host.sock"
    words = podman_env.service.command_line("system", "service", "--time", "0", f"unix://{path}")
    host = subprocess.Popen(words, env=podman_env.service.environment(), stderr=subprocess.DEVNULL)
    service = podman.Service(path, f"{podman_env.directory}/h", storage=podman_env.storage)
    try:
        until(lambda: os.path.exists(path))
        api = Api(service)
        until(lambda: _connects(path))
        assert api.get("images/json")
        assert (service.describe()["embedded"], service.describe()["socket"]) == (False, path)
        host.kill()
        host.wait()
        assert api.get("images/json")
        assert (service.describe()["embedded"], service.describe()["starts"]) == (True, 1)
    finally:
        host.kill()
        host.wait()
        service.stop()


def _connects(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


# ---- without Podman ----


def test_no_podman_installed_is_named(tmp_path: Path) -> None:
    service = podman.Service(None, str(tmp_path), command=("no-such-podman",))
    with pytest.raises(errors.Unreachable, match="is Podman installed"):
        Api(service).get("images/json")


def test_a_service_that_ends_at_once_is_quoted(tmp_path: Path) -> None:
    tool = tmp_path / "podman"
    tool.write_text("#!/bin/sh\necho 'disk is full' >&2\nexit 125\n")
    tool.chmod(0o755)
    service = podman.Service(None, str(tmp_path / "run"), command=(str(tool),))
    with pytest.raises(errors.Unreachable, match="disk is full"):
        Api(service).get("images/json")
    assert "disk is full" in service.describe()["lastError"]


def test_the_user_s_own_containers_conf_variable_is_respected(tmp_path: Path) -> None:
    mine = {**os.environ, "CONTAINERS_CONF": "/some/where.conf"}
    service = podman.Service(None, str(tmp_path), environ=mine)
    assert service.environment()["CONTAINERS_CONF"] == "/some/where.conf"
    assert not os.listdir(tmp_path)


def test_a_service_that_stands_still_is_replaced_after_three_calls(service: podman.Service) -> None:
    api = Api(service)
    assert api.get("images/json")
    pid = service_pid(service)
    os.kill(pid, signal.SIGSTOP)
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.01)  # until the thread that got the signal has run, the others go on
    for _ in range(3):
        with pytest.raises(errors.TimedOut):
            api.get("images/json", timeout=0.2)
    assert api.get("images/json")
    assert service.describe()["starts"] == 2


def test_what_the_service_says_does_not_pile_up(service: podman.Service) -> None:
    api = Api(service)
    assert api.get("images/json")
    path = os.path.join(os.path.dirname(str(service.describe()["socket"])), "podman-service.log")
    with open(path, "ab") as file:
        file.write(b"x" * 300_000)
    assert api.get("images/json")
    assert os.path.getsize(path) < 10_000
