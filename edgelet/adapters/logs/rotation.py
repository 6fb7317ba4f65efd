"""Rotates the logs of running containers as the kubelet does (semantics 6.4.4), through conmon, without loss.

A log above the limit is renamed and conmon is told to open it anew: ``2 0 0`` into the ``ctl`` FIFO
beside the container's ``config.json`` (conmon's REOPEN_LOGS_EVENT).  Until conmon does, it writes
to the renamed file, so no line is lost.  conmon writes a new ``N.log.tmp`` and renames it over
``N.log``: asked twice, it would throw away what it wrote in between, so it is asked again only once
the new file was seen, and nobody touches its ``.tmp``.  The newest rotated file stays plain, for who still reads
it; older ones are compressed.  Logs of instances older than the previous one are removed.
"""

from __future__ import annotations

import gzip
import logging
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ... import errors, ports
from ...model.observed import ObservedContainer, ObservedPod
from . import links

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 10.0

REOPEN = b"2 0 0\n"
"""conmon's control message: event 2 (reopen logs), two unused numbers."""

_ROTATED = re.compile(r"\d{8}-\d{6}(\.gz|\.tmp)?")
_INSTANCE = re.compile(r"(\d+)\.log(\..+)?")


@dataclass(frozen=True, slots=True)
class Policy:
    """`max_size` in bytes; `max_files` per instance, the live one included (at least 2)."""

    max_size: int = 10 << 20
    max_files: int = 5


class LogRotator:
    """One thread that looks at all logs every `period` seconds (kubelet: ten).

    `pods` gives what runs (newest observation).  `links_dir` "" or a directory such as
    /var/log/containers that is to hold one symbolic link per running container (6.4.2).
    """

    def __init__(
        self,
        clock: ports.Clock,
        pods: Callable[[], Iterable[ObservedPod]],
        policy: Policy | None = None,
        links_dir: str = "",
        period: float = PERIOD_SECONDS,
    ) -> None:
        self._period = period
        self._clock = clock
        self._pods = pods
        self._policy = policy or Policy()
        self._links = links_dir
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log-rotation", daemon=True)
        self._told: set[str] = set()
        self._asked: set[str] = set()  # containers whose conmon has yet to make the new file
        self._missing: set[str] = set()  # containers seen without a log, not asked for it by us

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a compression under way is left to end by itself."""
        self._end.set()
        self._thread.join(2.0)

    def pass_once(self) -> None:
        """Look at every container once; trouble with one log is told once and costs no other."""
        pods = tuple(self._pods())
        seen: set[str] = set()
        for container in (c for pod in pods for c in pod.containers if c.log_path):
            seen.add(container.id)
            try:
                self._look(container)
            except OSError as error:
                self._tell(container, error)
        for kept in (self._told, self._asked, self._missing):
            kept.intersection_update(seen)
        if self._links:
            links.sync(self._links, pods)

    def _run(self) -> None:
        while not self._end.wait(self._period):
            try:
                self.pass_once()
            except Exception:  # guard
                # Without rotation the disk fills: the next pass must come.
                logger.exception("cannot rotate logs this time")

    def _look(self, container: ObservedContainer) -> None:
        path = Path(container.log_path)
        prune(path)
        if not container.running or not container.oci_config:
            return
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            self._ask_late(container)
            return
        self._asked.discard(container.id)
        self._missing.discard(container.id)
        if size > self._policy.max_size:
            self._rotate(container, path)

    def _rotate(self, container: ObservedContainer, path: Path) -> None:
        for old in rotated(path)[: -max(1, self._policy.max_files - 2)]:
            old.unlink()
        for old in rotated(path):
            if old.suffix != ".gz":
                compress(old)
        stamp = datetime.fromtimestamp(self._clock.time(), UTC).strftime("%Y%m%d-%H%M%S")
        renamed = path.with_name(f"{path.name}.{stamp}")
        path.rename(renamed)
        try:
            _reopen(container)
        except OSError:
            if not path.exists():
                renamed.rename(path)
            raise
        self._asked.add(container.id)

    def _ask_late(self, container: ObservedContainer) -> None:
        """The log was renamed by a run that was cut off, perhaps before it told conmon: wait one pass, then ask."""
        if container.id in self._asked:
            return
        if container.id not in self._missing:
            self._missing.add(container.id)
            return
        _reopen(container)
        self._asked.add(container.id)

    def _tell(self, container: ObservedContainer, error: OSError) -> None:
        if container.id not in self._told:
            self._told.add(container.id)
            logger.warning(
                "cannot rotate the log of container %s (%s): %s", container.name, container.id[:12], errors.cause(error)
            )


def rotated(path: Path) -> list[Path]:
    """The rotated files of a log, oldest first; left-overs of a compression that was cut off are removed."""
    prefix = f"{path.name}."
    names = (name for name in os.listdir(path.parent) if name.startswith(prefix))
    found = sorted(path.with_name(name) for name in names if _ROTATED.fullmatch(name[len(prefix) :]))
    kept = []
    for file in found:
        if file.suffix == ".tmp" or file.with_name(f"{file.name}.gz") in found:
            file.unlink(missing_ok=True)
        else:
            kept.append(file)
    return kept


def compress(file: Path) -> None:
    """Replace a file by its .gz, made under a .tmp name first; the plain one goes last."""
    work = file.with_name(f"{file.name}.tmp")
    with file.open("rb") as source, gzip.open(work, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target, 1 << 16)
    work.rename(file.with_name(f"{file.name}.gz"))
    file.unlink()


def prune(path: Path) -> None:
    """Remove the logs of instances older than the one before `path` (N.log keeps N and N-1)."""
    try:
        newest = int(path.stem)
    except ValueError:
        return
    try:
        names = os.listdir(path.parent)
    except FileNotFoundError:
        return
    for name in names:
        found = _INSTANCE.fullmatch(name)
        if found and int(found[1]) < newest - 1:
            path.with_name(name).unlink(missing_ok=True)


def _reopen(container: ObservedContainer) -> None:
    """Tell conmon to open the log anew; does not block when conmon is gone (ENXIO)."""
    control = os.path.join(os.path.dirname(container.oci_config), "ctl")
    file = os.open(control, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.write(file, REOPEN)
    finally:
        os.close(file)
