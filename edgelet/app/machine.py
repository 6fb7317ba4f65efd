"""What this process takes from the machine: clocks, the boot's id, its address, its memory."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import gc
import os
import select
import socket
import struct
import time
from collections.abc import Callable

ADDRESS_SECONDS = 30.0
"""How long the node's address is believed; asking costs a few microseconds and no packet."""


NETWORK_CARDS = "/sys/class/net"
_SIOCGIFADDR = 0x8915


class SystemClock:
    """ports.Clock on the real clocks."""

    def monotonic(self) -> float:
        """See ports.Clock."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def time(self) -> float:
        """See ports.Clock."""
        return time.time()


class Bell:
    """Wakes the main loop from threads and from signal handlers, in which threading.Event could deadlock."""

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)

    def ring(self) -> None:
        """Wake the waiter, or the next one."""
        os.eventfd_write(self._fd, 1)

    def wait(self, seconds: float) -> bool:
        """Until it rings, at most so long; False = it did not."""
        if not self._poll.poll(seconds * 1000):
            return False
        os.eventfd_read(self._fd)
        return True


class Address:
    """The node's own IP address: the one that is `given`, else that of the default route, else of a network card.

    "" while there is none.
    """

    def __init__(self, clock: SystemClock, given: str = "") -> None:
        self._clock = clock
        self._given = given
        self._known = ""
        self._until = 0.0

    def __call__(self) -> str:
        """The address, at most half a minute old."""
        if self._given:
            return self._given
        now = self._clock.monotonic()
        if now >= self._until:
            self._known = _default_route_address() or card_address()
            self._until = now + ADDRESS_SECONDS
        return self._known


def _default_route_address() -> str:
    """Connecting a UDP socket sends nothing, but the kernel picks the source address (RFC 5737 target)."""
    for family, target in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((target, 9))
                return str(probe.getsockname()[0])
        except OSError:
            continue
    return ""


def card_address(cards: str = NETWORK_CARDS) -> str:
    """The first address of the first network card, for a box whose network leads nowhere else; "" = it has none.

    A bridge or a VLAN on top of a card counts; bridges of pods, tunnels and the like do not.
    """
    names = [name for _, name in sorted(socket.if_nameindex()) if _on_card(os.path.join(cards, name))]
    return next((found for name in names if (found := _ipv4(name) or _ipv6(name))), "")


def _on_card(path: str) -> bool:
    try:
        below = [entry for entry in os.listdir(path) if entry.startswith("lower_")]
    except OSError:
        return False
    return os.path.exists(os.path.join(path, "device")) or any(_on_card(os.path.join(path, one)) for one in below)


def _ipv4(name: str) -> str:
    """netdevice(7): a struct ifreq goes in, with a sockaddr_in behind the name it comes back."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            answer = fcntl.ioctl(asked, _SIOCGIFADDR, struct.pack("40s", name.encode()))
        except OSError:
            return ""
    return socket.inet_ntoa(answer[20:24])


def _ipv6(name: str) -> str:
    """The first global one: address, index, prefix, scope, flags, name a line (proc(5))."""
    with contextlib.suppress(OSError), open("/proc/net/if_inet6", encoding="ascii") as file:
        for line in file:
            address, _, _, scope, _, owner = line.split()
            if owner == name and scope == "00":
                return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(address))
    return ""


def settle_memory() -> None:
    """Set aside what lives as long as the agent, so that `give_back` need not look through it: 15 ms, once."""
    gc.collect()
    gc.freeze()


def give_back() -> None:
    """Hand the memory of a burst back to the kernel: what refers to itself in a circle, then free pages of the heap.

    Errors with their frames are such circles; left alone, a fourth of all objects may be. A few milliseconds.
    """
    gc.collect()
    _malloc_trim()(ctypes.c_size_t(0))


@functools.cache
def _malloc_trim() -> Callable[[ctypes.c_size_t], object]:
    """glibc's; other C libraries have none, and need none."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) or (lambda pad: None)
