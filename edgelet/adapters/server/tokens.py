"""Bearer tokens from a file: ``token,user,uid,"group,..."`` a line, as kube-apiserver's --token-auth-file.

The groups say the role: ``edgelet:admin`` or ``system:masters`` = admin, ``edgelet:view`` = view.  The
file is read again when it changes.
"""

from __future__ import annotations

import csv
import hashlib
import io
import logging
import os
from collections.abc import Iterable

from .peers import Role, User

logger = logging.getLogger(__name__)

ADMIN = frozenset(("edgelet:admin", "system:masters", "kubeadm:cluster-admins"))
VIEW = frozenset(("edgelet:view",))
MAX_BYTES = 1 << 20
MIN_LENGTH = 16
"""Shorter tokens are not taken: they can be guessed."""


def role(groups: Iterable[str]) -> Role:
    """What members of these groups may do."""
    have = {group.strip() for group in groups}
    if have & ADMIN:
        return Role.ADMIN
    return Role.VIEW if have & VIEW else Role.NONE


class Tokens:
    """The users by their tokens' digests: looking one up takes the same time for every wrong token."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._users: dict[bytes, User] = {}

    def user(self, token: str) -> User | None:
        """Whose token that is."""
        self._refresh()
        return self._users.get(_digest(token))

    def of_role(self, wanted: Role) -> str:
        """The first token of that role, "" if there is none. For making a kubeconfig."""
        for token, user in _read(self._path):
            if user.role is wanted:
                return token
        return ""

    def _refresh(self) -> None:
        try:
            facts = os.stat(self._path)
        except OSError:
            self._users, self._stamp = {}, None
            return
        stamp = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        if stamp != self._stamp:
            self._users = {_digest(token): user for token, user in _read(self._path)}
            self._stamp = stamp


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _read(path: str) -> list[tuple[str, User]]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(MAX_BYTES)
    except OSError as error:
        logger.warning("cannot read the tokens in %s: %s", path, error.strerror)
        return []
    found = []
    for number, row in enumerate(csv.reader(io.StringIO(text)), 1):
        if not row or row[0].startswith("#"):
            continue
        if len(row) < 3 or len(row[0].strip()) < MIN_LENGTH:
            logger.warning("line %d of %s is not used: token,user,uid,groups and %d characters of token are needed",
                           number, path, MIN_LENGTH)  # fmt: skip
            continue
        found.append((row[0].strip(), User(row[1].strip(), role(row[3].split(",") if len(row) > 3 else ()))))
    return found
