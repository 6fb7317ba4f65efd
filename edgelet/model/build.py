"""Builds the typed Pod from clean, defaulted, validated data. Total: nothing here can fail."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from . import pod as pods
from . import quantity
from . import references as refs

Data = dict[str, Any]


def dotted(name: str) -> str:
    """The name with dots between its parts: with a slash as its first separator, slashes are, and dots belong to parts.

    >>> dotted("net/ipv4/conf/eth0.1/mtu"), dotted("net.ipv4.conf.eth0/1.mtu")
    ('net.ipv4.conf.eth0/1.mtu', 'net.ipv4.conf.eth0/1.mtu')
    """
    first = next((c for c in name if c in "./"), ".")
    return name if first == "." else name.translate(str.maketrans("./", "/."))


def pod(data: Data, uid: str, config_hash: str, source: str, short_name: str) -> pods.Pod:
    """`data` is the v1.Pod with its full name; it becomes `Pod.document` as it is."""
    metadata, spec = data["metadata"], data["spec"]
    security = spec.get("securityContext", {})
    return pods.Pod(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=uid,
        config_hash=config_hash,
        source=source,
        containers=tuple(_container(c, security) for c in spec["containers"]),
        init_containers=tuple(_container(c, security) for c in spec.get("initContainers", ())),
        volumes=tuple(_volumes(spec.get("volumes", ()))),
        labels=metadata.get("labels", {}),
        annotations=metadata.get("annotations", {}),
        restart_policy=spec["restartPolicy"],
        grace=spec["terminationGracePeriodSeconds"],
        active_deadline=spec.get("activeDeadlineSeconds"),
        host_network=spec.get("hostNetwork", False),
        host_pid=spec.get("hostPID", False),
        host_ipc=spec.get("hostIPC", False),
        share_process_namespace=spec.get("shareProcessNamespace", False),
        hostname=spec.get("hostname", ""),
        host_aliases=tuple(pods.HostAlias(a["ip"], tuple(a.get("hostnames", ()))) for a in spec.get("hostAliases", ())),
        priority=spec.get("priority", 0),
        sysctls=tuple((dotted(s["name"]), s["value"]) for s in security.get("sysctls", ())),
        short_name=short_name,
        document=json.dumps(data, separators=(",", ":"), ensure_ascii=False),
    )


def _container(data: Data, pod_security: Data) -> pods.Container:
    return pods.Container(
        name=data["name"],
        image=data["image"],
        pull_policy=data["imagePullPolicy"],
        command=tuple(data.get("command", ())),
        args=tuple(data.get("args", ())),
        working_dir=data.get("workingDir", ""),
        env=tuple(_variable(e) for e in data.get("env", ())),
        env_from=tuple(_env_from(e) for e in data.get("envFrom", ())),
        ports=tuple(_port(p) for p in data.get("ports", ())),
        mounts=tuple(_mount(m) for m in data.get("volumeMounts", ())),
        resources=_resources(data.get("resources", {})),
        security=_security(pod_security, data.get("securityContext", {})),
        liveness=_probe(data.get("livenessProbe")),
        readiness=_probe(data.get("readinessProbe")),
        startup=_probe(data.get("startupProbe")),
        lifecycle=_lifecycle(data.get("lifecycle", {})),
        restart_policy=data.get("restartPolicy", ""),
        restart_rules=tuple(_rule(r) for r in data.get("restartPolicyRules", ())),
        termination_message_path=data["terminationMessagePath"],
        termination_message_policy=data["terminationMessagePolicy"],
        stdin=data.get("stdin", False),
        tty=data.get("tty", False),
    )


def _variable(data: Data) -> pods.EnvVar:
    return pods.EnvVar(data["name"], data.get("value", ""), _source(data.get("valueFrom", {})))


def _source(data: Data) -> refs.EnvSource | None:
    if "fieldRef" in data:
        return refs.FieldRef(data["fieldRef"]["fieldPath"])
    if "resourceFieldRef" in data:
        return _resource_ref(data["resourceFieldRef"])
    if "fileKeyRef" in data:
        ref = data["fileKeyRef"]
        return refs.FileKeyRef(ref["volumeName"], ref["path"], ref["key"], ref.get("optional", False))
    for name, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if name in data:
            ref = data[name]
            return refs.KeyRef(kind, ref.get("name", ""), ref["key"], ref.get("optional", False))
    return None


def _resource_ref(data: Data) -> refs.ResourceRef:
    divisor = data.get("divisor", "1")
    return refs.ResourceRef(data["resource"], data.get("containerName", ""), "1" if divisor == "0" else divisor)


def _env_from(data: Data) -> refs.EnvFrom:
    kind = "ConfigMap" if "configMapRef" in data else "Secret"
    ref: Data = data.get("configMapRef") or data.get("secretRef") or {}
    return refs.EnvFrom(kind, ref.get("name", ""), data.get("prefix", ""), ref.get("optional", False))


def _rule(data: Data) -> pods.RestartRule:
    codes = data.get("exitCodes", {})
    return pods.RestartRule(data["action"], codes["operator"], tuple(codes.get("values", ())))


def _port(data: Data) -> pods.Port:
    return pods.Port(
        data["containerPort"], data.get("hostPort", 0), data.get("hostIP", ""), data["protocol"], data.get("name", "")
    )


def _mount(data: Data) -> pods.VolumeMount:
    path = data["mountPath"]
    return pods.VolumeMount(
        volume=data["name"],
        # A relative path is one below the container's root, as the kubelet has it.
        mount_path=path if path.startswith("/") else f"/{path}",
        read_only=data.get("readOnly", False),
        sub_path=data.get("subPath", ""),
        propagation=data.get("mountPropagation") or "None",
    )


def _resources(data: Data) -> pods.Resources:
    limits, requests = data.get("limits", {}), data.get("requests", {})
    return pods.Resources(
        cpu_limit=_amount(limits, "cpu"),
        memory_limit=_amount(limits, "memory"),
        cpu_request=_amount(requests, "cpu"),
        memory_request=_amount(requests, "memory"),
        storage_limit=_amount(limits, "ephemeral-storage"),
        storage_request=_amount(requests, "ephemeral-storage"),
    )


def _amount(amounts: Data, name: str) -> int | None:
    if name not in amounts:
        return None
    return quantity.milli(amounts[name]) if name == "cpu" else quantity.whole(amounts[name])


def _security(pod_level: Data, own: Data) -> pods.SecurityContext:
    capabilities = own.get("capabilities", {})
    return pods.SecurityContext(
        run_as_user=own.get("runAsUser", pod_level.get("runAsUser")),
        run_as_group=own.get("runAsGroup", pod_level.get("runAsGroup")),
        run_as_non_root=own.get("runAsNonRoot", pod_level.get("runAsNonRoot")),
        privileged=own.get("privileged", False),
        allow_privilege_escalation=own.get("allowPrivilegeEscalation"),
        read_only_root_filesystem=own.get("readOnlyRootFilesystem", False),
        add_capabilities=_capabilities(capabilities.get("add", ())),
        drop_capabilities=_capabilities(capabilities.get("drop", ())),
    )


def _capabilities(names: Iterable[str]) -> tuple[str, ...]:
    """Upper case, without the CAP_ that people write although it does not belong there."""
    return tuple(n.upper().removeprefix("CAP_") for n in names)


def _probe(data: Data | None) -> pods.Probe | None:
    handler = _handler(data) if data is not None else None
    if data is None or handler is None or isinstance(handler, pods.Sleep):
        return None
    return pods.Probe(
        handler=handler,
        initial_delay=data.get("initialDelaySeconds", 0),
        timeout=data["timeoutSeconds"],
        period=data["periodSeconds"],
        success_threshold=data["successThreshold"],
        failure_threshold=data["failureThreshold"],
        termination_grace=data.get("terminationGracePeriodSeconds"),
    )


def _lifecycle(data: Data) -> pods.Lifecycle:
    return pods.Lifecycle(_hook(data.get("postStart", {})), _hook(data.get("preStop", {})))


def _hook(data: Data) -> pods.HookHandler | None:
    handler = _handler(data)
    return None if isinstance(handler, pods.Grpc) else handler


def _handler(data: Data) -> pods.Handler | pods.Sleep | None:
    if "exec" in data:
        return pods.Exec(tuple(data["exec"].get("command", ())))
    if "httpGet" in data:
        return _http_get(data["httpGet"])
    if "tcpSocket" in data:
        return pods.TcpSocket(data["tcpSocket"]["port"], data["tcpSocket"].get("host", ""))
    if "grpc" in data:
        return pods.Grpc(data["grpc"]["port"], data["grpc"].get("service", ""))
    return pods.Sleep(data["sleep"]["seconds"]) if "sleep" in data else None


def _http_get(data: Data) -> pods.HttpGet:
    return pods.HttpGet(
        port=data["port"],
        path=data["path"],
        scheme=data["scheme"],
        host=data.get("host", ""),
        headers=tuple((h["name"], h["value"]) for h in data.get("httpHeaders", ())),
    )


def _files(data: Data) -> refs.Files | None:
    """The source of a volume of files, None for other volumes."""
    for kind in ("configMap", "secret", "downwardAPI", "projected"):
        if kind in data:
            source = data[kind]
            parts: Iterable[Data] = source.get("sources", ()) if kind == "projected" else ({kind: source},)
            return refs.Files(tuple(f for part in parts for f in _projected(part)), source["defaultMode"])
    return None


def _projected(data: Data) -> Iterable[refs.ObjectFiles | refs.ValueFile]:
    for name, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if name in data:
            source = data[name]
            items = tuple(refs.KeyFile(i["key"], i["path"], i.get("mode")) for i in source.get("items", ()))
            called = source.get("secretName") or source.get("name", "")
            yield refs.ObjectFiles(kind, called, items, source.get("optional", False))
    for item in data.get("downwardAPI", {}).get("items", ()):
        value = _source(item)
        if isinstance(value, refs.FieldRef | refs.ResourceRef):
            yield refs.ValueFile(item["path"], value, item.get("mode"))


def _volumes(volumes: Iterable[Data]) -> Iterable[pods.Volume]:
    for data in volumes:
        if "hostPath" in data:
            yield pods.Volume(data["name"], pods.HostPath(data["hostPath"]["path"], data["hostPath"]["type"]))
        elif "image" in data:
            yield pods.Volume(data["name"], pods.ImageSource(data["image"]["reference"], data["image"]["pullPolicy"]))
        elif (files := _files(data)) is not None:
            yield pods.Volume(data["name"], files)
        else:
            empty = data.get("emptyDir", {})
            size = quantity.whole(empty["sizeLimit"]) if "sizeLimit" in empty else None
            yield pods.Volume(data["name"], pods.EmptyDir(empty.get("medium", ""), size))
