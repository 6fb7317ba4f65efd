"""Who is at the other end of a unix socket (SO_PEERCRED, unix(7)) and what they may do."""

from __future__ import annotations

import enum
import grp
import os
import socket
import struct
from dataclasses import dataclass

_UCRED = struct.Struct("3i")
_SO_PEERGROUPS = 59  # Linux 4.13; not in the socket module


class Role(enum.Enum):
    """ADMIN may do all, VIEW may read (no exec), NONE nothing."""

    ADMIN = "admin"
    VIEW = "view"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class User:
    """A caller; `name` goes into logs and refusals."""

    name: str
    role: Role


def user(sock: socket.socket, group: str) -> User:
    """The caller behind a connected unix socket: uid 0 and our own are admin, members of `group` view."""
    _, uid, gid = _UCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    if uid in (0, os.geteuid()):
        return User(f"uid:{uid}", Role.ADMIN)
    viewers = group_id(group)
    member = viewers is not None and viewers in (gid, *_groups(sock))
    return User(f"uid:{uid}", Role.VIEW if member else Role.NONE)


def group_id(name: str) -> int | None:
    """The number of that group, None when the machine does not have it."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return None


def _groups(sock: socket.socket) -> tuple[int, ...]:
    try:
        data = sock.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, 4096)
    except OSError:  # more than 1024 groups, or an old kernel: the primary group still counts
        return ()
    return struct.unpack(f"{len(data) // 4}I", data)
