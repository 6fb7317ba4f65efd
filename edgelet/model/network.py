"""What a pod's network is made of on this machine: frozen values, as they were seen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Space:
    """A network namespace that has a name: `path` of the file, the addresses inside (loopback apart).

    `busy` = a process is in it.  `inode` tells it from a later one of the same name.
    """

    path: str
    inode: int
    addresses: frozenset[str] = frozenset()
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Lease:
    """An address that a container holds: `holder` is its id."""

    network: str
    subnet: str
    address: str
    holder: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the firewall's table nat that is there for one published port.

    `text` is its line as iptables-save writes it, from the chain on.  `port` is "tcp 8080" with the host address
    before it if there is one; `network` the hash in the name of the chain that it stands in, or leads to.
    One of `address` (where it leads) and `holder` (the container's id) may be set, or neither.
    """

    text: str
    port: str
    network: str
    address: str = ""
    holder: str = ""
