"""Decides what a probe sends and where: addresses, argv, URLs, HTTP requests, the kubelet's texts.

Pure.  Rules: semantics 4.2; the forms are those of Go's net/http, since the texts reach people and
dashboards byte for byte.
"""

from __future__ import annotations

import re
import urllib.parse
from dataclasses import dataclass

from ..model.pod import Container, Exec, HttpGet, TcpSocket
from . import expand

USER_AGENT = "kube-probe/1.36"
LOCAL = "127.0.0.1"

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNWRITTEN = frozenset({"Host", "User-Agent", "Content-Length", "Transfer-Encoding", "Trailer"})
_PATH_SAFE = "/%:@!$&'()*+,;=-._~?"


class BadRequest(ValueError):
    """The probe can never be sent as it is written; str() is the text for the event."""


@dataclass(frozen=True, slots=True)
class Url:
    """An absolute http or https URL; `path` includes the query; `host` without brackets."""

    scheme: str
    host: str
    port: int
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{join(self.host, self.port)}{self.path}"

    @property
    def authority(self) -> str:
        """host:port as Go puts it into the Host header: the default port of the scheme is kept."""
        return join(self.host, self.port)


def join(host: str, port: int) -> str:
    """host:port, IPv6 addresses in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def port_number(port: int | str, container: Container) -> int:
    """The number of a port, a name looked up in the container's ports. Raises BadRequest."""
    if isinstance(port, str) and not port.isdigit():
        number = next((p.container_port for p in container.ports if p.name == port), 0)
        if not number:
            raise BadRequest(f'couldn\'t find port "{port}" for container {container.name}')
    else:
        number = int(port)
    if not 0 < number < 65536:
        raise BadRequest(f"invalid port number: {number}")
    return number


def command(action: Exec, container: Container) -> tuple[str, ...]:
    """argv with `$(VAR)` expanded from the container's literal env (4.2)."""
    if not any("$" in arg for arg in action.command):
        return action.command
    values = expand.expand_env(container.env)
    return tuple(expand.expand(arg, values) for arg in action.command)


def tcp_address(action: TcpSocket, container: Container, ip: str) -> tuple[str, int]:
    """Where to connect to; `ip` is the pod's, "" = the host's network. Raises BadRequest."""
    return action.host.strip("[]") or ip or LOCAL, port_number(action.port, container)


def http_url(action: HttpGet, container: Container, ip: str) -> Url:
    """What to get. Raises BadRequest."""
    host = action.host.strip("[]") or ip or LOCAL
    path = action.path.partition("#")[0]
    if not path.startswith("/"):
        path = "/" + path
    port = port_number(action.port, container)
    return Url(action.scheme.lower(), host, port, urllib.parse.quote(path, safe=_PATH_SAFE))


def http_bytes(url: Url, headers: tuple[tuple[str, str], ...], host: str = "") -> bytes:
    """The request, headers in Go's order. `host` "" = the URL's. Raises BadRequest for illegal headers."""
    fields = _fields(headers)
    agents = fields.get("User-Agent", [USER_AGENT])
    accepts = fields.pop("Accept", ["*/*"])
    if accepts[0]:
        fields["Accept"] = accepts
    lines = [f"GET {url.path} HTTP/1.1", f"Host: {host or url.authority}"]
    if agents[0]:
        lines.append(f"User-Agent: {agents[0]}")
    lines += [f"{n}: {v}" for n in sorted(fields) if n not in _UNWRITTEN for v in fields[n]]
    if "close" not in [v.lower() for v in fields.get("Connection", [])]:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8")


def host_header(headers: tuple[tuple[str, str], ...]) -> str:
    """The Host header that the manifest sets, "" when it sets none."""
    return next((value for name, value in headers if name.lower() == "host"), "")


def redirected(url: Url, location: str) -> Url | None:
    """Where a redirect leads; None = to another host name, not to be followed (4.2). Raises BadRequest."""
    try:
        parts = urllib.parse.urlsplit(urllib.parse.urljoin(str(url), location))
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise BadRequest(f"failed to parse Location header {quoted(location)}: {error}") from error
    if (parts.hostname or "") != url.host.lower():
        return None
    if parts.scheme not in ("http", "https"):
        raise BadRequest(f"unsupported protocol scheme {quoted(parts.scheme)}")
    path = urllib.parse.quote(parts.path or "/", safe=_PATH_SAFE)
    query = "?" + urllib.parse.quote(parts.query, safe=_PATH_SAFE) if parts.query else ""
    return Url(parts.scheme, parts.hostname or "", port, path + query)


def quoted(text: str) -> str:
    """Go's %q for the texts that occur here."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(c, c if c.isprintable() else f"\\x{ord(c):02x}") for c in text) + '"'


def duration(seconds: int) -> str:
    """Go's form of a duration in whole seconds: 2s, 1m30s, 1h0m0s."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def exec_timeout(argv: tuple[str, ...], seconds: int) -> str:
    """The kubelet's text for a command that did not end in time."""
    return f"command timed out: {quoted(' '.join(argv))} timed out after {duration(seconds)}"


def _fields(headers: tuple[tuple[str, str], ...]) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    for name, value in headers:
        if not _TOKEN.fullmatch(name):
            raise BadRequest(f"net/http: invalid header field name {quoted(name)}")
        if any(c in value for c in "\r\n\0"):
            raise BadRequest(f"net/http: invalid header field value for {quoted(name)}")
        canonical = "-".join(part[:1].upper() + part[1:].lower() for part in name.split("-"))
        fields.setdefault(canonical, []).append(value.strip())
    return fields
