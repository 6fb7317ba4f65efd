"""Who asks, and whether the resource may be asked for: certificates, tokens, the node authorizer."""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass
from typing import Any

from .kinds import Call
from .store import Store

NODE_PREFIX = "system:node:"
NODE_NAMESPACE = "kube-node-lease"


@dataclass(frozen=True)
class User:
    """A name and its groups."""

    name: str
    groups: frozenset[str] = frozenset()

    @property
    def node(self) -> str:
        """The node that it is, or ""."""
        is_node = "system:nodes" in self.groups and self.name.startswith(NODE_PREFIX)
        return self.name.removeprefix(NODE_PREFIX) if is_node else ""


ANONYMOUS = User("system:anonymous", frozenset({"system:unauthenticated"}))


def of_certificate(certificate: Any, issuers: set[str], now: float | None = None) -> User | None:
    """The user that a client certificate names; None when it has ended or nobody trusts its issuer."""
    subject = [pair for part in certificate["subject"] for pair in part]
    issuer = [value for part in certificate["issuer"] for name, value in part if name == "commonName"]
    ends = ssl.cert_time_to_seconds(certificate["notAfter"])
    if not issuers.intersection(issuer) or ends < (time.time() if now is None else now):
        return None
    name = next((value for key, value in subject if key == "commonName"), "")
    return User(name, frozenset(value for key, value in subject if key == "organizationName"))


def refusal(user: User, call: Call, store: Store) -> str | None:
    """Why the user may not do this: a text ("" = no reason is given), None = allowed."""
    if "system:masters" in user.groups:
        return None
    if user.node:
        return _node(user.node, call, store)
    if "system:bootstrappers" in user.groups and call.target == "certificatesigningrequests":
        return None if call.verb in ("create", "get", "list", "watch") else ""
    return ""


def _node(node: str, call: Call, store: Store) -> str | None:
    match call.target:
        case "nodes":
            return _nodes(node, call)
        case "pods":
            return _pods(node, call, store)
        case "nodes/status" | "pods/status":
            return None if call.verb in ("update", "patch") else ""
        case "leases":
            return _leases(node, call)
        case "events":
            return None if call.verb in ("create", "update", "patch") else ""
        case "certificatesigningrequests":
            return None if call.verb in ("create", "get", "list", "watch") else ""
        case "configmaps" | "secrets":
            return _unrelated(node) if call.verb in ("get", "list", "watch") else "can only read resources of this type"
    return ""


def _unrelated(node: str) -> str:
    return f"no relationship found between node '{node}' and this object"


def _nodes(node: str, call: Call) -> str | None:
    if call.verb in ("create", "update", "patch"):
        return None
    if call.verb not in ("get", "list", "watch"):
        return ""
    name = call.name or call.fields().get("metadata.name", "")
    if name == node:
        return None
    if not name:
        return f"node '{node}' cannot read all nodes, only its own Node object"
    return f"node '{node}' cannot read '{name}', only its own Node object"


def _pods(node: str, call: Call, store: Store) -> str | None:
    if call.verb in ("create", "delete"):
        return None
    if call.verb not in ("get", "list", "watch"):
        return ""
    if call.verb != "get" and call.fields().get("spec.nodeName") == node:
        return None
    name = call.name or call.fields().get("metadata.name", "")
    if not name:
        return "can only list/watch pods with spec.nodeName field selector"
    pod = store.known(("pods", call.namespace, name))
    return None if pod and pod.get("spec", {}).get("nodeName") == node else _unrelated(node)


def _leases(node: str, call: Call) -> str | None:
    if call.verb not in ("get", "create", "update", "patch", "delete"):
        return "can only get, create, update, patch, or delete a node lease"
    if call.namespace != NODE_NAMESPACE:
        return f'can only access leases in the "{NODE_NAMESPACE}" system namespace'
    if call.verb != "create" and call.name != node:
        return "can only access node lease with the same name as the requesting node"
    return None


def told(user: User, call: Call, why: str) -> str:
    """The sentence of a refusal."""
    where = f'in the namespace "{call.namespace}"' if call.namespace else "at the cluster scope"
    what = f'cannot {call.verb} resource "{call.target}" in API group "{call.resource.group}" {where}'
    return f'User "{user.name}" {what}' + (f": {why}" if why else "")
