"""Finds what a container runs under: its OCI runtime, that runtime's options, its process template."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core import conmon
from ...errors import ExecError, cause
from ...ports import Target

log = logging.getLogger(__name__)

FALLBACKS = ("crun", "runc")
"""Asked in this order whether they know the container, when its conmon cannot be read any more."""


@dataclass(frozen=True, slots=True)
class Known:
    """How to start something in one container: runtime argv up to `exec`, its environment, the template.

    `process` is the OCI process of the container's own config, as Podman wrote it.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    process: Mapping[str, Any]


def look_up(target: Target) -> Known:
    """Read it all from /proc and the OCI config. Raises ExecError."""
    facts, env = _conmon_of(target)
    runtime, args = (facts.runtime, facts.runtime_args) if facts and facts.runtime else (_guess(target), ())
    config = target.oci_config or (os.path.join(facts.bundle, "config.json") if facts and facts.bundle else "")
    return Known(argv=(runtime, *args, "exec"), env=env, process=_process(target, config))


def _conmon_of(target: Target) -> tuple[conmon.Conmon | None, dict[str, str]]:
    """What the container's parent process says; its conmon, unless that has died."""
    path = os.environ.get("PATH", os.defpath)
    env = conmon.environment(path, ())
    try:
        parent = _parent(target.pid)
        facts = conmon.parse(_strings(f"/proc/{parent}/cmdline"))
        if facts is None or facts.container_id != target.container_id:
            return None, env
        return facts, conmon.environment(path, _strings(f"/proc/{parent}/environ"))
    except OSError as error:
        log.debug("cannot read the conmon of container %s: %s", target.container_id[:12], error)
        return None, env


def _parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        text = file.read()
    return int(text[text.rfind(b")") + 2 :].split(None, 2)[1])


def _strings(path: str) -> list[str]:
    with open(path, "rb") as file:
        return [os.fsdecode(part) for part in file.read().split(b"\0")]


def _guess(target: Target) -> str:
    """The runtime that keeps state for this container in its default place."""
    for name in FALLBACKS:
        path = shutil.which(name)
        if path and os.path.isdir(os.path.join("/run", name, target.container_id)):
            return path
    raise ExecError(
        f"cannot run a command in container {target.container_id[:12]} of {target.key}: "
        "its conmon is gone and neither crun nor runc knows it"
    )


def _process(target: Target, path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            process = json.load(file)["process"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExecError(
            f"cannot run a command in container {target.container_id[:12]} of {target.key}: "
            f"its OCI config {path or '(unknown)'} cannot be read: {cause(error)}"
        ) from error
    if not isinstance(process, dict):
        raise ExecError(f"cannot run a command in {target.key}: {path} has no process object")
    return process
