"""Owns the selector on which all tries run, with their deadlines. One thread; only `poke` is for others."""

from __future__ import annotations

import heapq
import os
import selectors
import threading
from dataclasses import dataclass

from .. import errors, ports
from ..core.probes import Outcome
from .probe_io import Answer, Deadline, Ready, Steps

PATIENCE = 1.0
"""Seconds a try gets to clean up after its deadline, before the next one."""

LONGEST_WAIT = 3600.0
"""Seconds that a turn waits at the most: the kernel takes no wait of a month, a grace period may be longer."""

Answers = list[tuple[int, Answer]]
"""Finished tries: token and how it ended."""


@dataclass(eq=False, slots=True)
class _Try:
    steps: Steps
    deadline: float
    fds: tuple[int, ...] = ()


class Loop:
    """Tries under way, by token."""

    def __init__(self, clock: ports.Clock) -> None:
        self._clock = clock
        self._tries: dict[int, _Try] = {}
        self._deadlines: list[tuple[float, int]] = []
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._selector.register(self._event, selectors.EVENT_READ, 0)

    def __len__(self) -> int:
        return len(self._tries)

    def poke(self) -> None:
        """Make a waiting `turn` return; from any thread, and harmless after `close`."""
        with self._lock:
            if self._event >= 0:
                os.eventfd_write(self._event, 1)

    def add(self, token: int, steps: Steps, deadline: float) -> Answer | None:
        """Begin a try that ends at `deadline` (monotonic) at the latest; its answer if it has one at once."""
        one = _Try(steps, deadline)
        self._tries[token] = one
        heapq.heappush(self._deadlines, (deadline, token))
        return self._advance(token, one, None)

    def cancel(self, token: int) -> None:
        """Nobody wants the answer any more."""
        one = self._tries.pop(token, None)
        if one is not None:
            self._unregister(one)
            one.steps.close()

    def turn(self, wake_at: float | None, block: bool = True) -> Answers:
        """Wait for something to happen, until `wake_at` at the latest; the tries that have ended."""
        ready: dict[int, set[int]] = {}
        for key, _ in self._selector.select(self._timeout(wake_at) if block else 0):
            if key.fd == self._event:
                os.eventfd_read(self._event)
            else:
                ready.setdefault(key.data, set()).add(key.fd)
        answers: Answers = []
        for token, fds in ready.items():
            self._collect(answers, token, frozenset(fds))
        now = self._clock.monotonic()
        while self._deadlines and self._deadlines[0][0] <= now:
            _, token = heapq.heappop(self._deadlines)
            one = self._tries.get(token)
            if one is not None and one.deadline <= now:
                one.deadline = now + PATIENCE
                heapq.heappush(self._deadlines, (one.deadline, token))
                self._collect(answers, token, None)
        return answers

    def close(self) -> None:
        """Cancel everything."""
        for token in list(self._tries):
            self.cancel(token)
        self._selector.close()
        with self._lock:
            os.close(self._event)
            self._event = -1

    def _timeout(self, wake_at: float | None) -> float | None:
        while self._deadlines and self._deadlines[0][1] not in self._tries:
            heapq.heappop(self._deadlines)
        times = [t for t in (wake_at, self._deadlines[0][0] if self._deadlines else None) if t is not None]
        return min(max(min(times) - self._clock.monotonic(), 0.0), LONGEST_WAIT) if times else None

    def _collect(self, answers: Answers, token: int, ready: Ready | None) -> None:
        """Resume a try: something is ready, or (None) its time is up."""
        one = self._tries.get(token)
        if one is None:
            return
        answer = self._advance(token, one, ready, late=ready is None)
        if answer is not None:
            answers.append((token, answer))

    def _advance(self, token: int, one: _Try, ready: Ready | None, late: bool = False) -> Answer | None:
        # Unregistered first: the try may close its descriptors, and their numbers are reused at once.
        self._unregister(one)
        try:
            wants = one.steps.throw(Deadline()) if late else next(one.steps) if ready is None else one.steps.send(ready)
            for fd, mask in wants:
                self._selector.register(fd, mask, token)
            one.fds = tuple(fd for fd, _ in wants)
            return None
        except StopIteration as end:
            answer: Answer = end.value
        except Deadline:
            answer = Answer(Outcome.FAILURE, "context deadline exceeded", timed_out=True)
        except OSError as error:
            one.steps.close()
            answer = Answer(Outcome.ERRORED, f"cannot probe: {errors.cause(error)}")
        del self._tries[token]
        return answer

    def _unregister(self, one: _Try) -> None:
        for fd in one.fds:
            self._selector.unregister(fd)
        one.fds = ()
