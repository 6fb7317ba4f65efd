"""Pure: what kind of error an answer of Podman is, decided here from status and text and nowhere else; and its words.

Podman 4.3 answers 500 to nearly everything; the sentinel errors of its sources are in `cause`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ... import errors

_BY_TEXT: tuple[tuple[str, Callable[[str], errors.RuntimeFailure]], ...] = (
    ("address already in use", errors.Temporary),  # a host port, not a name
    ("already in use", errors.Conflict),
    ("already exists", errors.Conflict),
    ("image not known", errors.ImageMissing),
    ("no such image", errors.ImageMissing),
    ("no such container", errors.NotFound),
    ("container not known", errors.NotFound),  # half removed: its storage is gone, its record is not
    ("no such pod", errors.NotFound),
    ("container has already been removed", errors.NotFound),
    ("pod has already been removed", errors.NotFound),
    ("database is locked", errors.Temporary),
)

_REFUSED = (
    "command that was not found",
    "executable file not found",
    "is a directory: oci runtime error",  # Podman 5, of a command
    "oci permission denied",
    "oci runtime permission denied",
    "invalid argument",
    "not a directory",
    "unable to find user",
    "unable to find group",
    "invalid container spec",
    "invalid configuration",
    "unknown capability",
    "duplicate mount destination",
    "no command or entrypoint provided",
)
"""What is wrong with the pod itself: the same call can never work."""

_DAMAGED = re.compile(
    r"layer not known"
    r"|(creating overlay mount|creating read-write layer|\bstat \S*/overlay/)[^\n]*no such file or directory"
)
"""What Podman 4.3 says when directories of an image's layers are gone, or their record is."""

_START = "start container"
_OWN_LIMIT = "memory limit could be too low"
"""How crun begins when the pod's own limit leaves no memory, before "cannot allocate memory"."""
_MACHINE = re.compile(
    r"no space left on device|cannot allocate memory|resource temporarily unavailable|device or resource busy"
    r"|too many open files|input/output error|quota exceeded|read-only file system|timed out|dbus|systemd"
    r"|setns|join(ing)? namespaces?|/proc/\d+/ns/|/netns/"
)
"""Why an OCI runtime may fail a start though nothing is wrong with the container: the machine, or its sandbox."""


def failure(status: int, cause: str, message: str, what: str) -> errors.RuntimeFailure:
    """The error for an HTTP status of 400 or more; `cause` and `message` as Podman's JSON body has them."""
    text = f"{cause}\n{message}".lower()
    said = (message if cause in message else f"{message}: {cause}") or f"HTTP status {status}"
    sentence = f"cannot {what}: {said}"
    if _DAMAGED.search(text):
        return errors.Damaged(sentence)
    for mark, kind in _BY_TEXT:
        if mark in text:
            return kind(sentence)
    if _refused(text, what):
        return errors.Permanent(sentence, said)
    if status == 404:
        return errors.NotFound(sentence)
    if status == 409:
        return errors.Conflict(sentence)
    return errors.Permanent(sentence, said) if status < 500 else errors.Temporary(sentence)


def _refused(text: str, what: str) -> bool:
    """Whether it is the pod's own fault. What else an OCI runtime says at a start is so, unless it is the machine's."""
    if what.startswith(_START):
        if _MACHINE.search(text) and _OWN_LIMIT not in text:
            return False
        if "oci runtime error" in text:
            return True
    return any(mark in text for mark in _REFUSED)


_DEEDS = {
    ("POST", "create"): "create {what}",
    ("POST", "start"): "start {what}",
    ("POST", "kill"): "signal {what}",
    ("POST", "pull"): "pull {what}",
    ("GET", "json"): "look at {what}",
    ("DELETE", ""): "remove {what}",
}
_ID = re.compile(r"[0-9a-f]{64}")


def deed(method: str, path: str) -> str:
    """A call in words, to go on after "cannot": start container 0123456789ab, create a pod, list containers."""
    plural, _, rest = path.partition("/")
    target, _, verb = rest.rpartition("/") if method != "DELETE" else (rest, "", "")
    words = _DEEDS.get((method, verb))
    if words is None or not plural.endswith("s"):
        return f"{method} {path}"
    if not target:
        return f"list {plural}" if verb == "json" else words.format(what=f"a {plural[:-1]}".replace("a i", "an i"))
    name = target[:12] if _ID.fullmatch(target) else target.replace("%2F", "/").replace("%3A", ":")
    return words.format(what=f"{plural[:-1]} {name}")
