"""Owns exec probes: one try, and who may run how many at a time.

A command costs about 40 ms of CPU whatever it does, so too many at once would make each other time
out; a command that hangs costs memory only.  So few may be *young* at a time, more may hang, and
those whose last try timed out get fewer places still: the good never wait for the hanging.
"""

from __future__ import annotations

from collections import deque

from .. import ports
from ..core import probe_request
from ..core.probes import Outcome
from ..errors import ExecError
from .probe_io import READ, Answer, Deadline, Steps, Wants

YOUNG = 0.5
"""Seconds after which a command counts as waiting, not as starting."""

MAX_YOUNG = 8
MAX_RUNNING = 24
MAX_SUSPECTS = 8


def run(runner: ports.ExecRunner, target: ports.Target, command: tuple[str, ...], timeout: int) -> Steps:
    """exec: exit 0 is success, any other exit and a time-out failure (4.2)."""
    try:
        running = runner.begin(target, command)
    except ExecError as error:
        return Answer(Outcome.ERRORED, str(error))
    try:
        answer = yield from _wait(running)
    except Deadline:
        yield from _end(running)
        return Answer(Outcome.FAILURE, probe_request.exec_timeout(command, timeout), timed_out=True)
    except GeneratorExit:
        running.kill()
        raise
    return answer


def _wait(running: ports.Running) -> Steps:
    while True:
        ready = yield _wants(running)
        if running.output_fileno() in ready:
            running.drain()
        if running.fileno() in ready:
            break
    try:
        result = running.finish()
    except ExecError as error:
        return Answer(Outcome.ERRORED, str(error))
    text = result.output.decode("utf-8", "replace")
    return Answer(Outcome.FAILURE if result.exit_code else Outcome.SUCCESS, text)


def _end(running: ports.Running) -> Steps:
    """Abort and reap it, with a second of patience (the next Deadline)."""
    running.abort()
    try:
        return (yield from _wait(running))
    except (Deadline, GeneratorExit) as error:
        running.kill()
        if isinstance(error, GeneratorExit):
            raise
        return Answer(Outcome.FAILURE)


def _wants(running: ports.Running) -> Wants:
    output = running.output_fileno()
    return ((running.fileno(), READ), (output, READ)) if output >= 0 else ((running.fileno(), READ),)


class Lanes:
    """Tokens that wait to run a command, and those that do; times in monotonic seconds."""

    def __init__(self) -> None:
        self._normal: deque[int] = deque()
        self._suspect: deque[int] = deque()
        self._running: dict[int, tuple[float, bool]] = {}

    def wait(self, token: int, suspect: bool) -> None:
        """Queue a token; `suspect` = its last try timed out."""
        (self._suspect if suspect else self._normal).append(token)

    def admit(self, now: float) -> int | None:
        """The next token that may run now, None when nobody may."""
        young = sum(1 for began, _ in self._running.values() if now - began < YOUNG)
        if young >= MAX_YOUNG or len(self._running) >= MAX_RUNNING:
            return None
        suspects = sum(1 for _, suspect in self._running.values() if suspect)
        if self._normal:
            queue, suspect = self._normal, False
        elif self._suspect and suspects < MAX_SUSPECTS:
            queue, suspect = self._suspect, True
        else:
            return None
        token = queue.popleft()
        self._running[token] = (now, suspect)
        return token

    def done(self, token: int) -> None:
        """The token has ended, or is not wanted any more; unknown is fine."""
        self._running.pop(token, None)
        for queue in (self._normal, self._suspect):
            if token in queue:
                queue.remove(token)

    def wake_at(self, now: float) -> float | None:
        """When a place may get free merely by time passing, None when nobody waits for that."""
        if not self._normal and not self._suspect:
            return None
        young = [began + YOUNG for began, _ in self._running.values() if now - began < YOUNG]
        return min(young, default=None)
