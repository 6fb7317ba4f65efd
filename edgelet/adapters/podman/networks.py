"""The network of pods: joined, or made with a name service; and what Podman knows of networks.

Podman's default network has no name service, so pods cannot find each other by name on it.  One that
is made here has, where netavark and aardvark-dns are installed; its bridge bears its name.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
from dataclasses import dataclass
from typing import Any

from ... import errors
from ...model import labels
from . import api
from .spec import DEFAULT_NETWORK

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Network:
    """The network that pods join. `subnet` = addresses of one that is to be made, "" = whatever is free."""

    name: str = DEFAULT_NETWORK
    subnet: str = ""


def ensure(podman: api.Api, network: Network, owner: str) -> None:
    """Make it if it is not there. Raises errors.RuntimeFailure: the subnet is in use, or no network can be made."""
    if network.name == DEFAULT_NETWORK:
        return
    try:
        podman.get(f"networks/{network.name}/json")
    except errors.NotFound:
        with contextlib.suppress(errors.Conflict):  # somebody else was faster
            podman.post("networks/create", body=_body(network, owner))
            log.info("made network %s, in which pods find each other by name", network.name)


def _body(network: Network, owner: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "name": network.name,
        "driver": "bridge",
        "network_interface": network.name,
        "dns_enabled": True,
        "labels": {labels.OWNER: owner},
    }
    if not network.subnet:
        return body
    six = ipaddress.ip_network(network.subnet).version == 6
    return {**body, "subnets": [{"subnet": network.subnet}], "ipv6_enabled": six}


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
    subnets = tuple(s for name in dict.fromkeys((network, DEFAULT_NETWORK)) for s in _subnets(podman, name))
    return Known(frozenset(str(r["Id"]) for r in rows), named, subnets)


def _subnets(podman: api.Api, network: str) -> tuple[str, ...]:
    try:
        said = podman.get(f"networks/{network}/json")
    except errors.NotFound:  # not made yet
        return ()
    return tuple(str(s["subnet"]) for s in said.get("subnets") or ())


def _sandbox(podman: api.Api, container_id: str) -> str:
    answer: Any = {}
    with contextlib.suppress(errors.NotFound):
        answer = podman.get(f"containers/{container_id}/json")
    return str((answer.get("NetworkSettings") or {}).get("SandboxKey") or "")
