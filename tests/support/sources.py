"""What tests of the sources share: a sink that remembers, manifests by the line, and a box of files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgelet.adapters.files import FileSource
from edgelet.adapters.files.hints import Hints
from edgelet.model.sources import FileState
from edgelet.ports import Snapshot
from tests.fakes import FakeClock

NODE = "edge1"


class Sink:
    """ports.Sink that keeps everything it was given."""

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []

    def put(self, snapshot: Snapshot) -> None:
        """See ports.Sink."""
        self.snapshots.append(snapshot)

    @property
    def last(self) -> Snapshot:
        """The newest snapshot."""
        return self.snapshots[-1]

    def images(self) -> dict[str, str]:
        """Short pod name -> image of its first container."""
        return {p.name.removesuffix(f"-{NODE}"): p.containers[0].image for p in self.last.pods}

    def errors(self) -> list[str]:
        """All problems that are not warnings, as text."""
        return [str(p) for p in self.last.problems if not p.warning]


def manifest(name: str, image: str = "one", namespace: str = "default") -> str:
    """A small valid Pod."""
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  namespace: {namespace}\n"
        f"spec:\n  containers:\n  - name: main\n    image: {image}\n"
    )


def many(*documents: str) -> str:
    """Several documents in one file."""
    return "---\n".join(documents)


class Box:
    """A manifest directory with a file source on it, driven by hand: time passes in `tick` only."""

    def __init__(self, tmp: Path, check_frequency: float = 20.0, path: str = "manifests") -> None:
        self.tmp = tmp
        self.path = tmp / path
        self.directory = self.path if not self.path.suffix else self.path.parent
        self.store = tmp / "store"
        self.check_frequency = check_frequency
        self.clock = FakeClock()
        self.sink = Sink()
        self.source: FileSource | None = None

    def start(self) -> Box:
        """A fresh agent: a new source with the store of the one before."""
        self.stop()
        self.sink = Sink()
        self.source = FileSource(
            str(self.path), NODE, self.sink, self.clock, str(self.store), check_frequency=self.check_frequency
        )
        self.source.begin()
        return self

    def stop(self) -> None:
        """kill -9, as far as files are concerned."""
        if self.source is not None:
            self.source.stop()
            self.source = None

    @property
    def running(self) -> FileSource:
        """The source, which must have been started."""
        if self.source is None:
            raise RuntimeError("start the box first")
        return self.source

    def tick(self, seconds: float = 0.0) -> dict[str, str]:
        """Let time pass, in the steps the source asks for; what runs then."""
        end = self.clock.monotonic() + seconds
        while True:
            hints = self.running.wait(0)
            self.running.step(hints or Hints())
            ahead = min(self.running.wake_at(), end) - self.clock.monotonic()
            if ahead <= 0 and self.clock.monotonic() >= end:
                return self.sink.images()
            self.clock.advance(max(ahead, 0.001))

    def put(self, name: str, text: str | bytes) -> None:
        """The right way to save: a temporary file elsewhere, then a rename."""
        data = text.encode() if isinstance(text, str) else text
        (self.tmp / "elsewhere").write_bytes(data)
        os.rename(self.tmp / "elsewhere", self.directory / name)

    def states(self) -> dict[str, FileState]:
        """State of each file by its name."""
        return {s.file: s for s in self.running.states()}


@contextmanager
def box(tmp: Path, **options: object) -> Iterator[Box]:
    """A box with its directory made, closed afterwards."""
    made = Box(tmp, **options)  # type: ignore[arg-type]
    made.directory.mkdir(exist_ok=True)
    try:
        yield made
    finally:
        made.stop()
