"""What stands for a reference: the values of fieldRef, resourceFieldRef, ConfigMap and Secret keys (semantics 5.1).

Pure.  Wording of what is missing as the kubelet's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import errors
from ..model import quantity
from ..model.objects import LocalObject
from ..model.pod import Container, EnvVar, Pod
from ..model.references import (
    EnvFrom,
    EnvSource,
    FieldRef,
    FileKeyRef,
    Files,
    ObjectFiles,
    ResourceRef,
    ValueFile,
)
from . import env_file

_NAME = re.compile(r"[ -<>-~]+")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")

Contents = Mapping[str, tuple[bytes, int]]
"""Files by their path in a volume: content and mode."""
Objects = Mapping[tuple[str, str, str], LocalObject]


@dataclass(frozen=True, slots=True)
class Around:
    """What stands around a pod. `cpus` whole processors, `memory` and `storage` in bytes; `ips` those of the pod.

    `files` are those of its emptyDirs that variables are read from, by volume and path; one that cannot be read is
    not among them.
    """

    node_name: str = ""
    host_ip: str = ""
    ips: tuple[str, ...] = ()
    cpus: int = 1
    memory: int = 0
    storage: int = 0
    objects: Objects = field(default_factory=dict)
    files: Mapping[tuple[str, str], str] = field(default_factory=dict)


def environment(pod: Pod, container: Container, around: Around) -> tuple[EnvVar, ...]:
    """The variables of a container as literals, envFrom first; raises errors.ReferenceMissing.

    A `$` of a value that was referred to is doubled: nothing is expanded in it (5.1.4).
    """
    found = [EnvVar(name, _literal(value)) for each in container.env_from for name, value in _all(pod, each, around)]
    for var in container.env:
        if var.source is None:
            found.append(var)
            continue
        value = _value(pod, container, var.source, around)
        if value is not None:
            found.append(EnvVar(var.name, _literal(value)))
    return tuple(found)


def contents(pod: Pod, files: Files, around: Around) -> Contents:
    """The files of a volume: path -> content and mode. Raises errors.ReferenceMissing."""
    made: dict[str, tuple[bytes, int]] = {}
    for source in files.sources:
        if isinstance(source, ValueFile):
            made[source.path] = _value_of(pod, source, around).encode(), _mode(source.mode, files)
            continue
        data = _data(pod, source.kind, source.name, source.optional, around)
        for key, path, mode in _keys(pod, source, data or {}, missing=data is None):
            made[path] = (data or {})[key], _mode(mode, files)
    return made


def _value_of(pod: Pod, file: ValueFile, around: Around) -> str:
    if isinstance(file.source, FieldRef):
        return field_value(pod, file.source.path, around)
    return amount(pod, file.source, pod.containers[0].name, around)


def _mode(own: int | None, files: Files) -> int:
    return files.mode if own is None else own


def _keys(
    pod: Pod, source: ObjectFiles, data: Mapping[str, bytes], missing: bool
) -> Iterator[tuple[str, str, int | None]]:
    """The keys that become files, their paths and modes."""
    if not source.items:
        yield from ((key, key, None) for key in sorted(data))
    for item in () if missing else source.items:
        if item.key in data:
            yield item.key, item.path, item.mode
        elif not source.optional:
            raise errors.ReferenceMissing(
                f"couldn't find key {item.key} in {source.kind} {pod.namespace}/{source.name}"
            )


def _literal(value: str) -> str:
    return value.replace("$", "$$")


def _value(pod: Pod, container: Container, source: EnvSource, around: Around) -> str | None:
    if isinstance(source, FieldRef):
        return field_value(pod, source.path, around)
    if isinstance(source, ResourceRef):
        return amount(pod, source, container.name, around)
    if isinstance(source, FileKeyRef):
        return _from_file(source, around)
    data = _data(pod, source.kind, source.name, source.optional, around)
    if data is not None and source.key in data:
        return data[source.key].decode(errors="replace")
    if source.optional:
        return None
    raise errors.ReferenceMissing(f"couldn't find key {source.key} in {source.kind} {pod.namespace}/{source.name}")


def _from_file(source: FileKeyRef, around: Around) -> str | None:
    """An empty value counts as none; a file that cannot be read is a fault, whatever is optional (5.1.6)."""
    text = around.files.get((source.volume, source.path))
    try:
        if text is None:
            raise ValueError("there is no such file")
        found = env_file.value(text, source.key)
    except ValueError as error:
        where = f"{source.path} of volume {source.volume}"
        raise errors.ReferenceMissing(f"couldn't parse env file: {where}: {error}") from error
    if found or source.optional:
        return found or None
    raise errors.ReferenceMissing(f'environment variable key "{source.key}" not found in file')


def _all(pod: Pod, source: EnvFrom, around: Around) -> Iterator[tuple[str, str]]:
    """Every key that can be a variable's name."""
    data = _data(pod, source.kind, source.name, source.optional, around) or {}
    for key, value in sorted(data.items()):
        if _NAME.fullmatch(source.prefix + key):
            yield source.prefix + key, value.decode(errors="replace")


def _data(pod: Pod, kind: str, name: str, optional: bool, around: Around) -> Mapping[str, bytes] | None:
    found = around.objects.get((kind, pod.namespace, name))
    if found is None and not optional:
        raise errors.ReferenceMissing(f'{kind.lower()} "{name}" not found')
    return None if found is None else found.data


def field_value(pod: Pod, path: str, around: Around) -> str:
    """A field of the pod as text; a label or annotation that is not there is empty (5.1.1)."""
    ips = (around.host_ip,) if pod.host_network else around.ips
    plain = {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": pod.uid,
        "spec.nodeName": around.node_name,
        "status.hostIP": around.host_ip,
        "status.hostIPs": around.host_ip,
        "status.podIP": ips[0] if ips else "",
        "status.podIPs": ",".join(ips),
    }
    if path in plain:
        return plain[path]
    if path == "spec.serviceAccountName":
        return str(_document(pod)["spec"].get("serviceAccountName", ""))
    maps = {"labels": pod.labels, "annotations": pod.annotations}
    if path in ("metadata.labels", "metadata.annotations"):
        return "\n".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in sorted(maps[path[9:]].items()))
    found = _SUBSCRIPT.fullmatch(path)
    return maps[found[1]].get(found[2], "") if found else ""


def amount(pod: Pod, ref: ResourceRef, own: str, around: Around) -> str:
    """An amount of a container; a limit that is not set is what the node has, a request 0 (5.1.2)."""
    kind, _, name = ref.resource.partition(".")
    spec = _document(pod)["spec"]
    every = [*spec.get("initContainers", ()), *spec["containers"]]
    wanted: Any = next((c for c in every if c["name"] == (ref.container or own)), {})
    text = wanted.get("resources", {}).get(kind, {}).get(name)
    reckon = quantity.milli if name == "cpu" else quantity.whole
    if text is not None:
        value = reckon(text)
    else:
        node = {"cpu": around.cpus * 1000, "memory": around.memory, "ephemeral-storage": around.storage}
        value = node.get(name, 0) if kind == "limits" else 0
    return str(-(-value // max(1, reckon(ref.divisor))))


def _document(pod: Pod) -> Any:
    return json.loads(pod.document)
