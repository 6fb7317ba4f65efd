"""The main loop's bell, and what SIGHUP does to a running agent."""

from __future__ import annotations

import os
import signal
import threading
import time

from edgelet.app import machine


def test_a_bell_rung_before_is_heard_once() -> None:
    bell = machine.Bell()
    bell.ring()
    bell.ring()
    assert bell.wait(0)
    assert not bell.wait(0)


def test_a_signal_handler_may_ring_while_the_same_thread_waits() -> None:
    bell = machine.Bell()
    before = signal.signal(signal.SIGUSR1, lambda *_: bell.ring())
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        timer.start()
        began = time.monotonic()
        assert bell.wait(20)
        assert time.monotonic() - began < 15
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)
