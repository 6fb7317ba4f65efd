"""The two ways in: the unix socket, where the kernel says who calls, and TLS, with certificate or token.

A door also knows under which names it may be called: a page in somebody's browser that had its own
name point at this machine (DNS rebinding) sends that name along, and is refused.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
from collections.abc import Iterable
from typing import Protocol

import tornado.httputil

from . import peers, tokens
from .peers import Role, User

NOBODY = User("system:anonymous", Role.NONE)


class Door(Protocol):
    """Who is calling. `secure` = over TLS."""

    secure: bool

    def user(self, sock: socket.socket, headers: tornado.httputil.HTTPHeaders) -> User:
        """The caller; NOBODY when it did not say who it is."""
        ...

    def host_is_ours(self, host: str) -> bool:
        """Whether a Host header names us."""
        ...


class UnixDoor:
    """Callers on this machine, by their uid and groups."""

    secure = False

    def __init__(self, group: str) -> None:
        self._group = group

    def user(self, sock: socket.socket, headers: tornado.httputil.HTTPHeaders) -> User:
        """See Door."""
        return peers.user(sock, self._group)

    def host_is_ours(self, host: str) -> bool:
        """No browser can reach a unix socket."""
        return True


class TlsDoor:
    """Callers over TLS: a verified client certificate (O = groups, CN = name) or a bearer token."""

    secure = True

    def __init__(self, known: tokens.Tokens, names: Iterable[str]) -> None:
        self._tokens = known
        self._names = frozenset(name.lower() for name in names)

    def user(self, sock: socket.socket, headers: tornado.httputil.HTTPHeaders) -> User:
        """See Door."""
        kind, _, token = headers.get("Authorization", "").partition(" ")
        if kind.lower() == "bearer" and token.strip():
            return self._tokens.user(token.strip()) or NOBODY
        certificate = sock.getpeercert() if isinstance(sock, ssl.SSLSocket) else None
        return _named(certificate) if certificate else NOBODY

    def host_is_ours(self, host: str) -> bool:
        """See Door."""
        return _names_us(host, self._names)


class OpenDoor:
    """The read-only port: everybody may look at the little that it shows."""

    secure = False

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(name.lower() for name in names)

    def user(self, sock: socket.socket, headers: tornado.httputil.HTTPHeaders) -> User:
        """See Door."""
        return User("system:anonymous", Role.VIEW)

    def host_is_ours(self, host: str) -> bool:
        """See Door."""
        return _names_us(host, self._names)


def _names_us(host: str, names: frozenset[str]) -> bool:
    """An address, or one of our names: other names only get here by somebody's trick."""
    name = re.sub(r":\d+$", "", host.strip().lower()).strip("[]")
    if name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _named(certificate: object) -> User:
    subject = certificate.get("subject", ()) if isinstance(certificate, dict) else ()
    pairs = [pair for part in subject for pair in part]
    name = next((value for kind, value in pairs if kind == "commonName"), "")
    groups = [value for kind, value in pairs if kind == "organizationName"]
    return User(name or "system:unnamed", tokens.role(groups))
