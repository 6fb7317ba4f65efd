"""Pods for end-to-end tests, as plain documents."""

from __future__ import annotations

from typing import Any

from tests.support.podman_env import IMAGE

Json = dict[str, Any]

SERVE = "while :; do sleep 1000 & wait $!; done"
"""Runs until it is told to end."""


def shell(script: str) -> list[str]:
    """A command that ends at once on SIGTERM: a shell as process 1 would ignore it otherwise."""
    return ["sh", "-c", f"trap 'exit 0' TERM; {script}"]


def container(name: str = "app", script: str = SERVE, **fields: Any) -> Json:
    """A container that runs `script`; fields are those of the API, a `command` among them wins."""
    return {"name": name, "image": IMAGE, "command": shell(script), **fields}


def pod(name: str, *containers: Json, labels: dict[str, str] | None = None, **spec: Any) -> Json:
    """A pod of these containers (default: one that serves), with a short grace period."""
    meta: Json = {"name": name, **({"labels": labels} if labels else {})}
    body = {"terminationGracePeriodSeconds": 2, "containers": list(containers or (container(),)), **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body}


QUICK = {"periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 20}
"""Every second, one failure counts; a slow machine is none."""


def exec_probe(*command: str, **fields: Any) -> Json:
    """A quick exec probe."""
    return {"exec": {"command": list(command)}, **QUICK, **fields}


def http_probe(port: int | str, path: str = "/", **fields: Any) -> Json:
    """A quick httpGet probe."""
    return {"httpGet": {"port": port, "path": path}, **QUICK, **fields}


def tcp_probe(port: int | str, **fields: Any) -> Json:
    """A quick tcpSocket probe."""
    return {"tcpSocket": {"port": port}, **QUICK, **fields}


def env(**values: str) -> list[Json]:
    """Literal environment variables, in order."""
    return [{"name": k, "value": v} for k, v in values.items()]


def mount(volume: str, path: str, **fields: Any) -> Json:
    """A volume mount."""
    return {"name": volume, "mountPath": path, **fields}
