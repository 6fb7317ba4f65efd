"""Who a pod is: its full name, its uid and the hash that says "the same generation".

The hash goes over the manifest *as written*: the untyped tree (anchors resolved, nulls left out) as
canonical JSON, and the node name. Key order, comments, white space, YAML or JSON make no difference,
and neither do our defaults, so a new release of edgelet restarts nothing. The file's path is left
out on purpose (the kubelet puts it in): a manifest that is moved or renamed keeps its pod running.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

SCHEME = 1
"""Number of the way the hash is made; it stands in front of the hash and never changes meaning."""


def pod_name(name: str, node_name: str, source: str) -> str:
    """`<name>-<node>` for manifests (semantics 1.3); as sent for pods given through the API."""
    return name if source == "api" or not name else f"{name}-{node_name.lower()}"


def canonical(manifest: Any) -> str:
    """The one JSON text of a manifest. Its `status` says nothing about what is wanted: left out."""
    if isinstance(manifest, dict):
        manifest = {k: v for k, v in manifest.items() if k != "status"}
    return json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(manifest: Any, node_name: str) -> str:
    """32 lower-case hexadecimal digits."""
    text = f"{SCHEME}\n{canonical(manifest)}\n{node_name}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def config_hash(digits: str) -> str:
    """The hash with its scheme number, as it stands in labels."""
    return f"{SCHEME}-{digits}"
