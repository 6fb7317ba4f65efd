"""Paths on which kubectl asks for another protocol: exec and attach by WebSocket, port-forward refused.

The WebSocket library and the HTTP client below it take half a megabyte, which a box on which nobody
executes anything has no use for: they are loaded with the first such request.
"""

from __future__ import annotations

import importlib
from typing import Any

import tornado.web

from ...model.pod import PodKey
from . import choose, statuses
from .base import Access, Refused


def late(module: str, name: str) -> type[tornado.web.RequestHandler]:
    """A handler for routes that becomes `name` of the sibling `module` when a request comes."""

    class Late(tornado.web.RequestHandler):
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            """Not one of its own class, so that Python calls no __init__ after this."""
            return getattr(importlib.import_module(f".{module}", __package__), name)(*args, **kwargs)

    return Late


class NotServed(Access):
    """``.../portforward``: refused, with what to do instead."""

    resource = "pods"

    def verb(self) -> str:
        return "create"

    async def get(self, namespace: str, name: str) -> None:
        entry = choose.pod(self.services.store, PodKey(namespace, name))
        ip = next(iter(entry.status.ips), "POD-IP")
        said = f"port-forward is not served: use ssh -L LOCAL-PORT:{ip}:POD-PORT to {self.services.node_name}"
        raise Refused(statuses.failure(400, said))

    post = get
