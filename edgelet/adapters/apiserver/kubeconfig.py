"""Reads a kubeconfig: where the API server is, whom to trust, and how to log in (clientcmd/v1.Config)."""

from __future__ import annotations

import base64
import binascii
import os
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from ...errors import LinkError

MAX_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Exec:
    """A command that prints credentials (client.authentication.k8s.io ExecCredential)."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    api_version: str = ""
    hint: str = ""
    cluster_info: bool = False


@dataclass(frozen=True, slots=True)
class Access:
    """One context of a kubeconfig. Of a pair of file and data, data wins, as for kubectl."""

    server: str
    ca_file: str = ""
    ca_data: bytes = b""
    insecure: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    cert_file: str = ""
    cert_data: bytes = field(default=b"", repr=False)
    key_file: str = ""
    key_data: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    exec: Exec | None = None

    @property
    def encoded_ca(self) -> str:
        """The authorities as certificate-authority-data has them."""
        return base64.b64encode(self.ca_data).decode()

    @property
    def files(self) -> tuple[str, ...]:
        """The files that a connection is made with."""
        return tuple(f for f in (self.ca_file, self.cert_file, self.key_file) if f)


def read(path: str) -> Access:
    """The current context of the file at `path`. Raises LinkError that names the file and what is wrong."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise LinkError(f"cannot read kubeconfig {path}: {error.strerror}") from error
    try:
        return parse(data, os.path.dirname(path))
    except ValueError as error:
        raise LinkError(f"cannot use kubeconfig {path}: {error}") from error


def parse(data: bytes, directory: str) -> Access:
    """The current context; relative paths count from `directory`. Raises ValueError without any secret in it."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES} bytes")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        config = yaml.load(data, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ValueError("it is not YAML" + (f" (line {mark.line + 1})" if mark else "")) from error
    if not isinstance(config, dict):
        raise ValueError("it is no object of kind Config")
    context = _context(config)
    cluster = _named(config, "clusters", "cluster", str(context.get("cluster", "")))
    user = _named(config, "users", "user", str(context.get("user", ""))) if context.get("user") else {}
    return _access(cluster, user, directory)


def _context(config: Mapping[str, Any]) -> Mapping[str, Any]:
    name = str(config.get("current-context") or "")
    names = [str(c.get("name")) for c in config.get("contexts") or () if isinstance(c, dict)]
    if not name and len(names) == 1:
        name = names[0]
    if not name:
        known = f"; it has {', '.join(names)}" if names else ""
        raise ValueError(f"current-context is not set{known}")
    return _named(config, "contexts", "context", name)


def _named(config: Mapping[str, Any], part: str, field_name: str, name: str) -> Mapping[str, Any]:
    for one in config.get(part) or ():
        if isinstance(one, dict) and str(one.get("name")) == name and isinstance(one.get(field_name), dict):
            found: Mapping[str, Any] = one[field_name]
            return found
    raise ValueError(f'there is no "{name}" among its {part}')


def _access(cluster: Mapping[str, Any], user: Mapping[str, Any], directory: str) -> Access:
    server = str(cluster.get("server") or "")
    split = urllib.parse.urlsplit(server)
    if split.username or split.password:
        raise ValueError("server holds a user name: credentials belong to the user, where they are not shown")
    if split.scheme not in ("http", "https") or not split.hostname:
        raise ValueError(f'server "{server}" should read https://HOST:PORT')
    if user.get("auth-provider"):
        raise ValueError(
            "auth-provider is not supported (Kubernetes took it out in 1.26): use exec, a token or a certificate"
        )

    def path(place: Mapping[str, Any], key: str) -> str:
        value = str(place.get(key) or "")
        return os.path.join(directory, value) if value else ""

    return Access(
        server=server.rstrip("/"),
        ca_file="" if cluster.get("certificate-authority-data") else path(cluster, "certificate-authority"),
        ca_data=_data(cluster, "certificate-authority-data"),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        tls_server_name=str(cluster.get("tls-server-name") or ""),
        proxy_url=_proxy(str(cluster.get("proxy-url") or "")),
        cert_file="" if user.get("client-certificate-data") else path(user, "client-certificate"),
        cert_data=_data(user, "client-certificate-data"),
        key_file="" if user.get("client-key-data") else path(user, "client-key"),
        key_data=_data(user, "client-key-data"),
        token=str(user.get("token") or ""),
        token_file=path(user, "tokenFile"),
        user=str(user.get("username") or ""),
        password=str(user.get("password") or ""),
        exec=_exec(user.get("exec"), directory),
    )


def _proxy(url: str) -> str:
    if url and urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise ValueError("proxy-url should read http://HOST:PORT or https://HOST:PORT")
    return url


def _data(place: Mapping[str, Any], key: str) -> bytes:
    value = place.get(key)
    if not value:
        return b""
    try:
        return base64.b64decode(str(value), validate=False)
    except binascii.Error as error:
        raise ValueError(f"{key} is not base64") from error


def _exec(found: Any, directory: str) -> Exec | None:
    if not isinstance(found, dict):
        return None
    command = str(found.get("command") or "")
    if not command:
        raise ValueError("exec has no command")
    if "/" in command:
        command = os.path.join(directory, command)
    return Exec(
        command=command,
        args=tuple(str(a) for a in found.get("args") or ()),
        env=tuple((str(e.get("name")), str(e.get("value", ""))) for e in found.get("env") or ()),
        api_version=str(found.get("apiVersion") or "client.authentication.k8s.io/v1"),
        hint=str(found.get("installHint") or ""),
        cluster_info=bool(found.get("provideClusterInfo")),
    )
