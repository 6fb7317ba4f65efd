"""Network namespaces that have a name: which there are, whether anybody is in them, which addresses they have."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import re
import socket
import subprocess
import threading
from collections.abc import Collection

from ...errors import StateError, cause
from ...model.network import Space

PLACE = "/run/netns"
NAME = re.compile(r"netns-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""As Podman names them (containers/common, pkg/netns); what others have named is never looked at."""
CLONE_NEWNET = 0x40000000


def read(place: str = PLACE) -> tuple[Space, ...]:
    """All of them."""
    busy = _busy()
    found = []
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(place)):
            path = os.path.join(place, name)
            if NAME.fullmatch(name) and (inode := _inode(path)):
                found.append(Space(path, inode, _addresses(path), inode in busy))
    return tuple(found)


def remove(space: Space) -> None:
    """Take the name away, and with it, as nobody is in it, the namespace and its link. Raises StateError."""
    if _inode(space.path) != space.inode or space.inode in _busy():
        return
    try:
        subprocess.run(["umount", "--lazy", space.path], check=False, capture_output=True, timeout=20)
        os.unlink(space.path)
    except FileNotFoundError:
        pass
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StateError(f"cannot remove the network namespace {space.path}: {cause(error)}") from error


def _inode(path: str) -> int:
    """0 = it is gone."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def _busy() -> Collection[int]:
    """The namespaces that processes are in, by inode."""
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                found.add(os.stat(f"/proc/{entry}/ns/net").st_ino)
    return found


def _addresses(path: str) -> frozenset[str]:
    """The addresses in it, read by a thread that enters it and ends there. One that cannot be entered has none."""
    found: list[str] = []
    thread = threading.Thread(target=_enter_and_read, args=(path, found), name="netns", daemon=True)
    thread.start()
    thread.join()
    return frozenset(found)


def _enter_and_read(path: str, found: list[str]) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET):
            return  # no namespace is mounted there
        found += _ipv4() + _ipv6()
    except OSError:
        return
    finally:
        os.close(descriptor)


def _ipv4() -> list[str]:
    """Local addresses from the routing trie: a host route of scope "local" follows each."""
    with open("/proc/thread-self/net/fib_trie", encoding="ascii") as file:
        lines = file.read().splitlines()
    pairs = itertools.pairwise(lines)
    here = {one.split()[-1] for one, following in pairs if "/32 host LOCAL" in following}
    return sorted(a for a in here if not a.startswith("127."))


def _ipv6() -> list[str]:
    with open("/proc/thread-self/net/if_inet6", encoding="ascii") as file:
        packed = [line.split() for line in file]
    texts = [socket.inet_ntop(socket.AF_INET6, bytes.fromhex(row[0])) for row in packed if row[3] == "00"]
    return [t for t in texts if t != "::1"]
