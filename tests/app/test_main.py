"""The main loop's bell, and what SIGHUP does to a running agent."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

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


def test_free_memory_goes_back_to_the_kernel() -> None:
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        pytest.skip("this C library keeps no free pages")
    code = (
        "import os\nfrom edgelet.app import machine\n"
        "def pages(): return int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGE_SIZE')\n"
        "held = [bytes(1000) for _ in range(20_000)]\n"
        "del held[:-1]\n"  # the last one keeps the heap from shrinking by itself
        "before = pages()\nmachine.give_back()\nprint(before - pages())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert int(done.stdout) > 10_000_000
