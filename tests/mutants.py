"""`make mutants`: does a test notice when edgelet/core/ is wrong?

One warm process has collected the tests. Every mutant is a fork of it: the fork swaps the code of the
functions of one module and runs only those tests that reach the changed line, quick ones first,
until one fails.  Changes outside functions, which act while a module is imported, get a fresh
process and all tests.

Results are kept in mutants/ for as long as neither the code nor its tests change, so a run that is
cut off (--minutes) goes on where it stopped.
Exit status: 0 enough were killed, 1 too few, 2 the tests fail without any change, 3 to be continued.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import json
import os
import random
import resource
import select
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import mutation, swapping

ROOT = Path(__file__).parents[1]
CORE = ROOT / "edgelet" / "core"
KEPT = ROOT / "mutants"
TESTS = ("tests/core", "tests/engine/test_convergence.py")
DEPENDS_ON = ("edgelet/core", "edgelet/engine", "edgelet/model", "tests/core", "tests/engine", "tests/fakes.py")
THRESHOLD = 0.85
BROKEN = 70
QUIET = ("-q", "-x", "--no-header", "-p", "no:cacheprovider", "-p", "no:terminalreporter", "-p", "no:logging")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one module; `key` names it in the results."""

    module: str
    site: mutation.Site

    @property
    def key(self) -> str:
        return f"{self.module}:{self.site.number}"

    @property
    def path(self) -> Path:
        return CORE / f"{self.module}.py"


@dataclass(slots=True)
class Reach:
    """Which tests reach which line of core, and how long each test takes (seconds)."""

    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def tests(self, mutant: Mutant) -> list[str]:
        """The tests to run for it, quickest first; all of them for what acts on import."""
        first, last = mutant.site.first_line, mutant.site.last_line
        lines = self.lines.get(mutant.module, {})
        found = {test for line, tests in lines.items() if first <= line <= last for test in tests}
        if not mutant.site.in_function:
            found = set(self.seconds)
        return sorted(found - {""}, key=lambda test: self.seconds.get(test, 0.0))


class Warm:
    """A pytest plugin that does its own work in place of running the tests, once they are collected."""

    def __init__(self, options: argparse.Namespace, mutants: Sequence[Mutant], results: Results) -> None:
        self._options, self._mutants, self._results = options, mutants, results
        self._items: dict[str, Any] = {}

    def pytest_runtestloop(self, session: Any) -> bool:
        """See pytest."""
        self._items = {item.nodeid: item for item in session.items}
        until = time.monotonic() + self._options.minutes * 60
        # Those that need a process of their own and all tests come last: a run that is cut off has the others.
        waiting = sorted(
            (m for m in self._mutants if m.key not in self._results.known), key=lambda m: not m.site.in_function
        )
        if waiting:
            reach = self._baseline()
            for mutant, result in Pool(self._options.jobs, reach, self._attempt).run(waiting, until):
                self._results.add(mutant.key, result)
        return True

    def _baseline(self) -> Reach:
        """Run all tests unchanged, in a fork, watching which lines they reach. Raises SystemExit(2) when they fail."""
        answer = KEPT / f"reach-{os.getpid()}.json"
        pid = os.fork()
        if pid == 0:
            os._exit(self._record(answer))
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
            print(f"the tests in {', '.join(TESTS)} fail without any change: mend them first", file=sys.stderr)
            raise SystemExit(2)
        found = json.loads(answer.read_text())
        answer.unlink()
        lines = {m: {int(n): tests for n, tests in by_line.items()} for m, by_line in found["lines"].items()}
        return Reach(lines, found["seconds"])

    def _record(self, answer: Path) -> int:
        import coverage

        # Swapped for themselves first: or "killed" might mean only that swapping does harm.
        for path in sorted(CORE.glob("*.py")):
            if module := sys.modules.get(f"edgelet.core.{path.stem}"):
                swapping.swap_functions(module, mutation.mutate(path.read_text(), mutation.NONE))
        seconds: dict[str, float] = {}
        measured = coverage.Coverage(data_file=None, include=[f"{CORE}/*"], config_file=False)
        measured.start()
        for name, item in self._items.items():
            measured.switch_context(name)
            begin = time.process_time()
            if failed(item):
                return 1
            seconds[name] = time.process_time() - begin
        measured.stop()
        data = measured.get_data()
        lines = {Path(f).stem: data.contexts_by_lineno(f) for f in data.measured_files()}
        answer.write_text(json.dumps({"lines": lines, "seconds": seconds}))
        return 0

    def _attempt(self, mutant: Mutant, tests: Sequence[str]) -> int:
        """In a fork, with the mutant in place: 0 = nobody noticed, 1 = a test failed."""
        if not mutant.site.in_function:
            words = ("--one", mutant.module, str(mutant.site.number))
            os.execv(sys.executable, [sys.executable, "-m", "tests.mutants", *words])
        tree = mutation.mutate(mutant.path.read_text(), mutant.site.number)
        swapping.swap_functions(sys.modules[f"edgelet.core.{mutant.module}"], tree)
        return int(any(failed(self._items[test]) for test in tests))


def failed(item: Any) -> bool:
    """Run one collected test; whether any phase of it failed."""
    from _pytest.runner import runtestprotocol

    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


class Pool:
    """Up to `jobs` forks at once; what takes far longer than the tests do unchanged counts as noticed."""

    def __init__(self, jobs: int, reach: Reach, attempt: Any) -> None:
        self._jobs, self._reach, self._attempt = jobs, reach, attempt
        self._running: dict[int, tuple[Mutant, int, float]] = {}

    def run(self, mutants: Sequence[Mutant], until: float) -> Iterator[tuple[Mutant, str]]:
        """Each mutant with "killed", "survived", "timeout" or "unreached"; begins none after `until`."""
        waiting = collections.deque(mutants)
        while waiting or self._running:
            if time.monotonic() > until:
                waiting.clear()
            while waiting and len(self._running) < self._jobs:
                mutant = waiting.popleft()
                if tests := self._reach.tests(mutant):
                    self._start(mutant, tests)
                else:
                    yield mutant, "unreached"
            yield from self._ended()

    def _start(self, mutant: Mutant, tests: Sequence[str]) -> None:
        usual = sum(self._reach.seconds.get(test, 0.0) for test in tests)
        # CPU time, because the machine may be busy; the clock is only for a mutant that waits for ever.
        cpu = int(10 + 2 * usual)
        pid = os.fork()
        if pid == 0:
            status = BROKEN
            with contextlib.suppress(Exception):
                _confine(cpu)
                status = self._attempt(mutant, tests)
            os._exit(status)
        self._running[os.pidfd_open(pid)] = (mutant, pid, time.monotonic() + 60 + 3 * cpu)

    def _ended(self) -> Iterator[tuple[Mutant, str]]:
        if not self._running:
            return
        patience = min(deadline for _, _, deadline in self._running.values()) - time.monotonic()
        ready = select.select(list(self._running), [], [], max(0.0, patience))[0]
        late = [fd for fd, (_, _, deadline) in self._running.items() if time.monotonic() > deadline]
        for descriptor in {*ready, *late}:
            mutant, pid, _ = self._running.pop(descriptor)
            if descriptor not in ready:
                os.kill(pid, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            os.close(descriptor)
            if code == BROKEN:
                raise RuntimeError(f"{mutant.key}: a fork failed outside the tests: a flaw of tests/mutants.py")
            yield mutant, "survived" if code in (0, 5) else "timeout" if code < 0 else "killed"


def _confine(cpu: int) -> None:
    """In a fork: limits for a program gone wrong, nothing on the terminal, dead with its parent's group."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


class Results:
    """What is known about the mutants of this very code and these very tests."""

    def __init__(self) -> None:
        digest = hashlib.sha256()
        for place in DEPENDS_ON:
            path = ROOT / place
            for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
        KEPT.mkdir(exist_ok=True)
        self._path = KEPT / f"results-{digest.hexdigest()[:16]}.jsonl"
        self.known: dict[str, str] = {}
        if self._path.exists():
            self.known = dict(json.loads(line) for line in self._path.read_text().splitlines())

    def add(self, key: str, result: str) -> None:
        """Keep one result, at once: the run may be cut off."""
        self.known[key] = result
        with self._path.open("a") as file:
            file.write(json.dumps([key, result]) + "\n")


def all_mutants(only: str) -> list[Mutant]:
    """Every mutant of core, or of one module."""
    paths = [p for p in sorted(CORE.glob("*.py")) if only in ("", p.stem)]
    return [Mutant(p.stem, site) for p in paths for site in mutation.sites(p.read_text())]


def one(module: str, number: int) -> int:
    """A fresh process for one mutant that acts on import: pytest's exit status over all tests."""
    import pytest

    path = CORE / f"{module}.py"
    tree = mutation.mutate(path.read_text(), number)
    sys.meta_path.insert(0, swapping.Swapped(f"edgelet.core.{module}", path, tree))
    return int(pytest.main([*QUIET, *TESTS]))


def report(mutants: Sequence[Mutant], results: dict[str, str]) -> float:
    """Print survivors and a table; returns the share that was killed."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for mutant in mutants:
        result = results.get(mutant.key, "not run")
        counts[mutant.module][result] += 1
        if result in ("survived", "unreached"):
            text = mutant.path.read_text().splitlines()[mutant.site.first_line - 1].strip()
            where = f"edgelet/core/{mutant.module}.py:{mutant.site.first_line}"
            print(f"{result:9} {where:38} {mutant.site.what:45} | {text:.70}")
    total: collections.Counter[str] = collections.Counter()
    for module, count in sorted(counts.items()):
        total += count
        print(f"{module:16} {_share(count):6.1%} of {count.total() - count['not run']:4}  {dict(count)}")
    print(f"{'all':16} {_share(total):6.1%} of {total.total() - total['not run']:4}  {dict(total)}")
    return _share(total)


def _share(count: collections.Counter[str]) -> float:
    ran = count.total() - count["not run"]
    return (count["killed"] + count["timeout"]) / ran if ran else 1.0


def main() -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(prog="make mutants", description="ARGS are:")
    parser.add_argument("--only", default="", metavar="MODULE", help="one module of edgelet/core")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="N mutants chosen by a fixed rule")
    parser.add_argument("--minutes", type=float, default=40.0, help="stop after that time; run again to go on")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--one", nargs=2, default=(), help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.chdir(ROOT)
    os.environ["EDGELET_MUTANTS"] = "1"
    sys.dont_write_bytecode = True
    if options.one:
        return one(options.one[0], int(options.one[1]))
    import pytest

    mutants = all_mutants(options.only)
    if options.sample:
        mutants = random.Random(1).sample(mutants, min(options.sample, len(mutants)))
    results = Results()
    if (status := pytest.main([*QUIET, *TESTS], plugins=[Warm(options, mutants, results)])) not in (0, 5):
        print("stopped: see above" if status == 1 else "cannot collect the tests: run them by pytest", file=sys.stderr)
        return 2
    share = report(mutants, results.known)
    if any(m.key not in results.known for m in mutants):
        print(f"to be continued: run again (limit of {options.minutes:g} minutes)")
        return 3
    return 0 if share >= THRESHOLD else 1


if __name__ == "__main__":
    sys.exit(main())
