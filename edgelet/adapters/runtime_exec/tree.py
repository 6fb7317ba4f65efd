"""Ends process trees in containers: everything that a command has started, however it hid.

Killing the runtime's client leaves the command running, and killing the command leaves its
children.  So the tree is stopped first, member by member, until a look at /proc shows nobody new;
then it is killed.  Members are: descendants of the client, their sessions, and (for those that
left both by a double fork) whoever carries the command's marker in its environment.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

ROUNDS = 8
"""Looks at /proc while stopping; a fork bomb that outruns them is killed as far as it was seen."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A process as /proc shows it."""

    parent: int
    session: int
    state: str


def snapshot() -> dict[int, Entry]:
    """All processes of the machine by pid; those that end meanwhile are left out."""
    table: dict[int, Entry] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            entry = _entry(name)
            if entry is not None:
                table[int(name)] = entry
    return table


def end(client: int, marker: str, inside: int) -> int:
    """Kill all that the runtime's `client` process (a pid) has started, not the client itself.

    `marker` is ``NAME=value`` in the command's environment; `inside` is a pid in the container,
    whose pid namespace bounds the search for it.  Returns how many were killed.
    """
    namespace = _namespace(inside)
    wanted = marker.encode()
    stopped: set[int] = set()
    asked: set[int] = set()
    for _ in range(ROUNDS):
        table = snapshot()
        found = _members(table, {client} | stopped) - {client}
        strangers = table.keys() - found - asked - {client}
        found |= {pid for pid in strangers if namespace and _carries(pid, wanted, namespace)}
        asked |= strangers
        new = {pid for pid in found - stopped if table[pid].state != "Z"}
        if not new:
            break
        _signal(new, signal.SIGSTOP)
        stopped |= new
    _signal(stopped, signal.SIGKILL)
    return len(stopped)


def _members(table: dict[int, Entry], roots: set[int]) -> set[int]:
    """`roots` with all their descendants and everyone in a session that one of those leads."""
    found = set(roots)
    while True:
        more = {pid for pid, e in table.items() if pid not in found and (e.parent in found or e.session in found)}
        if not more:
            return found
        found |= more


def _entry(name: str) -> Entry | None:
    try:
        with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
            text = file.read(512)
    except OSError:
        return None
    fields = text[text.rfind(b")") + 2 :].split(None, 4)
    return Entry(parent=int(fields[1]), session=int(fields[3]), state=fields[0].decode())


def _namespace(pid: int) -> str:
    """The pid namespace of a process, "" when it is gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def _carries(pid: int, marker: bytes, namespace: str) -> bool:
    """Whether the process lives in that pid namespace and has `marker` in its environment."""
    try:
        if os.readlink(f"/proc/{pid}/ns/pid") != namespace:
            return False
        with open(f"/proc/{pid}/environ", "rb") as file:
            return marker in file.read().split(b"\0")
    except OSError:
        return False


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
