"""The agent as a process: `Agent` starts, kills and asks it, as a person or a machine would.

An agent has directories of its own and sees a Podman of its own through a `podman` that stands
first on its PATH and adds the flags of the test's storage; everything else is as on a real box.

    agent.write(pod("web", container("app", SERVE)))      a manifest, renamed in
    agent.wait("Ready", lambda: agent.ready("web"))       conditions with a deadline, never a bare sleep
    agent.cli("get", "pods").stdout                       the real client
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from edgelet import config
from edgelet.adapters.podman import seen as podman_seen
from tests.support.podman_env import PodmanEnv

Json = dict[str, Any]

NODE = "n1"
OWNER = "io.edgelet.owner"
DEADLINE = 30.0
"""Seconds that anything may take which the test does not measure: a slow machine is no failure."""
LIST_TRIES = 20
PATIENCE = float(os.environ.get("EDGELET_TEST_PATIENCE", "1"))
"""All deadlines here are that many times as long: emulated machines are slower than slow."""
LOOK_SECONDS = 0.1 * min(max(PATIENCE / 2, 1), 10)
"""Between two looks at a condition; a look is one request on a unix socket, and there they are most of the work."""
ROOT = Path(__file__).parents[2]


def at_most(seconds: float) -> float:
    """The longest that something measured may take, on a machine as slow as PATIENCE says."""
    return seconds * PATIENCE


def program() -> list[str]:
    """The installed edgelet of this interpreter, else the one in the tree."""
    installed = Path(sys.executable).parent / "edgelet"
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "edgelet.cli.main"]


class UnixConnection(http.client.HTTPConnection):
    """HTTP on a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=10 * PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10 * PATIENCE)
        self.sock.connect(self._path)


class Agent:
    """One agent: its directories below `directory`, its process, its client."""

    def __init__(self, env: PodmanEnv, directory: Path) -> None:
        self.env = env
        self.directory = directory
        self.manifests = directory / "manifests"
        self.root = directory / "root"
        self.run_dir = directory / "run"
        self.logs = directory / "logs"
        self.socket = directory / "api.sock"
        self.log = directory / "agent.log"
        self.boot = "boot-1"
        self.flags: tuple[str, ...] = ()
        self.process: subprocess.Popen[bytes] | None = None
        self.seen_ids: set[str] = set()
        self.manifests.mkdir()
        _wrapper(env, directory / "bin")

    # ---- the process ----------------------------------------------------------------------------

    def start(self, *flags: str, env: Mapping[str, str] | None = None, wait: bool = True) -> Agent:
        """Start it (with the flags of the last start if none are given); answers when it serves its API."""
        self.flags = flags or self.flags
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*program(), "run", *self._own_flags(), *self.flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={**self.environment(), **(env or {})},
                start_new_session=True,
            )
        if wait:
            self.wait("the API to answer", self.answers)
        return self

    def _own_flags(self) -> list[str]:
        return [
            "--config=/dev/null",  # that of an installed package is for its own agent
            f"--pod-manifest-path={self.manifests}",
            f"--root-dir={self.root}",
            f"--run-dir={self.run_dir}",
            f"--pod-logs-dir={self.logs}",
            f"--podman-socket={self.directory}/none.sock",
            f"--socket={self.socket}",
            f"--node-name={NODE}",
            "--port=0",
            "--file-check-frequency=1s",
            "--log-level=debug",
        ]

    def environment(self) -> dict[str, str]:
        """The agent's environment; no variable of the caller's own Podman or agent gets in."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("CONTAINERS_", "EDGELET_", "NOTIFY_"))}
        path = f"{self.directory}/bin:{clean.get('PATH', '')}"
        return {**clean, "PATH": path, "EDGELET_BOOT_ID": self.boot, "EDGELET_SOCKET": str(self.socket)}

    @property
    def pid(self) -> int:
        """Process id of the running agent."""
        assert self.process is not None
        return self.process.pid

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """kill -9: the agent gets no chance to do anything."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> int:
        """SIGTERM, as a service manager does; the exit status."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(20 * PATIENCE)

    # ---- manifests --------------------------------------------------------------------------------

    def write(self, *documents: Json, name: str = "") -> Path:
        """A manifest with these documents, renamed in; named after the first one unless told."""
        text = "\n---\n".join(json.dumps(d) for d in documents)
        return self.write_text(text, name or documents[0]["metadata"]["name"])

    def write_text(self, text: str, name: str) -> Path:
        """Any bytes as a manifest, renamed in."""
        path = self.manifests / f"{name}.yaml"
        beside = self.manifests / f".{name}.new"
        beside.write_text(text)
        beside.replace(path)
        return path

    def remove(self, name: str) -> None:
        """Delete a manifest."""
        (self.manifests / f"{name}.yaml").unlink()

    # ---- what it says -----------------------------------------------------------------------------

    def get(self, path: str) -> Any:
        """JSON from the API. Raises OSError when nobody answers."""
        return json.loads(self.text(path))

    def text(self, path: str) -> str:
        """Any answer from the API as text. Raises OSError when nobody answers."""
        connection = UnixConnection(str(self.socket))
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def answers(self) -> bool:
        """Whether the API answers."""
        if not self.running:
            raise AssertionError(f"the agent has ended: {self.log_text()[-3000:]}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            return bool(self.get("/version"))
        return False

    def probes_run(self) -> int:
        """How many probes have been run so far."""
        rows = [row for row in self.text("/metrics/probes").splitlines() if row.startswith("prober_probe_total{")]
        return sum(int(float(row.split()[-1])) for row in rows)

    def pods(self) -> dict[str, Json]:
        """v1.Pod by short name."""
        items = self.get("/api/v1/pods")["items"]
        return {p["metadata"]["name"].removesuffix(f"-{NODE}"): p for p in items}

    def pod(self, name: str) -> Json:
        """The v1.Pod of that short name, {} if there is none."""
        return self.pods().get(name, {})

    def status(self, name: str) -> Json:
        """Its status, {} if there is none."""
        found: Json = self.pod(name).get("status", {})
        return found

    def phase(self, name: str) -> str:
        """Its phase, "" if there is no such pod."""
        return str(self.status(name).get("phase", ""))

    def condition(self, name: str, kind: str = "Ready") -> str:
        """Status of a condition: True, False, or "" if it is not there."""
        found = self.status(name).get("conditions") or []
        return next((str(c["status"]) for c in found if c["type"] == kind), "")

    def ready(self, *names: str) -> bool:
        """Whether all these pods are Ready."""
        return all(self.condition(n) == "True" for n in names)

    def container(self, name: str, container: str = "app") -> Json:
        """The v1.ContainerStatus, {} if there is none."""
        status = self.status(name)
        every = (status.get("initContainerStatuses") or []) + (status.get("containerStatuses") or [])
        return next((c for c in every if c["name"] == container), {})

    def restarts(self, name: str, container: str = "app") -> int:
        """Its restart count, -1 if unknown."""
        return int(self.container(name, container).get("restartCount", -1))

    def container_id(self, name: str, container: str = "app") -> str:
        """Podman's id of its newest instance, "" if there is none."""
        return str(self.container(name, container).get("containerID", "")).removeprefix("podman://")

    def running_id(self, name: str, container: str = "app") -> str:
        """Podman's id of its running instance, "" while none runs."""
        found = self.container(name, container)
        return self.container_id(name, container) if "running" in found.get("state", {}) else ""

    def waiting(self, name: str, container: str = "app") -> str:
        """The waiting reason, "" if it does not wait."""
        found = self.container(name, container)
        return str(found.get("state", {}).get("waiting", {}).get("reason", ""))

    def summary(self, name: str) -> str:
        """The one line that says why the pod is not well."""
        return str(self.pod(name).get("metadata", {}).get("annotations", {}).get("edgelet.io/summary", ""))

    def events(self, name: str = "", reason: str = "") -> list[Json]:
        """v1.Events, of one pod and of one reason if given, oldest first."""
        items = self.get("/api/v1/events")["items"]
        return [
            e
            for e in items
            if (not name or e["involvedObject"]["name"] == f"{name}-{NODE}") and (not reason or e["reason"] == reason)
        ]

    def agent_status(self) -> Json:
        """What `edgelet status -o json` prints."""
        found: Json = self.get("/apis/edgelet.io/v1/status")
        return found

    def container_log(self, name: str, container: str = "app", *, previous: bool = False) -> str:
        """What the container printed."""
        query = f"container={quote(container)}{'&previous=true' if previous else ''}"
        connection = UnixConnection(str(self.socket))
        try:
            connection.request("GET", f"/api/v1/namespaces/default/pods/{name}-{NODE}/log?{query}")
            answer = connection.getresponse()
            return answer.read().decode() if answer.status == 200 else ""
        finally:
            connection.close()

    # ---- waiting ----------------------------------------------------------------------------------

    def wait(self, what: str, condition: Callable[[], object], seconds: float = DEADLINE) -> float:
        """Until the condition holds; the seconds that took. Fails, saying what was waited for."""
        begin = time.monotonic()
        while not self._holds(condition):
            if time.monotonic() - begin > seconds * PATIENCE:
                raise AssertionError(f"after {seconds:g} s still waiting for: {what}")
            time.sleep(LOOK_SECONDS)
        return time.monotonic() - begin

    def _holds(self, condition: Callable[[], object]) -> bool:
        try:
            return bool(condition())
        except (OSError, http.client.HTTPException) as error:
            if self.running or self.process is None:
                return False  # it does not serve yet
            raise AssertionError(f"the agent has ended ({error}): {self.log_text()[-3000:]}") from error

    def wait_ready(self, *names: str, seconds: float = DEADLINE) -> float:
        """Until all these pods are Ready."""
        return self.wait(f"{', '.join(names)} to be Ready", lambda: self.ready(*names), seconds)

    def wait_gone(self, *names: str, seconds: float = DEADLINE) -> float:
        """Until the agent shows none of these pods any more."""
        return self.wait(f"{', '.join(names)} to be gone", lambda: not set(names) & set(self.pods()), seconds)

    def running_since(self, name: str, container: str = "app") -> datetime:
        """Waits until it runs; the whole second in which it was started, however late that is seen."""
        seen: list[str] = []

        def runs() -> bool:
            running = self.container(name, container).get("state", {}).get("running", {})
            seen.extend(running.values())
            return bool(seen)

        self.wait(f"{container} of {name} to run", runs)
        return datetime.fromisoformat(seen[0])

    # ---- the client, and Podman ---------------------------------------------------------------------

    def cli(self, *words: str, check: bool = True, data: bytes | None = None) -> subprocess.CompletedProcess[str]:
        """The real client against this agent."""
        done = subprocess.run(
            [*program(), *words],
            input=data.decode() if data is not None else None,
            stdin=subprocess.DEVNULL if data is None else None,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=self.environment(),
            timeout=60 * PATIENCE,
            check=False,
        )
        if check and done.returncode != 0:
            raise AssertionError(
                f"edgelet {' '.join(words)}: exit status {done.returncode}: {done.stdout}{done.stderr}"
            )
        return done

    def spawn(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """The client as a process that goes on."""
        return subprocess.Popen(
            [*program(), *words], cwd=ROOT, env=self.environment(), stdout=subprocess.PIPE, text=True, **options
        )

    def podman(self, *words: str) -> str:
        """A podman command on the same storage."""
        return self.env.run(*words)

    def podman_with(self, text: str, *words: str) -> str:
        """A podman command that reads `text`."""
        return self.env.run(*words, data=text.encode())

    def inside(self, name: str, *command: str, container: str = "app") -> str:
        """What a command prints inside a running container (through Podman: nothing of the agent's is used)."""
        return self.podman("exec", self.running_id(name, container), *command)

    def containers(self) -> list[Json]:
        """`podman inspect` of every container of this agent (infra containers apart)."""
        rows = self.rows("containers")
        found = [c for r in rows if not r["IsInfra"] for c in inspect(self.env, r["Id"])]
        return [c for c in found if not c.get("IsInfra")]

    def of_pod(self, name: str) -> list[Json]:
        """`podman inspect` of the containers of one pod."""
        rows = self.rows("containers", f"io.kubernetes.pod.name={name}-{NODE}")
        return [c for r in rows if not r["IsInfra"] for c in inspect(self.env, r["Id"])]

    def rows(self, kind: str, *labels: str) -> list[Json]:
        """Podman's list of this agent's containers or pods; it fails when one of them goes while it is made."""
        filters = quote(json.dumps({"label": [f"{OWNER}={self.owner}", *labels]}))
        answers = (ask_podman(self.env, f"{kind}/json?all=true&filters={filters}") for _ in range(LIST_TRIES))
        rows: list[Json] | None = next((found or [] for status, found in answers if status == 200), None)
        if rows is None:
            raise OSError(f"Podman cannot list {kind}, asked {LIST_TRIES} times")
        if kind == "containers":
            self.seen_ids |= {r["Id"] for r in rows}
        return rows

    # ---- the end ------------------------------------------------------------------------------------

    def log_text(self) -> str:
        """What the agent logged."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def clean(self) -> None:
        """Take all away through the agent itself, if it runs: the manifests are deleted, pods end."""
        self.note_ids()
        if not self.running:
            return
        for path in self.manifests.iterdir():
            path.unlink()
        self.wait("all pods to be gone", lambda: not self.pods() and not self.leftovers())
        assert self.stop() == 0, "the agent did not end in good order"

    def note_ids(self) -> None:
        """Remember which containers there were: none of their processes may outlive them."""
        self.rows("containers")

    @property
    def owner(self) -> str:
        """The owner label of this agent's pods."""
        return config.owner(str(self.root))

    def leftovers(self) -> list[str]:
        """What is still there of this agent's pods: containers, pods, mounts, processes."""
        found = [f"container {row['Names']}" for row in self.rows("containers")]
        found += [f"pod {row['Name']}" for row in self.rows("pods")]
        found += [f"mount {m}" for m in mounts_below(self.directory)]
        return found + [f"process {p}" for p in self.processes()]

    def processes(self) -> list[str]:
        """Processes of containers of this agent, and conmons that write into its log directory."""
        marks = [str(self.logs), *self.seen_ids]
        found = []
        for pid, words, group in _all_processes():
            if any(mark in group for mark in self.seen_ids) or ("conmon" in words and any(m in words for m in marks)):
                found.append(f"{pid} {words[:120]}")
        return found

    def force(self) -> None:
        """Take away what a failed test has left."""
        self.kill()
        for kind, words in (("pods", ("pod", "rm")), ("containers", ("rm",))):
            for row in self.rows(kind):
                with contextlib.suppress(subprocess.CalledProcessError):
                    self.env.run(*words, "-f", "--time", "0", row["Id"])
        end_services(self.run_dir)
        for mount in reversed(mounts_below(self.directory)):
            subprocess.run(["umount", "-l", mount], check=False)


def started(made: Json) -> float:
    """The epoch second in which a container's process began, by Podman."""
    return podman_seen.epoch(made["State"]["StartedAt"])


def inspect(env: PodmanEnv, name: str) -> list[Json]:
    """`podman inspect` of a container, [] if it has gone meanwhile."""
    status, found = ask_podman(env, f"containers/{quote(name)}/json")
    return [found] if status == 200 else []


def ask_podman(env: PodmanEnv, path: str) -> tuple[int, Any]:
    """GET from Podman's API, by a service of the test's own: a tenth of what the podman command costs."""
    with env.service.connected() as listener:
        connection = UnixConnection(listener)
        try:
            connection.request("GET", f"/v4.0.0/libpod/{path}")
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def mounts_below(directory: Path) -> list[str]:
    """Mount points inside `directory`, outer ones first."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return sorted(p for p in points if Path(p).is_relative_to(directory))


def services(run_dir: Path) -> list[int]:
    """The Podman services an agent started with that run directory."""
    return [pid for pid, words, _ in _all_processes() if f"unix://{run_dir}/podman.sock" in words]


def end_services(run_dir: Path) -> None:
    """SIGKILL for every Podman service of that agent."""
    for pid in services(run_dir):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _all_processes() -> Iterator[tuple[int, str, str]]:
    """(pid, command line, cgroups) of every living process."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            group = Path(f"/proc/{entry}/cgroup").read_text()
            if alive(int(entry)):
                yield int(entry), words, group


def _wrapper(env: PodmanEnv, directory: Path) -> None:
    """A `podman` that works on the storage of `env`, to stand first on a PATH."""
    directory.mkdir()
    real = shutil.which("podman")
    path = directory / "podman"
    path.write_text(f'#!/bin/sh\nexec {real} {" ".join(env.flags)} "$@"\n')
    path.chmod(0o755)
