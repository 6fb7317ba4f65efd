"""Turn one written setting (flag, variable, file value) into its typed value, or say what would be right.

Every parser takes the value as it was written, a string from flags and environment or any YAML
scalar, list or map from the file, and raises ValueError with a phrase that completes
"... is not valid: ".  Pure.
"""

from __future__ import annotations

import ipaddress
import os.path
import re
import urllib.parse
from collections.abc import Callable, Iterable, Mapping

from .model import quantity

Parser = Callable[[object], object]

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

LOG_LEVELS = ("debug", "info", "warning", "error")
_SYSCTL = re.compile(r"kernel\.sem|(kernel\.(shm|msg)|fs\.mqueue\.|net\.)[-_.a-z0-9]*\*?")
LONGEST = 365 * 24 * 3600
"""Seconds of the longest duration: a year."""
SOCKET_PATH_MAX = 107
"""Bytes that fit in sockaddr_un.sun_path with its closing zero (unix(7))."""


def go_duration(text: str) -> float:
    """Seconds of a Go duration such as "20s", "1m0s" or "300ms" (time.ParseDuration, not negative)."""
    if text == "0":
        return 0.0
    total, end = 0.0, 0
    for part in _DURATION_PART.finditer(text):
        if part.start() != end:
            break
        total, end = total + float(part[1]) * _UNITS[part[2]], part.end()
    if not text or end != len(text):
        raise ValueError('write a duration with its unit, such as "20s", "1m30s" or "500ms"')
    return total


def duration(minimum: float) -> Parser:
    """Parser of a Go duration of at least `minimum` seconds; zero means "the default" (None)."""

    def parse(value: object) -> float | None:
        seconds = go_duration(_scalar(value))
        if seconds == 0:
            return None
        if seconds < minimum:
            raise ValueError(f"it is too short: {minimum:g}s or more")
        return _bounded(seconds)

    return parse


def grace(value: object) -> float:
    """A Go duration where zero means zero: do not wait."""
    return _bounded(go_duration(_scalar(value)))


def _bounded(seconds: float) -> float:
    """What a clock can wait for: "never" has no duration."""
    if seconds > LONGEST:
        raise ValueError(f"it is too long: {LONGEST // 3600}h or less")
    return seconds


def count(minimum: int, maximum: int) -> Parser:
    """Parser of a whole number in a range; zero below the range means "the default" (None)."""

    def parse(value: object) -> int | None:
        text = _scalar(value)
        number = int(text) if re.fullmatch(r"[+-]?\d{1,18}", text) else None
        if number == 0 < minimum:
            return None
        if number is None or not minimum <= number <= maximum:
            raise ValueError(f"write a whole number from {minimum} to {maximum}")
        return number

    return parse


def size(value: object) -> int | None:
    """Bytes of a Kubernetes quantity ("10Mi", "500k"); an empty one means the default."""
    text = _scalar(value)
    if not text:
        return None
    number = quantity.whole(text)
    if number <= 0:
        raise ValueError('write a size such as "10Mi", "500k" or a number of bytes')
    return number


def sysctls(value: object) -> tuple[str, ...]:
    """Names of kernel settings, a list or "name,name": of network or IPC namespaces, `*` at the end = all such."""
    parts = [_scalar(v) for v in value] if isinstance(value, list) else _scalar(value).split(",")
    names = tuple(dict.fromkeys(part.strip().replace("/", ".") for part in parts if part.strip()))
    for name in names:
        if not _SYSCTL.fullmatch(name):
            raise ValueError(f'"{name}" is no kernel setting of a pod: write kernel.sem, or kernel.shm, kernel.msg,'
                             ' fs.mqueue. or net. and more, "*" at the end for all such')  # fmt: skip
    return names


def network_name(value: object) -> str | None:
    """Name of a Podman network, which is also that of its bridge; an empty one means the default."""
    name = _scalar(value)
    if name and not re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,14}", name):
        raise ValueError("write up to 15 lower-case letters, digits, '-', '_' and '.', the first a letter or digit")
    return name or None


def network(value: object) -> str:
    """An IP network in CIDR notation, as text; "" stays "" (not set)."""
    written = _scalar(value)
    try:
        return str(ipaddress.ip_network(written)) if written else ""
    except ValueError as error:
        raise ValueError(f"write a network such as 10.89.0.0/24 ({error})") from error


def boolean(value: object) -> bool:
    """true or false, in the words people use."""
    if isinstance(value, bool):
        return value
    word = _WORDS.get(_scalar(value).lower())
    if word is None:
        raise ValueError("write true or false")
    return word


def text(value: object) -> str:
    """Any string, blanks around it removed."""
    return _scalar(value)


def path(value: object) -> str:
    """A path, made absolute; "" stays "" (not set)."""
    written = _scalar(value).removeprefix("unix://")
    if "\0" in written:
        raise ValueError("a path holds no NUL byte")
    return os.path.abspath(written) if written else ""


def ip_address(value: object) -> str:
    """An IP address to listen on; "" = the default."""
    written = _scalar(value).strip("[]")
    try:
        return str(ipaddress.ip_address(written)) if written else "127.0.0.1"
    except ValueError as error:
        raise ValueError("write an IP address, such as 127.0.0.1 or 0.0.0.0") from error


def own_address(value: object) -> str:
    """An IP address of this machine; "" = to be found out."""
    written = _scalar(value)
    return ip_address(written) if written else ""


def labels(value: object) -> tuple[tuple[str, str], ...]:
    """Labels: a map in the file, "key=value,key=value" elsewhere (kubelet)."""
    if isinstance(value, Mapping):
        pairs = [(str(key), _scalar(text)) for key, text in value.items()]
    else:
        parts = [part.strip() for part in _scalar(value).split(",") if part.strip()]
        pairs = [(key, text) for key, _, text in (part.partition("=") for part in parts)]
    for key, text in pairs:
        if not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(text):
            raise ValueError(f'write labels as "key=value,key=value"; "{key}={text}" is none')
    return tuple(dict(pairs).items())


EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def taints(value: object) -> tuple[tuple[str, str, str], ...]:
    """Taints: a list of {key, value, effect} in the file, "key=value:effect,..." elsewhere; "" = none (kubelet)."""
    if isinstance(value, list):
        if not all(isinstance(t, Mapping) for t in value):
            raise ValueError("write taints as a list of {key, value, effect}")
        found = [tuple(_scalar(t.get(k) or "") for k in ("key", "value", "effect")) for t in value]
    else:
        parts = [part.strip() for part in _scalar(value).split(",") if part.strip()]
        found = []
        for part in parts:
            left, _, effect = part.rpartition(":")
            key, _, text = left.partition("=")
            found.append((key, text, effect))
    for key, text, effect in found:
        if effect not in EFFECTS or not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(text):
            raise ValueError(f'write taints as "key=value:effect", the effect one of {", ".join(EFFECTS)}')
    return tuple((key, text, effect) for key, text, effect in found)


def client_ca(value: object) -> str | None:
    """A path, or KubeletConfiguration's authentication: only its x509.clientCAFile means something here."""
    if isinstance(value, str):
        return path(value)
    if not isinstance(value, Mapping):
        raise ValueError("write authentication: {x509: {clientCAFile: FILE}}")
    x509 = value.get("x509") or {}
    if not isinstance(x509, Mapping):
        raise ValueError("write authentication: {x509: {clientCAFile: FILE}}")
    anonymous = value.get("anonymous") or {}
    if isinstance(anonymous, Mapping) and anonymous.get("enabled"):
        raise ValueError("anonymous access is not offered: every caller needs a token or a certificate")
    found = x509.get("clientCAFile")
    return path(found) if found else None


def directory(value: object) -> str:
    """A path that has to be given."""
    found = path(value)
    if not found:
        raise ValueError("write the path of a directory")
    return found


def socket(value: object) -> str:
    """The path of a unix socket, short enough for the kernel."""
    found = path(value)
    if len(os.fsencode(found)) > SOCKET_PATH_MAX:
        raise ValueError(f"the kernel takes socket paths of at most {SOCKET_PATH_MAX} bytes: choose a shorter one")
    return found


def log_level(value: object) -> str:
    """One of LOG_LEVELS."""
    level = _scalar(value).lower()
    if level not in LOG_LEVELS:
        raise ValueError(f"write one of {', '.join(LOG_LEVELS)}")
    return level


def node_name(value: object) -> str:
    """A DNS-1123 subdomain of at most 253 characters, lower-cased as the kubelet does; "" = not set."""
    name = _scalar(value).lower()
    if name and (len(name) > 253 or not _NODE_NAME.fullmatch(name)):
        raise ValueError('use letters, digits, "-" and ".", beginning and ending with a letter or digit')
    return name


def urls(value: object) -> tuple[str, ...]:
    """One URL or several: a list, or a string with blanks between them."""
    parts = [_scalar(v) for v in value] if isinstance(value, list) else _scalar(value).split()
    for part in parts:
        split = urllib.parse.urlsplit(part)
        if split.scheme not in ("http", "https") or not split.hostname:
            raise ValueError(f'"{part}" should read http://HOST/PATH or https://HOST/PATH')
    return tuple(dict.fromkeys(parts))


def headers(value: object) -> tuple[tuple[str, str], ...]:
    """Request headers: a map of name to value(s) in the file, "name:value,name:value" elsewhere (kubelet)."""
    if isinstance(value, Mapping):
        pairs = [(str(name), _scalar(v)) for name, vs in value.items() for v in (vs if isinstance(vs, list) else [vs])]
    else:
        parts = value if isinstance(value, list) else [_scalar(value)]
        pairs = [_header(piece) for part in parts for piece in str(part).split(",") if piece.strip()]
    for name, content in pairs:
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or re.search(r"[\r\n\0]", content):
            raise ValueError('write headers as "Name:value" (in the file: Name: [value])')
    return tuple(pairs)


def _header(piece: str) -> tuple[str, str]:
    name, colon, content = piece.partition(":")
    if not colon:
        # The piece is not shown: it may be the second half of a secret.
        raise ValueError('each header is "Name:value"; a value that holds a comma goes into the configuration file')
    return name.strip(), content.strip()


def _scalar(value: object) -> str:
    """The text of a scalar as it was written; lists and maps are refused."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value).strip()
    raise ValueError("write a single value here, not a list or a map")


def suggest(word: str, known: Iterable[str]) -> str:
    """The words "; did you mean X?", or nothing when no known word is near."""
    import difflib  # only for a mistake, so not at the top

    by_lower = {k.lower(): k for k in known}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.75)
    return f"; did you mean {by_lower[near[0]]}?" if near else ""
