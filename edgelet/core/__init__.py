"""Decisions: pure functions of (desired, observed, memory, now). No I/O, no clock, no threads, no logging."""
