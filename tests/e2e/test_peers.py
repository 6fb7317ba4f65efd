"""What users of other agents have reported, shown not to happen here: leaks, locks, pulls, resident processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.agent import Agent, services
from tests.e2e.faults import Size
from tests.e2e.manifests import SERVE, container, exec_probe, http_probe, pod, tcp_probe

pytestmark = pytest.mark.timeout(600)

MEMORY_MOST = 60 * 1024
"""kB that one agent may take, whatever it runs."""


def probed(agent: Agent) -> int:
    """How many probes have been run so far."""
    lines = agent.text("/metrics/probes").splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith("prober_probe_total{"))


def cgroups(ids: set[str]) -> list[str]:
    """Control groups of those containers."""
    found = [path for path, _, _ in os.walk("/sys/fs/cgroup") if any(one in path for one in ids)]
    return sorted(found)


def test_pain_29_frequent_probes_make_nothing_grow(agent: Agent) -> None:
    """In a short time: memory, threads, descriptors, processes and control groups; `make faults` takes hours."""
    serve = container(
        script=f"httpd -p 8080 -h /; {SERVE}",
        livenessProbe=exec_probe("true"),
        readinessProbe=http_probe(8080, "/etc/hosts"),
    )
    tcp = container("side", livenessProbe=exec_probe("true"), readinessProbe=tcp_probe(8080))
    agent.start().write(pod("busy", serve, tcp))
    agent.wait_ready("busy")
    agent.note_ids()
    agent.wait("the first probes", lambda: probed(agent) >= 12, seconds=120)
    size, groups, begun = Size.of(agent.pid), cgroups(agent.seen_ids), probed(agent)
    conmons = sum("conmon" in p for p in agent.processes())
    agent.wait("many more", lambda: probed(agent) >= begun + 40, seconds=240)
    now = Size.of(agent.pid)
    assert now.memory <= size.memory + 1024, (size, now)
    # A probe that is under way holds a few descriptors, and may at either moment.
    assert now.threads <= size.threads + 1 and now.descriptors <= size.descriptors + 12, (size, now)
    agent.wait("no control group but the containers'", lambda: cgroups(agent.seen_ids) == groups)
    assert sum("conmon" in p for p in agent.processes()) == conmons
    assert (agent.restarts("busy"), agent.restarts("busy", "side")) == (0, 0)


@contextlib.contextmanager
def locked_database(root: Path) -> Iterator[None]:
    """Podman's database in other hands: bbolt's file lock (4.x), or SQLite's (5.x)."""
    bolt, sqlite = root / "libpod" / "bolt_state.db", root / "db.sql"
    if bolt.exists():
        with open(bolt, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        return
    connection = sqlite3.connect(sqlite, isolation_level=None, timeout=20)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")
    finally:
        connection.close()


def test_pain_89_a_locked_database_fails_no_probe(lone_agent: Agent) -> None:
    """Probes by command ask nothing of Podman; what needs it waits and is done afterwards."""
    agent = lone_agent.start()
    agent.write(pod("web", container(livenessProbe=exec_probe("true"), readinessProbe=exec_probe("true"))))
    agent.wait_ready("web")
    first = agent.running_id("web")
    with locked_database(Path(agent.env.storage.root)):
        begun = probed(agent)
        agent.write(pod("later"))
        agent.wait("probes to go on", lambda: probed(agent) >= begun + 6, seconds=60)
        assert agent.ready("web")
    agent.wait_ready("later", seconds=90)
    assert not agent.events("web", "Unhealthy")
    assert (agent.running_id("web"), agent.restarts("web")) == (first, 0)


def test_pain_92_restarts_use_up_no_containers_and_no_volumes_of_podman(lone_agent: Agent) -> None:
    """Each takes one of its 2048 locks."""
    agent = lone_agent.start()
    image = "localhost/with-volume:1"
    agent.env.add_image(image, "VOLUME /data")
    # Killed by its probe time and again: that has next to no back-off at first.
    agent.write(pod("web", container(image=image, livenessProbe=exec_probe("false"))))
    agent.wait("some restarts", lambda: agent.restarts("web") >= 3, seconds=180)

    def taken() -> tuple[int, int]:
        return len(agent.of_pod("web")), len(agent.podman("volume", "ls", "-q").split())

    # The one that runs, the one before it, and one that is being made or removed.
    agent.wait("the old ones to go", lambda: max(taken()) <= 3)
    agent.remove("web")
    agent.wait_gone("web", seconds=60)
    agent.wait("all to be gone", lambda: taken() == (0, 0))


def test_pain_95_no_process_of_podman_stays_for_a_pod(agent: Agent) -> None:
    names = [f"web{n}" for n in range(4)]
    agent.start()
    for name in names:
        agent.write(pod(name))
    agent.wait_ready(*names, seconds=90)
    agent.note_ids()
    agent.wait("the service to end when idle", lambda: not services(agent.run_dir), seconds=90)
    outside = [p for p in agent.processes() if "conmon" not in p and "podman" in p]
    assert outside == []
    conmons = [p for p in agent.processes() if "conmon" in p]
    assert len(conmons) == 2 * len(names)  # one per container, and one per pod's infra container
    assert Size.of(agent.pid).memory < MEMORY_MOST
    assert agent.ready(*names)


class Silent:
    """A registry that takes connections and never says a word."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.open: list[socket.socket] = []
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.open.append(self._listening.accept()[0])

    def close(self) -> None:
        """Hang up."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for one in self.open:
            one.close()


@pytest.fixture
def registry() -> Iterator[Silent]:
    """One that hangs."""
    made = Silent()
    yield made
    made.close()


def test_pain_146_pulls_go_one_at_a_time_and_the_watchdog_is_fed_meanwhile(agent: Agent, registry: Silent) -> None:
    """The first pull hangs, so there is one connection for as long as one looks; the rest of the agent goes on."""
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind(str(agent.directory / "notify"))
    told.settimeout(30)
    agent.start(env={"NOTIFY_SOCKET": str(agent.directory / "notify"), "WATCHDOG_USEC": "1000000"})
    for n in range(4):
        agent.write(pod(f"far{n}", container(image=f"127.0.0.1:{registry.port}/far:{n}")))
    agent.wait("the first pull to hang", lambda: len(registry.open) == 1, seconds=90)
    agent.write(pod("near"))
    agent.wait_ready("near", seconds=60)
    told.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while told.recv(4096):
            pass
    told.settimeout(30)
    begun = time.monotonic()
    fed = 0
    while fed < 4:
        fed += told.recv(4096).startswith(b"WATCHDOG=1")
    assert time.monotonic() - begun < 30
    assert len(registry.open) == 1
    assert all(agent.phase(f"far{n}") == "Pending" for n in range(4))
    told.close()


def test_pain_149_after_a_reboot_a_pod_still_waits_for_the_one_it_needs(lone_agent: Agent) -> None:
    from tests.e2e.test_survival import reboot

    agent = lone_agent.start()
    slow = container(
        script=f"sleep 3 & wait $!; touch /tmp/up; {SERVE}", readinessProbe=exec_probe("test", "-e", "/tmp/up")
    )
    web = pod("web")
    web["metadata"]["annotations"] = {"edgelet.io/after": "db"}
    agent.write(web)
    agent.write(pod("db", slow))
    agent.wait_ready("web", "db", seconds=60)
    reboot(agent)
    agent.start()
    agent.wait("the reason why it waits", lambda: agent.summary("web") == "waits for pod db to be Ready")
    agent.wait_ready("web", "db", seconds=90)
    conditions = {c["type"]: c for c in agent.status("db")["conditions"]}
    started = agent.container("web")["state"]["running"]["startedAt"]
    assert started >= conditions["Ready"]["lastTransitionTime"]
    assert agent.restarts("web") == 1
