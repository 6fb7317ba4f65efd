"""The bench's hands: one agent on the machine's own Podman, bare API calls, `podman kube play`, and a stopwatch.

A container tells when its process runs by writing to a FIFO on the host, so that no one polls.
Everything made here carries the prefix `bench-` and is removed at the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from edgelet.adapters import podman
from edgelet.adapters.podman import api
from edgelet.model import labels
from tests.support.podman_env import image_tar
from tests.support.ports import free_port

IMAGE = "localhost/edgelet-bench:1"
TELL = "echo up > /mark/fifo; "
READY_SECONDS = 60.0


class Rig:
    """Everything a row needs; a context manager."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="edgelet-bench-", dir="/run" if os.access("/run", os.W_OK) else None))
        self.manifests = self.home / "manifests"
        self.mark = self.home / "mark"
        for path in (self.manifests, self.mark, self.home / "spool"):
            path.mkdir()
        os.mkfifo(self.mark / "fifo")
        self._fifo = os.open(self.mark / "fifo", os.O_RDWR | os.O_NONBLOCK)
        self.socket = str(self.home / "edgelet.sock")
        self.port = free_port()
        self.service = podman.Service(None, str(self.home / "peer"), idle=3600.0)
        self.api = api.Api(self.service)
        self.agent: subprocess.Popen[bytes] | None = None
        self.log = (self.home / "agent.log").open("wb")
        self.command("import", "--change", "ENV PATH=/bin", "-", IMAGE, data=image_tar())

    def __enter__(self) -> Rig:
        self.api.get("info")
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_agent()
        with contextlib.suppress(RuntimeError):
            self.command("pod", "rm", "--force", "--time", "0", "--ignore", *self.our_pods())
        self.service.stop()
        subprocess.run(["umount", "-R", str(self.home)], capture_output=True, check=False)
        shutil.rmtree(self.home, ignore_errors=True)

    # -- Podman -----------------------------------------------------------------------------------

    def command(self, *arguments: str, data: bytes | None = None) -> str:
        """A podman command, its standard output."""
        done = subprocess.run(
            self.service.command_line(*arguments),
            env=self.service.environment(),
            input=data,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"podman {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode()

    def our_pods(self) -> list[str]:
        """Names of the bench's pods, however made."""
        rows = json.loads(self.command("pod", "ps", "--format", "json") or "[]")
        return [r["Name"] for r in rows if r["Name"].startswith("bench-")]

    def kube_play(self, manifest: Path) -> None:
        """The peer: one `podman kube play`."""
        self.command("kube", "play", str(manifest))

    def remove(self, name: str) -> None:
        """Remove a pod that is not the agent's."""
        self.command("pod", "rm", "--force", "--time", "0", name)

    def bare(self, name: str, host_network: bool, infra: bool = True) -> None:
        """The same pod by the fewest API calls: create pod, create container, start."""
        body: dict[str, Any] = {"name": name, "hostname": name}
        if host_network:
            body["netns"] = {"nsmode": "host"}
        if not infra:
            body = {"name": name, "no_infra": True}
        self.api.post("pods/create", body=body, creating=True)
        self.api.post("containers/create", body=self.container(name, host_network and not infra), creating=True)
        self.api.post(f"containers/{name}-c/start")

    def container(self, pod: str, host: bool = False, name: str = "c") -> dict[str, Any]:
        """Body of a bare container that tells when it runs."""
        body: dict[str, Any] = {
            "name": f"{pod}-{name}",
            "pod": pod,
            "image": IMAGE,
            "command": ["sh", "-c", TELL + "exec sleep 1000"],
            "mounts": [{"destination": "/mark", "source": str(self.mark), "type": "bind", "options": ["rbind", "rw"]}],
        }
        if host:
            body["netns"] = {"nsmode": "host"}
        return body

    # -- the stopwatch ------------------------------------------------------------------------------

    def drain(self) -> None:
        """Forget what was told before."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._fifo, 4096):
                pass

    def told(self, seconds: float = READY_SECONDS) -> float:
        """The moment at which the next container tells that it runs. Raises TimeoutError."""
        readable, _, _ = select.select([self._fifo], [], [], seconds)
        now = time.monotonic()
        if not readable:
            raise TimeoutError(f"no container has told that it runs; the agent's log is {self.log.name}")
        self.drain()
        return now

    def timed(self, act: Callable[[], object]) -> float:
        """Seconds from the beginning of `act` until a container tells."""
        self.drain()
        began = time.monotonic()
        act()
        return self.told() - began

    # -- the agent --------------------------------------------------------------------------------------

    def start_agent(self, *flags: str) -> float:
        """Start it on the manifest directory; seconds until it answers."""
        began = time.monotonic()
        self.agent = subprocess.Popen(
            [self.edgelet, "run", "--config", "", *self.places(), *flags],
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )
        self.wait(lambda: os.path.exists(self.socket), 20)
        return time.monotonic() - began

    @property
    def agent_pid(self) -> int:
        """The agent's process. Raises RuntimeError when none was started."""
        if self.agent is None:
            raise RuntimeError("no agent was started")
        return self.agent.pid

    @property
    def edgelet(self) -> str:
        """What EDGELET_BINARY names (dist/edgelet, say), else the installed command beside this Python."""
        return os.environ.get("EDGELET_BINARY") or str(Path(sys.executable).with_name("edgelet"))

    def places(self) -> list[str]:
        """Flags that keep everything of this agent below `home`."""
        return [
            f"--root-dir={self.home}/root",
            f"--port={self.port}",
            f"--run-dir={self.home}/run",
            f"--pod-logs-dir={self.home}/logs",
            f"--pod-manifest-path={self.manifests}",
            f"--socket={self.socket}",
            "--node-name=bench",
        ]

    def stop_agent(self) -> None:
        """End it; its pods go on."""
        if self.agent is not None:
            self.agent.terminate()
            self.agent.wait(30)
            self.agent = None

    def kill_agent(self) -> None:
        """kill -9."""
        if self.agent is not None:
            self.agent.send_signal(signal.SIGKILL)
            self.agent.wait()
            self.agent = None

    def put(self, name: str, text: str) -> None:
        """A manifest, renamed into the directory in one move."""
        spool = self.home / "spool" / name
        spool.write_text(text)
        os.rename(spool, self.manifests / name)

    def drop(self, name: str) -> None:
        """Remove a manifest and wait until its pod is gone."""
        (self.manifests / name).unlink()
        self.wait(lambda: not self.pods(), 60)

    def clear(self) -> None:
        """Remove all manifests, wait until all pods are gone."""
        for path in self.manifests.iterdir():
            path.unlink()
        self.wait(lambda: not self.pods(), 120)

    def pods(self) -> list[dict[str, Any]]:
        """The agent's pods as the API tells them."""
        done = subprocess.run(
            ["curl", "-s", "--unix-socket", self.socket, "http://edgelet/api/v1/pods"],
            capture_output=True,
            check=False,
        )
        return list(json.loads(done.stdout or b'{"items": [{}]}')["items"])

    def ready(self) -> int:
        """How many pods are Ready."""
        conditions = [c for p in self.pods() for c in p.get("status", {}).get("conditions", [])]
        return sum(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def wait(self, true: Callable[[], bool], seconds: float = READY_SECONDS, pause: float = 0.02) -> None:
        """Until `true`, looking again after every `pause` seconds. Raises TimeoutError."""
        until = time.monotonic() + seconds
        while not true():
            if time.monotonic() > until:
                raise TimeoutError(f"not reached within {seconds:.0f} s; the agent's log is {self.log.name}")
            time.sleep(pause)

    def containers(self) -> list[dict[str, Any]]:
        """Our containers as Podman lists them, running only."""
        filters = json.dumps({"label": [labels.OWNER]})
        rows = self.api.get("containers/json", {"filters": filters})
        return [r for r in rows if r["PodName"].startswith("bench-") and not r["IsInfra"]]


@contextlib.contextmanager
def quiet_gc() -> Iterator[None]:
    """Keep this process's own garbage collection out of the figures."""
    import gc

    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def pod(name: str, rig: Rig, *, host_network: bool = False, grace: int = 30, script: str = "", extra: str = "") -> str:
    """A manifest of one container that tells when it runs."""
    command = json.dumps(["sh", "-c", TELL + (script or "exec sleep 1000")])
    return f"""\
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  hostNetwork: {json.dumps(host_network)}
  terminationGracePeriodSeconds: {grace}
  volumes: [{{name: mark, hostPath: {{path: {rig.mark}}}}}]
  containers:
  - name: c
    image: {IMAGE}
    command: {command}
    volumeMounts: [{{name: mark, mountPath: /mark}}]
{extra}"""
