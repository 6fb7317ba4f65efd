"""Owns how a probe waits: one try is a generator that says what it waits for and ends with an Answer.

The prober runs all tries on one selector.  A try yields descriptors to wait for, is sent the set
of those that are ready, gets `Deadline` thrown in when its time is up, and is closed when nobody
wants its answer any more; it must free what it holds on every way out.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import selectors
import socket
import threading
from collections.abc import Generator
from dataclasses import dataclass

from ..core import probe_request
from ..core.probes import Outcome

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE

Wants = tuple[tuple[int, int], ...]
"""Descriptors with the mask to wait for."""

Ready = frozenset[int]
"""Descriptors that are ready."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How a try ended. `text` is what the kubelet would say; `warning` = success worth an event."""

    outcome: Outcome
    text: str = ""
    warning: bool = False
    timed_out: bool = False


Steps = Generator[Wants, Ready, Answer]
"""One try under way."""


class Deadline(Exception):
    """The try's time is up."""


class DialError(Exception):
    """No connection; str() is Go's text."""


_ERRORS = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "network is unreachable",
    errno.ECONNRESET: "connection reset by peer",
    errno.ETIMEDOUT: "connection timed out",
    errno.EPIPE: "broken pipe",
}


def go_error(number: int) -> str:
    """An errno in Go's words."""
    return _ERRORS.get(number) or os.strerror(number).lower()


def connect(host: str, port: int) -> Generator[Wants, Ready, socket.socket]:
    """A connected non-blocking socket. Raises DialError; `Deadline` passes through."""
    address = yield from _address(host)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        code = sock.connect_ex((address, port))
        if code == errno.EINPROGRESS:
            yield ((sock.fileno(), WRITE),)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        # A port of the ephemeral range where nobody listens can be connected to itself.
        if code == 0 and sock.getsockname() == sock.getpeername():
            code = errno.ECONNREFUSED
        if code:
            raise DialError(f"dial tcp {probe_request.join(address, port)}: connect: {go_error(code)}")
    except OSError as error:
        sock.close()
        text = f"dial tcp {probe_request.join(address, port)}: connect: {go_error(error.errno or 0)}"
        raise DialError(text) from error
    except (DialError, Deadline, GeneratorExit):
        sock.close()
        raise
    return sock


def tcp(host: str, port: int) -> Steps:
    """tcpSocket: connect within the time, then close (4.2)."""
    try:
        sock = yield from connect(host, port)
    except DialError as error:
        return Answer(Outcome.FAILURE, str(error))
    except Deadline:
        return Answer(Outcome.FAILURE, f"dial tcp {probe_request.join(host, port)}: i/o timeout", timed_out=True)
    sock.close()
    return Answer(Outcome.SUCCESS)


MAX_LOOKUPS = 8
_lookups = threading.BoundedSemaphore(MAX_LOOKUPS)


def _address(host: str) -> Generator[Wants, Ready, str]:
    """The IP address of `host`. Only a real name costs a thread, because the C library blocks on it."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    if host == "localhost":
        return probe_request.LOCAL
    if not _lookups.acquire(blocking=False):
        raise DialError(f"dial tcp: lookup {host}: too many lookups under way")
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    found: list[str] = []
    try:
        threading.Thread(target=_look_up, args=(host, found, writer), name=f"lookup {host}", daemon=True).start()
    except RuntimeError as error:  # of the machine: no thread
        os.close(reader)
        os.close(writer)
        _lookups.release()
        raise DialError(f"dial tcp: lookup {host}: {error}") from error
    try:
        yield ((reader, READ),)
    finally:
        os.close(reader)
    if not found:
        raise DialError(f"dial tcp: lookup {host}: no such host")
    return found[0]


def _look_up(host: str, found: list[str], writer: int) -> None:
    """Thread: resolve, then close the pipe, which wakes the try (or nobody, if it has gone)."""
    try:
        found.extend(str(info[4][0]) for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[:1])
    except (OSError, UnicodeError):
        pass
    finally:
        os.close(writer)
        _lookups.release()
