"""Speaks grpc.health.v1.Health/Check for grpc probes (semantics 4.2)."""

from __future__ import annotations

from ..core.probes import Outcome
from .probe_io import Answer, Steps


def check(host: str, port: int, service: str, timeout: int) -> Steps:
    """One Check call; success only on SERVING."""
    if not host:
        yield ()
    return Answer(
        Outcome.ERRORED, f"cannot check {service or 'server'} at {host}:{port} within {timeout}s: not built in"
    )
