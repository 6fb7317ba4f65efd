"""What the kernel's log says of a container: whether its OOM killer has killed a process in it.

The second witness beside conmon, which learns of an OOM kill from a file of the cgroup, and too late
when systemd takes the cgroup away first (seen with conmon 2.1.6, crun and cgroup v2).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

PATH = "/dev/kmsg"
RECORD = 8192
"""Bytes; the kernel's own limit of one record."""
RECORDS = 50_000
"""Records read at most: more than the largest usual ring holds."""


def oom_killed(container_id: str, path: str = PATH) -> bool:
    """Whether the log, as far as it goes back, names that container's cgroup as an OOM killer's victim."""
    mark = container_id.encode()
    try:
        log = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # no such device in a container, or not for us
        return False
    try:
        return any(b"oom-kill:" in record and mark in _victim(record) for record in _records(log))
    finally:
        os.close(log)


def _victim(record: bytes) -> bytes:
    """The cgroup of the killed task (the limit that was hit may be that of a group above)."""
    return record.partition(b"task_memcg=")[2].partition(b",")[0]


def _records(log: int) -> Iterator[bytes]:
    for _ in range(RECORDS):
        try:
            record = os.read(log, RECORD)
        except BrokenPipeError:  # overwritten while we read: goes on with the oldest that is left
            continue
        except OSError:
            return
        if not record:
            return
        yield record
