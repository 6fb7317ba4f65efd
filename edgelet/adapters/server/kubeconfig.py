"""``POST /apis/edgelet.io/v1/kubeconfig``: what kubectl needs to reach the TLS port, with CA and token inside."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from . import statuses
from .base import Access, Refused
from .peers import Role
from .secure import Secure
from .tokens import Tokens

Json = dict[str, Any]


class Kubeconfig(Access):
    """Admin only, and only by the unix socket: who is there can read the files anyway."""

    resource = "kubeconfigs"

    async def post(self) -> None:
        """?role=view|admin, ?server=HOST[:PORT] when it is not the address that is listened on."""
        plan = self.services.secure
        if plan is None or self.door.secure:
            raise Refused(statuses.failure(404, "no TLS port is served (port: 0), or it was asked for over it"))
        given = self.param("role") or "view"
        if given not in (Role.ADMIN.value, Role.VIEW.value):
            raise Refused(statuses.failure(400, f'role can be view or admin, not "{given}"'))
        token, ca = await asyncio.to_thread(_secrets, plan, Role(given))
        if not token:
            raise Refused(statuses.failure(404, f"there is no token with the role {given} in {plan.token_file}"))
        self.send(document(_server(plan, self.param("server")), token, ca, self.services.node_name, given))


def document(server: str, token: str, ca: bytes, node: str, role: str) -> Json:
    """A v1.Config with one cluster, one user and one context."""
    cluster: Json = {"server": server}
    if ca:
        cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
    user = f"{node}-{role}"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": node, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": node, "context": {"cluster": node, "user": user}}],
        "current-context": node,
    }


def _server(plan: Secure, given: str) -> str:
    if "://" in given:
        return given
    host = given or ("127.0.0.1" if plan.address in ("", "0.0.0.0", "::") else plan.address)
    bare = host.count(":") > 1 and not host.startswith("[")
    host = f"[{host}]" if bare else host
    has_port = host.rpartition("]")[2].count(":") == 1
    return f"https://{host}" if has_port else f"https://{host}:{plan.port}"


def _secrets(plan: Secure, role: Role) -> tuple[str, bytes]:
    ca = b""
    if plan.ca_file:
        try:
            with open(plan.ca_file, "rb") as file:
                ca = file.read(1 << 20)
        except OSError as error:
            raise Refused(statuses.failure(503, f"cannot read {plan.ca_file}: {error.strerror}; try again")) from error
    return Tokens(plan.token_file).of_role(role), ca
