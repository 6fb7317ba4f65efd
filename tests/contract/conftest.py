"""The isolated Podman of tests.support.podman_env, and the real world of the contract on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edgelet.adapters import podman
from tests.contract.worlds import RealWorld
from tests.support.podman_env import PodmanEnv, podman_env

__all__ = ["podman_env", "real", "services"]


@pytest.fixture(scope="session")
def services() -> Iterator[list[podman.Service]]:
    """The Podman services that the worlds share: one per boot."""
    made: list[podman.Service] = []
    yield made
    for service in made:
        service.stop()


@pytest.fixture
def real(podman_env: PodmanEnv, tmp_path: Path, services: list[podman.Service]) -> Iterator[RealWorld]:
    world = RealWorld(podman_env, str(tmp_path), services)
    yield world
    world.close()
