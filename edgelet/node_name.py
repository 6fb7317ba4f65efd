"""The node's name: resolved once, stored under the root directory, kept for ever.

Pods of files and URLs are named after the node, so a host name that changes (DHCP, a clone, a
first boot) must not rename, and thereby restart, them all.
"""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass

from . import config_values, durable

log = logging.getLogger(__name__)

FILE = "node-name"
FALLBACK = "edge"
MAX_LENGTH = 63
"""A host name's own limit (hostname(7)); a DNS-1123 subdomain may be longer, a label value may not."""


@dataclass(frozen=True, slots=True)
class NodeName:
    """The name in force, and a sentence when it is not what one would expect ("" = it is)."""

    name: str
    warning: str = ""


def resolve(configured: str, stored: str, hostname: str) -> NodeName:
    """Decide: what the user says wins, then what was stored, then the host's name. Pure.

    `configured` and `stored` are "" when absent.
    """
    if configured:
        changed = stored not in ("", configured)
        return NodeName(configured, _renamed(stored, configured) if changed else "")
    host = from_hostname(hostname)
    if stored and stored != host:
        return NodeName(
            stored,
            f'the host is called "{host}" now, this node stays "{stored}", so that no pod is renamed; '
            f"to rename it, set nodeName (--node-name {host})",
        )
    return NodeName(stored or host)


def from_hostname(hostname: str) -> str:
    """A valid node name made of a host name: lower case, other characters replaced by "-"."""
    name = re.sub(r"[^a-z0-9.-]+", "-", hostname.lower())[:MAX_LENGTH]
    labels = [label.strip("-") for label in name.split(".")]
    return ".".join(label for label in labels if label) or FALLBACK


def pin(root_dir: str, configured: str, hostname: str) -> NodeName:
    """Resolve the name with what is stored under `root_dir` (made when missing), and store it when it is new.

    A file that cannot be used counts as absent, with a warning in the log: a node that starts
    under its host's name is better than one that does not start.  Raises StateError when the name
    cannot be stored.
    """
    path = os.path.join(root_dir, FILE)
    stored = _read(path)
    result = resolve(configured, stored, hostname)
    if result.name != stored:
        durable.make_directory(root_dir)
        durable.write(path, result.name.encode() + b"\n", 0o644)
    return result


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return config_values.node_name(file.read(1024).decode("utf-8"))
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        log.warning("cannot use the stored node name in %s: %s", path, error)
        return ""


def _renamed(old: str, new: str) -> str:
    return f'this node was "{old}" and is "{new}" now, as configured: pods named *-{old} are replaced by *-{new}'
