"""Owns all probing: one thread, and the state of every probe of every running container.

Implements ports.Probes.  `core.probes` decides what results mean; `probe_io`, `probe_http`,
`probe_grpc` and `probe_exec` make single tries, none of which ever blocks, on the one selector of
`probe_loop`.  So a hundred probes that hang delay nobody.  Workers are woken only when a verdict
has changed.
"""

from __future__ import annotations

import dataclasses
import heapq
import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

from .. import ports
from ..core import probe_request, probes
from ..core.probes import Effect, Instance, Kind, Outcome
from ..model import pod as nouns
from ..model.pod import PodKey
from . import probe_exec, probe_io
from .probe_io import Answer, Steps
from .probe_loop import Loop
from .probe_tally import Tallies, Tally
from .turning import Turning

log = logging.getLogger(__name__)


ADOPTION = 600.0
"""Seconds after the start for which verdicts of containers that have not been seen yet are kept."""


class Results(Protocol):
    """Where verdicts are kept over a restart of the agent (not of the machine)."""

    def load(self) -> Mapping[str, tuple[bool, bool]]:
        """(started, ready) by container id."""
        ...

    def save(self, results: Mapping[str, tuple[bool, bool]]) -> None:
        """Replace them all; never raises."""
        ...


@dataclass(eq=False, slots=True)
class _Watched:
    """A container instance under probes.

    `queued` holds the number of the heap entry that counts, by kind; `flights` the tokens of tries
    that wait or run; `hung` the kinds whose last try timed out.
    """

    target: ports.Target
    instance: Instance
    queued: dict[Kind, int] = field(default_factory=dict)
    flights: dict[Kind, int] = field(default_factory=dict)
    hung: set[Kind] = field(default_factory=set)

    def verdict(self) -> ports.Verdict:
        failed = self.instance.failed
        return ports.Verdict(
            container_id=self.target.container_id,
            started=self.instance.started,
            ready=self.instance.ready,
            failed=failed.value.lower() if failed else "",
            grace=self.instance.grace,
        )


@dataclass(eq=False, slots=True)
class _Flight:
    """One try that is wanted; `began` is the monotonic second of its start, 0 while it waits for a place."""

    watched: _Watched
    kind: Kind
    probe: nouns.Probe
    began: float = 0.0


class Prober:
    """See the module. `wake` is called from the prober's thread, without any lock held."""

    def __init__(
        self,
        clock: ports.Clock,
        runner: ports.ExecRunner,
        recorder: ports.Recorder,
        wake: ports.Wake,
        results: Results | None = None,
        alive: Callable[[ports.Target], bool] | None = None,
        fatal: Callable[[str], None] = lambda message: None,
    ) -> None:
        """`alive` tells whether a container's process still lives: what its probes say then is void.

        `fatal` is told when the thread ends although it must not.
        """
        self._clock = clock
        self._runner = runner
        self._recorder = recorder
        self._wake = wake
        self._results = results
        self._alive = alive or _process_lives
        self._before: dict[str, tuple[bool, bool]] = dict(results.load()) if results else {}
        self._saved: dict[str, tuple[bool, bool]] = dict(self._before)
        self._saving = threading.Lock()
        self._began = clock.monotonic()
        self._pods: dict[PodKey, dict[str, _Watched]] = {}
        self._due: list[tuple[float, int, _Watched, Kind]] = []
        self._flights: dict[int, _Flight] = {}
        self._unwanted: list[int] = []
        self._tallies = Tallies()
        self._serial = count(1)
        self._lock = threading.Lock()
        self._lanes = probe_exec.Lanes()
        self._loop = Loop(clock)
        self._turning = Turning("prober", self._loop, self.step, fatal)

    # ---- ports.Probes, from any thread ------------------------------------------------------

    def sync(self, key: PodKey, targets: tuple[ports.Target, ...]) -> None:
        """See ports.Probes."""
        with self._lock:
            old = self._pods.pop(key, {})
            remembered = any(t.container_id in self._before for t in targets)
            new = {t.container.name: self._keep(old.get(t.container.name), t) for t in targets}
            if new:
                self._pods[key] = new
            left = [w for w in old.values() if not any(w is kept for kept in new.values())]
            for watched in left:
                self._drop(watched)
            changed = bool(left) or any(w is not old.get(name) for name, w in new.items())
        for watched in left:
            self._runner.forget(watched.target.container_id)
        if changed:
            self._save()
            self._loop.poke()
        if remembered:
            self._wake(key)  # what was known before the restart is a verdict that no try will announce

    def verdicts(self, key: PodKey) -> Mapping[str, ports.Verdict]:
        """See ports.Probes."""
        with self._lock:
            return {name: watched.verdict() for name, watched in self._pods.get(key, {}).items()}

    def forget(self, key: PodKey) -> None:
        """See ports.Probes."""
        self.sync(key, ())
        with self._lock:
            self._tallies.forget(key)

    def counters(self) -> tuple[Tally, ...]:
        """What the metrics need, one entry per probe of the pods that are there (semantics 4.9)."""
        with self._lock:
            return self._tallies.all()

    # ---- the thread -------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to probe."""
        self._turning.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End the thread and every try; commands under way are killed with all they started."""
        self._turning.stop(timeout)

    def step(self, block: bool = True) -> None:
        """One turn: begin what is due, wait for the next thing to happen, take in what has ended."""
        with self._lock:
            unwanted, self._unwanted = self._unwanted, []
        for token in unwanted:
            self._loop.cancel(token)
            self._lanes.done(token)
        for token in self._take_due():
            self._begin(token)
        while (waiting := self._lanes.admit(self._clock.monotonic())) is not None:
            self._fly(waiting)
        for token, answer in self._loop.turn(self._wake_at(), block):
            self._landed(token, answer)

    def _wake_at(self) -> float | None:
        now = self._clock.monotonic()
        with self._lock:
            times = (self._due[0][0] if self._due else None, self._lanes.wake_at(now))
        return min((t for t in times if t is not None), default=None)

    def _take_due(self) -> list[int]:
        """Turn every due entry into a flight; their tokens."""
        now = self._clock.monotonic()
        tokens = []
        with self._lock:
            while self._due and self._due[0][0] <= now:
                _, token, watched, kind = heapq.heappop(self._due)
                track = watched.instance.track(kind)
                if watched.queued.get(kind) != token or track is None:
                    continue
                del watched.queued[kind]
                watched.flights[kind] = token
                self._flights[token] = _Flight(watched, kind, track.probe)
                tokens.append(token)
        return tokens

    def _begin(self, token: int) -> None:
        """Start a network probe now; a command waits for its place."""
        flight = self._flights.get(token)
        if flight is None:
            return
        if isinstance(flight.probe.handler, nouns.Exec):
            self._lanes.wait(token, flight.kind in flight.watched.hung)
        else:
            self._fly(token)

    def _fly(self, token: int) -> None:
        flight = self._flights.get(token)
        if flight is None:
            self._lanes.done(token)
            return
        flight.began = self._clock.monotonic()
        try:
            steps = self._steps(flight.watched.target, flight.probe)
        except probe_request.BadRequest as error:
            self._landed(token, Answer(Outcome.ERRORED, str(error)))
            return
        answer = self._loop.add(token, steps, flight.began + flight.probe.timeout)
        if answer is not None:
            self._landed(token, answer)

    def _steps(self, target: ports.Target, probe: nouns.Probe) -> Steps:
        """The try that a probe's handler asks for. Raises BadRequest."""
        handler, container = probe.handler, target.container
        if isinstance(handler, nouns.Exec):
            command = probe_request.command(handler, container)
            return probe_exec.run(self._runner, target, command, probe.timeout)
        if isinstance(handler, nouns.HttpGet):
            from . import probe_http

            return probe_http.get(probe_request.http_url(handler, container, target.ip), handler.headers)
        if isinstance(handler, nouns.TcpSocket):
            return probe_io.tcp(*probe_request.tcp_address(handler, container, target.ip))
        from . import probe_grpc

        return probe_grpc.check(target.ip or probe_request.LOCAL, handler.port, handler.service, probe.timeout)

    def _landed(self, token: int, answer: Answer) -> None:
        """A try has ended: count it, decide, tell."""
        self._lanes.done(token)
        now = self._clock.monotonic()
        flight = self._flights.get(token)
        if flight is None or not self._alive(flight.watched.target):
            self._void(token, now)
            return
        watched, kind = flight.watched, flight.kind
        with self._lock:
            if self._flights.pop(token, None) is None:
                return
            watched.flights.pop(kind, None)
            (watched.hung.add if answer.timed_out else watched.hung.discard)(kind)
            before = watched.verdict()
            watched.instance, effect = probes.result(watched.instance, kind, answer.outcome, now)
            self._schedule(watched)
            changed = watched.verdict() != before
            self._count(watched.target, kind, answer.outcome, effect, now - flight.began)
        self._tell(watched.target, kind, answer, effect)
        if changed:
            log.info("%s: container %s: %s", watched.target.key, watched.target.container.name, watched.verdict())
            self._save()
            self._wake(watched.target.key)

    def _void(self, token: int, now: float) -> None:
        """The container's process is gone: the result says nothing; its worker will hear of the exit."""
        with self._lock:
            flight = self._flights.pop(token, None)
            if flight is not None:
                flight.watched.flights.pop(flight.kind, None)
                flight.watched.instance = probes.skipped(flight.watched.instance, flight.kind, now)
                self._schedule(flight.watched)

    def _count(self, target: ports.Target, kind: Kind, outcome: Outcome, effect: Effect, seconds: float) -> None:
        if effect is not Effect.RETRY:
            self._tallies.add(target.key, target.uid, target.container.name, kind, outcome, seconds)

    def _tell(self, target: ports.Target, kind: Kind, answer: Answer, effect: Effect) -> None:
        """The kubelet's events (semantics 4.1.7, 4.2, 4.3)."""
        if answer.warning:
            self._event(target, "ProbeWarning", f"{kind.value} probe warning: {answer.text}")
        elif answer.outcome is Outcome.FAILURE:
            self._event(target, "Unhealthy", f"{kind.value} probe failed: {answer.text}")
        elif effect is Effect.IGNORED:
            self._event(target, "Unhealthy", f"{kind.value} probe errored and resulted in unknown state: {answer.text}")

    def _event(self, target: ports.Target, reason: str, message: str) -> None:
        path = target.field_path or f"spec.containers{{{target.container.name}}}"
        self._recorder.event(ports.EventRef(target.key, target.uid, path), "Warning", reason, message)

    # ---- state, under the lock --------------------------------------------------------------

    def _keep(self, old: _Watched | None, target: ports.Target) -> _Watched:
        """Go on with the same instance, or begin with a new one."""
        now = self._clock.monotonic()
        if old is not None and old.target.container_id == target.container_id:
            # Probes in a changed spec with the same instance are not read again (4.1.1).
            old.target = dataclasses.replace(target, container=old.target.container)
            if target.terminating:
                old.instance = probes.terminate(old.instance)
                self._schedule(old)
            return old
        started, ready = self._before.pop(target.container_id, (False, False))
        instance = probes.begin(target.container, target.started_mono, now, started=started, ready=ready)
        watched = _Watched(target, probes.terminate(instance) if target.terminating else instance)
        self._schedule(watched)
        return watched

    def _drop(self, watched: _Watched) -> None:
        watched.queued.clear()
        for token in watched.flights.values():
            self._flights.pop(token, None)
            self._unwanted.append(token)
        watched.flights.clear()

    def _schedule(self, watched: _Watched) -> None:
        """Queue every probe of it that is to be waited for and is neither queued nor under way."""
        for kind in Kind:
            due = probes.due(watched.instance, kind)
            if due is None:
                watched.queued.pop(kind, None)
            elif kind not in watched.flights and kind not in watched.queued:
                token = next(self._serial)
                watched.queued[kind] = token
                heapq.heappush(self._due, (due, token, watched, kind))
        self._compact()

    def _compact(self) -> None:
        """Throw away heap entries that nobody waits for, when they are the most."""
        live = 3 * sum(len(pod) for pod in self._pods.values()) + 64
        if len(self._due) > 2 * live:
            self._due = [entry for entry in self._due if entry[2].queued.get(entry[3]) == entry[1]]
            heapq.heapify(self._due)

    def _save(self) -> None:
        """Keep the verdicts for the next start of the agent; those not adopted yet as they were."""
        if self._results is None:
            return
        with self._saving:
            with self._lock:
                if self._clock.monotonic() > self._began + ADOPTION:
                    self._before.clear()
                watched = [w for pod in self._pods.values() for w in pod.values()]
                found = {w.target.container_id: (w.instance.started, w.instance.ready) for w in watched}
                results = self._before | found
            if results != self._saved:
                self._results.save(results)
                self._saved = results


def _process_lives(target: ports.Target) -> bool:
    """Whether a process of that id is there (a pid of 0 = unknown, taken for alive)."""
    if target.pid <= 0:
        return True
    try:
        os.kill(target.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
