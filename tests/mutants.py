"""`make mutants`: does a test notice when edgelet/core/ is wrong?

Every mutant is a fork of one warm process: it swaps the text of one module while that is imported and
runs only those of TESTS that reach the changed line, quick ones first, until one fails.
Results are kept in mutants/results.jsonl as long as neither the code nor its tests change, so a run
that is cut off (--minutes) goes on where it stopped.

Exit status: 0 enough were killed, 1 too few, 2 the tests fail without any change, 3 to be continued.
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
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
from types import ModuleType

from tests.support import mutation

ROOT = Path(__file__).parents[1]
CORE = ROOT / "edgelet" / "core"
RESULTS = ROOT / "mutants" / "results.jsonl"
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
        """The tests to run for it, quickest first; a line run on import concerns all of them."""
        lines = self.lines.get(mutant.module, {})
        first, last = mutant.site.first_line, mutant.site.last_line
        found = {test for line, tests in lines.items() if first <= line <= last for test in tests}
        if "" in found:
            found = set(self.seconds)
        return sorted(found, key=lambda test: self.seconds.get(test, 0.0))


class Swapped(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a changed tree, everything else as usual."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self._name, self._path, self._tree = name, path, tree

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """See importlib."""
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(fullname, self._path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        """See importlib."""
        exec(compile(self._tree, str(self._path), "exec"), module.__dict__)


class Chosen:
    """A pytest plugin: only these tests, in this order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._order = {test: i for i, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[object]) -> None:
        """See pytest."""
        items[:] = sorted((i for i in items if i.nodeid in self._order), key=lambda i: self._order[i.nodeid])  # type: ignore[attr-defined]


class Watching:
    """A pytest plugin: which test is running, told to coverage, and its duration."""

    def __init__(self, coverage: object, seconds: dict[str, float]) -> None:
        self._coverage, self._seconds = coverage, seconds

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """See pytest."""
        self._coverage.switch_context(nodeid)  # type: ignore[attr-defined]
        self._seconds[nodeid] = -time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """See pytest."""
        self._seconds[nodeid] += time.monotonic()


def warm() -> None:
    """Import what every mutant needs and none changes, before forking."""
    import hypothesis  # noqa: F401
    import pytest  # noqa: F401
    import yaml  # noqa: F401

    for path in sorted((ROOT / "edgelet" / "model").glob("*.py")):
        importlib.import_module(f"edgelet.model.{path.stem}")
    changed = [name for name in sys.modules if name.startswith("edgelet.core.")]
    if changed:
        raise RuntimeError(f"{changed} are imported already: their mutants would not be seen")


def baseline(directory: Path) -> Reach:
    """Run the tests once, unchanged, in a fork; raises SystemExit(2) when they fail."""
    answer = directory / "reach.json"
    pid = os.fork()
    if pid == 0:
        os._exit(_record(answer))
    _, status = os.waitpid(pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        print(f"the tests in {', '.join(TESTS)} fail without any change: mend them first", file=sys.stderr)
        raise SystemExit(2)
    found = json.loads(answer.read_text())
    lines = {m: {int(n): tests for n, tests in by_line.items()} for m, by_line in found["lines"].items()}
    return Reach(lines, found["seconds"])


def _record(answer: Path) -> int:
    import coverage
    import pytest

    seconds: dict[str, float] = {}
    measured = coverage.Coverage(data_file=None, include=[f"{CORE}/*"], config_file=False)
    measured.start()
    with _silence():
        status = int(pytest.main([*QUIET, *TESTS], plugins=[Watching(measured, seconds)]))
    measured.stop()
    data = measured.get_data()
    lines = {Path(f).stem: data.contexts_by_lineno(f) for f in data.measured_files()}
    answer.write_text(json.dumps({"lines": lines, "seconds": seconds}))
    return status


def attempt(mutant: Mutant, tests: Sequence[str], cpu: int) -> int:
    """In a fork: pytest's exit status with the mutant in place. 0 = nobody noticed."""
    import pytest

    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
    tree = mutation.mutate(mutant.path.read_text(), mutant.site.number)
    sys.meta_path.insert(0, Swapped(f"edgelet.core.{mutant.module}", mutant.path, tree))
    files = sorted({test.split("::")[0] for test in tests})
    with _silence():
        return int(pytest.main([*QUIET, *files], plugins=[Chosen(tests)]))


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    yield


class Pool:
    """Up to `jobs` forks at once; what takes far longer than the tests do unchanged counts as noticed."""

    def __init__(self, jobs: int, reach: Reach) -> None:
        self._jobs, self._reach = jobs, reach
        self._running: dict[int, tuple[Mutant, int, float]] = {}

    def run(self, mutants: Sequence[Mutant], until: float) -> Iterator[tuple[Mutant, str]]:
        """Each mutant with "killed", "survived", "timeout" or "unreached"; stops beginning new ones at `until`."""
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
            os.setpgid(0, 0)
            # A mutant that breaks the import is pytest's exit status 2; this is for flaws of this module.
            status = BROKEN
            with contextlib.suppress(Exception):
                status = attempt(mutant, tests, cpu)
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
            yield mutant, _word(code)


def _word(code: int) -> str:
    if code == BROKEN:
        raise RuntimeError("a fork failed outside pytest: a flaw of tests/mutants.py")
    return "survived" if code in (0, 5) else "timeout" if code < 0 else "killed"


def control(module: str, reach: Reach) -> None:
    """The same way without a change has to end well, or "killed" means nothing. Raises SystemExit(2)."""
    unchanged = Mutant(module, mutation.Site(mutation.NONE, 1, 10**6, "unchanged"))
    for _, result in Pool(1, reach).run([unchanged], time.monotonic() + 600):
        if result not in ("survived", "unreached"):
            print(f"the tests of {module} fail when it is swapped for itself: {result}", file=sys.stderr)
            raise SystemExit(2)


def all_mutants(only: str) -> list[Mutant]:
    """Every mutant of core, or of one module."""
    paths = [p for p in sorted(CORE.glob("*.py")) if only in ("", p.stem)]
    return [Mutant(p.stem, site) for p in paths for site in mutation.sites(p.read_text())]


def fingerprint() -> str:
    """A hash over all that a result depends on."""
    digest = hashlib.sha256()
    for place in DEPENDS_ON:
        path = ROOT / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def load(version: str) -> dict[str, str]:
    """Results of earlier parts of this run; those of other code are dropped."""
    try:
        lines = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    except (FileNotFoundError, ValueError):
        return {}
    return {line["key"]: line["result"] for line in lines if line["version"] == version}


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
    options = parser.parse_args()
    os.chdir(ROOT)
    os.environ["EDGELET_MUTANTS"] = "1"
    sys.dont_write_bytecode = True
    mutants = all_mutants(options.only)
    if options.sample:
        mutants = random.Random(1).sample(mutants, min(options.sample, len(mutants)))
    version = fingerprint()
    results = load(version)
    RESULTS.parent.mkdir(exist_ok=True)
    warm()
    waiting = [m for m in mutants if m.key not in results]
    until = time.monotonic() + options.minutes * 60
    reach = baseline(RESULTS.parent)
    if waiting:
        control(waiting[0].module, reach)
    with RESULTS.open("a" if results else "w") as file:
        for mutant, result in Pool(options.jobs, reach).run(waiting, until):
            results[mutant.key] = result
            file.write(json.dumps({"version": version, "key": mutant.key, "result": result}) + "\n")
            file.flush()
    share = report(mutants, results)
    if any(m.key not in results for m in mutants):
        print(f"to be continued: run again (limit of {options.minutes:g} minutes)")
        return 3
    return 0 if share >= THRESHOLD else 1


if __name__ == "__main__":
    sys.exit(main())
