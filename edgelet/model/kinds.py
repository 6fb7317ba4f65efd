"""Which kinds of object a manifest may hold, and what to say about the others."""

from __future__ import annotations

from .report import Report
from .tree import Node

VERSIONS = {
    "Pod": "v1",
    "ConfigMap": "v1",
    "Secret": "v1",
    "PersistentVolumeClaim": "v1",
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
}
WORKLOADS = frozenset(["Deployment", "StatefulSet", "DaemonSet", "Job"])
OBJECTS = frozenset(["ConfigMap", "Secret"])

_ADVICE = {
    "Service": "is not needed: publish a container's port with hostPort",
    "Ingress": "needs an ingress controller: run a proxy as a pod and publish its port with hostPort",
    "Route": "belongs in an OpenShift cluster: publish a container's port with hostPort",
    "CronJob": "is not run: use a systemd timer on the host, or a container that waits by itself",
    "ReplicaSet": "is not run: use a Pod or a Deployment",
    "ReplicationController": "is not run: use a Pod or a Deployment",
    "HorizontalPodAutoscaler": "needs a cluster: one pod runs here",
    "PodDisruptionBudget": "needs a cluster: one pod runs here",
    "Namespace": "is not needed: write the namespace in the pod's metadata",
    "ServiceAccount": "belongs in a cluster; pods here have no API token",
    "Role": "belongs in a cluster; pods here have no API token",
    "RoleBinding": "belongs in a cluster; pods here have no API token",
    "ClusterRole": "belongs in a cluster; pods here have no API token",
    "ClusterRoleBinding": "belongs in a cluster; pods here have no API token",
    "NetworkPolicy": "is not enforced: use the host's firewall",
    "PersistentVolume": "belongs in a cluster; use a hostPath volume",
    "StorageClass": "belongs in a cluster; use a hostPath volume",
    "PersistentVolumeClaim": "is not supported in this version: use a hostPath volume with type DirectoryOrCreate",
    "Endpoints": "belongs in a cluster",
    "CustomResourceDefinition": "belongs in a cluster: its objects have no meaning here",
    "Kustomization": "is input of kustomize: put the output of 'kustomize build' here",
    "KubeletConfiguration": "is settings, not a manifest: it belongs in edgelet's configuration file",
}


def kind(node: Node) -> str:
    """The text of `kind`, or ""."""
    found = node.value.get("kind")
    return found.value if found is not None and found.kind == "str" else ""


def is_list(node: Node) -> bool:
    """Whether it is a list of objects: List, PodList and so on, or another kind of list with items."""
    name = kind(node)
    items = node.value.get("items")
    known = name == "List" or name.removesuffix("List") in VERSIONS
    return name.endswith("List") and (known or (items is not None and items.kind == "list"))


def identify(node: Node, report: Report) -> str | None:
    """The kind, when it is one of ours in a version that we know; else None, with the reason reported."""
    name, version = kind(node), node.value.get("apiVersion")
    given = version.value if version is not None and version.kind == "str" else ""
    if not name or not given:
        if "services" in node.value and not name:
            report.error((), "this is a compose file; edgelet runs Kubernetes manifests, write a Pod for each service")
            return None
        missing = " and ".join(n for n, v in (("apiVersion", given), ("kind", name)) if not v)
        report.error((), f"{missing} must be given: a pod begins with 'apiVersion: v1' and 'kind: Pod'")
        return None
    if name not in VERSIONS:
        _other(name, given, report)
        return None
    if given != VERSIONS[name]:
        report.error(("apiVersion",), f"{given[:60]!r} has no {name}; write {VERSIONS[name]}")
        return None
    if name in _ADVICE:
        report.warn(("kind",), f"{name} {_ADVICE[name]}")
    return name


def is_ignored(node: Node) -> bool:
    """Whether it is an object that has no meaning here (and is no mistake either)."""
    name = kind(node)
    return bool(name) and name not in VERSIONS and not _misspelt(name)


def _misspelt(name: str) -> str:
    folded = {k.lower(): k for k in (*VERSIONS, "List")}
    if name.lower() in folded:
        return folded[name.lower()]
    if name in _ADVICE:
        return ""
    import difflib  # only for a mistake, so not at the top

    close = difflib.get_close_matches(name[:60].lower(), folded, n=1, cutoff=0.85)
    return folded[close[0]] if close else ""


def _other(name: str, version: str, report: Report) -> None:
    meant = _misspelt(name)
    if meant:
        report.error(("kind",), f"there is no kind {name[:60]!r}; did you mean {meant!r}?")
    else:
        advice = _ADVICE.get(name, f"({version[:60]}) has no meaning without a cluster; it is ignored")
        report.warn(("kind",), f"{name[:60]} {advice}")


def describe(node: Node) -> str:
    """What a document is that is no object, in a few words."""
    if node.kind == "list":
        return "a list; put the objects into documents divided by '---'"
    return f"only {str(node.value)[:40]!r}"
