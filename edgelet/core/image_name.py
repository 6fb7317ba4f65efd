"""Whether a text can be the name of an image, in the words of the kubelet's library (distribution/reference). Pure."""

from __future__ import annotations

import re

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_TAG = r"[\w][\w.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_NAME = re.compile(rf"((?:{_HOST}/)?{_PART}(?:/{_PART})*)(?::{_TAG})?(?:@{_DIGEST})?", re.ASCII)
_ID = re.compile(r"[a-f0-9]{64}")
MAX_NAME = 255


def fault(reference: str) -> str:
    """What is wrong with it ("" = nothing).

    >>> fault("registry.local:5000/a/b:1.2"), fault("a:b:c")
    ('', 'invalid reference format')
    """
    if _ID.fullmatch(reference):
        return f"invalid repository name ({reference}), cannot specify 64-byte hexadecimal strings"
    repository = _repository(reference)
    if repository.lower() != repository:
        return f"invalid reference format: repository name ({repository}) must be lowercase"
    found = _NAME.fullmatch(reference)
    if found is None:
        return "invalid reference format"
    return f"repository name must not be more than {MAX_NAME} characters" if len(found[1]) > MAX_NAME else ""


def _repository(reference: str) -> str:
    """What stands behind the registry, without the tag."""
    first, slash, rest = reference.partition("/")
    host = slash and ("." in first or ":" in first or first == "localhost" or first.lower() != first)
    remote = rest if host else reference
    return (remote if host or slash else f"library/{remote}").partition(":")[0]
