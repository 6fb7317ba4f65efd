"""The kubelet's own path of exec: the Kubernetes API's, with the kubelet's parameters."""

from __future__ import annotations

from ...model.pod import PodKey
from . import choose, statuses
from .base import Refused
from .exec import Exec
from .kubelet import known

_STREAMS = {"stdin": "input", "tty": "tty"}
"""Parameters of the Kubernetes API -> the kubelet's."""


class KubeletExec(Exec):
    """``/exec/NS/POD/CONTAINER`` over WebSocket."""

    resource = "nodes/proxy"

    async def get(self, namespace: str, name: str, container: str = "") -> None:
        known(choose.pod(self.services.store, PodKey(namespace, name)), container)
        if not any(super(KubeletExec, self).param(stream) == "1" for stream in ("input", "output", "error")):
            raise Refused(statuses.failure(400, "you must specify at least 1 of stdin, stdout, stderr"))
        await super().get(namespace, name)

    def param(self, name: str) -> str:
        if name == "container":
            return str(self.path_kwargs.get("container") or "")
        return super().param(_STREAMS.get(name, name))
