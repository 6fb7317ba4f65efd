"""State on disk survives a kill or a power cut at every operation, and every sync is needed for it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgelet import durable
from edgelet.errors import StateError
from tests.support.shaky import PowerCut, ShakyFiles

Script = list[tuple[str, bytes | None]]
"""Keys with what is put there; None = removed."""

OLD_AND_NEW: Script = [("a", b"one"), ("a", b"two"), ("a", b"three")]
REMOVED: Script = [("a", b"one"), ("a", b"two"), ("a", None)]
TWO_KEYS: Script = [("a", b"one"), ("b", b"uno"), ("a", None), ("b", b"due")]
SCRIPTS = {"replaced": OLD_AND_NEW, "removed": REMOVED, "two keys": TWO_KEYS, "back again": [*REMOVED, ("a", b"four")]}


def run(files: ShakyFiles, script: Script) -> int:
    """Play a script on a store; how many steps were acknowledged before the lights went out."""
    store = durable.Store("/var/state", files=files)
    done = 0
    try:
        for key, value in script:
            store.put(key, value) if value is not None else store.remove(key)
            done += 1
    except PowerCut:
        pass
    return done


def states(script: Script) -> list[dict[str, bytes]]:
    """What the store holds after 0, 1, 2... steps."""
    result: list[dict[str, bytes]] = [{}]
    for key, value in script:
        after = dict(result[-1])
        after.pop(key, None)
        result.append(after if value is None else {**after, key: value})
    return result


Ends = Callable[[ShakyFiles], Iterator[ShakyFiles]]


def survivors(script: Script, cut: int, ends: Ends) -> Iterator[tuple[int, dict[str, bytes]]]:
    """(steps acknowledged, what is loaded afterwards) for every state the disk may be in."""
    files = ShakyFiles(cut_after=cut)
    done = run(files, script)
    for booted in ends(files):
        yield done, durable.Store("/var/state", files=booted).load().entries


def operations(script: Script) -> list[str]:
    files = ShakyFiles()
    run(files, script)
    return files.operations


def violations(script: Script, cut: int, ends: Ends) -> list[dict[str, bytes]]:
    """States that are neither what was acknowledged last nor what was under way."""
    allowed = states(script)
    return [s for done, s in survivors(script, cut, ends) if s not in allowed[done : done + 2]]


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_killed_at_every_operation_the_store_holds_the_old_or_the_new(script: Script) -> None:
    for cut in range(len(operations(script)) + 1):
        assert violations(script, cut, ShakyFiles.after_crash) == []


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_power_cut_at_every_operation_loses_nothing_acknowledged(script: Script) -> None:
    for cut in range(len(operations(script)) + 1):
        assert violations(script, cut, ShakyFiles.after_power_cut) == []


def broken_run(script: Script, operation: str, call: int) -> bool:
    """Whether some power cut does harm when one sync is left out of the code."""
    allowed = states(script)
    for cut in range(len(operations(script)) + 1):
        files = ShakyFiles(cut_after=cut, broken=operation, broken_call=call)
        done = run(files, script)
        for booted in files.after_power_cut():
            if durable.Store("/var/state", files=booted).load().entries not in allowed[done : done + 2]:
                return True
    return False


def test_leaving_out_any_single_sync_of_file_or_directory_would_be_noticed() -> None:
    for name, script in SCRIPTS.items():
        counted = operations(script)
        for operation in ("sync", "sync_directory"):
            for call in range(counted.count(operation)):
                assert broken_run(script, operation, call), f"{name}: {operation} number {call} is not needed"


def test_after_a_cut_the_next_write_works(tmp_path: Path) -> None:
    for cut in range(len(operations(OLD_AND_NEW))):
        files = ShakyFiles(cut_after=cut)
        run(files, OLD_AND_NEW)
        for booted in files.after_power_cut():
            run(booted, [("a", b"four")])
            assert durable.Store("/var/state", files=booted).load() == durable.Loaded({"a": b"four"})


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.binary(max_size=4)), max_size=6), st.integers(0, 80))
@settings(max_examples=60, deadline=None)
def test_any_script_cut_anywhere_loses_nothing_acknowledged(script: Script, cut: int) -> None:
    assert violations(script, cut, ShakyFiles.after_power_cut) == []


# -- on the real disk -------------------------------------------------------------------------


def test_write_replaces_the_file_and_sets_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "state"
    durable.write(str(path), b"one", 0o644)
    durable.write(str(path), b"two")
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["state"]


def test_a_temporary_file_left_by_a_killed_writer_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / ".state.tmp").write_bytes(b"left over, and longer than what comes now")
    durable.write(str(tmp_path / "state"), b"new")
    assert (tmp_path / "state").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["state"]


def test_write_into_a_missing_directory_names_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "missing" / "state")
    with pytest.raises(StateError, match=r"cannot write .*missing/state: No such file"):
        durable.write(path, b"x")


def test_nothing_written_yet_is_none(tmp_path: Path) -> None:
    assert durable.read_checked(str(tmp_path / "state")) is None


def test_checked_round_trip_with_version(tmp_path: Path) -> None:
    path = str(tmp_path / "state")
    durable.write_checked(path, b"a\nb\0", version=3)
    assert durable.read_checked(path, newest=3) == durable.Checked(b"a\nb\0", 3)


def test_a_newer_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = str(tmp_path / "state")
    durable.write_checked(path, b"x", version=2)
    with pytest.raises(StateError, match="format version 2 and this edgelet knows up to 1; install the newer"):
        durable.read_checked(path, newest=1)


@pytest.mark.parametrize(
    "damaged", [b"", b"\0" * 80, b"edgelet-state 1 0\n", b"edgelet-state 1", b"edgelet-state x y\nz", b"new"]
)
def test_a_damaged_copy_falls_back_to_the_one_before(tmp_path: Path, damaged: bytes) -> None:
    path = tmp_path / "state"
    durable.write_checked(str(path), b"old")
    durable.write_checked(str(path), b"new")
    path.write_bytes(damaged)
    assert durable.read_checked(str(path)) == durable.Checked(b"old", 1, previous=True)


def test_a_damaged_copy_never_pushes_out_the_good_one_before(tmp_path: Path) -> None:
    path = tmp_path / "state"
    durable.write_checked(str(path), b"old")
    durable.write_checked(str(path), b"new")
    path.write_bytes(b"damaged")
    durable.write_checked(str(path), b"newest")
    path.write_bytes(b"damaged again")
    assert durable.read_checked(str(path)) == durable.Checked(b"old", 1, previous=True)


def test_one_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "state"
    durable.write_checked(str(path), b"old")
    raw = path.read_bytes()
    for place in range(len(raw)):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 4]) + raw[place + 1 :])
        with pytest.raises(StateError, match=f"cannot read {path}: "):
            durable.read_checked(str(path))


def test_store_keeps_any_key_and_is_private(tmp_path: Path) -> None:
    keys = ["web.yaml", "/", "..", "a/b", "\udcff.yaml", "x" * 255, "ä", "", "web_yaml"]
    store = durable.Store(str(tmp_path / "new" / "state"))
    for key in keys:
        store.put(key, key.encode("utf-8", "surrogateescape"))
    loaded = durable.Store(str(tmp_path / "new" / "state")).load()
    assert loaded.complaints == ()
    assert loaded.entries == {key: key.encode("utf-8", "surrogateescape") for key in keys}
    assert stat.S_IMODE((tmp_path / "new" / "state").stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "new" / "state").iterdir()} == {0o600}


def test_store_complains_about_damage_and_loads_the_rest(tmp_path: Path) -> None:
    store = durable.Store(str(tmp_path))
    for key, value in (("a", b"1"), ("b", b"1"), ("b", b"2"), ("c", b"1")):
        store.put(key, value)
    for path in tmp_path.iterdir():
        if path.name.startswith(("sa", "sb")) and path.suffix != ".prev":
            path.write_bytes(b"rubbish")
    third = next(p for p in tmp_path.iterdir() if p.name.startswith("sc"))
    (tmp_path / "sforeign").write_bytes(third.read_bytes())
    loaded = store.load()
    assert loaded.entries == {"b": b"1", "c": b"1"}
    assert [c.partition(": ")[0].rpartition("/")[2][:2] for c in loaded.lost] == ["sa", "sf"]
    assert [c.rpartition("/")[2][:2] for c in loaded.restored] == ["sb"]
    assert loaded.complaints == loaded.restored + loaded.lost


def test_store_that_was_never_written_is_empty_and_creates_nothing(tmp_path: Path) -> None:
    store = durable.Store(str(tmp_path / "state"))
    store.remove("a")
    assert store.load() == durable.Loaded()
    assert os.listdir(tmp_path) == []


def test_full_disk_leaves_the_old_state_and_no_rubbish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = durable.Store(str(tmp_path))
    store.put("a", b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable.DISK, "sync", full)
    with pytest.raises(StateError, match="No space left on device"):
        store.put("a", b"new")
    assert store.load() == durable.Loaded({"a": b"old"})
    assert not [n for n in os.listdir(tmp_path) if n.endswith(".tmp")]
