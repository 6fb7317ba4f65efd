"""Collects what is wrong with one document, each finding with its place."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import tree
from .problems import Problem
from .tree import Node, Path

MAX_PROBLEMS = 200
"""Errors, and warnings, per document that are kept; a person reads the first few."""


@dataclass(slots=True)
class _Object:
    """What is known about one object of a document: has it failed, and where."""

    failed: bool = False
    bad: set[Path] = field(default_factory=set)


class Report:
    """Findings about one object; paths are counted from `base`, where it stands in the document."""

    def __init__(self, root: Node, file: str, document: int, strict: bool) -> None:
        self._root, self._file, self._document, self._strict = root, file, document, strict
        self._base: Path = ()
        self._object = _Object()
        self.problems: list[Problem] = []
        self._counts = {False: 0, True: 0}

    def at(self, base: Path) -> Report:
        """For another object of the same document, whose failure is its own."""
        other = Report(self._root, self._file, self._document, self._strict)
        other._base, other.problems, other._counts = base, self.problems, self._counts
        return other

    def part(self, path: Path) -> Report:
        """For a part of the same object: its paths are counted from `path`."""
        other = self.at(self._base + path)
        other._object = self._object
        return other

    @property
    def full(self) -> bool:
        """Whether more warnings would not be kept."""
        return self._counts[True] >= MAX_PROBLEMS

    @property
    def failed(self) -> bool:
        """Whether the object cannot be used."""
        return self._object.failed

    def error(self, path: Path, message: str) -> None:
        """The document cannot be used."""
        self._object.failed = True
        self.spoil(path)
        self._add(path, message, False, None)

    def warn(self, path: Path, message: str, mark: tuple[int, int] | None = None, unknown: bool = False) -> None:
        """It can be used, but not as written; with `strict` that is an error too."""
        self._object.failed = self.failed or self._strict
        self._add(path, message, not self._strict, mark, unknown)

    def note(self, path: Path, message: str) -> None:
        """A remark that is never an error."""
        self._add(path, message, True, None)

    def is_bad(self, path: Path) -> bool:
        """Whether an error was reported here already, so that one mistake gives one message."""
        return self._base + path in self._object.bad

    def spoil(self, path: Path) -> None:
        """What stands here could not be used, which was said already."""
        self._object.bad.add(self._base + path)

    def key_mark(self, path: Path, key: str) -> tuple[int, int] | None:
        """Where the key of a field stands."""
        node = self._root.at(self._base + path)
        return node.keys.get(key) if node is not None else None

    def _add(
        self, path: Path, message: str, warning: bool, mark: tuple[int, int] | None, unknown: bool = False
    ) -> None:
        if self._counts[warning] >= MAX_PROBLEMS:
            return
        self._counts[warning] += 1
        full = self._base + path
        line, column = mark or self._root.mark(full)
        self.problems.append(
            Problem(
                tree.printable(message), self._file, self._document, line, column, tree.render(full), warning, unknown
            )
        )
