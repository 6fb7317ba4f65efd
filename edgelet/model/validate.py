"""The rules that span more than one field (semantics 2.2): all findings at once, in plain words.

Works on clean, defaulted data; types, required fields, single values and limits were settled by
`check` already.
"""

from __future__ import annotations

import re
from typing import Any

from . import validate_container as containers
from .check import SUBDOMAIN
from .report import Report
from .tree import Path

Data = dict[str, Any]

MAX_ANNOTATIONS = 256 * 1024
MAX_NAME = 253
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_KEY = re.compile(r"[-._A-Za-z0-9]{1,253}")
# It becomes the name of a directory, so it must be no path.
_UID = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_VOLUME_FIELD = re.compile(r"metadata\.(name|namespace|uid|(labels|annotations)(\['[^']+'\])?)")
_VOLUME_KEYS = frozenset(["name"])


def pod(data: Data, name: str, report: Report) -> None:
    """Check a pod that will be called `name` (node suffix included)."""
    _metadata(data["metadata"], name, report)
    spec = data["spec"]
    _spec(spec, report)
    _volumes(spec.get("volumes", ()), spec, report)
    containers.check_all(spec, report)


def metadata_name(metadata: Data, name: str, report: Report) -> None:
    """The name alone: for objects beside pods too."""
    path: Path = ("metadata", "name")
    short = metadata.get("name", "")
    if report.is_bad(path) or report.is_bad(("metadata",)):
        return
    if not short:
        report.error(path, "is required: a name of lower-case letters, digits and '-'")
    elif _template(short):
        report.error(path, _unrendered(short))
    elif not SUBDOMAIN.fullmatch(short):
        report.error(path, f"{short[:80]!r} must be lower-case letters, digits, '-' and '.', {_ends(short)}")
    elif not SUBDOMAIN.fullmatch(name):
        report.error(path, f"{name[:80]!r}, the name with the node's name, is not a valid name")
    elif len(name) > MAX_NAME:
        report.error(path, f"is too long: with the node's name it has {len(name)} characters, {MAX_NAME} are allowed")


def keys(data: Data, report: Report) -> None:
    """The keys of a ConfigMap or Secret: they become names of files and variables (IsConfigMapKey)."""
    for section in ("data", "binaryData", "stringData"):
        for key in data.get(section, {}):
            if not _KEY.fullmatch(key) or key.startswith("..") or key == ".":
                report.error(
                    (section, key),
                    f"the key {key[:80]!r} must be up to {MAX_NAME} letters, digits, '-', '_' and '.', "
                    "and is the name of a file: neither '.' nor anything that begins with '..'",
                )


def _ends(name: str) -> str:
    lower = name.lower().replace("_", "-").replace(" ", "-").strip("-.")
    tail = f"; try {lower[:80]!r}" if SUBDOMAIN.fullmatch(lower) else ""
    return f"and begin and end with a letter or digit{tail}"


def _template(text: str) -> bool:
    return containers.is_template(text)


def _unrendered(text: str) -> str:
    return containers.unrendered(text)


def _metadata(metadata: Data, name: str, report: Report) -> None:
    metadata_name(metadata, name, report)
    uid = metadata.get("uid", "")
    if uid and not _UID.fullmatch(uid):
        report.error(("metadata", "uid"), f"{uid[:80]!r} must be up to 63 letters, digits and '-'; best leave it out")
    for key, value in metadata.get("labels", {}).items():
        _qualified(key, ("metadata", "labels", key), report)
        if not _LABEL_VALUE.fullmatch(value):
            report.error(
                ("metadata", "labels", key),
                f"{value[:80]!r} is no label value: at most 63 letters, digits, '-', '_' and '.', "
                "beginning and ending with a letter or digit; longer texts belong under annotations",
            )
    annotations = metadata.get("annotations", {})
    for key in annotations:
        _qualified(key, ("metadata", "annotations", key), report)
    total = sum(len(k.encode()) + len(v.encode("utf-8", "replace")) for k, v in annotations.items())
    if total > MAX_ANNOTATIONS:
        report.error(("metadata", "annotations"), f"are {total} bytes together, {MAX_ANNOTATIONS} are allowed")


def _qualified(key: str, path: Path, report: Report) -> None:
    prefix, slash, name = key.rpartition("/")
    good = _LABEL_NAME.fullmatch(name) and (
        not slash or (len(prefix) <= MAX_NAME and SUBDOMAIN.fullmatch(prefix.lower()))
    )
    if not good:
        report.error(
            path, f"the key {key[:80]!r} must be a name of letters, digits, '-', '_' and '.', with at most one "
            "'domain/' before it"
        )  # fmt: skip


def _spec(spec: Data, report: Report) -> None:
    if not spec.get("containers") and not report.is_bad(("spec", "containers")) and not report.is_bad(("spec",)):
        report.error(("spec", "containers"), "at least one container is required")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        report.error(("spec", "shareProcessNamespace"), "cannot be true together with hostPID")
    if spec.get("hostUsers") is False:
        for name in ("hostPID", "hostIPC", "hostNetwork"):
            if spec.get(name):
                report.error(("spec", name), "cannot be true together with hostUsers: false")
    if spec.get("os", {}).get("name") == "windows":
        report.error(("spec", "os", "name"), "this is a Linux node; the pod is for Windows")
    _dns(spec, report)
    _aliases(spec, report)
    _sysctls(spec.get("securityContext", {}).get("sysctls", ()), report)


def _sysctls(rows: Any, report: Report) -> None:
    seen: set[str] = set()
    for index, row in enumerate(rows):
        here, name = ("spec", "securityContext", "sysctls", index, "name"), row.get("name", "")
        if not _SYSCTL.fullmatch(name) or len(name) > MAX_NAME:
            report.error(here, f"{name[:80]!r} is no name of a kernel setting")
        elif name in seen:
            report.error(here, f"{name[:80]!r} is set twice")
        seen.add(name)


def _dns(spec: Data, report: Report) -> None:
    config, path = spec.get("dnsConfig", {}), ("spec", "dnsConfig")
    servers, searches = config.get("nameservers", []), config.get("searches", [])
    if spec["dnsPolicy"] == "None" and not servers:
        report.error((*path, "nameservers"), "dnsPolicy None needs at least one name server here")
    if len(servers) > 3:
        report.error((*path, "nameservers"), f"{len(servers)} are given, 3 are allowed")
    if len(searches) > 32 or len(" ".join(searches)) > 2048:
        report.error((*path, "searches"), "at most 32 domains with 2048 characters together are allowed")


def _aliases(spec: Data, report: Report) -> None:
    for index, alias in enumerate(spec.get("hostAliases", ())):
        for at, host in enumerate(alias.get("hostnames", ())):
            if not SUBDOMAIN.fullmatch(host):
                report.error(("spec", "hostAliases", index, "hostnames", at), f"{host[:80]!r} is no host name")


def _volumes(volumes: Any, spec: Data, report: Report) -> None:
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        path: Path = ("spec", "volumes", index)
        name = volume.get("name", "")
        if name in seen and name:
            report.error((*path, "name"), f"two volumes are called {name!r}")
        seen.add(name)
        kinds = sorted(set(volume) - _VOLUME_KEYS)
        if len(kinds) > 1:
            report.error(path, f"a volume has one source, this one has {' and '.join(kinds)}")
        if "hostPath" in volume:
            _host_path(volume["hostPath"], (*path, "hostPath", "path"), report)
        for kind in ("configMap", "secret", "downwardAPI"):
            _files(volume.get(kind, {}), (*path, kind), spec, report)
        for at, part in enumerate(volume.get("projected", {}).get("sources", ())):
            for kind, source in part.items():
                _files(source, (*path, "projected", "sources", at, kind), spec, report)


def _files(source: Data, path: Path, spec: Data, report: Report) -> None:
    """Files lie in the volume, and the fields among them are those that do not change."""
    for index, item in enumerate(source.get("items", ())):
        here = (*path, "items", index)
        where = item.get("path", "")
        if where.startswith("/") or ".." in where.split("/") or where.startswith(".."):
            report.error((*here, "path"), f"{where[:80]!r} must lie in the volume")
        field = item.get("fieldRef", {}).get("fieldPath", "")
        if field and not _VOLUME_FIELD.fullmatch(field):
            report.error((*here, "fieldRef", "fieldPath"), f"{field[:80]!r} is no field that a file can hold")
        containers.resource_ref(item.get("resourceFieldRef"), (*here, "resourceFieldRef"), spec, report)


def _host_path(source: Data, path: Path, report: Report) -> None:
    where = source.get("path", "")
    if report.is_bad(path) or not where:
        return
    if ".." in where.split("/"):
        report.error(path, f"{where[:80]!r} must not contain '..'")
    elif not where.startswith("/"):
        report.error(path, f"{where[:80]!r} must be an absolute path: there is no directory that it is relative to")
