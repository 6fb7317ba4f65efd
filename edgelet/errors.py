"""The error tree of edgelet: every failure that crosses a module boundary is one of these.

::

    EdgeletError                 base; str(error) is a sentence for a person
    ├── ConfigError              flags, environment or configuration file; carries every mistake
    ├── ManifestError            a manifest that cannot become pods; carries every Problem
    │   └── NameTaken            a pod of that name exists already, or another source gives it
    ├── StateError               a file under the root directory that cannot be read or written
    ├── RuntimeFailure           Podman did not do what was asked
    │   ├── Temporary            may work when tried again: unreachable, busy, locked, timed out
    │   │   ├── Unreachable      nothing answers on the socket
    │   │   ├── TimedOut         no answer within the deadline: it may have taken effect or not
    │   │   └── Damaged          layers of an image are missing or broken in local storage
    │   ├── Conflict             the name is taken (a container or pod of that name exists)
    │   ├── NotFound             the thing named is not there (any more)
    │   ├── ImageMissing         the image is not in local storage
    │   ├── PullFailed           the registry did not give the image (may be tried again)
    │   └── Permanent            asking again the same way cannot work (bad spec, bad command)
    ├── VolumeError              a volume cannot be set up: hostPath type, missing device, full disk
    ├── ReferenceMissing         a ConfigMap, Secret or key of one that a pod refers to is not there
    ├── ExecError                a command could not be started inside a container
    └── LinkError                the API server of a cluster gave no usable answer
        └── Refused              it answered, and will not do this one thing

Temporary or permanent is a type, decided where the error is born; nobody greps a message later.
The library's own error is always chained as the cause.
"""

from __future__ import annotations

import errno
import os


def cause(error: BaseException) -> str:
    """What the system said, for the end of a sentence: "Read-only file system: /var/lib/x", without its number."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or ("out of memory" if isinstance(error, MemoryError) else type(error).__name__)
    place = error.filename
    return f"{error.strerror}: {os.fsdecode(place)}" if isinstance(place, str | bytes) else error.strerror


_MACHINE = frozenset(
    getattr(errno, name)
    for name in ("EMFILE", "ENFILE", "ENOMEM", "ENOBUFS", "EAGAIN", "ENOSPC", "EDQUOT", "EROFS", "EIO")
)


def of_machine(error: BaseException) -> bool:
    """Whether the machine lacks something (descriptors, memory, threads, disk): no fault of ours, and it passes."""
    if isinstance(error, OSError):
        return error.errno in _MACHINE
    return isinstance(error, MemoryError) or "can't start new thread" in str(error)  # CPython has no type for it


class EdgeletError(Exception):
    """Base of all edgelet errors; `str()` reads as a sentence: "cannot X: cause"."""


class ConfigError(EdgeletError):
    """One or more mistakes in flags, environment or configuration file, all at once."""

    def __init__(self, mistakes: tuple[str, ...]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class ManifestError(EdgeletError):
    """A document that cannot become a pod; `problems` are `model.problems.Problem` values."""

    def __init__(self, problems: tuple[object, ...]) -> None:
        super().__init__("\n".join(str(p) for p in problems))
        self.problems = problems


class NameTaken(ManifestError):
    """A submitted pod's name belongs to another source, or exists where a new one was asked for."""


class StateError(EdgeletError):
    """A file of edgelet's own state cannot be read or written; the message names it."""


class RuntimeFailure(EdgeletError):
    """Podman refused or failed a call."""


class Temporary(RuntimeFailure):
    """The same call may work later: time-out, 5xx without a known cause, locked database."""


class Unreachable(Temporary):
    """Nothing answers on the Podman socket."""


class TimedOut(Temporary):
    """No answer within the call's deadline; it may have taken effect or not."""


class Damaged(Temporary):
    """The storage of an image is damaged: it works again once the image was fetched anew."""


class Conflict(RuntimeFailure):
    """The name is taken already."""


class NotFound(RuntimeFailure):
    """The container or pod is not there."""


class ImageMissing(RuntimeFailure):
    """The image is not in local storage."""


class PullFailed(RuntimeFailure):
    """The image could not be pulled; `reason` is the kubelet's waiting reason (3.7)."""

    def __init__(self, message: str, reason: str = "ErrImagePull") -> None:
        super().__init__(message)
        self.reason = reason


class Permanent(RuntimeFailure):
    """The call can never work as it is: the spec or the command is wrong. `said` = the runtime's own words."""

    def __init__(self, message: str, said: str = "") -> None:
        super().__init__(message)
        self.said = said or message


class VolumeError(EdgeletError):
    """A volume or mount cannot be set up; `reason` is the container's waiting reason.

    ``ContainerCreating`` for volumes (event FailedMount, semantics 5.5), or
    ``CreateContainerConfigError`` for a subPath (5.4.4).
    """

    def __init__(self, message: str, reason: str = "ContainerCreating") -> None:
        super().__init__(message)
        self.reason = reason


class ReferenceMissing(EdgeletError):
    """What a container refers to is not there; worded as the kubelet words it."""


class ExecError(EdgeletError):
    """A command could not be started inside a container (not: it exited non-zero)."""


class LinkError(EdgeletError):
    """The API server gave no usable answer; `retry_after` in seconds is its own wish, if it had one.

    `answered` = it is there, and busy, or does not know us; `clock` = this machine's clock may be why.
    """

    def __init__(
        self, message: str, retry_after: float | None = None, answered: bool = False, clock: bool = False
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.answered = answered
        self.clock = clock


class Refused(LinkError):
    """The API server answered and refused one request: `code` is the HTTP status, `reason` its v1.Status's."""

    def __init__(self, message: str, code: int, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
