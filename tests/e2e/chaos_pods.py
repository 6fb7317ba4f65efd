"""The pods that random trouble befalls, one maker per kind; each tells its version by its environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.manifests import SERVE, container, env, exec_probe, mount, pod

Json = dict[str, Any]


def web(name: str, version: int) -> Json:
    """A pod with a network of its own, a host port, an init container and probes."""
    ready = container("app", readinessProbe=exec_probe("true"), ports=[{"containerPort": 80, "hostPort": 18080}])
    return pod(name, changed(ready, version), container("side"), initContainers=[container("init", "true")])


def plain(name: str, version: int) -> Json:
    """One container in a network of its own, with a preStop hook."""
    hook = {"preStop": {"exec": {"command": ["true"]}}}
    return pod(name, changed(container(lifecycle=hook), version))


def memory(name: str, version: int) -> Json:
    """Volumes on the disk and in memory."""
    volumes = [{"name": "d", "emptyDir": {}}, {"name": "m", "emptyDir": {"medium": "Memory"}}]
    mounts = [mount("d", "/d"), mount("m", "/m")]
    return pod(name, changed(container(volumeMounts=mounts), version), volumes=volumes)


def host(name: str, version: int) -> Json:
    """No infra container, the host's network."""
    return pod(name, changed(container(), version), hostNetwork=True)


def stubborn(name: str, version: int) -> Json:
    """Ends by SIGKILL only."""
    return pod(name, changed({**container(), "command": ["sh", "-c", f"trap '' TERM; {SERVE}"]}, version))


def job(name: str, version: int) -> Json:
    """Runs to its end once."""
    return pod(name, changed(container(script="true"), version), restartPolicy="Never")


KINDS: dict[str, Callable[[str, int], Json]] = {
    "web": web, "plain": plain, "memory": memory, "host": host, "stubborn": stubborn, "job": job
}  # fmt: skip


def changed(made: Json, version: int) -> Json:
    """With an environment that tells the version."""
    return {**made, "env": env(VERSION=str(version))}
