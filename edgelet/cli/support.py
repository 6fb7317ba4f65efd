"""`edgelet support`: one tar to send home: how the agent, Podman and the machine are doing, and no secret.

Works without a running agent too: what cannot be asked is named in the archive.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from .. import __version__, errors
from . import client as api
from . import printing

Json = dict[str, Any]

ANSWERS = {
    "status.json": "/apis/edgelet.io/v1/status",
    "sources.json": "/apis/edgelet.io/v1/sources",
    "pods.json": "/api/v1/pods",
    "events.json": "/api/v1/events",
    "node.json": "/api/v1/nodes",
    "configuration.json": "/configz",
    "usage.json": "/stats/summary",
    "version.json": "/version",
}
COMMANDS = {
    "agent.log": ("journalctl", "-u", "edgelet", "-n", "5000", "--no-pager", "-o", "short-iso"),
    "podman-info.txt": ("podman", "info"),
    "podman-pods.txt": ("podman", "pod", "ps"),
    "podman-containers.txt": ("podman", "ps", "-a", "--size=false"),
    "podman-images.txt": ("podman", "images"),
    "disks.txt": ("df", "-h"),
    "memory.txt": ("free", "-m"),
}
FILES = ("/etc/os-release", "/proc/version", "/proc/meminfo", "/proc/cmdline", "/proc/mounts", "/proc/loadavg")
COMMAND_SECONDS = 20
MOST_BYTES = 4 << 20

_SECRET_NAME = re.compile(r"(?i)(pass|secret|token|key|credential|auth|cookie|private|dsn)")
_SECRET_TEXT = (
    re.compile(r"(?i)((?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]+"),
    re.compile(r"(?i)((?:password|passwd|secret|token|api[_-]?key)\s*[=:]\s*)[^\s,;&\"']+"),
    re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^/\s@]+@"),
    re.compile(r"()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL),
)
HIDDEN = "(hidden)"


class CannotWrite(errors.EdgeletError):
    """The archive cannot be written."""


def add_parser(subparsers: Any) -> None:
    """Add `support`."""
    text = "write one archive to send home: status, events, logs, configuration and machine facts, without secrets"
    parser = subparsers.add_parser("support", help=text, description=text, allow_abbrev=False)
    parser.add_argument("--file", default="", metavar="FILE", help="where to (- = standard output)")
    parser.add_argument("--log", default="", metavar="FILE", help="log of the agent where it is not in the journal")
    api.add_socket(parser)


def run(args: argparse.Namespace) -> int:
    """Collect and write."""
    name = f"edgelet-support-{platform.node()}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
    data = archive(name, _parts(args))
    if args.file == "-":
        sys.stdout.buffer.write(data)
        return 0
    path = args.file or f"{name}.tar.gz"
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
    except OSError as error:
        raise CannotWrite(f"cannot write {path}: {error.strerror}") from error
    printing.emit(f"{path}\n")
    return 0


def archive(name: str, parts: Iterator[tuple[str, str]]) -> bytes:
    """A gzipped tar with these files below a directory of that name; readable by its owner only."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for file, text in parts:
            data = text.encode("utf-8", "replace")[-MOST_BYTES:]
            info = tarfile.TarInfo(f"{name}/{file}")
            info.size, info.mtime, info.mode = len(data), int(time.time()), 0o600
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _parts(args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    client = api.connect(args)
    yield "edgelet.txt", f"edgelet {__version__}\nPython {sys.version}\n{platform.platform()}\n"
    for file, path in ANSWERS.items():
        yield file, _tried(lambda path=path: json.dumps(redacted(client.get(path)), indent=1))  # type: ignore[misc]
    yield "metrics.txt", _tried(lambda: b"".join(client.chunks("/metrics")).decode(errors="replace"))
    for file, command in COMMANDS.items():
        yield file, _tried(lambda command=command: hidden(_output(command)))  # type: ignore[misc]
    if args.log:
        yield "agent-file.log", _tried(lambda: hidden(_file(args.log)))
    for path in FILES:
        yield f"files{path}", _tried(lambda path=path: hidden(_file(path)))  # type: ignore[misc]


def _tried(get: Callable[[], str]) -> str:
    try:
        return get()
    except (errors.EdgeletError, OSError, subprocess.SubprocessError, ValueError) as error:
        return f"could not be had: {errors.cause(error)}\n"


def _output(command: tuple[str, ...]) -> str:
    done = subprocess.run(command, capture_output=True, timeout=COMMAND_SECONDS, check=False, stdin=subprocess.DEVNULL)
    return (done.stdout + done.stderr).decode(errors="replace")


def _file(path: str) -> str:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > MOST_BYTES:
            file.seek(size - MOST_BYTES)
        return file.read(MOST_BYTES).decode(errors="replace")


def redacted(value: Any, name: str = "") -> Any:
    """JSON without what may be secret: values of environment variables, of data, of telling names and texts."""
    match value:
        case dict():
            return {key: _field(key, item, value) for key, item in value.items()}
        case list():
            return [redacted(item, name) for item in value]
        case str():
            return hidden(value)
    return value


def _field(key: str, item: Any, around: Json) -> Any:
    if key == "value" and "name" in around and isinstance(item, str):
        return HIDDEN  # env, and headers of probes: nobody can tell which are harmless
    if key in ("data", "stringData", "binaryData") and isinstance(item, dict):
        return dict.fromkeys(item, HIDDEN)
    if key.endswith("last-applied-configuration"):
        return HIDDEN  # the whole manifest once more
    if isinstance(item, str) and _SECRET_NAME.search(key) and not key.endswith(("File", "Path", "Name")):
        return HIDDEN
    return redacted(item, key)


def hidden(text: str) -> str:
    """Text without tokens, passwords and keys where they can be told by what is before them."""
    for pattern in _SECRET_TEXT:
        text = pattern.sub(lambda found: f"{found[1]}{HIDDEN}", text)
    return text
