"""What a manifest says instead of a value: a field of the pod, an amount, a key of a ConfigMap or Secret."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldRef:
    """A field of the pod, such as metadata.name or metadata.labels['app']."""

    path: str


@dataclass(frozen=True, slots=True)
class ResourceRef:
    """limits.cpu and the like of a container ("" = the one that it stands in), divided by `divisor` and rounded up."""

    resource: str
    container: str = ""
    divisor: str = "1"


@dataclass(frozen=True, slots=True)
class KeyRef:
    """One key of a ConfigMap or Secret; `optional` = it may be missing, and then nothing is set."""

    kind: str
    name: str
    key: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class FileKeyRef:
    """A variable in a file of NAME='value' lines that an emptyDir holds when the container starts (5.1.6)."""

    volume: str
    path: str
    key: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class EnvFrom:
    """All keys of a ConfigMap or Secret as variables, each with `prefix` before its name."""

    kind: str
    name: str
    prefix: str = ""
    optional: bool = False


EnvSource = FieldRef | ResourceRef | KeyRef | FileKeyRef


@dataclass(frozen=True, slots=True)
class KeyFile:
    """A key as a file; mode None = that of the volume."""

    key: str
    path: str
    mode: int | None = None


@dataclass(frozen=True, slots=True)
class ObjectFiles:
    """The keys of a ConfigMap or Secret as files; `items` () = all keys, each under its own name."""

    kind: str
    name: str
    items: tuple[KeyFile, ...] = ()
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ValueFile:
    """A field or an amount as a file."""

    path: str
    source: FieldRef | ResourceRef
    mode: int | None = None


@dataclass(frozen=True, slots=True)
class Files:
    """A volume of files that edgelet writes (configMap, secret, downwardAPI, projected); `mode` of each by default."""

    sources: tuple[ObjectFiles | ValueFile, ...]
    mode: int = 0o644

    @property
    def secret(self) -> bool:
        """It holds what only memory may hold."""
        return any(isinstance(s, ObjectFiles) and s.kind == "Secret" for s in self.sources)
