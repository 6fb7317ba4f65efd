"""Reads what conmon leaves behind and what /proc says of it; writes exit files where conmon cannot."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from typing import TypeVar

from ...core import conmon
from ...errors import StateError, cause, of_machine

_T = TypeVar("_T")


def exit_dir_of(conmon_pid: int) -> str:
    """The directory that this conmon writes exit codes to, "" when it cannot be asked."""
    facts = conmon.parse(_cmdline(conmon_pid)) if conmon_pid > 0 else None
    return facts.exit_dir if facts else ""


def exit_dir_near(pid: int, conmon_pid: int) -> str:
    """The same, of a container: its conmon, where its number is not known, is the parent of its process."""
    return exit_dir_of(conmon_pid) or exit_dir_of(_parent(pid))


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError) as error:
        return _absent(error, 0)


def _absent(error: Exception, answer: _T) -> _T:
    """`answer`, unless the process may well be there and only cannot be looked at: a healthy one is not given up."""
    if of_machine(error):
        raise error
    return answer


def read_exit_file(exit_dir: str, container_id: str) -> int | None:
    """The exit code in a container's exit file, None when there is none (yet, or any more)."""
    try:
        with open(os.path.join(exit_dir, container_id), encoding="ascii") as file:
            return int(file.read(32).strip())
    except (OSError, ValueError):
        return None


def write_exit_file(exit_dir: str, container_id: str, code: int) -> None:
    """Do what a dead conmon cannot do any more, so that Podman believes the exit. Raises StateError.

    Only for a container whose process has ended; 137 when the code is not known (design section 3).
    """
    path = os.path.join(exit_dir, container_id)
    temporary = os.path.join(exit_dir, f".{container_id}.edgelet")
    try:
        with open(temporary, "w", encoding="ascii") as file:
            file.write(str(code))
        os.rename(temporary, path)
    except OSError as error:
        raise StateError(f"cannot write exit file {path}: {cause(error)}") from error


def is_conmon(pid: int, container_id: str) -> bool:
    """Whether `pid` is that container's conmon, or the cleanup command it turns into at the end.

    Raises OSError when it cannot be looked at for want of descriptors; so do all that follow here.
    """
    return pid > 0 and container_id in _cmdline(pid)


def is_inside(pid: int, container_id: str, conmon_pid: int) -> bool:
    """Whether `pid` is that container's process and not a later one of the same number."""
    if pid <= 0:
        return False
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
        if int(text[text.rfind(b")") + 2 :].split(None, 2)[1]) == conmon_pid:
            return True
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as groups:
            return container_id in groups.read()
    except OSError as error:
        return _absent(error, False)


def of_container(container_id: str) -> tuple[list[int], list[int]]:
    """Its conmons, and the processes in its control group: one pass over all processes."""
    conmons, inside = [], []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        words = _cmdline(int(entry))
        if container_id in words and words[0].endswith("conmon"):
            conmons.append(int(entry))
        elif is_inside(int(entry), container_id, -1):
            inside.append(int(entry))
    return conmons, inside


def end(pids: list[int], seconds: float) -> bool:
    """SIGKILL for all of them; whether all ended in time."""
    poll, descriptors = select.poll(), []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            descriptors.append(os.pidfd_open(pid))
            signal.pidfd_send_signal(descriptors[-1], signal.SIGKILL)
            poll.register(descriptors[-1], select.POLLIN)
    until, left = time.monotonic() + seconds, set(descriptors)
    try:
        while left and (rest := until - time.monotonic()) > 0:
            for descriptor, _ in poll.poll(rest * 1000):
                poll.unregister(descriptor)
                left.discard(descriptor)
        return not left
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _cmdline(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return [os.fsdecode(part) for part in file.read().split(b"\0")]
    except OSError as error:
        return _absent(error, [])
