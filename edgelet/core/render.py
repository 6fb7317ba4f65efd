"""Statuses and events as the Kubernetes API words them: v1.PodStatus and v1.Event (pure, golden-tested).

What the local API answers and what the mirror sends is made here, so the two cannot differ.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ..model.events import Event
from ..model.status import Condition, ContainerState, ContainerStatus, PodStatus, Running, Terminated, Waiting

Json = dict[str, Any]


def timestamp(seconds: float) -> str | None:
    """metav1.Time: RFC 3339 in UTC, whole seconds; 0 = not known = null."""
    if seconds <= 0:
        return None
    # a list of 50 pods has some 400 of them, and strftime takes three times as long
    return datetime.fromtimestamp(int(seconds), UTC).isoformat()[:19] + "Z"


def _involved(value: Event) -> Json:
    if not value.key.namespace:
        return {"kind": "Node", "name": value.key.name, "uid": value.uid}
    involved: Json = {
        "kind": "Pod",
        "namespace": value.key.namespace,
        "name": value.key.name,
        "uid": value.uid,
        "apiVersion": "v1",
    }
    if value.field_path:
        involved["fieldPath"] = value.field_path
    return involved


def event(value: Event, node_name: str) -> Json:
    """The v1.Event; about the node where the key has no namespace (kept in "default", as the kubelet does)."""
    involved = _involved(value)
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {
            "name": value.name,
            "namespace": value.key.namespace or "default",
            "resourceVersion": str(value.version),
            "creationTimestamp": timestamp(value.first),
        },
        "involvedObject": involved,
        "reason": value.reason,
        "message": value.message,
        "source": {"component": "kubelet", "host": node_name},
        "firstTimestamp": timestamp(value.first),
        "lastTimestamp": timestamp(value.last),
        "count": value.count,
        "type": value.kind,
        "eventTime": None,
        "reportingComponent": "kubelet",
        "reportingInstance": node_name,
    }


def status(value: PodStatus) -> Json:
    """The v1.PodStatus."""
    reason = value.reason or ("Stopped" if _stopped(value) else "")
    fields: Json = {
        "phase": value.phase,
        "conditions": [_condition(c) for c in value.conditions] or None,
        "message": value.message,
        "reason": reason,
        "hostIP": value.host_ip,
        "hostIPs": [{"ip": value.host_ip}] if value.host_ip else None,
        "podIP": value.ips[0] if value.ips else "",
        "podIPs": [{"ip": ip} for ip in value.ips],
        "startTime": timestamp(value.start_time),
        "initContainerStatuses": [_container(c) for c in value.init_containers],
        "containerStatuses": [_container(c) for c in value.containers],
        "qosClass": value.qos,
    }
    return {name: field for name, field in fields.items() if field}


def _stopped(value: PodStatus) -> bool:
    everything = (*value.init_containers, *value.containers)
    return value.held and not any(isinstance(c.state, Running) for c in everything)


def _condition(value: Condition) -> Json:
    fields: Json = {
        "type": value.type,
        "status": value.status,
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(value.last_transition),
    }
    if value.reason:
        fields["reason"] = value.reason
    if value.message:
        fields["message"] = value.message
    return fields


def _container(value: ContainerStatus) -> Json:
    fields: Json = {
        "name": value.name,
        "state": _state(value.state),
        "lastState": _state(value.last_state) if value.last_state else {},
        "ready": value.ready,
        "restartCount": value.restart_count,
        "image": value.image,
        "imageID": value.image_id,
    }
    if value.container_id:
        fields["containerID"] = _container_id(value.container_id)
    return {**fields, "started": value.started}


def _state(value: ContainerState) -> Json:
    match value:
        case Waiting():
            return {"waiting": _present(reason=value.reason, message=value.message)}
        case Running():
            return {"running": {"startedAt": timestamp(value.started_at)}}
        case Terminated():
            return {"terminated": _terminated(value)}


def _terminated(value: Terminated) -> Json:
    return {
        "exitCode": value.exit_code,
        **_present(signal=value.signal, reason=value.reason, message=value.message),
        "startedAt": timestamp(value.started_at),
        "finishedAt": timestamp(value.finished_at),
        **_present(containerID=_container_id(value.container_id)),
    }


def _container_id(value: str) -> str:
    return value if not value or "://" in value else f"podman://{value}"


def _present(**fields: str | int) -> Json:
    return {name: field for name, field in fields.items() if field}
