"""Owns the thread that turns one `probe_loop.Loop`: begun once, ended in order, and never ended in silence."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from .probe_loop import Loop

log = logging.getLogger(__name__)


class Turning:
    """`step` is called over and over on a thread called `name`; `fatal` is told when that ends although it must not.

    The loop is closed when the thread has ended, or by `stop` if it never began.
    """

    def __init__(self, name: str, loop: Loop, step: Callable[[], None], fatal: Callable[[str], None]) -> None:
        self._name = name
        self._loop = loop
        self._step = step
        self._fatal = fatal
        self.stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to turn."""
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """End the thread after its present turn, waited for so many seconds at the most."""
        self.stopping = True
        self._loop.poke()
        if self._thread.ident is None:
            self._loop.close()
        else:
            self._thread.join(timeout)

    def _run(self) -> None:
        try:
            while not self.stopping:
                self._step()
        except BaseException as error:  # guard
            log.critical("the thread %s has ended; this is a fault in edgelet", self._name, exc_info=True)
            self._fatal(f"the thread {self._name} has ended: {error}")
        finally:
            self._loop.close()
