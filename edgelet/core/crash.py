"""What a program written in Go (Podman, runc, netavark's kin) says last, without the dump of its stacks. Pure."""

from __future__ import annotations

import re

_DUMP = re.compile(r"\n\s*(?:goroutine \d+ |runtime stack:|\[signal |PC=0x)")


def headline(said: str) -> str:
    """`said` up to where the stacks begin: they are for its own authors."""
    found = _DUMP.search(said)
    return (said[: found.start()] if found else said).strip()
