"""What the server is handed by the composition root: everything it may ask of the rest of the agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ... import ports
from ...engine.counts import Counts
from ...engine.recorder import EventRing
from ...engine.store import StatusStore
from ...model.agent_report import AgentReport
from ...model.logs import LogOptions
from ...model.node_facts import NodeFacts
from ...model.objects import LocalObject
from ...model.pod import Pod, PodKey
from ...model.problems import Problem
from ...model.status import ContainerStatus
from ...model.submission import Applied, Expect
from ...model.usage import Report
from .secure import ReadOnly, Secure


class Control(Protocol):
    """Orders and questions to the agent. Orders return at once; what they did shows in the status.

    Unknown pods raise errors.NotFound.
    """

    def restart(self, key: PodKey, container: str = "") -> None:
        """Stop (with grace) and start again one container, or all ("")."""
        ...

    def stop(self, key: PodKey) -> None:
        """Hold the pod: stop it and keep it stopped, over reboots too, until `start`."""
        ...

    def start(self, key: PodKey) -> None:
        """End the hold; also ends a crash back-off."""
        ...

    def report(self) -> AgentReport:
        """How the agent, Podman and the sources are doing."""
        ...

    def checks(self) -> Mapping[str, str]:
        """Health of the agent's own loops by name: "" = good, else what is wrong (never about a link)."""
        ...


class LogStream(Protocol):
    """An open log. Used from one thread at a time; `read` never waits for news."""

    def read(self) -> bytes | None:
        """The next piece (at most about 64 KiB); b"" = go on, None = nothing more for now."""
        ...

    @property
    def full(self) -> bool:
        """Whether `limit_bytes` has been reached."""
        ...

    def close(self) -> None:
        """Give the file back."""
        ...


class Logs(Protocol):
    """The containers' log files."""

    def locate(self, pod: Pod, status: ContainerStatus, previous: bool) -> str:
        """The path of the log that `kubectl logs [--previous]` shows. Raises errors.NotFound."""
        ...

    def open(self, path: str, options: LogOptions) -> LogStream:
        """Open it. Raises errors.NotFound when the file is not there."""
        ...


class Session(Protocol):
    """An interactive command in a container. With a tty, stdin and stdout are one descriptor."""

    stdin: int
    stdout: int
    stderr: int

    def fileno(self) -> int:
        """A descriptor that becomes readable when the command has ended."""
        ...

    def close_stdin(self) -> None:
        """Tell the command that there is no more input."""
        ...

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has another size now (tty only)."""
        ...

    def finish(self) -> int:
        """Reap it and give back its descriptors; the exit code. Only once `fileno` was readable."""
        ...

    def kill(self) -> None:
        """End the whole process tree, reap it, give back its descriptors."""
        ...


class Execs(Protocol):
    """Starts commands in containers by their own OCI runtime."""

    def begin(self, key: PodKey, container: str, command: tuple[str, ...], tty: bool, stdin: bool) -> Session:
        """Start argv. Raises errors.NotFound (not running) or errors.ExecError; may take some 50 ms."""
        ...

    def attach(self, key: PodKey, container: str, stdin: bool) -> Session:
        """The container's own input and output; letting go ends nothing. Raises as `begin` does."""
        ...


class Submissions(Protocol):
    """The pods that were given through the API, and whose all others are. May wait for the disk."""

    def owner(self, key: PodKey) -> str | None:
        """Who gives the pod of that name now: "api" = submitted, None = nobody, else words for a person."""
        ...

    def get(self, key: PodKey) -> Pod | None:
        """The submitted pod of that name."""
        ...

    def manifest(self, key: PodKey) -> bytes | None:
        """What was sent for it. Raises errors.StateError."""
        ...

    def check(self, data: bytes) -> tuple[Problem, ...]:
        """All that is to be said about a manifest."""
        ...

    def apply(self, data: bytes, expect: Expect = Expect.ANY, dry_run: bool = False) -> tuple[Applied, ...]:
        """Take in pods. Raises errors.ManifestError, errors.NameTaken, errors.StateError."""
        ...

    def delete(self, key: PodKey, grace: int | None) -> bool:
        """End a submitted pod, or hurry one that ends; False = there was none. Raises errors.StateError."""
        ...


class Usages(Protocol):
    """What everything uses."""

    def now(self) -> Report:
        """One look, without waiting; rates where there was a look before."""
        ...

    def rates(self) -> Report:
        """One look with rates; may wait a second for the second look that a rate needs."""
        ...


@dataclass(frozen=True, slots=True)
class Services:
    """All of it in one value; `group` is the Unix group whose members may view, `secure` the TLS port.

    `metrics` takes what stands after /metrics/ and gives media type and text.
    """

    store: StatusStore
    events: EventRing
    control: Control
    logs: Logs
    execs: Execs
    submissions: Submissions
    clock: ports.Clock
    node: Callable[[], NodeFacts]
    usage: Usages
    metrics: Callable[[str], tuple[str, bytes]]
    node_name: str
    group: str = "edgelet"
    secure: Secure | None = None
    read_only: ReadOnly | None = None
    config: Callable[[], Mapping[str, Any]] = dict
    requests: Counts = field(default_factory=Counts)
    responses: Counts = field(default_factory=Counts)
    objects: Callable[[], tuple[LocalObject, ...]] = tuple
