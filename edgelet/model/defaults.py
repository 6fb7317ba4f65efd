"""Fills in what the API server would fill in (semantics 2.1), on clean pod data, in place."""

from __future__ import annotations

from typing import Any

Data = dict[str, Any]

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_SOURCES_WITH_MODE = ("downwardAPI", "projected", "configMap", "secret")
DEFAULT_MODE = 0o644


def apply(pod: Data) -> None:
    """All defaults of a pod. Data that is missing because it was wrong stays missing."""
    metadata = pod.setdefault("metadata", {})
    metadata["namespace"] = metadata.get("namespace") or "default"
    spec: Data = pod.setdefault("spec", {})
    _scalars(
        spec,
        restartPolicy="Always",
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
        terminationGracePeriodSeconds=30,
        enableServiceLinks=True,
    )
    spec.setdefault("securityContext", {})
    _requests(spec)
    for volume in spec.get("volumes", ()):
        _volume(volume)
    for container in [*spec.get("initContainers", ()), *spec.get("containers", ())]:
        _container(container, bool(spec.get("hostNetwork")))


def _scalars(data: Data, **values: Any) -> None:
    """Empty text counts as not set, as it does for the API server."""
    for name, value in values.items():
        if data.get(name) in (None, ""):
            data[name] = value


def _container(container: Data, host_network: bool) -> None:
    _scalars(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
    _scalars(container, imagePullPolicy=pull_policy(container.get("image", "")))
    for port in container.get("ports", ()):
        _scalars(port, protocol="TCP")
        if host_network and not port.get("hostPort") and "containerPort" in port:
            port["hostPort"] = port["containerPort"]
    for name in _PROBES:
        if name in container:
            _probe(container[name])
    for hook in container.get("lifecycle", {}).values():
        if isinstance(hook, dict):
            _handler(hook)
    for var in container.get("env", ()):
        _field_ref(var.get("valueFrom", {}))
    _requests(container)
    container.setdefault("resources", {})


def pull_policy(image: str) -> str:
    """Always for `latest` or no tag, IfNotPresent for any other tag and for a digest."""
    if "@" in image:
        return "IfNotPresent"
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return "IfNotPresent" if colon and tag != "latest" else "Always"


def _probe(probe: Data) -> None:
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        probe[name] = probe.get(name) or value
    if "grpc" in probe:
        probe["grpc"].setdefault("service", "")
    _handler(probe)


def _handler(handler: Data) -> None:
    if "httpGet" in handler:
        _scalars(handler["httpGet"], path="/", scheme="HTTP")


def _requests(holder: Data) -> None:
    """A request that is missing is the limit."""
    resources = holder.get("resources", {})
    if resources.get("limits"):
        resources["requests"] = resources["limits"] | resources.get("requests", {})


def _field_ref(source: Data) -> None:
    if "fieldRef" in source:
        _scalars(source["fieldRef"], apiVersion="v1")


def _volume(volume: Data) -> None:
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    for kind in _SOURCES_WITH_MODE:
        if kind in volume:
            volume[kind].setdefault("defaultMode", DEFAULT_MODE)
    for item in volume.get("downwardAPI", {}).get("items", ()):
        _field_ref(item)
    if "image" in volume:
        _scalars(volume["image"], pullPolicy=pull_policy(volume["image"].get("reference", "")))
