"""Symbolic links to the logs of running containers, where log shippers look for them (semantics 6.4.2)."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable

from ... import errors
from ...model.observed import ObservedPod

logger = logging.getLogger(__name__)

NAME_MAX = 255


def link_name(pod: str, namespace: str, container: str, container_id: str) -> str:
    """``<pod>_<ns>_<container>-<id>.log``, cut before the suffix to fit into a file name."""
    suffix = ".log"
    return f"{pod}_{namespace}_{container}-{container_id}"[: NAME_MAX - len(suffix)] + suffix


def sync(directory: str, pods: Iterable[ObservedPod]) -> None:
    """Make the links of what runs, and remove those that lead to a log which is not there any more."""
    wanted = {
        link_name(pod.key.name, pod.key.namespace, c.name, c.id): c.log_path
        for pod in pods
        for c in pod.containers
        if c.running and c.log_path
    }
    try:
        os.makedirs(directory, exist_ok=True)
        _remove_dead(directory, wanted)
        for name, target in wanted.items():
            _link(os.path.join(directory, name), target)
    except OSError as error:
        logger.warning("cannot keep the log links in %s: %s", directory, errors.cause(error))


def _remove_dead(directory: str, wanted: dict[str, str]) -> None:
    for entry in os.scandir(directory):
        ours = entry.is_symlink() and entry.name.endswith(".log") and entry.name not in wanted
        if ours and not os.path.exists(entry.path):
            os.unlink(entry.path)


def _link(path: str, target: str) -> None:
    try:
        os.symlink(target, path)
    except FileExistsError:
        if os.path.islink(path) and os.readlink(path) != target:
            os.unlink(path)
            os.symlink(target, path)
