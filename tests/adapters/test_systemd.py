"""What is sent over NOTIFY_SOCKET, to a path and to an abstract name, and that trouble is never ours."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgelet.adapters.systemd import Notifier

Ear = tuple[socket.socket, str]


@pytest.fixture(params=["path", "abstract"])
def ear(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ear]:
    """A listening systemd, and what NOTIFY_SOCKET says."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@edgelet-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("\0" + name[1:] if name.startswith("@") else name)
        listening.settimeout(5)
        yield listening, name


def test_each_state_is_one_datagram(ear: Ear) -> None:
    listening, name = ear
    notifier = Notifier({"NOTIFY_SOCKET": name})
    notifier.ready("3 of 3 pods\nready")
    notifier.watchdog()
    notifier.status("waiting for Podman")
    notifier.stopping()
    notifier.extend(2.5)
    assert [listening.recv(200) for _ in range(5)] == [
        b"READY=1\nSTATUS=3 of 3 pods ready",
        b"WATCHDOG=1",
        b"STATUS=waiting for Podman",
        b"STOPPING=1",
        b"EXTEND_TIMEOUT_USEC=2500000",
    ]


def test_a_reload_carries_its_time(ear: Ear) -> None:
    listening, name = ear
    Notifier({"NOTIFY_SOCKET": name}).reloading()
    first, second = listening.recv(200).decode().split("\n")
    assert first == "RELOADING=1"
    assert int(second.removeprefix("MONOTONIC_USEC=")) > 0


@pytest.mark.parametrize("name", ["", "/nowhere/at/all", "relative", "@nobody-listens-here", "/" + "x" * 300])
def test_nobody_listening_is_no_trouble(name: str) -> None:
    Notifier({"NOTIFY_SOCKET": name}).ready()


def test_a_full_queue_does_not_block(ear: Ear) -> None:
    listening, name = ear
    notifier = Notifier({"NOTIFY_SOCKET": name})
    for _ in range(2000):
        notifier.watchdog()
    assert listening.recv(200) == b"WATCHDOG=1"


@pytest.mark.parametrize(
    ("environ", "interval"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog_is_fed_twice_per_period_and_only_when_meant_for_us(
    environ: dict[str, str], interval: float | None
) -> None:
    assert Notifier(environ, pid=7).watchdog_interval == interval
