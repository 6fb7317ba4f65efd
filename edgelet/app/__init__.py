"""The composition root: settings in, a running agent out; ordered start, one stop signal, reverse stop.

`wiring` builds the parts, `run` starts them, feeds the systemd watchdog from the main loop, and
stops them bounded.  A thread that must not end takes the process down, loudly, so that the service
manager starts a new one; containers never notice.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from .. import __version__, config, errors
from ..adapters.server import place
from ..adapters.systemd import Notifier
from . import limits, machine, root, wiring

if TYPE_CHECKING:
    from ..adapters.apiserver.mirror import Mirror

log = logging.getLogger(__name__)

WORKERS_SECONDS = 10.0
"""How long the pods' workers may take to end their present step."""
IDLE_TICK = 20.0
"""Seconds between two rounds of the main loop when nothing happens and no watchdog asks for more."""
QUIET_SECONDS = 5.0
"""Without news for so long, a burst is over: the memory that it took goes back."""
EVENT_BATCH = 1.0
"""Events are written this many seconds after the first new one."""


def run(settings: config.Settings) -> int:
    """Run the agent in this thread until SIGTERM or SIGINT: 0, or 1 after a fault."""
    _set_up_logging(settings.log_level)
    for warning in settings.warnings:
        log.warning("%s", warning)
    limits.raise_files()
    holder = root.lock(settings.root_dir)
    try:
        place.clear(settings.socket)  # before any pod begins: nobody could ask an agent without it
        agent = wiring.build(settings)
        return _Main(agent).run()
    finally:
        os.close(holder)


def _set_up_logging(level: str) -> None:
    """Lines without a time stamp under a service manager, which adds its own."""
    stamp = "" if "JOURNAL_STREAM" in os.environ or "INVOCATION_ID" in os.environ else "%(asctime)s "
    logging.basicConfig(
        stream=sys.stderr, level=level.upper(), format=f"{stamp}%(levelname).1s %(threadName)s: %(message)s"
    )
    for noisy in ("urllib3", "watchdog", "asyncio", "tornado.access", "podman"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


class _Main:
    """Starts, waits, stops."""

    def __init__(self, agent: wiring.Agent) -> None:
        self._a = agent
        self._notify = Notifier(os.environ)
        self._news = machine.Bell()
        self._end = machine.Bell()
        self._ending = ""
        self._again = False
        agent.base.beat.on_fault = self._finish
        agent.base.event_file.news = self._news.ring

    def _finish(self) -> None:
        self._end.ring()
        self._news.ring()

    def run(self) -> int:
        """The life of the agent."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked)
        signal.signal(signal.SIGHUP, self._look_again)
        started: list[Callable[[], None]] = []
        try:
            self._start(started)
            machine.settle_memory()
            self._loop()
            if self._ending == "SIGTERM" and self._a.base.settings.shutdown_grace_period > 0:
                self._drain()
        finally:
            self._stop(started)
        return 1 if self._a.base.beat.fault else 0

    def _asked(self, number: int, _frame: object) -> None:
        self._ending = signal.Signals(number).name
        self._finish()

    def _look_again(self, _number: int, _frame: object) -> None:
        self._again = True
        self._news.ring()

    def _start(self, started: list[Callable[[], None]]) -> None:
        """Each part's stop is noted as soon as it runs; the first list is under way while the sources speak."""
        base, engine = self._a.base, self._a.engine
        base.event_file.load()
        started += [base.event_file.flush, base.service.stop]
        for start, stop in (
            (engine.exits.start, engine.exits.stop),
            (engine.prober.start, engine.prober.stop),
            (engine.hooks.start, engine.hooks.stop),
            (engine.puller.start, engine.puller.stop),
            (engine.sweeper.start, engine.sweeper.stop),
            (engine.observer.start, engine.observer.stop),
            (self._a.rotator.start, self._a.rotator.stop),
            *((s.start, s.stop) for s in self._a.sources.all),
        ):
            start()
            started.append(stop)
        started.append(self._stop_workers)
        self._serve(started)
        log.info("edgelet %s runs on node %s, API at %s", __version__, base.node.name, base.settings.socket)
        self._notify.ready(f"node {base.node.name}")

    def _serve(self, started: list[Callable[[], None]]) -> None:
        """The server comes last: pods do not wait for its import."""
        from . import serving

        mirror = self._mirror()
        server = serving.server(self._a, mirror.report if mirror else lambda: None)
        server.start()
        started.append(server.stop)
        if mirror:
            mirror.start()
            started.append(mirror.stop)

    def _mirror(self) -> Mirror | None:
        """The link to an API server, if one is configured; nothing of it is even imported otherwise."""
        if not self._a.base.settings.kubeconfig:
            return None
        from . import mirroring

        return mirroring.build(self._a)

    def _stop_workers(self) -> None:
        for key in self._a.engine.workers.stop(WORKERS_SECONDS):
            log.warning("the worker of pod %s did not end in time; it is left behind", key)

    def _loop(self) -> None:
        base = self._a.base
        interval = self._notify.watchdog_interval
        tick = min(IDLE_TICK, interval) if interval else IDLE_TICK
        busy = True
        while not self._ending and not base.beat.fault:
            self._notify.watchdog()
            base.beat.now()
            base.event_file.flush()
            if self._again:
                self._reload()
            if self._a.engine.workers.lacked():
                self._a.engine.director.recheck()
            busy = self._news.wait(min(QUIET_SECONDS, tick) if busy else tick)
            if not busy:
                machine.give_back()
            if base.event_file.dirty:
                self._end.wait(EVENT_BATCH)

    def _drain(self) -> None:
        from . import shutdown

        if shutdown.machine_goes_down():
            shutdown.drain(self._a, self._notify)

    def _reload(self) -> None:
        """SIGHUP: nothing that was seen earlier is taken for granted. Settings are read at a start only."""
        self._again = False
        self._notify.reloading()
        log.info("looking at everything again: sources, Podman")
        for source in self._a.sources.watched:
            source.look()
        self._a.engine.observer.suspect()
        self._notify.ready()

    def _stop(self, started: list[Callable[[], None]]) -> None:
        fault = self._a.base.beat.fault
        log.info("stopping: %s", fault or self._ending or "start failed")
        self._notify.stopping()
        for stop in reversed(started):
            try:
                stop()
            except errors.EdgeletError as error:
                log.warning("while stopping: %s", error)
