"""What a Podman that was killed inside a create leaves behind, and how its name is won back."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator

import pytest

from edgelet import errors
from edgelet.adapters.podman.runtime import half_made
from edgelet.model.pod import Container, Pod
from tests.support.podman_env import IMAGE, PodmanEnv, why_not

ID = "5" * 64
REFUSAL = (
    'cannot POST containers/create: creating container storage: the container name "web" is already in use by '
    f"{ID}. You have to remove that container to be able to reuse that name: that name is already in use"
)


def test_only_a_name_that_the_storage_holds_is_half_made() -> None:
    assert half_made(REFUSAL, "web") == ID
    assert half_made(REFUSAL, "other") == ""
    assert half_made(f'container name "web" is already in use by {ID}: already exists', "web") == ""


@pytest.fixture
def env() -> Iterator[PodmanEnv]:
    """A Podman whose database may be broken."""
    if reason := why_not():
        pytest.skip(reason)
    made = PodmanEnv(tempfile.mkdtemp(prefix="edge-"))
    yield made
    made.close()


def pod() -> Pod:
    """A pod of one container."""
    return Pod("web-n1", "default", "u-1", "1-abc", "file", (Container("app", IMAGE, command=("sleep", "9")),))


@pytest.mark.podman
def test_a_half_made_container_is_removed_and_made_anew(env: PodmanEnv) -> None:
    """Killed at the worst moment: Podman's storage has the container, its database does not."""
    runtime, wanted = env.runtime("half"), pod()
    sandbox = runtime.create_pod(wanted, 0)
    database = f"{env.storage.root}/libpod/bolt_state.db"
    shutil.copy(database, f"{database}.before")
    lost = runtime.create_container(sandbox, wanted, wanted.containers[0], 0, ())
    env.service.stop()
    shutil.copy(f"{database}.before", database)
    again = PodmanEnv(env.directory, attach=True)
    try:
        made = again.runtime("half").create_container(sandbox, wanted, wanted.containers[0], 0, ())
        assert made.id != lost.id
        assert lost.id[:12] not in again.run("ps", "--all", "--external")
    finally:
        again.service.stop()


@pytest.mark.podman
def test_a_foreign_container_of_that_name_is_left_alone(env: PodmanEnv) -> None:
    runtime, wanted = env.runtime("half"), pod()
    sandbox = runtime.create_pod(wanted, 0)
    foreign = env.run("create", "--name", "web-n1_default_app_0_half", IMAGE, "sleep", "9").strip()
    with pytest.raises(errors.Conflict):
        runtime.create_container(sandbox, wanted, wanted.containers[0], 0, ())
    assert foreign[:12] in env.run("ps", "--all")
