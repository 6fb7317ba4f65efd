"""Owns running hooks: one thread, one selector, the state of every hook begun.

A hook runs beside the worker that wanted it: the worker is woken when it has ended, and asks `states`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import count

from .. import ports
from ..core import hook_request, probe_request
from ..core.probes import Outcome
from ..model import pod as nouns
from ..model.hooks import HookKind, HookState, HookStates
from ..model.pod import PodKey
from . import probe_exec
from .probe_io import Answer, Deadline, Steps
from .probe_loop import Loop
from .turning import Turning

log = logging.getLogger(__name__)

_NONE: HookStates = {}


@dataclass(frozen=True, slots=True)
class _Run:
    """A hook under way; `until` is the monotonic second at which it is given up."""

    target: ports.Target
    kind: HookKind
    handler: nouns.HookHandler
    until: float


class Hooks:
    """See ports.Hooks. `wake` is called from the hooks' thread; `fatal` when that ends although it must not."""

    def __init__(
        self,
        clock: ports.Clock,
        runner: ports.ExecRunner,
        recorder: ports.Recorder,
        wake: ports.Wake,
        fatal: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._clock = clock
        self._runner = runner
        self._recorder = recorder
        self._wake = wake
        self._lock = threading.Lock()
        self._states: dict[PodKey, dict[tuple[str, HookKind], HookState]] = {}
        self._new: list[_Run] = []
        self._running: dict[int, _Run] = {}
        self._serial = count(1)
        self._loop = Loop(clock)
        self._turning = Turning("hooks", self._loop, self.step, fatal)

    # ---- ports.Hooks, from any thread -------------------------------------------------------------

    def begin(self, kind: HookKind, target: ports.Target, handler: nouns.HookHandler, limit: float) -> None:
        """See ports.Hooks."""
        with self._lock:
            states = self._states.setdefault(target.key, {})
            if (target.container_id, kind) in states or self._turning.stopping:
                return
            states[target.container_id, kind] = HookState.RUNNING
            self._new.append(_Run(target, kind, handler, self._clock.monotonic() + limit))
        self._loop.poke()

    def states(self, key: PodKey) -> HookStates:
        """See ports.Hooks."""
        with self._lock:
            found = self._states.get(key)
            return dict(found) if found else _NONE

    def keep(self, key: PodKey, container_ids: Collection[str]) -> None:
        """See ports.Hooks."""
        with self._lock:
            known = self._states.get(key)
            gone = {i for i, _ in known or {}} - set(container_ids)
            if known is None or not gone:
                return
            left = {which: state for which, state in known.items() if which[0] not in gone}
            if left:
                self._states[key] = left
            else:
                del self._states[key]
        for container_id in gone:
            self._runner.forget(container_id)
        self._loop.poke()

    # ---- the thread ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to run hooks."""
        self._turning.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End the thread and every hook; commands under way are killed with all they started."""
        with self._lock:
            self._turning.stopping = True  # from here on `begin` takes nothing
        self._turning.stop(timeout)

    def step(self, block: bool = True) -> None:
        """One turn: drop what nobody waits for, begin what is new, wait, take in what has ended."""
        with self._lock:
            new, self._new = self._new, []
            lost = [token for token, run in self._running.items() if not self._wanted(run)]
        for token in lost:
            del self._running[token]
            self._loop.cancel(token)
        for run in new:
            self._fly(run)
        for token, answer in self._loop.turn(None, block):
            self._landed(self._running.pop(token), answer)

    def _wanted(self, run: _Run) -> bool:
        return (run.target.container_id, run.kind) in self._states.get(run.target.key, {})

    def _fly(self, run: _Run) -> None:
        token = next(self._serial)
        until = run.until
        if isinstance(run.handler, nouns.Sleep):
            until = min(until, self._clock.monotonic() + run.handler.seconds)
        self._running[token] = run
        answer = self._loop.add(token, self._steps(run), until)
        if answer is not None:
            self._landed(self._running.pop(token), answer)

    def _steps(self, run: _Run) -> Steps:
        """The handler as a try (semantics 3.8, hooks)."""
        handler = run.handler
        if isinstance(handler, nouns.Exec):
            return probe_exec.run(self._runner, run.target, handler.command, 0)
        if isinstance(handler, nouns.HttpGet):
            return self._get(run.target, handler)
        return _sleep() if isinstance(handler, nouns.Sleep) else _refuse()

    def _get(self, target: ports.Target, handler: nouns.HttpGet) -> Steps:
        """Any status is success; a server that does not speak TLS after all is asked again without it."""
        from . import probe_http

        headers = hook_request.headers(handler)
        try:
            url = probe_request.http_url(handler, target.container, target.ip)
        except probe_request.BadRequest as error:
            return Answer(Outcome.ERRORED, str(error))
        answer = yield from probe_http.call(url, headers)
        if url.scheme == "https" and answer.outcome is Outcome.FAILURE and probe_http.NO_TLS in answer.text:
            plain, headers = hook_request.without_tls(url, headers)
            self._event(target, "LifecycleHTTPFallback", hook_request.fallback_text(url, target.container_id))
            answer = yield from probe_http.call(plain, headers)
        return answer

    def _landed(self, run: _Run, answer: Answer) -> None:
        """A hook has ended: note how, tell a failure, wake the pod's worker."""
        good = answer.outcome is Outcome.SUCCESS
        with self._lock:
            if not self._wanted(run):
                return
            state = HookState.DONE if good else HookState.FAILED
            self._states[run.target.key][run.target.container_id, run.kind] = state
        if not good:
            log.warning(
                "%s: container %s: %s hook: %s", run.target.key, run.target.container.name, run.kind.value, answer.text
            )
            self._event(run.target, f"Failed{run.kind.value}Hook", f"{run.kind.value}Hook failed")
        self._wake(run.target.key)

    def _event(self, target: ports.Target, reason: str, message: str) -> None:
        self._recorder.event(ports.EventRef(target.key, target.uid, target.field_path), "Warning", reason, message)


def _sleep() -> Steps:
    try:
        yield ()
    except Deadline:
        pass
    return Answer(Outcome.SUCCESS)


def _refuse() -> Steps:
    """tcpSocket: the API takes it, the kubelet cannot run it."""
    yield from ()
    return Answer(Outcome.ERRORED, "invalid handler: a tcpSocket hook cannot be run")
