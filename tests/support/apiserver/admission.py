"""What a node may put into its objects: the NodeRestriction plug-in and what goes with it, for pods and nodes.

Sources: plugin/pkg/admission/noderestriction, pkg/api/pod/util.go (HasAPIObjectReference), and
plugin/pkg/admission/{priority,runtimeclass,namespace/lifecycle,nodetaint} of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import signing
from .answers import forbidden, not_found
from .identity import NODE_NAMESPACE, User
from .kinds import Call
from .store import Store

Json = dict[str, Any]
MIRROR = "kubernetes.io/config.mirror"
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}

_KUBELET_LABELS = frozenset(
    (
        "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type",
    )
)  # fmt: skip
_KUBELET_NAMESPACES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESTRICTED = "node-restriction.kubernetes.io"
PRIORITY_CLASSES = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}
_HARMLESS = frozenset(
    (
        "awsElasticBlockStore", "azureDisk", "cephfs", "cinder", "downwardAPI", "emptyDir", "fc", "flexVolume",
        "flocker", "gcePersistentDisk", "gitRepo", "hostPath", "image", "iscsi", "nfs", "photonPersistentDisk",
        "portworxVolume", "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
    )
)  # fmt: skip
_VOLUMES = {
    "configMap": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azureFile": "secrets (via azureFile volumes)",
}
_PROJECTIONS = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


def create(user: User, call: Call, item: Json, store: Store) -> None:
    """All that is asked of a new object, and what is put into it. Raises Refusal."""
    plural, name = call.resource.plural, item["metadata"].get("name", "")
    if call.resource.namespaced:
        _namespace(call, name, store)
    if plural == "pods":
        if user.node:
            _refuse(call, name, _new_pod(user.node, item, store))
        _classes(call, item)
    if plural == "nodes":
        if user.node:
            _refuse(call, name, _new_node(user.node, item))
        taints = item.setdefault("spec", {}).setdefault("taints", [])
        if not any(t.get("key") == NOT_READY["key"] and t.get("effect") == NOT_READY["effect"] for t in taints):
            taints.append(dict(NOT_READY))
    if plural == signing.PLURAL and user.node:
        _refuse(call, name, signing.refusal(user.node, item))
    if plural == "leases" and user.node and (name != user.node or call.namespace != NODE_NAMESPACE):
        _refuse(call, name, "can only access node lease with the same name as the requesting node")


def update(user: User, call: Call, new: Json, old: Json) -> None:
    """What is asked of a change. Raises Refusal."""
    node, name = user.node, call.name
    if not node:
        return
    if call.resource.plural == "pods":
        _refuse(call, name, _changed_pod(node, call.sub, new, old))
    elif call.resource.plural == "nodes":
        _refuse(call, name, _changed_node(node, new, old))


def delete(user: User, call: Call, old: Json) -> None:
    """What is asked of a deletion. Raises Refusal."""
    if user.node and call.resource.plural == "pods" and old["spec"].get("nodeName") != user.node:
        _refuse(call, call.name, f'node "{user.node}" can only delete pods with spec.nodeName set to itself')


def _refuse(call: Call, name: str, why: str) -> None:
    if why:
        raise forbidden(call.resource.plural, name, why, call.resource.group)


def _namespace(call: Call, name: str, store: Store) -> None:
    found = store.get(("namespaces", "", call.namespace))
    if found is None:
        raise not_found("namespaces", call.namespace)
    if found.get("status", {}).get("phase") == "Terminating":
        why = f"unable to create new content in namespace {call.namespace} because it is being terminated"
        raise forbidden(call.resource.plural, name, why)


def _new_pod(node: str, pod: Json, store: Store) -> str:
    metadata, spec = pod["metadata"], pod.get("spec", {})
    if MIRROR not in metadata.get("annotations", {}):
        return f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods'
    if spec.get("nodeName") != node:
        return f'node "{node}" can only create pods with spec.nodeName set to itself'
    return _owner(node, metadata.get("ownerReferences", []), store) or _references(node, spec)


def _owner(node: str, owners: list[Json], store: Store) -> str:
    can_only = f'node "{node}" can only create pods with'
    if len(owners) > 1:
        return f"{can_only} a single owner reference set to itself"
    owner = owners[0] if owners else {}
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
        return f"{can_only} an owner reference set to itself"
    if not owner.get("controller"):
        return f"{can_only} a controller owner reference set to itself"
    if owner.get("blockOwnerDeletion"):
        return f'node "{node}" must not set blockOwnerDeletion on an owner reference'
    live = store.known(("nodes", "", node))
    if live is None:
        raise not_found("node", node)
    uid, given = live["metadata"]["uid"], owner.get("uid")
    return "" if uid == given else f"node {node} UID mismatch: expected {given} got {uid}"


def _references(node: str, spec: Json) -> str:
    found = next(iter(_api_objects(spec)), "")
    return f'node "{node}" can not create pods that reference {found}' if found else ""


def _api_objects(spec: Json) -> Iterator[str]:
    if spec.get("serviceAccountName") or spec.get("serviceAccount"):
        yield "serviceaccounts"
    containers = [c for field in ("initContainers", "containers", "ephemeralContainers") for c in spec.get(field, [])]
    sources = [e for c in containers for e in c.get("envFrom", [])]
    sources += [e.get("valueFrom", {}) for c in containers for e in c.get("env", [])]
    if spec.get("imagePullSecrets") or any("secretRef" in s or "secretKeyRef" in s for s in sources):
        yield "secrets"
    if any("configMapRef" in s or "configMapKeyRef" in s for s in sources):
        yield "configmaps"
    if spec.get("resourceClaims"):
        yield "resourceclaims"
    for volume in spec.get("volumes", []):
        yield from _volume(volume)


def _volume(volume: Json) -> Iterator[str]:
    for kind in sorted(volume.keys() - {"name"} - _HARMLESS):
        if kind == "projected":
            yield from (_PROJECTIONS[k] for s in volume[kind].get("sources", []) for k in s if k in _PROJECTIONS)
        else:
            yield _VOLUMES[kind]


def _classes(call: Call, pod: Json) -> None:
    """Priority and runtime classes: only the system's own priority classes exist here."""
    spec, name = pod.get("spec", {}), pod["metadata"].get("name", "")
    wanted = spec.get("priorityClassName", "")
    if wanted and wanted not in PRIORITY_CLASSES:
        _refuse(call, name, f"no PriorityClass with name {wanted} was found")
    priority = PRIORITY_CLASSES.get(wanted, 0)
    given = spec.get("priority")
    if given is not None and given != priority:
        why = f"the integer value of priority ({given}) must not be provided in pod spec; priority admission controller"
        _refuse(call, name, f"{why} computed {priority} from the given PriorityClass name")
    if spec.get("runtimeClassName"):
        _refuse(call, name, f'pod rejected: RuntimeClass "{spec["runtimeClassName"]}" not found')
    spec |= {"priority": priority, "preemptionPolicy": "PreemptLowerPriority"}


def _new_node(node: str, item: Json) -> str:
    name = item["metadata"].get("name", "")
    if name != node:
        return f'node "{node}" is not allowed to modify node "{name}"'
    bad = _forbidden_labels(set(item["metadata"].get("labels", {})))
    return f'node "{node}" is not allowed to set the following labels: {", ".join(bad)}' if bad else ""


def _forbidden_labels(names: set[str]) -> list[str]:
    return sorted(n for n in names if _within(n, (_RESTRICTED,)) or (_is_kubernetes(n) and not _is_kubelets(n)))


def _within(label: str, namespaces: tuple[str, ...]) -> bool:
    namespace = label.partition("/")[0] if "/" in label else ""
    return any(namespace == n or namespace.endswith(f".{n}") for n in namespaces)


def _is_kubernetes(label: str) -> bool:
    return _within(label, ("kubernetes.io", "k8s.io"))


def _is_kubelets(label: str) -> bool:
    return label in _KUBELET_LABELS or _within(label, _KUBELET_NAMESPACES)


def _changed_node(node: str, new: Json, old: Json) -> str:
    name = old["metadata"]["name"]
    if name != node:
        return f'node "{node}" is not allowed to modify node "{name}"'
    if new.get("spec", {}).get("taints", []) != old.get("spec", {}).get("taints", []):
        return f'node "{node}" is not allowed to modify taints'
    if new["metadata"].get("ownerReferences", []) != old["metadata"].get("ownerReferences", []):
        return f'node "{node}" is not allowed to modify ownerReferences'
    labels, before = new["metadata"].get("labels", {}), old["metadata"].get("labels", {})
    changed = {n for n in labels.keys() | before.keys() if labels.get(n) != before.get(n)}
    bad = _forbidden_labels(changed)
    return f"is not allowed to modify labels: {', '.join(bad)}" if bad else ""


def _changed_pod(node: str, sub: str, new: Json, old: Json) -> str:
    if sub != "status":
        return f'unexpected operation "UPDATE", node "{node}" can only create and delete mirror pods'
    if old["spec"].get("nodeName") != node:
        return f'node "{node}" can only update pod status for pods with spec.nodeName set to itself'
    if new["metadata"].get("labels", {}) != old["metadata"].get("labels", {}):
        return f'node "{node}" cannot update labels through pod status'
    return ""
