"""Rules for all tests: what may be skipped and how that is told, leaked threads, reproducible properties."""

from __future__ import annotations

import collections
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator

import hypothesis
import pytest

# The same examples on every run: a property that fails, fails for everybody. EDGELET_EXPLORE=1 looks further.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.register_profile("explore", deadline=None, print_blob=True, max_examples=1000)
# For tests/mutants.py: that an example fails is enough, the smallest one is not wanted.
_PHASES = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
hypothesis.settings.register_profile("mutants", derandomize=True, deadline=None, database=None, phases=_PHASES)
_CHOSEN = next((name for name in ("explore", "mutants") if os.environ.get(f"EDGELET_{name.upper()}")), "same")
hypothesis.settings.load_profile(_CHOSEN)

THREAD_GRACE = 2.0
"""Seconds a thread has to end after its test: joining is the test's business, dying is the kernel's."""


def pytest_configure() -> None:
    """A shell's background job ignores SIGINT, and so would every command that a test interrupts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def missing_for_podman() -> str:
    """What this machine lacks for tests with a real Podman; "" = nothing."""
    if os.geteuid() != 0:
        return "needs root (edgelet 1.0 runs Podman as root)"
    for command in ("podman", "conmon"):
        if not shutil.which(command, path=f"{os.environ.get('PATH', '')}:/usr/libexec/podman:/usr/lib/podman"):
            return f"needs {command}: run make setup as root"
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a real Podman where there is none."""
    reason = missing_for_podman()
    for item in items:
        if reason and (item.get_closest_marker("podman") or item.get_closest_marker("e2e")):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def no_leaked_threads() -> Iterator[None]:
    """A test that leaves a non-daemon thread behind fails: an agent that does so cannot stop."""
    before = set(threading.enumerate())
    yield
    leaked = _left(before)
    deadline = time.monotonic() + THREAD_GRACE
    while leaked and (left := deadline - time.monotonic()) > 0:
        leaked[0].join(left)
        leaked = _left(before)
    if leaked:
        pytest.fail(f"threads left running: {', '.join(t.name for t in leaked)}", pytrace=False)


def _left(before: set[threading.Thread]) -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t not in before and not t.daemon and t.is_alive()]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say plainly what was not run and why, one line per reason."""
    skipped = terminalreporter.stats.get("skipped", [])
    if not skipped:
        return
    reasons: dict[str, list[str]] = collections.defaultdict(list)
    for report in skipped:
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[text.removeprefix("Skipped: ")].append(report.nodeid)
    terminalreporter.section("not run on this machine")
    for reason, tests in sorted(reasons.items()):
        where = sorted({test.split("::")[0] for test in tests})
        terminalreporter.write_line(f"{len(tests):4} skipped: {reason}  [{', '.join(where)}]")
