"""Decides what probe results mean: when the next try is due, what is published, when to kill.

One `Instance` holds the probes of one container instance.  Rules: semantics section 4 with the
differences of design section 4: the first try is at start + initialDelaySeconds without jitter,
then one per period on that grid; run lengths begin anew with each container instance.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from dataclasses import dataclass

from ..model.pod import Container, Probe

MAX_TRIES = 3
"""Tries in a row of a probe that cannot be executed before the tick is given up (4.1.7)."""


class Kind(enum.Enum):
    """The probe kinds; the values are the kubelet's words in events and metrics."""

    STARTUP = "Startup"
    LIVENESS = "Liveness"
    READINESS = "Readiness"


class Outcome(enum.Enum):
    """What one try came to. ERRORED = it could not be executed (not: it timed out)."""

    SUCCESS = "successful"
    FAILURE = "failed"
    ERRORED = "unknown"


class Effect(enum.Enum):
    """What has to be told after a result. PUBLISHED = the verdict may differ now."""

    NONE = enum.auto()
    RETRY = enum.auto()
    IGNORED = enum.auto()
    PUBLISHED = enum.auto()


@dataclass(frozen=True, slots=True)
class Track:
    """One probe of one instance.

    `published` is the result others see (None = unknown); `run` counts results equal to `last`;
    `held` = no more tries for this instance (4.1.6); `next_at` is the monotonic second of the next
    tick; `errors` counts tries of this tick that could not be executed.
    """

    probe: Probe
    published: bool | None
    next_at: float
    last: bool | None = None
    run: int = 0
    held: bool = False
    errors: int = 0


@dataclass(frozen=True, slots=True)
class Instance:
    """All probes of one container instance; `started_mono` in monotonic seconds."""

    started_mono: float
    startup: Track | None = None
    liveness: Track | None = None
    readiness: Track | None = None

    @property
    def started(self) -> bool:
        """Whether the startup probe, if there is one, has succeeded (4.5)."""
        return self.startup is None or self.startup.published is True

    @property
    def ready(self) -> bool:
        """Started, and the readiness probe, if there is one, says yes (4.5)."""
        return self.started and (self.readiness is None or self.readiness.published is True)

    @property
    def failed(self) -> Kind | None:
        """The kind whose failure threshold was reached: the container is to be killed."""
        for kind in (Kind.STARTUP, Kind.LIVENESS):
            track = self.track(kind)
            if track is not None and track.published is False:
                return kind
        return None

    @property
    def grace(self) -> int | None:
        """The failed probe's own termination grace in seconds, if it has one (4.4)."""
        track = self.track(self.failed) if self.failed else None
        return track.probe.termination_grace if track else None

    def track(self, kind: Kind) -> Track | None:
        """The track of that kind, None when the container has no such probe."""
        if kind is Kind.STARTUP:
            return self.startup
        return self.liveness if kind is Kind.LIVENESS else self.readiness


def begin(
    container: Container, started_mono: float, now: float, *, started: bool = False, ready: bool = False
) -> Instance:
    """The state of a container instance seen for the first time.

    `started` and `ready` carry over what was known of this very instance before the agent was
    restarted; False = nothing is known, initial values as in 4.1.3.
    """
    instance = Instance(
        started_mono=started_mono,
        startup=_first(container.startup, True if started else None, started_mono, now),
        liveness=_first(container.liveness, True, started_mono, now),
        readiness=_first(container.readiness, ready, started_mono, now),
    )
    if instance.startup is not None and started:
        held = dataclasses.replace(instance.startup, held=True)
        return dataclasses.replace(instance, startup=held)
    return instance


def due(instance: Instance, kind: Kind) -> float | None:
    """Monotonic second of the next try of `kind`, None while there is none to wait for.

    Liveness and readiness wait for the startup probe; a failed instance is only waited for (4.1.6).
    """
    track = instance.track(kind)
    if track is None or track.held:
        return None
    if kind is not Kind.STARTUP and not instance.started:
        return None
    return track.next_at


def result(instance: Instance, kind: Kind, outcome: Outcome, now: float) -> tuple[Instance, Effect]:
    """Take the outcome of one try that was due. An instance without that probe is left as it is."""
    track = instance.track(kind)
    if track is None or track.held:
        return instance, Effect.NONE
    if outcome is Outcome.ERRORED:
        return _errored(instance, kind, track, now)
    track = _counted(track, outcome is Outcome.SUCCESS, now)
    limit = track.probe.success_threshold if track.last else track.probe.failure_threshold
    if track.run < limit or track.published is track.last:
        return _with(instance, kind, track), Effect.NONE
    return _published(instance, kind, track, now), Effect.PUBLISHED


def skipped(instance: Instance, kind: Kind, now: float) -> Instance:
    """A try whose outcome says nothing: only the next tick moves."""
    track = instance.track(kind)
    if track is None:
        return instance
    return _with(instance, kind, dataclasses.replace(track, errors=0, next_at=_next_tick(track, now)))


def terminate(instance: Instance) -> Instance:
    """The pod is being ended: liveness and startup probing stop, readiness goes on (4.7)."""
    for kind in (Kind.STARTUP, Kind.LIVENESS):
        track = instance.track(kind)
        if track is not None:
            instance = _with(instance, kind, dataclasses.replace(track, held=True))
    return instance


def _first(probe: Probe | None, published: bool | None, started_mono: float, now: float) -> Track | None:
    if probe is None:
        return None
    return Track(probe=probe, published=published, next_at=max(started_mono + probe.initial_delay, now))


def _errored(instance: Instance, kind: Kind, track: Track, now: float) -> tuple[Instance, Effect]:
    if track.errors + 1 < MAX_TRIES:
        again = dataclasses.replace(track, errors=track.errors + 1)
        return _with(instance, kind, again), Effect.RETRY
    given_up = dataclasses.replace(track, errors=0, next_at=_next_tick(track, now))
    return _with(instance, kind, given_up), Effect.IGNORED


def _counted(track: Track, good: bool, now: float) -> Track:
    run = track.run + 1 if track.last is good else 1
    return dataclasses.replace(track, last=good, run=run, errors=0, next_at=_next_tick(track, now))


def _published(instance: Instance, kind: Kind, track: Track, now: float) -> Instance:
    """Publish the track's newest result.

    Startup success ends that probe and lets the others begin at once, though never before their
    own initial delay; a failed startup or liveness probe is held until the next instance (4.1.6).
    """
    good = bool(track.last)
    held = kind is Kind.STARTUP or (kind is Kind.LIVENESS and not good)
    instance = _with(instance, kind, dataclasses.replace(track, published=good, held=held))
    if kind is not Kind.STARTUP or not good:
        return instance
    return dataclasses.replace(
        instance,
        liveness=_released(instance.liveness, instance.started_mono, now),
        readiness=_released(instance.readiness, instance.started_mono, now),
    )


def _released(track: Track | None, started_mono: float, now: float) -> Track | None:
    if track is None:
        return None
    return dataclasses.replace(track, next_at=max(started_mono + track.probe.initial_delay, now))


def _next_tick(track: Track, now: float) -> float:
    """The grid's next tick. Of the ticks missed by a slow try, one is made up for, like a Go ticker's."""
    period = max(track.probe.period, 1)
    missed = math.floor(max(now - track.next_at, 0.0) / period)
    return track.next_at + period * max(missed, 1)


def _with(instance: Instance, kind: Kind, track: Track) -> Instance:
    if kind is Kind.STARTUP:
        return dataclasses.replace(instance, startup=track)
    if kind is Kind.LIVENESS:
        return dataclasses.replace(instance, liveness=track)
    return dataclasses.replace(instance, readiness=track)
