"""A real Podman forgets a pod, and a sweeper takes away what is left: run in namespaces of its own.

    unshare --mount --net --propagation private python -m tests.adapters.netleft.inside

Two Podmans with the same network: one makes a pod with a published port and is deleted with all it knows, the
other one has a pod that runs. Prints what there was before and after, as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from edgelet.adapters.netleft import Facts, Sweeper
from edgelet.core import leftovers
from tests.support import net_left
from tests.support.podman_env import PodmanEnv

DEADLINE = 120.0


def start(env: PodmanEnv, name: str, port: int) -> str:
    """A pod with a port of the host's; the id of its infra container."""
    env.run("pod", "create", "--name", name, "--network", "podman", "--publish", f"{port}:80")
    env.run("run", "--detach", "--pod", name, env.image, "sleep", "1000")
    return env.run("pod", "inspect", "--format", "{{.InfraContainerID}}", name).strip()


def forget(env: PodmanEnv) -> None:
    """As if a killed Podman had never heard of its containers: their processes and its storage go, nothing else."""
    for line in env.run("ps", "--all", "--format", "{{.Pid}}").split():
        os.kill(int(line), signal.SIGSTOP)
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            words = _words(int(entry))
            if "conmon" in words and env.directory in words:
                os.kill(int(entry), signal.SIGKILL)
    for line in env.run("ps", "--all", "--format", "{{.Pid}}").split():
        os.kill(int(line), signal.SIGKILL)
    env.service.stop()
    shutil.rmtree(env.storage.root, ignore_errors=True)


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def main() -> int:
    """See the module."""
    net_left.private()
    leftovers.PATIENCE = 1.0
    lost, kept = PodmanEnv(tempfile.mkdtemp(prefix="edge-")), PodmanEnv(tempfile.mkdtemp(prefix="edge-"))
    shutil.copy(f"{lost.storage.network_config_dir}/podman.json", f"{kept.storage.network_config_dir}/podman.json")
    told: list[str] = []
    try:
        start(kept, "kept", 28081)
        good = sorted(net_left.found())
        start(lost, "lost", 28082)
        forget(lost)
        before = sorted(net_left.found())
        runtime = kept.runtime()

        def facts() -> Facts:
            known = runtime.networks()
            return Facts(known.containers, known.named, known.subnets)

        sweeper = Sweeper(facts, told.append)
        sweeper.start()
        end = time.monotonic() + DEADLINE
        while sorted(net_left.found()) != good and time.monotonic() < end:
            sweeper.suspect()
            time.sleep(0.5)
        sweeper.stop()
        again = start(kept, "again", 28082)
        print(json.dumps({"good": good, "before": before, "told": told, "again": len(again)}))
        return 0 if before != good and told else 1
    finally:
        kept.close()
        lost.close()


if __name__ == "__main__":
    sys.exit(main())
