"""The file source: nothing ends a pod but somebody deleting its file."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgelet import durable
from edgelet.adapters.files import FileSource, hints, scan, source
from edgelet.model.sources import FileState
from edgelet.ports import Snapshot
from tests.fakes import FakeClock
from tests.support.shaky import PowerCut, ShakyFiles
from tests.support.sources import NODE, Box, Sink, box, manifest, many

IN_Q_OVERFLOW = 0x4000


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Box]:
    with box(tmp_path) as made:
        yield made


# -- what is read -----------------------------------------------------------------------------


def test_first_listing_is_delivered_before_start_returns(here: Box) -> None:
    here.put("web.yaml", manifest("web"))
    spec = {"containers": [{"name": "c", "image": "i"}]}
    here.put("db.json", json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db"}, "spec": spec}))
    here.start()
    assert here.sink.images() == {"db": "i", "web": "one"}
    assert here.sink.last.seen
    assert [p.source for p in here.sink.last.pods] == ["file", "file"]


def test_a_disk_that_is_slow_to_keep_a_thousand_files_keeps_nobody_from_hearing_of_the_next_change(
    here: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = durable.Store.put
    kept: list[str] = []

    def slow(store: durable.Store, key: str, data: bytes) -> None:
        put(store, key, data)
        kept.append(key)
        here.clock.advance(0.2)

    monkeypatch.setattr(durable.Store, "put", slow)
    for number in range(20):
        here.put(f"web{number:02}.yaml", manifest(f"web{number:02}"))
    here.start()
    assert len(here.sink.images()) == 20
    assert len(kept) < 5
    os.unlink(here.path / "web19.yaml")
    here.tick(1)
    assert len(here.sink.images()) == 19
    assert len(kept) < 19  # not all is kept yet, and the change was heard
    here.tick(10)
    assert {f"web{number:02}.yaml" for number in range(19)} <= set(kept)


def test_an_empty_directory_has_been_seen_and_wants_nothing(here: Box) -> None:
    here.start()
    assert here.sink.snapshots == [Snapshot("file")]


def test_a_renamed_in_file_is_read_at_the_event(here: Box) -> None:
    here.start()
    here.put("web.yaml", manifest("web"))
    assert here.tick() == {"web": "one"}
    here.put("web.yaml", manifest("web", "two"))
    assert here.tick() == {"web": "two"}


def test_a_file_written_in_place_is_read_when_it_is_closed(here: Box) -> None:
    here.put("web.yaml", manifest("web"))
    here.start()
    with open(here.path / "web.yaml", "w") as file:
        file.write("apiVersion: v1\n")
        file.flush()
        assert here.tick(5) == {"web": "one"}
        assert here.sink.errors() == []
        file.write(manifest("web", "two").removeprefix("apiVersion: v1\n"))
        file.flush()
        assert here.tick(5) == {"web": "one"}
    assert here.tick() == {"web": "two"}


def test_a_file_that_nobody_closes_is_read_once_it_is_quiet(here: Box) -> None:
    here.put("web.yaml", manifest("web"))
    here.start()
    with open(here.path / "web.yaml", "w") as file:
        file.write(manifest("web", "two"))
        file.flush()
        assert here.tick(9) == {"web": "one"}
        assert here.tick(2) == {"web": "two"}


@pytest.mark.parametrize(
    "name",
    ["web.yaml~", ".web.yaml.swp", "web.yaml.bak", "web.yaml.orig", "web.yaml.rpmsave", "web.yaml.dpkg-old", "4913",
     "#web.yaml#", "web.yaml-bak", "web.yaml.tmp", "web"],
)  # fmt: skip
def test_pain_97_leftovers_of_editors_and_packagers_are_never_loaded(here: Box, name: str) -> None:
    here.put("web.yaml", manifest("web"))
    here.put(name, manifest("web", "leftover"))
    here.start()
    assert here.tick(25) == {"web": "one"}
    listed = here.states().get(name)
    assert listed is None if name.startswith(".") else listed is not None and "does not end in .yaml" in listed.skipped


def test_pain_98_a_backup_beside_the_real_file_never_wins(here: Box) -> None:
    here.put("kube-apiserver.yaml-bak", manifest("apiserver", "old"))
    here.put("kube-apiserver.yaml", manifest("apiserver", "new"))
    assert here.start().sink.images() == {"apiserver": "new"}
    assert here.sink.last.problems == ()


def test_pain_100_which_file_wins_is_fixed_and_shown(here: Box) -> None:
    here.put("b.yaml", manifest("web", "from-b"))
    here.put("copy-of-b.yaml", manifest("web", "outdated"))
    here.start()
    assert here.sink.images() == {"web": "from-b"}
    assert here.sink.errors() == [
        "copy-of-b.yaml: error: pod default/web-edge1 is in b.yaml already, which comes first in the alphabet and runs;"
        " remove or rename one"
    ]
    here.put("a.yaml", manifest("web", "from-a"))
    assert here.tick() == {"web": "from-a"}
    assert [e.partition(":")[0] for e in here.sink.errors()] == ["b.yaml", "copy-of-b.yaml"]
    os.unlink(here.path / "a.yaml")
    assert here.tick(1) == {"web": "from-b"}
    assert here.start().sink.images() == {"web": "from-b"}


def test_sub_directories_fifos_and_sockets_are_skipped_and_listed(here: Box) -> None:
    here.put("web.yaml", manifest("web"))
    (here.path / "sub.yaml").mkdir()
    (here.path / "sub.yaml" / "inner.yaml").write_text(manifest("inner"))
    os.mkfifo(here.path / "fifo.yaml")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(here.path / "socket.yaml"))
        here.start()
        os.mkfifo(here.path / "later.yaml")
        assert here.tick(25) == {"web": "one"}
    assert {name: s.skipped for name, s in here.states().items() if s.skipped} == {
        "sub.yaml": "it is a directory, not a regular file",
        "fifo.yaml": "it is a FIFO, not a regular file",
        "later.yaml": "it is a FIFO, not a regular file",
        "socket.yaml": "it is a socket, not a regular file",
    }


def test_a_single_file_by_path_needs_no_extension_and_has_no_neighbours(tmp_path: Path) -> None:
    with box(tmp_path, path="manifests/the.pod") as here:
        here.put("the.pod", manifest("web"))
        here.put("other.yaml", manifest("other"))
        here.start()
        assert here.sink.images() == {"web": "one"}
        here.put("the.pod", manifest("web", "two"))
        assert here.tick() == {"web": "two"}
        os.unlink(here.path)
        assert here.tick(0.4) == {"web": "two"}
        assert here.tick(0.2) == {}
        here.put("the.pod", manifest("web", "three"))
        assert here.tick() == {"web": "three"}


def test_links_are_followed_and_a_configmap_swap_is_taken_at_once(here: Box) -> None:
    for version, image in (("..v1", "one"), ("..v2", "two")):
        (here.path / version).mkdir()
        (here.path / version / "web.yaml").write_text(manifest("web", image))
    os.symlink("..v1", here.path / "..data")
    os.symlink("..data/web.yaml", here.path / "web.yaml")
    here.start()
    assert here.sink.images() == {"web": "one"}
    os.symlink("..v2", here.path / "..data_tmp")
    os.rename(here.path / "..data_tmp", here.path / "..data")
    shutil.rmtree(here.path / "..v1")
    assert here.tick() == {"web": "two"}
    os.unlink(here.path / "web.yaml")
    assert here.tick(1) == {}


def test_a_link_that_leads_nowhere_for_a_while_ends_nothing(here: Box) -> None:
    (here.tmp / "target.yaml").write_text(manifest("web"))
    os.symlink(here.tmp / "target.yaml", here.path / "web.yaml")
    here.start()
    os.unlink(here.tmp / "target.yaml")
    assert here.tick(60) == {"web": "one"}
    assert "cannot be looked at: No such file" in here.states()["web.yaml"].error
    (here.tmp / "target.yaml").write_text(manifest("web", "two"))
    assert here.tick(25) == {"web": "two"}
    assert here.sink.errors() == []


def test_a_file_linked_in_is_read_soon(here: Box) -> None:
    here.start()
    (here.tmp / "file").write_text(manifest("web"))
    os.link(here.tmp / "file", here.path / "web.yaml")
    assert here.tick(0.6) == {"web": "one"}


# -- what is wrong with it --------------------------------------------------------------------

BAD = {
    "half a document": "apiVersion: v1\nkind: Pod\nmetadata:\n",
    "not YAML": "{{ .Values }}: [",
    "zero length": "",
    "white space": "\n \n",
    "filled with NUL": "\0" * 512,
    "a tail of NUL": manifest("web", "two") + "\0" * 30,
    "of a kind we refuse": "apiVersion: v1\nkind: Nonsense\n",
    "too large": "# " + "x" * scan.MAX_BYTES,
    "cut in the last line": manifest("web", "two-and-a-half")[:-5],
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_pain_110_a_bad_version_keeps_the_last_good_one_running_even_after_a_restart(here: Box, text: str) -> None:
    here.put("good.yaml", manifest("good"))
    here.put("web.yaml", manifest("web"))
    here.start()
    before = here.sink.last.pods
    (here.path / "web.yaml").write_text(text)
    assert here.tick(30) == {"good": "one", "web": "one"}
    assert here.sink.last.pods == before
    state = here.states()["web.yaml"]
    assert not state.accepted and state.from_last_good and state.pods == ("default/web-edge1",)
    assert state.error.startswith("web.yaml")
    here.clock.advance(3600)
    here.start()
    assert here.sink.last.pods == before
    assert here.states()["web.yaml"] == state
    here.put("web.yaml", manifest("web", "three"))
    assert here.tick() == {"good": "one", "web": "three"}
    assert here.sink.errors() == []


def test_a_new_bad_file_costs_nothing_but_itself(here: Box) -> None:
    here.put("bad.yaml", "kind: [")
    here.put("good.yaml", manifest("good"))
    here.start()
    assert here.sink.images() == {"good": "one"}
    assert here.states()["bad.yaml"].pods == () and not here.states()["bad.yaml"].from_last_good


def test_the_bad_file_made_good_with_its_old_content_is_accepted(here: Box) -> None:
    here.put("web.yaml", manifest("web"))
    here.start()
    (here.path / "web.yaml").write_text("kind: [")
    here.tick()
    (here.path / "web.yaml").write_text(manifest("web"))
    assert here.tick() == {"web": "one"}
    assert here.states()["web.yaml"] == FileState("web.yaml", ("default/web-edge1",))


def test_a_mistake_in_one_document_ends_no_pod_of_the_file_and_changes_the_valid_ones(here: Box) -> None:
    here.put("all.yaml", many(manifest("a"), manifest("b")))
    here.start()
    here.put("all.yaml", many(manifest("a", "two"), manifest("b", '""')))
    assert here.tick() == {"a": "two", "b": "one"}
    here.put("all.yaml", many(manifest("a", '""'), manifest("b", "three")))
    assert here.tick() == {"a": "two", "b": "three"}
    here.start()
    assert here.sink.images() == {"a": "two", "b": "three"}
    here.put("all.yaml", manifest("b", "three"))
    assert here.tick() == {"b": "three"}


@pytest.mark.parametrize("text", ["# switched off\n", "---\n# nothing\n---\n"])
def test_comments_only_end_the_pods_on_purpose(here: Box, text: str) -> None:
    here.put("web.yaml", manifest("web"))
    here.start()
    here.put("web.yaml", text)
    assert here.tick() == {}
    assert here.sink.errors() == []
    assert here.start().sink.images() == {}


def test_a_file_without_final_newline_is_fine_when_it_never_had_one_or_is_renamed_in(here: Box) -> None:
    here.put("web.yaml", manifest("web"))
    here.start()
    here.put("web.yaml", manifest("web", "two").rstrip())
    assert here.tick() == {"web": "two"}
    (here.path / "web.yaml").write_text(manifest("web", "three").rstrip())
    assert here.tick() == {"web": "three"}


def config(name: str, value: str) -> str:
    """A small ConfigMap."""
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  k: {value}\n"


def objects(here: Box) -> dict[str, bytes]:
    """Name -> its value, of the ConfigMaps in the newest snapshot."""
    return {one.name: one.data["k"] for one in here.sink.last.objects}


def test_configmaps_and_secrets_are_kept_with_the_last_good_version(here: Box) -> None:
    here.put("a.yaml", many(manifest("a"), config("x", "one")))
    here.put("b.yaml", config("other", "two"))
    here.start()
    assert objects(here) == {"x": b"one", "other": b"two"}
    here.put("a.yaml", "kind: Pod\nspec: {")
    here.put("b.yaml", "")
    here.tick(1)
    here.start()
    assert objects(here) == {"x": b"one", "other": b"two"}
    assert here.states()["b.yaml"].from_last_good
    here.put("b.yaml", many(config("other", "three"), config("x", "not this one")))
    here.tick(1)
    assert objects(here) == {"x": b"one", "other": b"three"}
    assert "ConfigMap default/x is in a file that comes first" in here.states()["b.yaml"].error
    os.unlink(here.directory / "b.yaml")
    here.tick(1)
    assert objects(here) == {"x": b"one"}


def test_an_unreadable_file_keeps_its_pod_and_comes_back(here: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    here.put("web.yaml", manifest("web"))
    here.start()

    def refuse(self: scan.Root, name: str) -> tuple[bytes, scan.Stamp]:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(scan.Root, "read", refuse)
        (here.path / "web.yaml").write_text(manifest("web", "two"))
        assert here.tick(30) == {"web": "one"}
        assert "cannot be read: Permission denied" in here.states()["web.yaml"].error
    assert here.tick(25) == {"web": "two"}
    assert here.sink.errors() == []


# -- what is gone -----------------------------------------------------------------------------


def test_a_deleted_file_ends_its_pod_after_half_a_second(here: Box) -> None:
    here.put("web.yaml", manifest("web"))
    here.put("db.yaml", manifest("db"))
    here.start()
    os.unlink(here.path / "web.yaml")
    assert here.tick(0.49) == {"db": "one", "web": "one"}
    assert here.tick(0.02) == {"db": "one"}
    assert here.start().sink.images() == {"db": "one"}


def test_the_last_file_deleted_ends_its_pod(here: Box) -> None:
    here.put("web.yaml", manifest("web"))
    here.start()
    os.unlink(here.path / "web.yaml")
    assert here.tick(0.6) == {}


def test_an_editor_that_renames_away_and_creates_never_ends_the_pod(here: Box) -> None:
    here.put("web.yaml", manifest("web"))
    here.start()
    os.rename(here.path / "web.yaml", here.path / "web.yaml~")
    assert here.tick(0.3) == {"web": "one"}
    (here.path / "web.yaml").write_text(manifest("web", "two"))
    os.unlink(here.path / "web.yaml~")
    assert here.tick() == {"web": "two"}
    assert here.tick(30) == {"web": "two"}
    assert all(s.pods for s in here.sink.snapshots)


def test_a_file_renamed_keeps_its_pod_without_a_word(here: Box) -> None:
    here.put("web.yaml", manifest("web"))
    here.start()
    before = here.sink.last.pods
    os.rename(here.path / "web.yaml", here.path / "a-web.yaml")
    here.tick(30)
    assert all(s.pods == before and s.problems == () for s in here.sink.snapshots)
    assert list(here.states()) == ["a-web.yaml"]


@pytest.mark.parametrize("away", [0.1, 0.45, 0.7, 5, 300])
def test_pain_107_a_manifest_moved_back_after_a_while_runs_again(here: Box, away: float) -> None:
    here.put("web.yaml", manifest("web"))
    here.start()
    before = here.sink.last.pods
    for _ in range(3):
        os.rename(here.path / "web.yaml", here.tmp / "web.yaml")
        assert here.tick(away) == ({} if away > 0.5 else {"web": "one"})
        os.rename(here.tmp / "web.yaml", here.path / "web.yaml")
        here.tick(1)
        assert here.sink.last.pods == before


def test_a_file_deleted_while_the_agent_was_down_ends_its_pod(here: Box) -> None:
    here.put("web.yaml", manifest("web"))
    here.put("db.yaml", manifest("db"))
    here.start()
    here.stop()
    os.unlink(here.path / "web.yaml")
    here.start()
    assert here.tick(1) == {"db": "one"}
    here.stop()
    os.unlink(here.path / "db.yaml")
    here.start()
    assert here.tick(1) == {}


def test_a_directory_deleted_with_all_its_files_ends_nothing(here: Box) -> None:
    here.put("a.yaml", manifest("a"))
    here.put("b.yaml", manifest("b"))
    here.start()
    before = here.sink.last.pods
    shutil.rmtree(here.path)
    assert here.tick(120) == {"a": "one", "b": "one"}
    assert here.sink.errors() == [f"{here.path}: error: cannot read {here.path}: No such file or directory"]
    here.path.mkdir()
    assert here.tick(120) == {"a": "one", "b": "one"}
    assert "replaced by an empty one" in here.states()["a.yaml"].error
    here.start()
    assert here.tick(120) == {"a": "one", "b": "one"}
    here.put("a.yaml", manifest("a"))
    assert here.tick(19) == {"a": "one", "b": "one"}
    here.put("b.yaml", manifest("b"))
    here.tick(120)
    assert here.sink.last.pods == before
    assert here.sink.errors() == []


def test_a_directory_refilled_with_less_ends_the_rest_after_a_listing(here: Box) -> None:
    here.put("a.yaml", manifest("a"))
    here.put("b.yaml", manifest("b"))
    here.start()
    os.rename(here.path, here.tmp / "old")
    assert here.tick(5) == {"a": "one", "b": "one"}
    here.path.mkdir()
    here.put("a.yaml", manifest("a", "two"))
    assert here.tick(5) == {"a": "two", "b": "one"}
    assert here.tick(20) == {"a": "two"}


def test_a_kept_pod_ends_when_its_file_is_created_and_deleted(here: Box) -> None:
    here.put("a.yaml", manifest("a"))
    here.start()
    shutil.rmtree(here.path)
    here.tick(5)
    here.path.mkdir()
    assert here.tick(60) == {"a": "one"}
    (here.path / "a.yaml").write_text("")
    os.unlink(here.path / "a.yaml")
    assert here.tick(1) == {}


def test_a_missing_directory_at_start_runs_the_last_good_versions_and_has_not_spoken(here: Box) -> None:
    here.put("web.yaml", manifest("web"))
    here.start()
    here.stop()
    os.rename(here.path, here.tmp / "unplugged")
    here.start()
    assert here.sink.images() == {"web": "one"}
    assert not here.sink.last.seen
    state = here.running.state()
    assert (state.ok, state.from_last_good) == (False, True)
    os.rename(here.tmp / "unplugged", here.path)
    assert here.tick(2) == {"web": "one"}
    assert (here.sink.last.seen, here.sink.errors()) == (True, [])


def test_a_directory_that_never_was_wants_nothing_and_is_not_seen(tmp_path: Path) -> None:
    made = Box(tmp_path).start()
    assert (made.sink.last.pods, made.sink.last.seen) == ((), False)
    made.path.mkdir()
    made.put("web.yaml", manifest("web"))
    assert made.tick(2) == {"web": "one"}
    made.stop()


def test_a_mount_that_comes_late_or_goes_ends_nothing(here: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory changes its file system under the same path, empty at first."""
    here.put("a.yaml", manifest("a"))
    here.put("b.yaml", manifest("b"))
    here.start()
    here.stop()
    real = scan.place
    with monkeypatch.context() as patched:
        patched.setattr(scan, "place", lambda path: real(path)._replace(filesystem=7))
        os.rename(here.path, here.tmp / "stick")
        here.path.mkdir()
        here.start()
        assert not here.sink.last.seen
        assert here.tick(120) == {"a": "one", "b": "one"}
        assert "another file system" in here.states()["a.yaml"].error
        here.put("c.yaml", manifest("c"))
        assert here.tick(120) == {"a": "one", "b": "one", "c": "one"}
        os.unlink(here.path / "c.yaml")
        assert here.tick(1) == {"a": "one", "b": "one"}
        shutil.rmtree(here.path)
        os.rename(here.tmp / "stick", here.path)
    assert here.tick(60) == {"a": "one", "b": "one"}
    assert here.sink.errors() == []
    os.unlink(here.path / "b.yaml")
    assert here.tick(1) == {"a": "one"}


def test_files_that_vanish_without_a_deletion_end_nothing(here: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    here.put("a.yaml", manifest("a"))
    here.start()
    monkeypatch.setattr(hints, "_events", lambda data: iter(()))
    os.unlink(here.path / "a.yaml")
    assert here.tick(120) == {"a": "one"}
    assert "no deletion was seen" in here.states()["a.yaml"].error


def test_without_inotify_everything_still_works_by_listing(here: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "inotify_init", lambda: -1)
    here.put("a.yaml", manifest("a"))
    here.start()
    here.put("b.yaml", manifest("b"))
    assert here.tick(19) == {"a": "one"}
    assert here.tick(2) == {"a": "one", "b": "one"}
    (here.path / "b.yaml").write_text(manifest("b", "two"))
    assert here.tick(21) == {"a": "one", "b": "two"}
    os.unlink(here.path / "a.yaml")
    os.unlink(here.path / "b.yaml")
    assert here.tick(21) == {}


def test_lost_events_are_made_up_for_by_a_listing(here: Box) -> None:
    here.put("a.yaml", manifest("a"))
    here.start()
    os.unlink(here.path / "a.yaml")
    here.put("b.yaml", manifest("b"))
    here.running.wait(0)
    heard = hints.Hints()
    heard.hear(IN_Q_OVERFLOW, "")
    here.running.step(heard)
    assert here.tick(1.1) == {"b": "one"}


def test_another_configured_path_takes_nothing_over(tmp_path: Path) -> None:
    with box(tmp_path) as old:
        old.put("web.yaml", manifest("web"))
        old.start()
    with box(tmp_path, path="other") as new:
        new.start()
        assert (new.sink.last.pods, new.sink.last.seen) == ((), True)
        new.put("web.yaml", "kind: [")
        assert new.tick() == {}
        assert new.start().sink.images() == {}


# -- what is kept -----------------------------------------------------------------------------


def test_last_good_versions_are_readable_by_their_owner_only(here: Box) -> None:
    here.put("web.yaml", manifest("web"))
    here.start()
    kept = list((here.store / "file").iterdir())
    assert kept and {stat.S_IMODE(p.stat().st_mode) for p in kept} == {0o600}


def test_a_damaged_last_good_copy_falls_back_to_the_one_before(here: Box) -> None:
    here.put("web.yaml", manifest("web"))
    here.start()
    here.put("web.yaml", manifest("web", "two"))
    here.tick()
    here.stop()
    current = next(p for p in (here.store / "file").iterdir() if p.name.startswith("sweb") and p.suffix != ".prev")
    current.write_bytes(b"\0" * 100)
    (here.path / "web.yaml").write_text("kind: [")
    assert here.start().sink.images() == {"web": "one"}


def test_unchanged_files_write_nothing_to_the_disk(here: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    here.put("web.yaml", manifest("web"))
    here.start()
    here.start()
    written: list[str] = []
    monkeypatch.setattr(durable, "write_checked", lambda path, *a, **k: written.append(path))
    here.start()
    os.utime(here.path / "web.yaml")
    here.tick(300)
    assert written == []
    assert len(here.sink.snapshots) == 1


def test_a_full_disk_stops_no_pod_and_is_said(here: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    here.start()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(durable.DISK, "sync", full)
        here.put("web.yaml", manifest("web"))
        assert here.tick() == {"web": "one"}
        assert "No space left on device; after a reboot the last good version may be missing" in here.sink.errors()[0]
    here.tick(25)
    assert here.sink.errors() == []
    os.rename(here.path, here.tmp / "away")
    assert here.start().sink.images() == {"web": "one"}


def test_power_cut_at_any_operation_leaves_a_last_good_version_whole(tmp_path: Path) -> None:
    """Two versions taken in, the power cut at every operation, then the file is broken: one of the two runs."""

    def look(files: ShakyFiles, text: str) -> dict[str, str]:
        sink = Sink()
        made = FileSource(str(tmp_path / "manifests"), NODE, sink, FakeClock(), "/var/sources", files=files)
        (tmp_path / "manifests" / "web.yaml").write_text(text)
        try:
            made.begin()
        finally:
            made.stop()
        return sink.images()

    (tmp_path / "manifests").mkdir()
    whole = ShakyFiles()
    for image in ("one", "two"):
        look(whole, manifest("web", image))
    for cut in range(len(whole.operations) + 1):
        files = ShakyFiles(cut_after=cut)
        done: list[str] = []
        with contextlib.suppress(PowerCut):
            for image in ("one", "two"):
                look(files, manifest("web", image))
                done.append(image)
        for booted in files.after_power_cut():
            found = look(booted, "kind: [").get("web", "")
            assert found in [["", "one"], ["one", "two"], ["two"]][len(done)]


# -- the thread -------------------------------------------------------------------------------


class RealClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def time(self) -> float:
        return time.time()


class WaitingSink(Sink):
    def __init__(self) -> None:
        super().__init__()
        self.arrived = threading.Event()

    def put(self, snapshot: Snapshot) -> None:
        super().put(snapshot)
        self.arrived.set()


def test_the_thread_delivers_on_an_event_and_stops_at_once(here: Box) -> None:
    sink = WaitingSink()
    running = FileSource(str(here.path), NODE, sink, RealClock(), str(here.store))
    running.start()
    sink.arrived.clear()
    here.put("web.yaml", manifest("web"))
    assert sink.arrived.wait(10)
    assert sink.images() == {"web": "one"}
    running.stop()
    assert not [t for t in threading.enumerate() if t.name == "source-file"]


def test_a_fault_in_one_look_does_not_end_the_thread(here: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = WaitingSink()
    running = FileSource(str(here.path), NODE, sink, RealClock(), str(here.store), check_frequency=0.05)
    running.start()
    failed = threading.Event()

    def fail(*_: object) -> None:
        failed.set()
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(source.FileSource, "_hear", fail)
        here.put("web.yaml", manifest("web"))
        assert failed.wait(10)
        sink.arrived.clear()
    here.put("db.yaml", manifest("db"))
    assert sink.arrived.wait(10)
    running.stop()


def test_hundreds_of_files_settle_without_being_read_again(here: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(500):
        (here.path / f"pod-{i}.yaml").write_text(manifest(f"pod-{i}"))
    here.start()
    assert len(here.sink.last.pods) == 500
    reads: list[str] = []
    monkeypatch.setattr(scan.Root, "read", lambda self, name: reads.append(name))
    began = time.process_time()
    here.tick(21)
    assert reads == []
    assert time.process_time() - began < 5


def test_asked_to_look_it_lists_at_once(tmp_path: Path) -> None:
    with box(tmp_path, check_frequency=1000.0) as b:
        b.start()
        b.running.look()
        hints = b.running.wait(10)
        assert hints is not None and hints.listing
