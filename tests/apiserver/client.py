"""A client for tests of API servers: raw requests as the user of a kubeconfig, answers as (code, object)."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

Json = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True)
class Answer:
    """An answer: `code`, the object, and the head."""

    code: int
    body: Json
    headers: dict[str, str]

    @property
    def message(self) -> str:
        """What a refusal says."""
        return str(self.body.get("message", ""))


class Client:
    """The user of a kubeconfig's current context; each request is a connection of its own."""

    def __init__(self, kubeconfig: Path) -> None:
        document = yaml.safe_load(kubeconfig.read_text())
        context = _named(document["contexts"], document["current-context"])["context"]
        cluster = _named(document["clusters"], context["cluster"])["cluster"]
        user = _named(document["users"], context["user"])["user"]
        url = urlsplit(cluster["server"])
        self._host, self._port = url.hostname or "", url.port or 443
        self._context = ssl.create_default_context(cafile=_file(cluster, "certificate-authority"))
        self._token = user.get("token", "")
        if certificate := _file(user, "client-certificate"):
            self._context.load_cert_chain(certificate, _file(user, "client-key"))

    def send(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Answer:
        """One request."""
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=30, context=self._context)
        headers = {"Accept": "application/json", "Content-Type": kind}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            data = answer.read()
            return Answer(answer.status, _object(data), dict(answer.getheaders()))
        finally:
            connection.close()

    def send_half(self, method: str, path: str, kind: str) -> None:
        """The head of a request whose body never comes: its sender dies."""
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=30, context=self._context)
        connection.putrequest(method, path)
        connection.putheader("Content-Type", kind)
        connection.putheader("Content-Length", "20")
        connection.endheaders()
        connection.close()

    def text(self, path: str, accept: str = "*/*") -> str:
        """The body of an answer as it is."""
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=30, context=self._context)
        try:
            connection.request("GET", path, headers={"Accept": accept})
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def stream(self, path: str) -> list[Json]:
        """The events of a watch, until it ends."""
        return [json.loads(line) for line in self.text(path).splitlines()]

    def get(self, path: str) -> Answer:
        """GET."""
        return self.send("GET", path)

    def post(self, path: str, body: Json) -> Answer:
        """POST."""
        return self.send("POST", path, body)

    def put(self, path: str, body: Json) -> Answer:
        """PUT."""
        return self.send("PUT", path, body)

    def patch(self, path: str, body: Json, kind: str = MERGE) -> Answer:
        """PATCH; a JSON merge unless told."""
        return self.send("PATCH", path, body, kind)

    def delete(self, path: str, **options: Any) -> Answer:
        """DELETE with DeleteOptions."""
        return self.send("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", **options} if options else None)


def _object(data: bytes) -> Json:
    try:
        found = json.loads(data)
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}


def _named(items: list[Json], name: str) -> Json:
    return next(i for i in items if i["name"] == name)


def _file(holder: Json, field: str) -> str:
    """A file of the kubeconfig, also where its content stands in it; "" = none."""
    if field in holder:
        return str(holder[field])
    data = holder.get(f"{field}-data")
    if not data:
        return ""
    with tempfile.NamedTemporaryFile(delete=False, suffix=".pem") as file:
        file.write(base64.b64decode(data))
    return file.name
