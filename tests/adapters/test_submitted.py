"""Submitted pods: what was acknowledged is there, after any kill and any power cut; nothing else is."""

from __future__ import annotations

import random
import re
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgelet import errors
from edgelet.adapters.submitted import MAX_PODS, Decode, Submitted
from edgelet.model.decode import Decoded
from edgelet.model.pod import Container, Pod, PodKey
from edgelet.model.submission import Expect
from tests.support.shaky import PowerCut, ShakyFiles
from tests.support.sources import NODE, Sink, manifest, many


class Box:
    """A store that can be restarted."""

    def __init__(self, tmp: Path) -> None:
        self.tmp = tmp
        self.owners: dict[PodKey, str] = {}
        self.start()

    def start(self) -> None:
        """A fresh agent on the same disk."""
        self.sink = Sink()
        self.store = Submitted(str(self.tmp), self.sink, NODE, owner_of=self.owners.get)
        self.store.start()

    def apply(self, text: str, expect: Expect = Expect.ANY) -> list[str]:
        """Verbs and names."""
        return [f"{a.pod.name} {a.verb}" for a in self.store.apply(text.encode(), expect)]


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_submitted_pods_keep_their_name_and_survive_a_restart(box: Box) -> None:
    assert box.apply(many(manifest("a"), manifest("b", namespace="other"))) == ["a created", "b created"]
    before = box.sink.last
    assert [str(p.key) for p in before.pods] == ["default/a", "other/b"]
    assert {p.source for p in before.pods} == {"api"}
    box.start()
    assert box.sink.last == before


def test_the_same_pod_in_other_words_is_no_change(box: Box) -> None:
    box.apply(manifest("a"))
    before = box.sink.last
    assert box.apply(manifest("a") + "  restartPolicy: Always\n") == ["a unchanged"]
    assert box.sink.last == before
    assert box.store.manifest(PodKey("default", "a")) == manifest("a").encode()
    assert box.store.manifest(PodKey("default", "b")) is None


def test_a_dry_run_says_what_would_be_and_changes_nothing(box: Box) -> None:
    assert [a.verb for a in box.store.apply(manifest("a").encode(), dry_run=True)] == ["created"]
    assert box.sink.last.pods == ()
    box.start()
    assert box.sink.last.pods == ()


def test_an_empty_store_has_spoken(box: Box) -> None:
    assert (box.sink.last.pods, box.sink.last.seen) == ((), True)
    assert box.store.state().ok


def test_verbs_are_those_of_kubectl(box: Box) -> None:
    assert box.apply(manifest("a")) == ["a created"]
    assert box.apply("# a comment\n" + manifest("a")) == ["a unchanged"]
    assert box.apply(manifest("a", "two")) == ["a configured"]
    assert box.sink.images() == {"a": "two"}


def test_a_deleted_pod_stays_deleted(box: Box) -> None:
    box.apply(manifest("a"))
    box.apply(manifest("a", "two"))
    assert box.store.delete("default", "a")
    assert not box.store.delete("default", "a")
    assert box.sink.images() == {}
    box.start()
    assert box.sink.images() == {} and box.store.get(PodKey("default", "a")) is None


def test_a_name_of_another_source_is_refused_with_the_reason(box: Box) -> None:
    box.owners[PodKey("default", "web-edge1")] = "file"
    with pytest.raises(errors.NameTaken, match="pod default/web-edge1 is given by the source file: change it there"):
        box.apply(many(manifest("fine"), manifest("web-edge1")))
    assert box.sink.images() == {}
    box.owners[PodKey("default", "web-edge1")] = "api"
    assert box.apply(manifest("web-edge1")) == ["web-edge1 created"]


def test_post_wants_a_new_name_and_put_an_old_one(box: Box) -> None:
    with pytest.raises(errors.NameTaken, match="does not exist"):
        box.apply(manifest("a"), Expect.EXISTING)
    assert box.apply(manifest("a"), Expect.NEW) == ["a created"]
    with pytest.raises(errors.NameTaken, match="pod default/a already exists"):
        box.apply(manifest("a", "two"), Expect.NEW)
    assert box.apply(manifest("a", "two"), Expect.EXISTING) == ["a configured"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("kind: [", "YAML"),
        (many(manifest("a"), manifest("b", '""')), "image"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n", "no pod in it"),
    ],
)
def test_a_manifest_with_a_mistake_changes_nothing_at_all(box: Box, text: str, said: str) -> None:
    with pytest.raises(errors.ManifestError, match=said):
        box.apply(text)
    box.start()
    assert box.sink.images() == {}


def test_replacing_what_a_cluster_would_refuse_to_change_is_said(box: Box) -> None:
    box.apply(manifest("a"))
    changed = manifest("a", "two")
    assert box.store.apply(changed.encode())[0].warnings == ()
    (applied,) = box.store.apply((changed + "    command: [sleep]\n  hostNetwork: true\n").encode())
    assert [w.warning for w in applied.warnings] == [True]
    assert "a running pod cannot change spec.containers[0].command, spec.hostNetwork" in applied.warnings[0].message


def test_there_is_a_bound(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgelet.adapters.submitted.MAX_PODS", 2)
    box.apply(many(manifest("a"), manifest("b")))
    with pytest.raises(errors.ManifestError, match="2 submitted pods already, of 2"):
        box.apply(manifest("c"))
    assert box.apply(manifest("a", "two")) == ["a configured"]
    assert MAX_PODS >= 1000


def test_a_damaged_copy_is_replaced_by_the_one_before(box: Box) -> None:
    box.apply(manifest("a"))
    box.apply(manifest("a", "two"))
    current = next(p for p in (box.tmp / "api").iterdir() if p.suffix != ".prev")
    current.write_bytes(b"\0" * 50)
    box.start()
    assert box.sink.images() == {"a": "one"} and box.sink.last.seen
    assert "the copy before it is used" in box.sink.errors()[0]


def test_with_every_copy_damaged_nothing_may_be_ended(box: Box) -> None:
    box.apply(manifest("a"))
    for path in (box.tmp / "api").iterdir():
        path.write_bytes(b"rubbish")
    box.start()
    assert not box.sink.last.seen and not box.store.state().ok
    assert "no good copy before it; remove the file to go on" in box.sink.errors()[0]


def test_a_pod_that_is_refused_after_an_upgrade_is_kept_on_disk_and_said(box: Box, tmp_path: Path) -> None:
    box.apply(manifest("a"))
    later = Submitted(str(tmp_path), box.sink, NODE, decode=lambda data, strict: Decoded())
    later.start()
    assert box.sink.last.pods == () and "refuses what was accepted" in box.sink.errors()[0]
    box.start()
    assert box.sink.images() == {"a": "one"}


# -- must show 3 and 4 ------------------------------------------------------------------------


def quick(data: bytes, strict: bool) -> Decoded:
    """Reads what `manifest` writes, a hundred times faster than the decoder."""
    name, image = re.findall(r"(?:^  name|image): (.*)$", data.decode(), re.MULTILINE)
    container = Container("main", image)
    document = f'{{"spec": "{image}"}}'
    return Decoded((Pod(name, "default", name, f"1-{name}-{image}", "api", (container,), document=document),))


def disk(files: ShakyFiles, decode: Decode | None = None) -> tuple[Submitted, Sink]:
    sink = Sink()
    return Submitted("/var/sources", sink, NODE, files=files, decode=decode), sink


Step = tuple[str, str]
"""(name, image); image "" = delete."""


def play(files: ShakyFiles, steps: list[Step]) -> int:
    """How many steps were acknowledged before the end."""
    store, _ = disk(files)
    done = 0
    try:
        store.start()
        for name, image in steps:
            store.apply(manifest(name, image).encode()) if image else store.delete("default", name)
            done += 1
    except PowerCut:
        pass
    return done


def after(steps: list[Step]) -> dict[str, str]:
    state = dict(steps)
    return {name: image for name, image in state.items() if image}


STEPS: list[Step] = [("a", "one"), ("b", "one"), ("a", "two"), ("b", ""), ("a", ""), ("b", "three")]


def test_power_cut_at_every_operation_loses_nothing_acknowledged() -> None:
    whole = ShakyFiles()
    play(whole, STEPS)
    for cut in range(len(whole.operations) + 1):
        files = ShakyFiles(cut_after=cut)
        done = play(files, STEPS)
        for booted in files.after_power_cut():
            store, sink = disk(booted)
            store.start()
            assert sink.images() in (after(STEPS[:done]), after(STEPS[: done + 1]))
            assert sink.last.seen


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["", "one", "two"])), max_size=8), st.integers(0, 60))
@settings(max_examples=30, deadline=None)
def test_any_steps_killed_anywhere_end_as_acknowledged(steps: list[Step], cut: int) -> None:
    files = ShakyFiles(cut_after=cut)
    done = play(files, steps)
    for booted in files.after_crash():
        store, sink = disk(booted)
        store.start()
        assert sink.images() in (after(steps[:done]), after(steps[: done + 1]))


def test_a_thousand_pods_submitted_replaced_and_deleted_with_kills_end_as_acknowledged() -> None:
    chance = random.Random(6)
    files = ShakyFiles()
    wanted: dict[str, str] = {}
    kills = unsure = 0
    while kills < 16 or len(wanted) < 900:
        files.cut_after = len(files.operations) + chance.randrange(2500)
        store, sink = disk(files, quick)
        store.start()
        try:
            while True:
                name, image = f"pod-{chance.randrange(1000)}", chance.choice(["one", "two", ""])
                store.apply(manifest(name, image).encode()) if image else store.delete("default", name)
                wanted[name] = image
        except PowerCut:
            kills += 1
        files = next(iter(files.after_crash()))
        store, sink = disk(files, quick)
        store.start()
        found = sink.images().get(name, "")
        assert found in {image, wanted.get(name, "")}
        unsure += found != wanted.get(name, "")
        wanted[name] = found
        assert sink.images() == {n: i for n, i in wanted.items() if i}
    assert unsure > 0


def test_calls_from_many_threads_end_as_acknowledged(box: Box) -> None:
    def work(number: int) -> None:
        for image in ("one", "two", "three"):
            box.apply(manifest(f"pod-{number}", image))
        box.store.delete("default", f"pod-{number - number % 2}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    last = box.sink.images()
    box.start()
    assert box.sink.images() == last
    assert set(last) <= {f"pod-{n}" for n in range(1, 8, 2)} | {f"pod-{n}" for n in range(0, 8, 2)}
