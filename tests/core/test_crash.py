"""Crashes of Go programs, as podman 4.3 and runc 1.1 print them."""

from __future__ import annotations

import pytest

from edgelet.core import crash

NO_THREAD = """runtime: failed to create new OS thread (have 4 already; errno=11)
runtime: may need to increase max user processes (ulimit -u)
fatal error: newosproc

runtime stack:
runtime.throw({0x16fb03f?, 0x7ffe8137f0b0?})
\truntime/panic.go:1047 +0x5d

goroutine 1 [running]:
rax    0x0
gs     0x0
"""
PANIC = "panic: assignment to entry in nil map\n[signal SIGSEGV: x]\n\ngoroutine 17 [running]:\nmain.main()\n"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (NO_THREAD, NO_THREAD.partition("\n\nruntime stack")[0]),
        (PANIC, "panic: assignment to entry in nil map"),
        ("Error: opening database: read-only file system\n", "Error: opening database: read-only file system"),
        ("the goroutine 1 of a sentence", "the goroutine 1 of a sentence"),
        ("", ""),
    ],
)
def test_stacks_are_for_nobody_here(said: str, kept: str) -> None:
    assert crash.headline(said) == kept
