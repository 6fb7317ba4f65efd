"""Owns image pulls: one thread, one pull at a time, newest result to the pod that asked (semantics 3.7)."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

from .. import errors, ports
from ..core import backoff, clock_set, image_name, rate
from ..core.memory import Pull, PullState
from ..model.pod import Container, PodKey

log = logging.getLogger(__name__)

NEVER_PULL_RETRY = 10.0
"""Seconds until an image that may not be pulled is looked for again."""

BAD_NAME_RETRY = 60.0
"""Seconds until an image whose name is none is told once more."""

CLOCK_LOOK = 1.0
"""Seconds between looks at the clock while a wrong one may be why a registry's certificate fails."""

UNTIMELY = "expired or is not yet valid"
"""What Podman says of a certificate whose time, by this machine's clock, is not now."""

NO_RATE = (0.0, 0.0)

MAX_WAITING = 256
"""Pods that are remembered for a wrong clock; far above what waits for images on one box."""


@dataclass(frozen=True, slots=True)
class Request:
    """One container of one generation needs its image; `previous` is the last failure, for the back-off."""

    key: PodKey
    config_hash: str
    container: Container
    ref: ports.EventRef
    previous: Pull | None = None


Deliver = Callable[[PodKey, str, str, Pull], None]
"""(key, config hash, container name, result) -> the pod's mailbox."""


class Puller:
    """Checks and pulls images; bounded because each container asks at most once at a time."""

    def __init__(
        self,
        runtime: ports.Runtime,
        clock: ports.Clock,
        recorder: ports.Recorder,
        deliver: Deliver,
        fatal: Callable[[str], None] = lambda message: None,
        hurry: Callable[[PodKey], None] = lambda key: None,
        rated: tuple[float, float] = NO_RATE,
    ) -> None:
        """`fatal` is told when the thread ends although it must not; `hurry` ends the back-off of a pod.

        `rated` = so many pulls a second on the average and so many at once; any more fail (3.7.2).
        """
        self._runtime = runtime
        self._clock = clock
        self._recorder = recorder
        self._deliver = deliver
        self._fatal = fatal
        self._hurry = hurry
        self._bucket = rate.bucket(*rated, clock.monotonic())
        self._waiting: dict[PodKey, float] = {}
        self._queue: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="puller", daemon=True)

    def start(self) -> None:
        """Begin pulling."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; a pull under way is abandoned (Podman finishes or drops it)."""
        self._queue.put(None)
        self._thread.join(1)

    def request(self, request: Request) -> Pull:
        """The state right now; PULLING = a result will be delivered. Raises errors.RuntimeFailure."""
        container = request.container
        if wrong := image_name.fault(container.image):
            return self._no_name(request, wrong)
        if container.pull_policy != "Always" and self._runtime.image(container.image) is not None:
            self._recorder.event(request.ref, "Normal", "Pulled", present(container.image))
            return Pull(PullState.READY)
        if container.pull_policy == "Never":
            message = f'Container image "{container.image}" is not present with pull policy of Never'
            self._recorder.event(request.ref, "Warning", "ErrImageNeverPull", message)
            return Pull(PullState.FAILED, "ErrImageNeverPull", message, self._clock.monotonic(), NEVER_PULL_RETRY)
        self._queue.put(request)
        return Pull(PullState.PULLING, at=self._clock.monotonic())

    def _no_name(self, request: Request, wrong: str) -> Pull:
        image = request.container.image
        message = f'Failed to apply default image tag "{image}": couldn\'t parse image reference "{image}": {wrong}'
        self._recorder.event(request.ref, "Warning", "InspectFailed", message)
        return Pull(PullState.FAILED, "InvalidImageName", message, self._clock.monotonic(), BAD_NAME_RETRY)

    def _run(self) -> None:
        try:
            while (request := self._next()) is not None:
                result = self.pull(request)
                self._deliver(request.key, request.config_hash, request.container.name, result)
        except Exception as error:  # guard
            log.critical("the puller has ended; this is a fault in edgelet", exc_info=True)
            self._fatal(f"the puller has ended: {error}")

    def _next(self) -> Request | None:
        """Wait for a request; meanwhile look whether the clock is set, if that may help."""
        while True:
            try:
                return self._queue.get(timeout=CLOCK_LOOK if self._waiting else None)
            except queue.Empty:
                self.look_at_clock()

    def look_at_clock(self) -> None:
        """End the back-off of pods whose pull failed by the clock, once that was set."""
        now = self._offset()
        for key in [key for key, then in self._waiting.items() if clock_set.was_set(then, now)]:
            del self._waiting[key]
            log.info("the clock was set: pulling the image of %s again", key)
            self._hurry(key)

    def _offset(self) -> float:
        return clock_set.offset(self._clock.time(), self._clock.monotonic())

    def pull(self, request: Request) -> Pull:
        """Pull now; the answer says how it went. A present image serves when the registry does not."""
        image = request.container.image
        self._recorder.event(request.ref, "Normal", "Pulling", f'Pulling image "{image}"')
        began = self._clock.monotonic()
        self._waiting.pop(request.key, None)
        try:
            self._allow()
            found = self._runtime.pull(image)
        except errors.RuntimeFailure as error:
            return self._failed(request, error)
        took = self._clock.monotonic() - began
        self._recorder.event(
            request.ref,
            "Normal",
            "Pulled",
            f'Successfully pulled image "{image}" in {took:.3f}s ({took:.3f}s including waiting).'
            f" Image size: {found.size} bytes.",
        )
        return Pull(PullState.READY)

    def _allow(self) -> None:
        """Raises PullFailed when there were too many pulls just now."""
        self._bucket, may = rate.try_take(self._bucket, self._clock.monotonic())
        if not may:
            raise errors.PullFailed("pull QPS exceeded")

    def _failed(self, request: Request, error: errors.RuntimeFailure) -> Pull:
        image = request.container.image
        if UNTIMELY in str(error) and len(self._waiting) < MAX_WAITING:
            self._waiting[request.key] = self._offset()
        if request.container.pull_policy == "Always" and self._present(image):
            self._recorder.event(
                request.ref,
                "Warning",
                "PullFailedUsingPresent",
                f'Cannot pull image "{image}": {error}; the image already present on the machine is used',
            )
            return Pull(PullState.READY)
        self._recorder.event(request.ref, "Warning", "Failed", f'Failed to pull image "{image}": {error}')
        return _again(request, error, self._clock.monotonic())

    def _present(self, image: str) -> bool:
        try:
            return self._runtime.image(image) is not None
        except errors.RuntimeFailure:
            return False


def present(image: str) -> str:
    """Text of the event Pulled for an image that needed no pull (3.7.4)."""
    return f'Container image "{image}" already present on machine and can be accessed by the pod'


def _again(request: Request, error: errors.RuntimeFailure, now: float) -> Pull:
    """The failed state with its back-off: first ErrImagePull, then ImagePullBackOff with the cause."""
    before = request.previous
    if before is None or before.state is not PullState.FAILED or not before.delay:
        reason = error.reason if isinstance(error, errors.PullFailed) else "ErrImagePull"
        return Pull(PullState.FAILED, reason, str(error), now, backoff.INITIAL)
    message = f'Back-off pulling image "{request.container.image}": {error}'
    return Pull(PullState.FAILED, "ImagePullBackOff", message, now, min(before.delay * 2, backoff.CAP))
