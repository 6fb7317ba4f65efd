"""What Podman knows of networks: all containers, the namespaces that they name, our network's subnets."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from ... import errors
from . import api


@dataclass(frozen=True, slots=True)
class Known:
    """`containers` are the ids of all of Podman's containers, whoever made them; `named` are paths."""

    containers: frozenset[str]
    named: frozenset[str]
    subnets: tuple[str, ...]


def known(podman: api.Api, network: str) -> Known:
    """Ask; one inspect per container that could have a namespace of its own. Raises errors.RuntimeFailure."""
    rows = podman.get("containers/json", {"all": "true"})
    own = [r["Id"] for r in rows if r.get("IsInfra") or not r.get("Pod")]
    named = frozenset(key for i in own if (key := _sandbox(podman, i)))
    said = podman.get(f"networks/{network}/json")
    subnets = tuple(str(s["subnet"]) for s in said.get("subnets") or ())
    return Known(frozenset(str(r["Id"]) for r in rows), named, subnets)


def _sandbox(podman: api.Api, container_id: str) -> str:
    answer: Any = {}
    with contextlib.suppress(errors.NotFound):
        answer = podman.get(f"containers/{container_id}/json")
    return str((answer.get("NetworkSettings") or {}).get("SandboxKey") or "")
