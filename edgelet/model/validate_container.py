"""The rules of containers (semantics 2.2): ports, variables, mounts, probes, hooks, resources."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any

from . import quantity
from .report import Report
from .tree import Path

Data = dict[str, Any]

_ENV_NAME = re.compile(r"[ -<>-~]+")
_TOKEN = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_TEMPLATE = re.compile(r"\{\{|\{%|\$\{")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOKS = ("exec", "httpGet", "sleep", "tcpSocket")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HONOURED_RESOURCES = ("cpu", "memory")
MAX_RULES, MAX_CODES = 20, 255
"""Rules of a container, and exit codes of a rule."""
_VALUE_SOURCES = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")
_ENV_FIELDS = frozenset(
    [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ]
)
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['[^']+'\]")
_KNOWN_RESOURCES = ("cpu", "memory", "ephemeral-storage", "storage")


def is_template(text: str) -> bool:
    """Whether the text has holes that a template engine should have filled."""
    return _TEMPLATE.search(text) is not None


def unrendered(text: str) -> str:
    """What to say about such a text."""
    return f"{text[:80]!r} is an unrendered template: fill it in before the file is put here"


def check_all(spec: Data, report: Report) -> None:
    """All containers of a pod, init containers included."""
    names: dict[str, str] = {}
    used: dict[tuple[str, str, int], str] = {}
    for path, container, init in _containers(spec):
        name = container.get("name", "")
        if name and name in names:
            report.error((*path, "name"), f"two containers are called {name!r}")
        names[name] = name
        _container(container, path, spec, report)
        if init:
            _init(container, path, report)
        else:
            _host_ports(container, path, used, report)


def _containers(spec: Data) -> Iterator[tuple[Path, Data, bool]]:
    for list_name, init in (("initContainers", True), ("containers", False)):
        for index, container in enumerate(spec.get(list_name, ())):
            yield ("spec", list_name, index), container, init


def _container(container: Data, path: Path, spec: Data, report: Report) -> None:
    _image(container, path, report)
    _ports(container, path, bool(spec.get("hostNetwork")), report)
    _env(container, path, spec, report)
    _mounts(container, path, spec, report)
    _resources(container.get("resources", {}), (*path, "resources"), report)
    _security(container, spec, path, report)
    _rules(container, path, report)
    for name in _PROBES:
        if name in container:
            _probe(container[name], name, (*path, name), container, report)
    for name, hook in container.get("lifecycle", {}).items():
        if isinstance(hook, dict):
            _hook(hook, (*path, "lifecycle", name), spec["terminationGracePeriodSeconds"], report)


def _image(container: Data, path: Path, report: Report) -> None:
    image, where = container.get("image", ""), (*path, "image")
    if report.is_bad(where):
        return
    if not image:
        report.error(where, "is required: the image to run, such as docker.io/library/nginx:1.27")
    elif is_template(image):
        report.error(where, unrendered(image))
    elif image != image.strip():
        report.error(where, f"{image[:80]!r} has blanks around it")
    elif re.search(r"\s", image):
        report.error(where, f"{image[:80]!r} has blanks in it")


def _ports(container: Data, path: Path, host_network: bool, report: Report) -> None:
    names: set[str] = set()
    for index, port in enumerate(container.get("ports", ())):
        here = (*path, "ports", index)
        name = port.get("name", "")
        if name and name in names:
            report.error((*here, "name"), f"two ports are called {name!r}")
        names.add(name)
        if host_network and port.get("hostPort") and port.get("hostPort") != port.get("containerPort"):
            report.error((*here, "hostPort"), "must equal containerPort, as the pod uses the host's network")


def _host_ports(container: Data, path: Path, used: dict[tuple[str, str, int], str], report: Report) -> None:
    for index, port in enumerate(container.get("ports", ())):
        number = port.get("hostPort")
        if not number:
            continue
        key = (port["protocol"], port.get("hostIP", ""), number)
        if key in used:
            report.error((*path, "ports", index, "hostPort"), f"port {number} is used by {used[key]} already")
        used.setdefault(key, f"container {container.get('name', '?')!r}")


def _env(container: Data, path: Path, spec: Data, report: Report) -> None:
    seen: set[str] = set()
    for index, var in enumerate(container.get("env", ())):
        where = (*path, "env", index, "name")
        name = var.get("name", "")
        if not name and not report.is_bad(where):
            report.error(where, "is required: the name of the variable")
        elif name and not _ENV_NAME.fullmatch(name):
            report.error(where, f"{name[:80]!r} must be printable ASCII without '='")
        _value_from(var, (*path, "env", index), spec, report)
        if name in seen and name:
            report.note(where, f"{name[:80]!r} is set twice; the last one counts")
        seen.add(name)


def _value_from(var: Data, path: Path, spec: Data, report: Report) -> None:
    source, where = var.get("valueFrom"), (*path, "valueFrom")
    if source is None:
        return
    if var.get("value"):
        report.error(where, "cannot be used together with value")
    if len(source) != 1 and not report.is_bad(where):
        report.error(where, f"needs exactly one of {', '.join(_VALUE_SOURCES)}")
    path_of = source.get("fieldRef", {}).get("fieldPath", "")
    if path_of and path_of not in _ENV_FIELDS and not _SUBSCRIPT.fullmatch(path_of):
        report.error((*where, "fieldRef", "fieldPath"), f"{path_of[:80]!r} is no field that a variable can hold")
    resource_ref(source.get("resourceFieldRef"), (*where, "resourceFieldRef"), spec, report)
    _file_key(source.get("fileKeyRef", {}), (*where, "fileKeyRef"), spec, report)


def _file_key(ref: Data, path: Path, spec: Data, report: Report) -> None:
    """The file lies in an emptyDir of the pod."""
    file, name = ref.get("path", ""), ref.get("volumeName")
    if file.startswith("/") or ".." in file.split("/"):
        report.error((*path, "path"), f"{file[:80]!r} must lie in the volume")
    volumes = {v.get("name"): v for v in spec.get("volumes", ())}
    if not name or report.is_bad(("spec", "volumes")):
        return
    if name not in volumes:
        report.error((*path, "volumeName"), _no_volume(name, volumes))
    elif volumes[name].keys() - {"name", "emptyDir"}:
        report.error((*path, "volumeName"), f"{name[:80]!r} must be an emptyDir")


def resource_ref(ref: Data | None, path: Path, spec: Data, report: Report) -> None:
    """An amount of a container: which one, of whom."""
    if ref is None:
        return
    kind, _, name = ref.get("resource", "").partition(".")
    known = name in ("cpu", "memory", "ephemeral-storage") or name.startswith("hugepages-")
    if ref.get("resource") and (kind not in ("limits", "requests") or not known):
        report.error((*path, "resource"), f"{ref['resource'][:80]!r} must be limits. or requests. of cpu or memory")
    wanted = ref.get("containerName")
    if wanted and wanted not in [c.get("name") for _, c, _ in _containers(spec)]:
        report.error((*path, "containerName"), f"no container is called {wanted[:80]!r}")


def _mounts(container: Data, path: Path, spec: Data, report: Report) -> None:
    volumes = dict.fromkeys(v.get("name") for v in spec.get("volumes", ()))
    known = not report.is_bad(("spec", "volumes"))
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts", ())):
        here = (*path, "volumeMounts", index)
        name, target = mount.get("name"), mount.get("mountPath", "")
        if name and name not in volumes and known:
            report.error((*here, "name"), _no_volume(name, volumes))
        if target and target in seen:
            report.error((*here, "mountPath"), f"{target[:80]!r} is mounted twice")
        seen.add(target)
        if ":" in target:
            report.error((*here, "mountPath"), f"{target[:80]!r} must not contain ':'")
        _sub_path(mount, here, report)
        privileged = container.get("securityContext", {}).get("privileged")
        if mount.get("mountPropagation") == "Bidirectional" and not privileged:
            report.error((*here, "mountPropagation"), "Bidirectional needs securityContext.privileged: true")


def _no_volume(name: str, volumes: Iterable[Any]) -> str:
    listed = ", ".join(str(v) for v in itertools.islice(volumes, 10) if v)
    return f"no volume is called {name[:80]!r}; spec.volumes has {listed or 'none'}"


def _sub_path(mount: Data, path: Path, report: Report) -> None:
    sub = mount.get("subPath", "")
    if sub.startswith("/"):
        report.error((*path, "subPath"), f"{sub[:80]!r} must be relative to the volume: remove the leading '/'")
    elif ".." in sub.split("/"):
        report.error((*path, "subPath"), f"{sub[:80]!r} must not contain '..'")


def _resources(resources: Data, path: Path, report: Report) -> None:
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            if kind == "requests" and limits.get(name) == text:
                continue  # what there is to say about it was said about the limit
            _resource(name, text, (*path, kind, name), report)
    for name, text in requests.items():
        if name in limits and quantity.more(text, limits[name]):
            report.error((*path, "requests", name), f"{text} is more than the limit {limits[name]}")


def _resource(name: str, text: str, path: Path, report: Report) -> None:
    if quantity.parse(text).numerator < 0:
        report.error(path, f"{text} must not be negative")
    elif name in _HONOURED_RESOURCES:
        if name == "memory" and text.endswith("m"):
            report.warn(path, f"{text} is a thousandth of a byte each; M or Mi is meant, probably")
    elif "/" in name or name in _KNOWN_RESOURCES or name.startswith("hugepages-"):
        if path[-2] == "limits":
            report.warn(path, "is not honoured: only cpu and memory are")
    else:
        report.error(path, f"there is no resource {name[:60]!r}; cpu and memory are meant, probably")


def _security(container: Data, spec: Data, path: Path, report: Report) -> None:
    context, where = container.get("securityContext", {}), (*path, "securityContext")
    escalation = (*where, "allowPrivilegeEscalation")
    added = {c.upper().removeprefix("CAP_") for c in context.get("capabilities", {}).get("add", ())}
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            report.error(escalation, "cannot be false together with privileged: true")
        elif "SYS_ADMIN" in added:
            report.error(escalation, "cannot be false together with the capability SYS_ADMIN")
    pod_level = spec.get("securityContext", {})
    user = context.get("runAsUser", pod_level.get("runAsUser"))
    if user == 0 and context.get("runAsNonRoot", pod_level.get("runAsNonRoot")):
        report.warn(where, "runAsNonRoot with runAsUser 0: the container will not start")


def _rules(container: Data, path: Path, report: Report) -> None:
    rules, where = container.get("restartPolicyRules", ()), (*path, "restartPolicyRules")
    if rules and not container.get("restartPolicy") and not report.is_bad((*path, "restartPolicy")):
        report.error(where, "needs a restartPolicy of this container, for exit codes that no rule is about")
    if len(rules) > MAX_RULES:
        report.error(where, f"{len(rules)} are given, {MAX_RULES} are allowed")
    for index, rule in enumerate(rules):
        codes, here = rule.get("exitCodes"), (*where, index, "exitCodes")
        if codes is None:
            report.error(here, "is required: the exit codes that the rule is about")
        elif not 1 <= len(codes.get("values", ())) <= MAX_CODES:
            report.error((*here, "values"), f"1 to {MAX_CODES} exit codes are needed")


def _probe(probe: Data, name: str, path: Path, container: Data, report: Report) -> None:
    _one_handler(probe, _HANDLERS, path, report)
    _handler(probe, path, container, report)
    if name != "readinessProbe" and probe["successThreshold"] != 1:
        report.error((*path, "successThreshold"), "must be 1 for this kind of probe")
    if name == "readinessProbe" and "terminationGracePeriodSeconds" in probe:
        report.error((*path, "terminationGracePeriodSeconds"), "has no place here: a readiness probe stops nothing")


def _one_handler(data: Data, kinds: tuple[str, ...], path: Path, report: Report) -> None:
    found = [k for k in kinds if k in data]
    spoilt = any(report.is_bad((*path, k)) for k in kinds)
    if len(found) > 1:
        report.error(path, f"has {' and '.join(found)}, only one of them can be used")
    elif not found and not spoilt:
        report.error(path, f"needs one of {', '.join(kinds)}, which says what to do")


def _handler(data: Data, path: Path, container: Data, report: Report) -> None:
    command = (*path, "exec", "command")
    if "exec" in data and not data["exec"].get("command") and not report.is_bad(command):
        report.error(command, "is required: program and arguments")
    for kind in ("httpGet", "tcpSocket"):
        if kind in data:
            _port_of(data[kind], (*path, kind, "port"), container, report)
    for index, header in enumerate(data.get("httpGet", {}).get("httpHeaders", ())):
        if not _TOKEN.fullmatch(header.get("name", "-")):
            report.error((*path, "httpGet", "httpHeaders", index, "name"), "is not a header name")


def _port_of(data: Data, path: Path, container: Data, report: Report) -> None:
    port = data.get("port")
    if isinstance(port, int) and not 1 <= port <= 65535:
        report.error(path, f"must be between 1 and 65535, not {port}")
    elif isinstance(port, str):
        names = [p.get("name") for p in container.get("ports", ())]
        if port.isdigit():
            report.error(path, f"{port[:20]!r} is text: remove the quotes, or give the name of a port")
        elif port not in names:
            report.warn(path, f"no port of this container is called {port[:60]!r}")


def _hook(hook: Data, path: Path, grace: int, report: Report) -> None:
    _one_handler(hook, _HOOKS, path, report)
    _handler(hook, path, {"ports": ()} if "httpGet" not in hook else hook, report)
    seconds = hook.get("sleep", {}).get("seconds", 0)
    if not 0 <= seconds <= grace:
        report.error((*path, "sleep", "seconds"), f"must be between 0 and terminationGracePeriodSeconds ({grace})")


def _init(container: Data, path: Path, report: Report) -> None:
    """Init containers that run to their end have neither probes nor hooks."""
    if container.get("restartPolicy") == "Always":
        return
    for name in (*_PROBES, "lifecycle"):
        if container.get(name):
            report.error((*path, name), "cannot be used here; only sidecars (restartPolicy: Always) have it")
