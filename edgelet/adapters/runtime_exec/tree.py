"""Ends process trees in containers: everything that a command has started, however it hid.

Killing the runtime's client leaves the command running, and killing the command leaves its
children.  So the tree is stopped first, member by member, until a look at /proc shows nobody new;
then it is killed.  A look counts when all known members stood still before it began, and nobody
left while it lasted: whoever leaves may have had a child just before.  Members are: descendants of
the client, their sessions, and (for those that left both by a double fork) whoever carries the
command's marker in its environment.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

ROUNDS = 20
"""Looks at /proc while stopping; a fork bomb that outruns them is killed as far as it was seen."""

_STILL = frozenset("TtZX")
"""States in which a process cannot fork. One that was told to stop may be in the middle of a fork."""


KTHREADD = 2
"""The parent of the kernel's threads, which have no environment ever."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A process as /proc shows it; `began` in clock ticks since boot."""

    parent: int
    session: int
    state: str
    began: int


class Processes:
    """The processes of the machine that began no earlier than a given one; others are looked at once only."""

    def __init__(self, eldest: int) -> None:
        """`eldest` is a pid; when it is gone, everybody counts."""
        entry = _entry(str(eldest))
        self._since = entry.began if entry else 0
        self._older: set[str] = set()

    def look(self) -> tuple[dict[int, Entry], bool]:
        """By pid; and False when one ended before it could be looked at."""
        names = [name for name in os.listdir("/proc") if name.isdigit() and name not in self._older]
        table: dict[int, Entry] = {}
        whole = True
        for name in names:
            entry = _entry(name)
            if entry is None:
                whole = False
            elif entry.began < self._since:
                self._older.add(name)
            else:
                table[int(name)] = entry
        return table, whole


def end(client: int, marker: str, inside: int) -> int:
    """Kill all that the runtime's `client` process (a pid) has started, not the client itself.

    `marker` is ``NAME=value`` in the command's environment; `inside` is a pid in the container,
    whose pid namespace bounds the search for it.  Returns how many were killed.
    """
    search = _Search(marker.encode(), _namespace(inside))
    stopped: set[int] = set()
    still = False
    processes = Processes(client)
    for _ in range(ROUNDS):
        table, whole = processes.look()
        found = _members(table, {client} | stopped) - {client}
        carriers, sure = search.among(table, table.keys() - found - {client})
        new = {pid for pid in found | carriers if pid not in stopped and table[pid].state != "Z"}
        if still and whole and sure and not new:
            break
        still = not new and all(table[pid].state in _STILL for pid in stopped & table.keys())
        _signal(new, signal.SIGSTOP)
        stopped |= new
    _signal(stopped, signal.SIGKILL)
    return len(stopped)


class _Search:
    """Looks for the marker in environments, each process once."""

    def __init__(self, marker: bytes, namespace: str) -> None:
        self._marker = marker
        self._namespace = namespace
        self._strangers: set[int] = set()

    def among(self, table: dict[int, Entry], pids: set[int]) -> tuple[set[int], bool]:
        """Those of `pids` that carry the marker; and whether all could be asked.

        A process has no environment for a moment while it becomes another program, so an empty one
        is asked again.
        """
        carriers: set[int] = set()
        sure = True
        for pid in pids - self._strangers if self._namespace else ():
            environment = _environment(pid, self._namespace)
            if environment is not None and self._marker in environment.split(b"\0"):
                carriers.add(pid)
            elif environment == b"" and table[pid].state != "Z" and table[pid].parent != KTHREADD:
                sure = False
            else:
                self._strangers.add(pid)
        return carriers, sure


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
    fields = text[text.rfind(b")") + 2 :].split(None, 20)
    return Entry(parent=int(fields[1]), session=int(fields[3]), state=fields[0].decode(), began=int(fields[19]))


def _namespace(pid: int) -> str:
    """The pid namespace of a process, "" when it is gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def _environment(pid: int, namespace: str) -> bytes | None:
    """What a process in that pid namespace was started with; None = not in it, or gone."""
    try:
        if os.readlink(f"/proc/{pid}/ns/pid") != namespace:
            return None
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return None


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
