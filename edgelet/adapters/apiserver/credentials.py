"""What a request proves itself with: tokens re-read when their file changes, plug-ins asked again in time."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ...errors import LinkError
from .kubeconfig import Access, Exec

PLUGIN_SECONDS = 60.0
EXPIRY_MARGIN = 10.0
"""Credentials of a plug-in are asked for anew so many seconds before they end."""

Stamp = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """Authorization header ("" = none) and client certificate with key (b"" = none), as PEM."""

    authorization: str = field(default="", repr=False)
    cert: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)


class Credentials:
    """Of one Access. For one thread."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._token: tuple[Stamp, str] = ((), "")
        self._plugin: tuple[float, Proof] | None = None

    def proof(self, wall: float) -> Proof:
        """What to show now. Raises LinkError."""
        access = self._access
        if access.exec is not None:
            return self._from_plugin(access.exec, wall)
        if access.token_file:
            return Proof(f"Bearer {self._read_token(access.token_file)}")
        if access.token:
            return Proof(f"Bearer {access.token}")
        if access.user:
            pair = f"{access.user}:{access.password}".encode()
            return Proof(f"Basic {base64.b64encode(pair).decode()}")
        return Proof()

    def refused(self) -> None:
        """The server does not take them: whatever can be had anew, is."""
        self._plugin = None
        self._token = ((), "")

    def _read_token(self, path: str) -> str:
        try:
            now = stamp(path)
            if now != self._token[0]:
                with open(path, encoding="utf-8") as file:
                    self._token = (now, file.read().strip())
        except (OSError, UnicodeDecodeError) as error:
            raise LinkError(
                f"cannot read the token file {path}: {getattr(error, 'strerror', None) or 'no text'}"
            ) from error
        return self._token[1]

    def _from_plugin(self, plugin: Exec, wall: float) -> Proof:
        if self._plugin is None or wall > self._plugin[0] - EXPIRY_MARGIN:
            self._plugin = _ask(plugin, self._access)
        return self._plugin[1]


def stamp(path: str) -> Stamp:
    """Changes when the file does. Raises OSError."""
    found = os.stat(path)
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def _ask(plugin: Exec, access: Access) -> tuple[float, Proof]:
    """Run it: the wall second at which its answer ends (infinity = never) and the answer."""
    spec: dict[str, Any] = {"interactive": False}
    if plugin.cluster_info:
        spec["cluster"] = {"server": access.server}
        if access.ca_data:
            spec["cluster"]["certificate-authority-data"] = base64.b64encode(access.ca_data).decode()
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    environment = {**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": json.dumps(info)}
    try:
        done = subprocess.run(
            [plugin.command, *plugin.args],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PLUGIN_SECONDS,
            check=True,
        )
    except FileNotFoundError as error:
        hint = f"; {plugin.hint}" if plugin.hint else ""
        raise LinkError(f"cannot get credentials: there is no command {plugin.command}{hint}") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise LinkError(f"cannot get credentials from {plugin.command}: {_why(error)}") from error
    return _understood(done.stdout, plugin.command)


def _why(error: Exception) -> str:
    """Never what it printed on its standard output: that may be half a credential."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"no answer within {PLUGIN_SECONDS:g} s"
    if isinstance(error, subprocess.CalledProcessError):
        return f"exit status {error.returncode}"
    return str(error)


def _understood(output: bytes, command: str) -> tuple[float, Proof]:
    try:
        status = json.loads(output)["status"]
        until = status.get("expirationTimestamp")
        ends = datetime.fromisoformat(until).timestamp() if until else float("inf")
        token, cert, key = (status.get(n) or "" for n in ("token", "clientCertificateData", "clientKeyData"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LinkError(f"cannot get credentials from {command}: it printed no ExecCredential with a status") from error
    return ends, Proof(f"Bearer {token}" if token else "", str(cert).encode(), str(key).encode())
