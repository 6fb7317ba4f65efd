"""A fake Kubernetes API server that allows and refuses what a real one does; see `server`."""

from .answers import Refusal
from .faults import Rule
from .server import FakeServer

__all__ = ["FakeServer", "Refusal", "Rule"]
