"""Pure: a Pod and its containers as the JSON bodies of libpod's `pods/create` and `containers/create`.

Nothing here reads a file or asks Podman; what the host can do comes in as `HostFacts`.  Field names
are those of Podman's `specgen` (4.0 and later).  Golden files pin the bodies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core import expand, hosts, qos
from ...model import hooks, labels
from ...model.observed import Bind
from ...model.pod import Container, Pod, SecurityContext

Body = dict[str, Any]

CPU_PERIOD_US = 100_000
MIN_QUOTA_US = 1_000
MIN_SHARES, MAX_SHARES = 2, 262_144
PROPAGATION = {"None": "rprivate", "HostToContainer": "rslave", "Bidirectional": "rshared"}
DEFAULT_NETWORK = "podman"
"""Exists in every Podman, without a file even; it has no name service."""
LOG_UNLIMITED = 1 << 62
"""Bytes of a log at which conmon throws the file away: never, whatever containers.conf says.

conmon counts since the container's start and knows nothing of our rotation, so any cap that is ever
reached loses lines that were not rotated yet.
"""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What this kernel and this process can apply (found by `host.read`).

    `oom_min` is the lowest oom_score_adj we may set; memory in bytes.
    """

    memory: int = 0
    memory_cgroup: bool = True
    swap_cgroup: bool = True
    cpu_cgroup: bool = True
    pids_cgroup: bool = True
    oom_min: int = -1000


@dataclass(frozen=True, slots=True)
class Naming:
    """Who owns what we create: the owner id (label and name suffix) and this boot."""

    owner: str = "default"
    boot_id: str = ""

    @property
    def suffix(self) -> str:
        """Keeps the names of two agents on one Podman apart."""
        return "" if self.owner == "default" else f"_{self.owner}"

    def pod(self, pod: Pod) -> str:
        """Podman's name of the pod: deterministic, so a second copy cannot exist."""
        return f"{pod.name}_{pod.namespace}{self.suffix}"

    def infra(self, pod: Pod) -> str:
        """Podman's name of its infra container: ours, where Podman's own would tell nobody whose it was."""
        return f"{self.pod(pod)}-infra"

    def container(self, pod: Pod, container: Container, restart_count: int) -> str:
        """Podman's name of one container instance."""
        return f"{pod.name}_{pod.namespace}_{container.name}_{restart_count}{self.suffix}"


def needs_infra(pod: Pod) -> bool:
    """A host-network pod of one container in total shares nothing that somebody must hold."""
    return not (pod.host_network and len(pod.all_containers) == 1)


def pod_body(pod: Pod, naming: Naming, attempt: int, network: str = DEFAULT_NETWORK) -> Body:
    """Body of POST pods/create; `network` is the bridge network of pods that have their own."""
    body: Body = {
        "name": naming.pod(pod),
        "labels": {
            **pod.labels,
            **_common_labels(pod, naming),
            labels.ATTEMPT: str(attempt),
            labels.INFRA: "true" if needs_infra(pod) else "false",
        },
        "exit_policy": "continue",
    }
    if not needs_infra(pod):
        return {**body, "no_infra": True, "shared_namespaces": []}
    body["infra_name"] = naming.infra(pod)
    if pod.sysctls:
        body["sysctl"] = dict(pod.sysctls)
    body["shared_namespaces"] = _shared_namespaces(pod)
    if pod.host_network:
        return {**body, "netns": {"nsmode": "host"}}
    body["hostname"] = hosts.hostname(pod)
    body["netns"] = {"nsmode": "bridge"}
    names = _names(pod, network)
    body["Networks"] = {network: {"aliases": names} if names else {}}
    ports = [_port(p) for c in pod.all_containers for p in c.ports if p.host_port]
    return {**body, "portmappings": ports} if ports else body


def _names(pod: Pod, network: str) -> list[str]:
    """What other pods may call it: its name as written, with the node's, and its host name."""
    if network == DEFAULT_NETWORK:
        return []
    return list(dict.fromkeys(name for name in (pod.short_name, pod.name, hosts.hostname(pod)) if name))


def _shared_namespaces(pod: Pod) -> list[str]:
    shared = ["net"] if pod.host_ipc else ["ipc", "net"]
    if not pod.host_network:
        shared.append("uts")
    if pod.share_process_namespace and not pod.host_pid:
        shared.append("pid")
    return shared


def _port(port: Any) -> Body:
    body: Body = {
        "container_port": port.container_port,
        "host_port": port.host_port,
        "protocol": port.protocol.lower(),
    }
    return {**body, "host_ip": port.host_ip} if port.host_ip else body


def _common_labels(pod: Pod, naming: Naming) -> dict[str, str]:
    return {
        labels.POD_NAME: pod.name,
        labels.POD_NAMESPACE: pod.namespace,
        labels.POD_UID: pod.uid,
        labels.OWNER: naming.owner,
        labels.CONFIG_HASH: pod.config_hash,
        labels.SOURCE: pod.source,
        labels.BOOT_ID: naming.boot_id,
        labels.GRACE: str(pod.grace),
        labels.HOST_NETWORK: "true" if pod.host_network else "false",
    }


@dataclass(frozen=True, slots=True)
class Instance:
    """One container to be created: everything about it that the manifest alone does not say."""

    pod_id: str
    restart_count: int
    binds: tuple[Bind, ...]
    log_path: str
    facts: HostFacts = HostFacts()


def container_body(pod: Pod, container: Container, instance: Instance, naming: Naming) -> Body:
    """Body of POST containers/create."""
    return {
        "name": naming.container(pod, container, instance.restart_count),
        "image": container.image,
        "pod": instance.pod_id,
        "labels": _container_labels(pod, container, instance, naming),
        "restart_policy": "no",
        "healthconfig": {"Test": ["NONE"]},
        "systemd": "false",
        "stop_timeout": pod.grace,
        "log_configuration": _log(instance),
        "oom_score_adj": oom_score_adj(pod, container, instance.facts),
        **_process(container),
        **_namespaces(pod),
        **({"sysctl": dict(pod.sysctls)} if pod.sysctls and not needs_infra(pod) else {}),
        **_mounts(instance.binds),
        **_security(container.security),
        **_resources(container, instance.facts),
    }


def _container_labels(pod: Pod, container: Container, instance: Instance, naming: Naming) -> dict[str, str]:
    own = {
        labels.CONTAINER_NAME: container.name,
        labels.RESTART_COUNT: str(instance.restart_count),
    }
    own.update(_message_labels(container, instance.binds))
    if container.lifecycle.pre_stop is not None:
        own[labels.PRE_STOP] = hooks.text(container.lifecycle.pre_stop, container)
    if pod.is_sidecar(container):
        own[labels.SIDECAR] = str([c.name for c in pod.init_containers].index(container.name))
    return {**_common_labels(pod, naming), **own}


def _message_labels(container: Container, binds: tuple[Bind, ...]) -> dict[str, str]:
    """Where on the host an instance leaves its termination message; whatever is mounted there is read (3.14)."""
    path = container.termination_message_path
    source = next((b.source for b in binds if path and b.target == path), "")
    found = {labels.MESSAGE_FILE: source} if source else {}
    if container.termination_message_policy != "File":
        found[labels.MESSAGE_POLICY] = container.termination_message_policy
    return found


def _log(instance: Instance) -> Body:
    return {"driver": "k8s-file", "path": instance.log_path, "size": LOG_UNLIMITED}


def _process(container: Container) -> Body:
    """Command, arguments and environment (semantics 5.1.4, 5.1.5); Podman applies the image's where ours are absent."""
    env = expand.expand_env(container.env)
    body: Body = {"env": dict(env)}
    if container.command:
        body["entrypoint"] = [expand.expand(x, env) for x in container.command]
    if container.args:
        body["command"] = [expand.expand(x, env) for x in container.args]
    if container.working_dir:
        body["work_dir"] = container.working_dir
        body["create_working_dir"] = True
    if container.stdin:
        body["stdin"] = True
    if container.tty:
        body["terminal"] = True
    return body


def _namespaces(pod: Pod) -> Body:
    body: Body = {}
    if pod.host_pid:
        body["pidns"] = {"nsmode": "host"}
    if pod.host_ipc:
        body["ipcns"] = {"nsmode": "host"}
    if pod.host_network:
        body["utsns"] = {"nsmode": "host"}
        if not needs_infra(pod):
            body["netns"] = {"nsmode": "host"}
    return body


def _mounts(binds: tuple[Bind, ...]) -> Body:
    body: Body = {}
    mounts = [_mount(b) for b in binds if b.kind != "device"]
    devices = [{"path": f"{b.source}:{b.target}:{'r' if b.read_only else 'rwm'}"} for b in binds if b.kind == "device"]
    if mounts:
        body["mounts"] = mounts
    if devices:
        body["devices"] = devices
    return body


def _mount(bind: Bind) -> Body:
    options = ["rbind", "ro" if bind.read_only else "rw", PROPAGATION[bind.propagation]]
    options += ["noexec"] if bind.no_exec else []
    return {"destination": bind.target, "source": bind.source, "type": "bind", "options": options}


def _security(security: SecurityContext) -> Body:
    """Semantics 5.6; seccomp unset means Unconfined (5.6.2)."""
    body: Body = {"seccomp_profile_path": "unconfined"}
    if security.run_as_user is not None:
        group = "" if security.run_as_group is None else f":{security.run_as_group}"
        body["user"] = f"{security.run_as_user}{group}"
    if security.privileged:
        body["privileged"] = True
    if security.allow_privilege_escalation is False and not security.privileged:
        body["no_new_privileges"] = True
    if security.read_only_root_filesystem:
        body["read_only_filesystem"] = True
    if security.add_capabilities:
        body["cap_add"] = [_capability(c) for c in security.add_capabilities]
    if security.drop_capabilities:
        body["cap_drop"] = [_capability(c) for c in security.drop_capabilities]
    return body


def _capability(name: str) -> str:
    upper = name.upper()
    return upper if upper == "ALL" or upper.startswith("CAP_") else f"CAP_{upper}"


def _resources(container: Container, facts: HostFacts) -> Body:
    """Semantics 6.1, without what this kernel cannot apply (design section 4)."""
    limits: Body = {}
    if facts.cpu_cgroup:
        limits["cpu"] = _cpu(container)
    if facts.memory_cgroup and container.resources.memory_limit:
        limits["memory"] = _memory(container.resources.memory_limit, facts)
    if facts.pids_cgroup:
        limits["pids"] = {"limit": -1}
    return {"resource_limits": limits}


def _cpu(container: Container) -> Body:
    resources = container.resources
    basis = resources.cpu_request if resources.cpu_request is not None else resources.cpu_limit
    body: Body = {"shares": min(MAX_SHARES, max(MIN_SHARES, (basis or 0) * 1024 // 1000))}
    if resources.cpu_limit:
        body["quota"] = max(MIN_QUOTA_US, resources.cpu_limit * CPU_PERIOD_US // 1000)
        body["period"] = CPU_PERIOD_US
    return body


def _memory(limit: int, facts: HostFacts) -> Body:
    # memory + swap = memory: no swap for containers (semantics 6.1, NoSwap)
    return {"limit": limit, "swap": limit} if facts.swap_cgroup else {"limit": limit}


def dropped_limits(container: Container, facts: HostFacts) -> tuple[str, ...]:
    """What the container asks for and this host cannot apply, as sentences for a person."""
    resources = container.resources
    said = []
    if resources.memory_limit and not facts.memory_cgroup:
        said.append(
            f"container {container.name} runs without its memory limit: the kernel's memory controller is off "
            "(on a Raspberry Pi add cgroup_enable=memory to cmdline.txt)"
        )
    if (resources.cpu_limit or resources.cpu_request) and not facts.cpu_cgroup:
        said.append(f"container {container.name} runs without its CPU limit: the kernel's cpu controller is off")
    return tuple(said)


def oom_score_adj(pod: Pod, container: Container, facts: HostFacts) -> int:
    """Semantics 6.1, not lower than this process may set."""
    return max(facts.oom_min, _wanted_oom_score(pod, container, facts.memory))


def _wanted_oom_score(pod: Pod, container: Container, node_memory: int) -> int:
    quality = qos.qos_class(pod)
    if quality == "Guaranteed":
        return -997
    if quality == "BestEffort" or not node_memory:
        return 1000
    request = container.resources.memory_request
    basis = request if request is not None else container.resources.memory_limit or 0
    return min(999, max(3, 1000 - 1000 * basis // node_memory))


def label_filter(naming: Naming, extra: Mapping[str, str] | None = None) -> str:
    """The `filters` parameter of a list call: our owner, and `extra` labels."""
    wanted = {labels.OWNER: naming.owner, **(extra or {})}
    return json.dumps({"label": [f"{k}={v}" for k, v in wanted.items()]}, separators=(",", ":"))
