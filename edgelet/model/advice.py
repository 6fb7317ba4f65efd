"""What to say to a person who wrote something that is not there: what was meant, where it belongs.

Only called for mistakes, so the heavier work (difflib, walks over the table) costs good files nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from . import fields
from .fields import Field

_HOMES = {"PodSpec": "spec", "Container": "a container", "ObjectMeta": "metadata"}
"""Types that people put fields of into one another's place, and where they are in the file."""

_HABITS = {
    "environment": "write env, a list of {name: ..., value: ...}",
    "env_file": "write env, a list of {name: ..., value: ...}",
    "entrypoint": "write command",
    "restart": "write restartPolicy, under spec",
    "healthcheck": "write livenessProbe, readinessProbe or startupProbe",
    "depends_on": "write initContainers, under spec, or let the program wait by itself",
    "cap_add": "write securityContext: {capabilities: {add: [...]}}",
    "cap_drop": "write securityContext: {capabilities: {drop: [...]}}",
    "devices": "write a hostPath volume of type CharDevice and mount it",
    "network_mode": "write hostNetwork: true, under spec",
    "user": "write securityContext: {runAsUser: ...}",
    "privileged": "write securityContext: {privileged: true}",
    "stop_grace_period": "write terminationGracePeriodSeconds, under spec",
    "container_name": "write name",
    "working_dir": "write workingDir",
    "tmpfs": "write an emptyDir volume with medium: Memory and mount it",
}
"""Words of compose files, and what a pod has for them."""


def unknown(name: str, type_name: str, known: Mapping[str, Field]) -> str:
    """What to do about a field that `type_name` does not have."""
    for home, where in _HOMES.items():
        if home != type_name and name in fields.table()[home] and type_name in _HOMES:
            return f"it belongs under {where}"
    if type_name in ("Container", "PodSpec") and name in _HABITS:
        return _HABITS[name]
    hint = suggestion(name, known)
    return f"did you mean {hint!r}?" if hint else "it is ignored"


def suggestion(name: str, known: Mapping[str, Field]) -> str:
    """The known field that `name` was probably meant to be, or ""."""
    folded = {_fold(k): k for k in known}
    key = _fold(name[:60])
    if key in folded:
        return folded[key]
    import difflib  # only for a mistake, so not at the top

    close = difflib.get_close_matches(key, folded, n=1, cutoff=0.75)
    return folded[close[0]] if close else ""


def _fold(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def row(known: Mapping[str, Field]) -> str:
    """What a mapping of this type looks like: its required fields, then some of the others."""
    rows = sorted(known.values(), key=lambda f: (not f.required, f.verdict != fields.HONOURED))
    names = [f.name for f in rows if f.required or f.verdict == fields.HONOURED] or [f.name for f in rows]
    return ", ".join(names[:3])


def colon(text: str) -> str:
    """A hint when the blank after a colon is what is missing."""
    return "; a blank is missing after ':'" if re.match(r"[A-Za-z]+:[^\s/0-9]", text) else ""


def as_list(text: str) -> str:
    """A command line as the list that it should have been."""
    words = text.split()
    if not words or len(text) > 60 or any(c in text for c in "\"'\\|&;<>$`*"):
        return '; write it as a list: ["program", "argument"]'
    return "; write [" + ", ".join(f'"{w}"' for w in words) + "]"
