"""`make inversions`: does a test fail when a rule of the kubelet is turned to its opposite?

tests/inversions.txt gives for each rule of tests/conformance.txt one line or a few of the product, and what they
become.  The tests that the rule names are run with that: quick ones in a fork of one warm process that has collected
them (as tests/mutants.py does), where only the code of functions differs; else, and for tests with a real Podman, in
a copy of the tree.  The test that fails, and that passes without the inversion, is written into the table with a
digest of the inversion; then docs/conformance.md may call the rule honoured.  What is proven is not run again
(--again), so a run that was cut off goes on where it was.

Exit status: 0 every inversion was noticed; 1 one was not, or its text is not in the tree any more; 2 the quick tests
fail without any inversion.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests import conformance, mutants
from tests.support import inverted, swapping
from tests.support.inverted import Inversion

ROOT = conformance.ROOT
SLOW = ("tests/e2e/", "tests/contract/")
ELSEWHERE = ("tests/vm/", "tests/roots/")
"""Tests that need a machine or a root of their own: they prove nothing here."""
LEFT_OUT = (".git", ".venv", "build", "dist", "mutants", ".run", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info")
PATIENCE = 300
"""Seconds that the quick tests of one rule may take on a busy machine; what takes longer is noticed, too."""


class Warm:
    """A pytest plugin that runs the collected tests of each inversion in a fork of its own, in place of all tests."""

    def __init__(self, inversions: Sequence[Inversion], tests: dict[str, tuple[str, ...]]) -> None:
        self._inversions, self._tests = inversions, tests
        self._items: dict[str, list[Any]] = {}
        self.noticed: dict[Inversion, str] = {}
        self.broken = ""

    def pytest_runtestloop(self, session: Any) -> bool:
        """See pytest."""
        for item in session.items:
            self._items.setdefault(item.originalname, []).append(item)
        self.broken = self._in_fork(None, tuple(self._items))
        for inversion in self._inversions if not self.broken else ():
            if test := self._in_fork(inversion, self._tests.get(inversion.rule, ())):
                self.noticed[inversion] = test
                told(inversion, test)
        return True

    def _in_fork(self, inversion: Inversion | None, tests: Iterable[str]) -> str:
        """The test that fails, "" = none does."""
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, 1)
                os.dup2(nothing, 2)
                os.write(writer, self._failing(inversion, tests).encode())
            finally:
                os._exit(0)
        os.close(writer)
        ended = bool(select.select([reader], [], [], PATIENCE)[0])
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with os.fdopen(reader) as answer:
            return answer.read() if ended else "a test that hangs"

    def _failing(self, inversion: Inversion | None, tests: Iterable[str]) -> str:
        # Swapped for themselves when nothing is inverted: or "noticed" might mean only that swapping does harm.
        for one in [inversion] if inversion is not None else self._inversions:
            text = changed(one) if inversion is not None else one.file.read_text()
            swapping.swap_functions(importlib.import_module(one.module), ast.parse(text))
        items = ((name, item) for name in tests for item in self._items.get(name, ()))
        return next((name for name, item in items if mutants.failed(item)), "")


class Tree:
    """A copy of the tree, in which tests run."""

    def __init__(self, above: Path) -> None:
        self._root = above / "main"
        self._report = above / "report.xml"
        shutil.copytree(ROOT, self._root, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        if (ROOT.parent / "shared").exists():
            (above / "shared").symlink_to(ROOT.parent / "shared")

    def noticed(self, inversion: Inversion, tests: Sequence[str]) -> str:
        """The test that notices it, "" = none does. Raises ValueError: it fails without the inversion, too."""
        file = self._root / "edgelet" / inversion.path
        before = file.read_text()
        file.write_text(changed(inversion))
        try:
            failed = self._failing(tests)
        finally:
            file.write_text(before)
        if failed and self._failing([t for t in tests if t.endswith(f"::{failed}")]):
            raise ValueError(f"{failed} fails without the inversion too")
        return failed

    def _failing(self, tests: Sequence[str]) -> str:
        """The first of the tests that fails, "" = none does."""
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", f"--junit-xml={self._report}", *tests],
            cwd=self._root,
            env={**os.environ, "PYTHONPATH": str(self._root), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode not in (0, 1):
            raise ValueError(f"the tests cannot be run: {done.stdout[-2000:]}")
        ended = conformance.outcomes([self._report])
        return next((name for name, how in ended.items() if how == "failed"), "")


def changed(inversion: Inversion) -> str:
    """The file's text with the inversion made. Raises ValueError, SyntaxError."""
    return inversion.apply(inversion.file.read_text())


def told(inversion: Inversion, test: str) -> None:
    """Keep what came of it, and say so."""
    inverted.record(inversion, test)
    print(f"{inversion.rule:7} {f'noticed by {test}' if test else 'NOT noticed'}", flush=True)


def turns(tests: Sequence[str], fresh: bool, slow: bool) -> Iterator[list[str]]:
    """What is left to run in a copy, as pytest wants it named: quick tests at once, slow ones one by one."""
    places = conformance.known_tests()
    if fresh and (first := quick(tests)):
        yield first
    yield from ([f"{places[t]}::{t}"] for t in tests if slow and places[t].startswith(SLOW))


def quick(tests: Iterable[str]) -> list[str]:
    """Those that need no Podman, as pytest wants them named."""
    places = conformance.known_tests()
    return [f"{places[t]}::{t}" for t in tests if not places[t].startswith(SLOW + ELSEWHERE)]


def in_copies(inversions: Sequence[Inversion], tests: dict[str, tuple[str, ...]], slow: bool) -> None:
    """Try what the warm process could not show."""
    with tempfile.TemporaryDirectory(prefix="inversions-") as above:
        tree = Tree(Path(above))
        for inversion in inversions:
            left = turns(tests.get(inversion.rule, ()), not inverted.in_functions(inversion), slow)
            try:
                told(inversion, next((t for turn in left if (t := tree.noticed(inversion, turn))), ""))
            except ValueError as error:
                print(f"{inversion.rule:7} {error}")


def try_all(chosen: Sequence[Inversion], tests: dict[str, tuple[str, ...]], slow: bool) -> str:
    """Run what is chosen; the test that fails without any inversion, "" = none does."""
    import pytest

    warm = Warm([i for i in chosen if inverted.in_functions(i)], tests)
    ids = quick(dict.fromkeys(t for i in chosen for t in tests.get(i.rule, ())))
    if ids:
        pytest.main([*mutants.QUIET, *ids], plugins=[warm])
    if not warm.broken:
        # Without the slow tests nothing speaks against a proof that one of them gave.
        in_copies([i for i in chosen if i not in warm.noticed and (slow or not i.test)], tests, slow)
    return warm.broken


def main() -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(prog="make inversions", description="ARGS are:")
    parser.add_argument("--rule", action="append", default=[], metavar="N", help="only this rule, proven or not")
    parser.add_argument("--again", action="store_true", help="also what is proven already")
    parser.add_argument("--quick", action="store_true", help="without the tests that need a real Podman")
    options = parser.parse_args()
    os.environ["EDGELET_MUTANTS"] = "1"  # the first example that fails is enough
    tests = {rule.number: rule.tests for rule in conformance.rules()}
    chosen = [i for i in inverted.table() if (i.rule in options.rule if options.rule else options.again or not i.test)]
    lost = [why for i in inverted.table() if (why := inverted.stale(i))]
    print(*lost, sep="\n", end="\n" * bool(lost), file=sys.stderr)
    if broken := try_all([i for i in chosen if not inverted.stale(i)], tests, not options.quick):
        print(f"{broken} fails without any inversion: mend it first", file=sys.stderr)
        return 2
    conformance.PAGE.write_text(conformance.render({}))
    missing = {r.number for r in conformance.rules() if r.unproven}
    print(f"{len(missing)} of {len(tests)} rules without proof {' '.join(sorted(missing))}".rstrip())
    return int(bool(lost) or (any(i.rule in missing for i in chosen) if options.rule else bool(missing)))


if __name__ == "__main__":
    sys.exit(main())
