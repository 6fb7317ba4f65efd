"""Pods as the server keeps them: defaults, what must be right at creation, what a status may say.

Sources: pkg/apis/core/validation (ValidatePodCreate, ValidatePodStatusUpdate), pkg/registry/core/pod/strategy.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from edgelet.model import check, defaults

from .admission import MIRROR

Json = dict[str, Any]
Cause = tuple[str, str]

_NO_EXECUTE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_LISTS = ("initContainers", "containers")
_MUTABLE = ("containers", "initContainers", "activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds")


def prepare(pod: Json) -> None:
    """A pod that is new: what the client may not say is dropped, the rest is filled in."""
    defaults.apply(pod)
    spec = pod["spec"]
    if spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccount"] = spec["serviceAccountName"] = spec.get("serviceAccountName") or spec["serviceAccount"]
    given = spec.setdefault("tolerations", [])
    for key in _NO_EXECUTE:
        if not any(_tolerates(t, key) for t in given):
            given.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    pod["metadata"]["generation"] = 1
    pod["status"] = {"phase": "Pending", "qosClass": _qos(spec)}


def _tolerates(toleration: Json, key: str) -> bool:
    return toleration.get("key", key) in ("", key) and toleration.get("effect", "NoExecute") in ("", "NoExecute")


def _qos(spec: Json) -> str:
    held = [c.get("resources", {}) for field in _LISTS for c in spec.get(field, [])]
    kinds = [(h.get("limits", {}), h.get("requests", {})) for h in held]
    if not any(side.get(r) for both in kinds for side in both for r in ("cpu", "memory")):
        return "BestEffort"
    same = all(limits.get(r) and requests.get(r) == limits[r] for limits, requests in kinds for r in ("cpu", "memory"))
    return "Guaranteed" if same else "Burstable"


def problems(pod: Json) -> Iterator[Cause]:
    """What is wrong with a pod that is to be created."""
    spec = pod["spec"]
    if MIRROR in pod["metadata"].get("annotations", {}) and not spec.get("nodeName"):
        yield f"metadata.annotations[{MIRROR}]", "must set spec.nodeName if mirror pod annotation is set"
    if not spec.get("containers"):
        yield "spec.containers", "Required value"
    if spec.get("ephemeralContainers"):
        yield "spec.ephemeralContainers", "Forbidden: cannot be set on create"
    volumes = [v.get("name", "") for v in spec.get("volumes", [])]
    for index, name in enumerate(volumes):
        yield from _named(f"spec.volumes[{index}].name", name, volumes[:index])
    seen: list[str] = []
    for field in _LISTS:
        for index, container in enumerate(spec.get(field, [])):
            path = f"spec.{field}[{index}]"
            yield from _named(f"{path}.name", container.get("name", ""), seen)
            seen.append(container.get("name", ""))
            yield from _container(container, path, volumes)


def _named(path: str, name: str, before: list[str]) -> Iterator[Cause]:
    if not name:
        yield path, "Required value"
    elif not check.LABEL.fullmatch(name):
        yield path, f'Invalid value: "{name}": a lowercase RFC 1123 label must consist of lower case characters'
    elif name in before:
        yield path, f'Duplicate value: "{name}"'


def _container(container: Json, path: str, volumes: list[str]) -> Iterator[Cause]:
    if not container.get("image"):
        yield f"{path}.image", "Required value"
    places: list[str] = []
    for index, mount in enumerate(container.get("volumeMounts", [])):
        here, name, place = f"{path}.volumeMounts[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        if name not in volumes:
            yield f"{here}.name", f'Not found: "{name}"'
        if not place or place in places:
            yield f"{here}.mountPath", f'Invalid value: "{place}": must be unique' if place else "Required value"
        places.append(place)
    for index, variable in enumerate(container.get("env", [])):
        here = f"{path}.env[{index}]"
        if not variable.get("name"):
            yield f"{here}.name", "Required value"
        if "valueFrom" in variable and (len(variable["valueFrom"]) != 1 or variable.get("value")):
            yield f"{here}.valueFrom", "Invalid value: must have exactly one source, and no value beside it"


def keep_spec(new: Json, old: Json) -> None:
    """Status changes touch the status, labels and annotations only."""
    new["spec"] = old["spec"]
    fields = ("deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences")
    kept = {field: old["metadata"][field] for field in fields if field in old["metadata"]}
    # A patch that does not touch the metadata shares them with the old object.
    new["metadata"] = {**{k: v for k, v in new["metadata"].items() if k not in fields}, **kept}
    status = new.setdefault("status", {})
    if not status.get("qosClass") and "qosClass" in old.get("status", {}):
        status["qosClass"] = old["status"]["qosClass"]


def keep_status(new: Json, old: Json) -> None:
    """Changes of the pod itself never touch its status."""
    new["status"] = old.get("status", {})


def status_problems(new: Json, old: Json) -> Iterator[Cause]:
    """What is wrong with a new status."""
    status, before = new["status"], old.get("status", {})
    yield from mirror_problems(new, old)
    if status.get("qosClass") != before.get("qosClass"):
        yield "status.qosClass", f'Invalid value: "{status.get("qosClass")}": field is immutable'
    known = [i.get("ip") for i in before.get("podIPs", [])]
    yield from _ips("status.podIPs", [i.get("ip", "") for i in status.get("podIPs", [])], known)
    hosts = [i.get("ip", "") for i in status.get("hostIPs", [])]
    if hosts and status.get("hostIP", "") != hosts[0]:
        yield "status.hostIPs[0].ip", f'Invalid value: "{hosts[0]}": must be equal to `hostIP`'
    yield from _ips("status.hostIPs", hosts, [i.get("ip") for i in before.get("hostIPs", [])])
    yield from _transitions(new, old)


def mirror_problems(new: Json, old: Json) -> Iterator[Cause]:
    """The mirror annotation stays as it is."""
    now, before = (p["metadata"].get("annotations", {}).get(MIRROR) for p in (new, old))
    if now != before:
        what = "add" if before is None else "remove or update"
        yield f"metadata.annotations[{MIRROR}]", f"Forbidden: may not {what} mirror pod annotation"


def spec_problems(new: Json, old: Json) -> Iterator[Cause]:
    """Of a spec, images and little else may change."""
    yield from mirror_problems(new, old)
    frozen = [{k: v for k, v in p["spec"].items() if k not in _MUTABLE} for p in (new, old)]
    bare = [[{**c, "image": ""} for f in _LISTS for c in p["spec"].get(f, [])] for p in (new, old)]
    if frozen[0] != frozen[1] or bare[0] != bare[1]:
        yield "spec", "Forbidden: pod updates may not change fields other than `spec.containers[*].image`"


def _ips(path: str, values: list[str], known: list[str]) -> Iterator[Cause]:
    families = []
    for index, value in enumerate(values):
        try:
            families.append(ipaddress.ip_address(value).version)
        except ValueError:
            if value not in known:
                yield f"{path}[{index}]", f'Invalid value: "{value}": must be a valid IP address, (e.g. 10.9.8.7)'
    if len(values) > 1 and sorted(families) != [4, 6]:
        yield path, "Invalid value: may specify no more than one IP for each IP family"


def _transitions(new: Json, old: Json) -> Iterator[Cause]:
    """What has ended for good does not run again."""
    policy = old["spec"].get("restartPolicy", "Always")
    policies = {c["name"]: c.get("restartPolicy", policy) for f in _LISTS for c in old["spec"].get(f, [])}
    for field in ("containerStatuses", "initContainerStatuses"):
        now = {s.get("name"): s.get("state", {}) for s in new["status"].get(field, [])}
        for index, status in enumerate(old.get("status", {}).get(field, [])):
            ended, name = status.get("state", {}).get("terminated"), status.get("name")
            again = ended is not None and name in now and "terminated" not in now[name]
            if again and not _may_restart(policies.get(name, policy), ended.get("exitCode", 0), field):
                yield f"status.{field}[{index}].state", "Forbidden: may not be transitioned to non-terminated state"


def _may_restart(policy: str, exit_code: int, field: str) -> bool:
    return policy == "Always" or (policy == "OnFailure" and (exit_code != 0 or field == "initContainerStatuses"))
