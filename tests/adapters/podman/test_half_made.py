"""What a Podman that was killed inside a create leaves behind, and how its name is won back."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest

from edgelet import errors
from edgelet.adapters.podman.runtime import half_made
from edgelet.model.pod import Container, Pod
from tests.support.podman_env import IMAGE, PodmanEnv

ID = "5" * 64
REFUSAL = (
    'cannot POST containers/create: creating container storage: the container name "web" is already in use by '
    f"{ID}. You have to remove that container to be able to reuse that name: that name is already in use"
)


def test_only_a_name_that_the_storage_holds_is_half_made() -> None:
    assert half_made(REFUSAL, "web") == ID
    assert half_made(REFUSAL, "other") == ""
    assert half_made(f'container name "web" is already in use by {ID}: already exists', "web") == ""


def pod() -> Pod:
    """A pod of one container."""
    return Pod("web-n1", "default", "u-1", "1-abc", "file", (Container("app", IMAGE, command=("sleep", "9")),))


class Database:
    """Podman's database as it is now: BoltDB up to version 4, SQLite (whose newest pages are in another file) in 5."""

    def __init__(self, env: PodmanEnv) -> None:
        bolt, sqlite = (Path(env.storage.root, name) for name in ("libpod/bolt_state.db", "db.sql"))
        self.path = bolt if bolt.exists() else sqlite
        self.before = self.path.with_suffix(".before")
        if bolt.exists():
            shutil.copy(bolt, self.before)
            return
        with contextlib.closing(sqlite3.connect(sqlite)) as db, contextlib.closing(sqlite3.connect(self.before)) as to:
            db.backup(to)

    def go_back(self) -> None:
        """Make it again what it was."""
        for more in ("-wal", "-shm"):
            Path(f"{self.path}{more}").unlink(missing_ok=True)
        shutil.copy(self.before, self.path)


@pytest.mark.podman
def test_a_half_made_container_is_removed_and_made_anew(own_podman: PodmanEnv) -> None:
    """Killed at the worst moment: Podman's storage has the container, its database does not."""
    runtime, wanted = own_podman.runtime("half"), pod()
    sandbox = runtime.create_pod(wanted, 0)
    database = Database(own_podman)
    lost = runtime.create_container(sandbox, wanted, wanted.containers[0], 0, ())
    own_podman.service.stop()
    database.go_back()
    again = PodmanEnv(own_podman.directory, attach=True)
    try:
        made = again.runtime("half").create_container(sandbox, wanted, wanted.containers[0], 0, ())
        assert made.id != lost.id
        assert lost.id[:12] not in again.run("ps", "--all", "--external")
    finally:
        again.service.stop()


@pytest.mark.podman
def test_a_half_made_infra_container_is_removed_and_made_anew(own_podman: PodmanEnv) -> None:
    """Its name says whose it was: each kill would leave one more for ever else, for it bears no label."""
    runtime, wanted = own_podman.runtime("half"), pod()
    own_podman.run("pod", "rm", "--force", runtime.create_pod(wanted, 0).id)  # Podman's own pause image is there now
    database = Database(own_podman)
    lost = runtime.create_pod(wanted, 0)
    own_podman.service.stop()
    database.go_back()
    again = PodmanEnv(own_podman.directory, attach=True)
    try:
        assert f"{lost.infra_id[:12]}" in again.run("ps", "--all", "--external")
        made = again.runtime("half").create_pod(wanted, 0)
        assert made.infra_id != lost.infra_id
        assert lost.infra_id[:12] not in again.run("ps", "--all", "--external")
        assert [p.id for p in again.runtime("half").list()] == [made.id]
    finally:
        again.service.stop()


@pytest.mark.podman
def test_a_foreign_container_of_that_name_is_left_alone(own_podman: PodmanEnv) -> None:
    runtime, wanted = own_podman.runtime("half"), pod()
    sandbox = runtime.create_pod(wanted, 0)
    foreign = own_podman.run("create", "--name", "web-n1_default_app_0_half", IMAGE, "sleep", "9").strip()
    with pytest.raises(errors.Conflict):
        runtime.create_container(sandbox, wanted, wanted.containers[0], 0, ())
    assert foreign[:12] in own_podman.run("ps", "--all")
