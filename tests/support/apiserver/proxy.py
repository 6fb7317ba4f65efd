"""Logs of pods: the server asks the node, as the real one does, by the address and port of the Node's status."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from tests.support.certificates import Pair

from .answers import Refusal, bad_request, not_found
from .kinds import Call
from .store import Store

Json = dict[str, Any]
_PASSED = ("follow", "previous", "sinceSeconds", "sinceTime", "timestamps", "tailLines", "limitBytes")
_ADDRESSES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
"""In the order that the server prefers (--kubelet-preferred-address-types), names left out: tests have no DNS."""
_TIMEOUT = 60.0


def log(call: Call, store: Store, me: Pair) -> Iterator[bytes]:
    """The log as the node gives it. `me` is the server's client certificate. Raises Refusal."""
    pod = store.get(("pods", call.namespace, call.name))
    if pod is None:
        raise not_found("pods", call.name)
    node = store.get(("nodes", "", pod["spec"].get("nodeName", "")))
    if node is None:
        raise not_found("nodes", pod["spec"].get("nodeName", ""))
    host, port = _where(node)
    query = urlencode({k: v for k, v in call.query.items() if k in _PASSED})
    path = f"/containerLogs/{call.namespace}/{call.name}/{_container(pod, call.query.get('container', ''))}?{query}"
    connection = http.client.HTTPSConnection(host, port, timeout=_TIMEOUT, context=_context(me))
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
    except OSError as error:
        raise Refusal(500, "InternalError", f'Get "https://{host}:{port}{path}": {error}') from error
    if answer.status != 200:
        text = answer.read().decode(errors="replace")
        raise Refusal(answer.status, "", f"the server rejected our request for an unknown reason: {text}")
    return _parts(connection, answer)


def _parts(connection: http.client.HTTPSConnection, answer: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        while part := answer.read1(65536):
            yield part
    finally:
        connection.close()


def _where(node: Json) -> tuple[str, int]:
    status = node.get("status", {})
    found = {a["type"]: a["address"] for a in status.get("addresses", [])}
    address = next((found[kind] for kind in _ADDRESSES if kind.endswith("IP") and kind in found), "")
    port = status.get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port", 0)
    if not address or not port:
        raise Refusal(500, "InternalError", "the Node has no address, or no port of its kubelet")
    return address, port


def _container(pod: Json, wanted: str) -> str:
    names = [c["name"] for c in pod["spec"]["containers"]]
    every = [*names, *(c["name"] for c in pod["spec"].get("initContainers", []))]
    if wanted and wanted not in every:
        raise bad_request(f"container {wanted} is not valid for pod {pod['metadata']['name']}")
    if not wanted and len(names) > 1:
        text = (
            f"a container name must be specified for pod {pod['metadata']['name']}, choose one of: [{' '.join(names)}]"
        )
        raise bad_request(text)
    return wanted or str(names[0])


def _context(me: Pair) -> ssl.SSLContext:
    """The server does not look at the node's certificate, unless it is told an authority for it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(me.cert, me.key)
    return context
