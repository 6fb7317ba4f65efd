"""One thread and one mailbox per pod around `Reconciler.step`: newest wish wins, one wake signal.

A pod's worker is the only thread that touches its state, so a slow pod delays no other one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from .. import ports
from ..core.memory import Pull
from ..model.gate import Gate
from ..model.observed import State
from ..model.pod import Pod, PodKey
from .counts import Work
from .local import Local
from .reconciler import Reconciler, Stepped

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted of one pod; `grace` = seconds allowed when it is to go (None = its own).

    `down` = the machine is going down and leaves so many seconds (None = it stays up).  `gate` = it may not begin now.
    """

    pod: Pod | None
    held: bool = False
    grace: int | None = None
    down: int | None = None
    gate: Gate | None = None


class Mailbox:
    """One pending slot per kind of news; putting never blocks, and never makes a backlog."""

    def __init__(self, now: Callable[[], float] = lambda: 0.0) -> None:
        self._now = now
        self._news = threading.Condition()
        self._since = 0.0
        self._wish: Wish | None = None
        self._restart: set[str] = set()
        self._impatient = False
        self._stale = False
        self._pulls: dict[tuple[str, str], Pull] = {}
        self._woken = False
        self._closed = False

    def wish(self, wish: Wish) -> None:
        """The newest wish replaces an older one that was not read yet."""
        with self._news:
            self._wish = wish
            self._signal()

    def restart(self, container: str = "") -> None:
        """Replace one container once, or ("") the sandbox with all of them; waits of any kind end."""
        with self._news:
            self._restart.add(container)
            self._impatient = True
            self._signal()

    def hurry(self) -> None:
        """End back-offs and other waits: a person has put right what was wrong."""
        with self._news:
            self._impatient = True
            self._signal()

    def pulled(self, config_hash: str, container: str, pull: Pull) -> None:
        """The result of a pull."""
        with self._news:
            self._pulls[config_hash, container] = pull
            self._signal()

    def wake(self, stale: bool = False) -> None:
        """Look again; `stale` = ask the runtime first."""
        with self._news:
            self._stale = self._stale or stale
            self._signal()

    def close(self) -> None:
        """End the worker after its present step."""
        with self._news:
            self._closed = True
            self._signal()

    def _signal(self) -> None:
        if not self._woken:
            self._since = self._now()
        self._woken = True
        self._news.notify()

    @property
    def empty(self) -> bool:
        """No news has come since the last `take`."""
        with self._news:
            return not self._woken

    def wait(self, seconds: float | None) -> bool:
        """Until there is news or the time is over; False = closed."""
        with self._news:
            if not self._woken:
                self._news.wait(seconds)
            return not self._closed

    def age(self) -> float | None:
        """Seconds that the oldest news have been waiting; None = there are none."""
        with self._news:
            return self._now() - self._since if self._woken else None

    def take(self, local: Local) -> Local:
        """`local` with all news applied."""
        with self._news:
            self._woken = False
            if self._wish is not None:
                grace = _grace(local, self._wish)
                wish = self._wish
                local = replace(local, desired=wish.pod, held=wish.held, grace=grace, down=wish.down, gate=wish.gate)
                self._wish = None
            for (config_hash, container), pull in self._pulls.items():
                local = local.with_pull(config_hash, container, pull)
            self._pulls.clear()
            if self._impatient:
                local = replace(local, memory=local.memory.impatient(), incoming=local.incoming.impatient())
            for container in sorted(self._restart):
                local = _restarted(local, container)
            self._restart.clear()
            self._impatient = False
            local = replace(local, stale=local.stale or self._stale)
            self._stale = False
            return local


def _grace(local: Local, wish: Wish) -> int | None:
    """A grace period given at a deletion only shrinks, and outlives that the pod is wanted anew (3.1.1)."""
    if local.memory.ending is None or local.grace is None:
        return wish.grace
    return local.grace if wish.grace is None else min(wish.grace, local.grace)


def _restarted(local: Local, container: str) -> Local:
    """`local` with the mark that one container, or the whole sandbox (""), is to be replaced."""
    if local.observed is None:
        return local.with_memory(replace(local.memory, anew=True)) if local.memory.uid and not container else local
    if not container:
        return local.with_memory(replace(local.memory, replace_id=local.observed.id))
    instance = local.observed.newest(container)
    if instance is None or instance.state is State.CREATED:
        return local
    return local.with_memory(local.memory.update(container, restart_id=instance.id))


class Workers:
    """All pods' workers by key; made on demand, ended when their pod is gone for good. `work` counts what they do."""

    def __init__(self, clock: ports.Clock, broken: Callable[[str], None]) -> None:
        self._clock = clock
        self._broken = broken
        self.work = Work()
        self._lock = threading.Lock()
        self._boxes: dict[PodKey, Mailbox] = {}
        self._threads: dict[PodKey, threading.Thread] = {}
        self._lacking = self._told = False
        self._closed = False
        self._reconciler: Reconciler | None = None

    def use(self, reconciler: Reconciler) -> None:
        """Give the workers their step (it needs `wake` and `pulled` itself, hence not in the constructor)."""
        self._reconciler = reconciler

    def wish(self, key: PodKey, wish: Wish) -> None:
        """Tell a pod's worker what is wanted; a worker is made if there is none."""
        with self._lock:
            if self._closed:
                return
            box = self._boxes.get(key)
            if box is None:
                box = self._begin(key)
            if box is not None:
                box.wish(wish)

    def _begin(self, key: PodKey) -> Mailbox | None:
        """A worker for that pod; None where the machine gives no thread: the wish is to be told again."""
        box = Mailbox(self._clock.monotonic)
        thread = threading.Thread(target=self._run, args=(key, box), name=f"pod {key}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            if not self._told:
                log.error("pod %s and others wait: %s; raise the limit of tasks (TasksMax, pids.max)", key, error)
            self._lacking = self._told = True
            return None
        self._told = False
        self._boxes[key], self._threads[key] = box, thread
        return box

    def lacked(self) -> bool:
        """Whether the machine has refused a thread since this was asked last: wishes are to be told again."""
        with self._lock:
            lacking, self._lacking = self._lacking, False
            return lacking

    def wake(self, key: PodKey) -> bool:
        """Look again at one pod; False = it has no worker."""
        with self._lock:
            box = self._boxes.get(key)
        if box is not None:
            box.wake()
        return box is not None

    def pulled(self, key: PodKey, config_hash: str, container: str, pull: Pull) -> None:
        """Deliver the result of a pull."""
        with self._lock:
            box = self._boxes.get(key)
        if box is not None:
            box.pulled(config_hash, container, pull)

    def restart(self, key: PodKey, container: str = "") -> bool:
        """Restart one container or ("") a whole pod; False = there is no such pod."""
        with self._lock:
            box = self._boxes.get(key)
        if box is not None:
            box.restart(container)
        return box is not None

    def hurry(self, key: PodKey) -> None:
        """End the back-offs of one pod."""
        with self._lock:
            box = self._boxes.get(key)
        if box is not None:
            box.hurry()

    def keys(self) -> frozenset[PodKey]:
        """The pods that have a worker."""
        with self._lock:
            return frozenset(self._boxes)

    def stop(self, seconds: float) -> list[PodKey]:
        """End all workers; answers those that did not end in time (stuck in a call)."""
        with self._lock:
            self._closed = True
            boxes, threads = list(self._boxes.values()), dict(self._threads)
        for box in boxes:
            box.close()
        until = self._clock.monotonic() + seconds
        for thread in threads.values():
            thread.join(max(0.0, until - self._clock.monotonic()))
        return [key for key, thread in threads.items() if thread.is_alive()]

    def _run(self, key: PodKey, box: Mailbox) -> None:
        """Thread body. A fault in our own code is loud and takes the process down for a restart."""
        try:
            self._loop(key, box)
        except Exception:  # guard
            log.exception("the worker of pod %s has failed; this is a fault in edgelet", key)
            self._broken(f"the worker of pod {key} has failed")

    def _loop(self, key: PodKey, box: Mailbox) -> None:
        local = Local(key)
        box.wait(None)
        while True:
            age = box.age()
            if age is not None:
                self.work.waited.add(seconds=age)
            stepped = self._step(box.take(local))
            local = stepped.local
            if stepped.over and self._retire(key, box):
                return
            seconds = None if stepped.wake_at is None else max(0.0, stepped.wake_at - self._clock.monotonic())
            if not box.wait(seconds):
                return

    def _step(self, local: Local) -> Stepped:
        if self._reconciler is None:
            raise RuntimeError("Workers.use was not called")
        began = self._clock.monotonic()
        stepped = self._reconciler.step(local)
        self.work.steps.add(seconds=self._clock.monotonic() - began)
        return stepped

    def _retire(self, key: PodKey, box: Mailbox) -> bool:
        with self._lock:
            if not box.empty:
                return False
            self._boxes.pop(key, None)
            self._threads.pop(key, None)
            return True
