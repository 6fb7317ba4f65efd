"""One real container in the isolated Podman, with a user, capabilities and limits of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from edgelet import ports
from edgelet.model.pod import Container, PodKey
from tests.support.podman_env import PodmanEnv, podman_env

__all__ = ["podman_env"]

MakeTarget = Callable[..., ports.Target]


@pytest.fixture
def make_target(podman_env: PodmanEnv) -> Iterator[MakeTarget]:
    """Runs a container with these podman options and that command, gone after the test."""
    made: list[str] = []

    def make(*options: str, command: tuple[str, ...] = ("sleep", "1000")) -> ports.Target:
        made.append(podman_env.run("run", "-d", *options, podman_env.image, *command).strip())
        facts = json.loads(podman_env.run("inspect", made[-1]))[0]
        pid, config = facts["State"]["Pid"], facts["OCIConfigPath"]
        return ports.Target(PodKey("default", "web"), "u", Container("c", "i"), made[-1], pid, config, "", 0.0)

    yield make
    for container_id in made:
        podman_env.run("rm", "-f", "-t", "0", container_id)
