"""Pulling an image through Podman: progress read as it comes, the kubelet's reason for a failure.

Registry credentials, mirrors and trust policy are Podman's own (auth.json, registries.conf, policy.json).
"""

from __future__ import annotations

import logging
from typing import Any

from ... import errors
from . import api

log = logging.getLogger(__name__)

SILENCE_SECONDS = 120.0
PULL_SECONDS = 3600.0

_REASONS = (
    ("invalid reference", "InvalidImageName"),
    ("parsing reference", "InvalidImageName"),
    ("repository name must be lowercase", "InvalidImageName"),
    ("connection refused", "RegistryUnavailable"),
    ("no such host", "RegistryUnavailable"),
    ("i/o timeout", "RegistryUnavailable"),
    ("network is unreachable", "RegistryUnavailable"),
    ("signature", "SignatureValidationFailed"),
)


def qualified(reference: str) -> str:
    """The reference with registry and repository spelt out, as Kubernetes understands short names (3.7.1).

    >>> qualified("nginx"), qualified("a/b:1"), qualified("localhost/x"), qualified("r.io:5/x")
    ('docker.io/library/nginx', 'docker.io/a/b:1', 'localhost/x', 'r.io:5/x')
    """
    first, slash, _ = reference.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return reference
    return f"docker.io/{reference}" if slash else f"docker.io/library/{reference}"


def listed(podman: api.Api) -> list[dict[str, Any]]:
    """All images with a name as v1.ContainerImage objects: digests first, then tags, as the kubelet lists them."""
    found = []
    for row in podman.get("images/json"):
        names = [*(row.get("RepoDigests") or ()), *(row.get("RepoTags") or ())]
        if names:
            found.append({"names": names, "sizeBytes": int(row.get("Size") or 0)})
    return found


def pull(podman: api.Api, reference: str) -> None:
    """Pull `reference`. Raises PullFailed, or Temporary when the connection to Podman itself is the trouble."""
    try:
        _follow(podman, reference)
    except errors.PullFailed:
        raise
    except errors.RuntimeFailure as error:
        if isinstance(error.__cause__, OSError) and not isinstance(error, errors.TimedOut):
            raise
        raise errors.PullFailed(f"cannot pull {reference}: {error}", reason(str(error))) from error


def _follow(podman: api.Api, reference: str) -> None:
    params = {"reference": qualified(reference), "quiet": "false"}
    trouble = ""
    for line in podman.stream("images/pull", params, silence=SILENCE_SECONDS, deadline=PULL_SECONDS):
        if line.get("error"):
            trouble = str(line["error"]).strip()
        elif line.get("stream"):
            log.debug("pulling %s: %s", reference, str(line["stream"]).strip())
    if trouble:
        raise errors.PullFailed(f"cannot pull {reference}: {trouble}", reason(trouble))


def reason(message: str) -> str:
    """The kubelet's waiting reason (3.7.3, 3.7.5) for what Podman said."""
    text = message.lower()
    return next((name for mark, name in _REASONS if mark in text), "ErrImagePull")
