"""What is no answer of Podman's must not end the agent: whatever listens on that socket is foreign."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ... import errors

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_SHAPES = (KeyError, TypeError, AttributeError, ValueError, IndexError, RecursionError)
"""What reading an answer of another shape than Podman's raises."""


def understood(call: Callable[P, T]) -> Callable[P, T]:
    """A method whose trouble with the shape of an answer becomes errors.Temporary; the log has the details (debug)."""

    @functools.wraps(call)
    def made(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except _SHAPES as error:
            log.debug("an answer of Podman is not understood", exc_info=True)
            what = f"{type(error).__name__}: {error}"
            raise errors.Temporary(
                f"cannot understand Podman's answer ({what}): see that it is Podman that listens on its socket"
            ) from error

    return made
