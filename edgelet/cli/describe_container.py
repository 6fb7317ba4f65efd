"""The containers and volumes in `edgelet describe pod` (kubectl pkg/describe, describeContainers)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from ..adapters.server import humans

Json = dict[str, Any]


def moment(text: str | None) -> str:
    """An RFC 3339 time stamp as RFC 1123 with a numeric zone, as kubectl prints it."""
    when = datetime.fromtimestamp(humans.parse(text), UTC) if text else datetime(1, 1, 1, tzinfo=UTC)
    return when.strftime("%a, %d %b ") + f"{when.year:04d}" + when.strftime(" %H:%M:%S +0000")


def lines(container: Json, status: Json | None, pod: Json) -> Iterator[str]:
    """One container."""
    yield f"  {container['name']}:"
    yield from _indent(_basics(container, status))
    yield from _indent(_words("Command", container.get("command")))
    yield from _indent(_words("Args", container.get("args")))
    if status is not None:
        yield from _indent(_states(status))
    resources = container.get("resources") or {}
    yield from _indent(_quantities("Limits", resources.get("limits")))
    yield from _indent(_quantities("Requests", resources.get("requests")))
    for kind in ("liveness", "readiness", "startup"):
        if container.get(f"{kind}Probe"):
            yield f"    {kind.capitalize()}:\t{probe(container[f'{kind}Probe'])}"
    yield from _indent(_environment(container.get("env") or [], container, pod))
    yield from _indent(_mounts(container.get("volumeMounts") or []))


def probe(value: Json) -> str:
    """A probe in one line."""
    times = (
        f"delay={value.get('initialDelaySeconds', 0)}s timeout={value.get('timeoutSeconds', 1)}s "
        f"period={value.get('periodSeconds', 10)}s #success={value.get('successThreshold', 1)} "
        f"#failure={value.get('failureThreshold', 3)}"
    )
    if "exec" in value:
        return f"exec [{' '.join(value['exec'].get('command') or [])}] {times}"
    if "httpGet" in value:
        get = value["httpGet"]
        scheme, host = get.get("scheme", "HTTP").lower(), get.get("host", "")
        host = f"[{host}]" if ":" in host else host
        return f"http-get {scheme}://{host}:{get['port']}{get.get('path', '')} {times}"
    if "tcpSocket" in value:
        return f"tcp-socket {value['tcpSocket'].get('host', '')}:{value['tcpSocket']['port']} {times}"
    if "grpc" in value:
        return f"grpc <pod>:{value['grpc']['port']} {value['grpc'].get('service', '')} {times}"
    return f"unknown {times}"


def volume(value: Json) -> list[str]:
    """A volume's kind and fields."""
    if "hostPath" in value:
        path = value["hostPath"]
        kind = "HostPath (bare host directory volume)"
        return [f"Type:\t{kind}", f"Path:\t{path['path']}", f"HostPathType:\t{path.get('type', '')}"]
    if "emptyDir" in value:
        empty = value["emptyDir"] or {}
        kind = "EmptyDir (a temporary directory that shares a pod's lifetime)"
        limit = empty.get("sizeLimit", "<unset>")
        return [f"Type:\t{kind}", f"Medium:\t{empty.get('medium', '')}", f"SizeLimit:\t{limit}"]
    if "configMap" in value:
        found = value["configMap"]
        kind = "ConfigMap (a volume populated by a ConfigMap)"
        return [f"Type:\t{kind}", f"Name:\t{found.get('name', '')}", f"Optional:\t{_bool(found.get('optional'))}"]
    if "secret" in value:
        found = value["secret"]
        kind = "Secret (a volume populated by a Secret)"
        name, optional = found.get("secretName", ""), _bool(found.get("optional"))
        return [f"Type:\t{kind}", f"SecretName:\t{name}", f"Optional:\t{optional}"]
    if "projected" in value:
        kind = "Projected (a volume that contains injected data from multiple sources)"
        return [f"Type:\t{kind}", *_projected(value["projected"].get("sources") or [])]
    return ["<unknown>"]


def _projected(sources: Iterable[Json]) -> Iterator[str]:
    for source in sources:
        if "secret" in source:
            yield f"SecretName:\t{source['secret']['name']}"
            yield f"SecretOptionalName:\t{_pointer(source['secret'].get('optional'))}"
        elif "downwardAPI" in source:
            yield "DownwardAPI:\ttrue"
        elif "configMap" in source:
            yield f"ConfigMapName:\t{source['configMap']['name']}"
            yield f"ConfigMapOptional:\t{_pointer(source['configMap'].get('optional'))}"
        elif "serviceAccountToken" in source:
            yield f"TokenExpirationSeconds:\t{source['serviceAccountToken'].get('expirationSeconds', 3600)}"


def _indent(texts: Iterable[str]) -> Iterator[str]:
    return (f"    {text}" for text in texts)


def _basics(container: Json, status: Json | None) -> Iterator[str]:
    if status is not None:
        yield f"Container ID:\t{status.get('containerID', '')}"
    yield f"Image:\t{container.get('image', '')}"
    if status is not None:
        yield f"Image ID:\t{status.get('imageID', '')}"
    ports = container.get("ports") or []
    yield _ports("Port", [f"{p['containerPort']}/{p.get('protocol', 'TCP')}" for p in ports])
    yield _ports("Host Port", [f"{p.get('hostPort', 0)}/{p.get('protocol', 'TCP')}" for p in ports])


def _ports(title: str, ports: list[str]) -> str:
    plural = "s" if len(ports) > 1 else ""
    return f"{title}{plural}:\t{', '.join(ports) or '<none>'}"


def _words(title: str, words: list[str] | None) -> Iterator[str]:
    if words:
        yield f"{title}:"
        for word in words:
            yield from (f"  {line}" for line in word.split("\n"))


def _states(status: Json) -> Iterator[str]:
    yield from _state("State", status.get("state") or {})
    if (status.get("lastState") or {}).get("terminated"):
        yield from _state("Last State", status["lastState"])
    yield f"Ready:\t{_bool(status.get('ready')).capitalize()}"
    yield f"Restart Count:\t{status.get('restartCount', 0)}"


def _state(title: str, state: Json) -> Iterator[str]:
    if "running" in state:
        yield f"{title}:\tRunning"
        yield f"  Started:\t{moment(state['running'].get('startedAt'))}"
    elif "terminated" in state:
        yield f"{title}:\tTerminated"
        yield from _terminated(state["terminated"])
    else:
        yield f"{title}:\tWaiting"
        if (state.get("waiting") or {}).get("reason"):
            yield f"  Reason:\t{state['waiting']['reason']}"


def _terminated(value: Json) -> Iterator[str]:
    for field in ("reason", "message"):
        if value.get(field):
            yield f"  {field.capitalize()}:\t{value[field]}"
    yield f"  Exit Code:\t{value['exitCode']}"
    if value.get("signal"):
        yield f"  Signal:\t{value['signal']}"
    yield f"  Started:\t{moment(value.get('startedAt'))}"
    yield f"  Finished:\t{moment(value.get('finishedAt'))}"


def _quantities(title: str, values: Json | None) -> Iterator[str]:
    if values:
        yield f"{title}:"
        yield from (f"  {name}:\t{values[name]}" for name in sorted(values))


def _environment(variables: list[Json], container: Json, pod: Json) -> Iterator[str]:
    yield "Environment:" if variables else "Environment:\t<none>"
    for variable in variables:
        first, *more = _value(variable, container, pod)
        yield f"  {variable['name']}:\t{first}"
        yield from (f"  \t{line}" for line in more)


def _value(variable: Json, container: Json, pod: Json) -> list[str]:
    source = variable.get("valueFrom")
    if not source:
        return str(variable.get("value", "")).split("\n")
    if "fieldRef" in source:
        path = source["fieldRef"]["fieldPath"]
        return [f"{_field(pod, path)} ({source['fieldRef'].get('apiVersion', 'v1')}:{path})"]
    if "secretKeyRef" in source:
        found = source["secretKeyRef"]
        optional = _bool(found.get("optional"))
        return [f"<set to the key '{found['key']}' in secret '{found['name']}'>\tOptional: {optional}"]
    if "configMapKeyRef" in source:
        found = source["configMapKeyRef"]
        optional = _bool(found.get("optional"))
        return [f"<set to the key '{found['key']}' of config map '{found['name']}'>\tOptional: {optional}"]
    if "resourceFieldRef" in source:
        return [f"{container['name']} ({source['resourceFieldRef']['resource']})"]
    return ["<unknown>"]


def _field(pod: Json, path: str) -> str:
    value: Any = pod
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _mounts(mounts: list[Json]) -> Iterator[str]:
    yield "Mounts:" if mounts else "Mounts:\t<none>"
    for mount in sorted(mounts, key=lambda m: str(m["mountPath"])):
        flags = "ro" if mount.get("readOnly") else "rw"
        if mount.get("subPath"):
            flags += f',path="{mount["subPath"]}"'
        yield f"  {mount['mountPath']} from {mount['name']} ({flags})"


def _bool(value: object) -> str:
    return "true" if value else "false"


def _pointer(value: bool | None) -> str:
    """A Go *bool as fmt prints it."""
    return "<nil>" if value is None else _bool(value)
