"""Merges a pod's status into the one the server holds, as the kubelet does (semantics 7.5). Pure."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

FIELDS = (
    "phase",
    "message",
    "reason",
    "startTime",
    "initContainerStatuses",
    "containerStatuses",
)
"""Fields that are replaced as a whole; one that is absent here is removed there."""
REPLACE = {"$patch": "replace"}
"""First in a list that a strategic merge would join by a key: old addresses must not stay."""
TERMINAL = frozenset(("Succeeded", "Failed"))


def patch(there: Json, here: Json) -> Json:
    """The strategic merge patch of `status` that makes `there` show `here`; {} = nothing to send.

    Conditions of other owners are left alone.  The server fixes qosClass at creation and refuses
    every change of it (apiserver-facts), so it is sent only where there is none.
    """
    found: Json = {}
    for name in FIELDS:
        if bare(there.get(name)) != bare(here.get(name)):
            found[name] = here.get(name) or None
    found |= _addresses(there, here)
    conditions = _conditions(there.get("conditions") or [], here.get("conditions") or [])
    if conditions:
        found["conditions"] = conditions
    if not there.get("qosClass") and here.get("qosClass"):
        found["qosClass"] = here["qosClass"]
    return found


def _addresses(there: Json, here: Json) -> Json:
    """The host's address is never taken back: a box that lost its network had one."""
    found: Json = {}
    if here.get("hostIP") and _part(there, "host") != _part(here, "host"):
        found |= {"hostIP": here["hostIP"], "hostIPs": [REPLACE, *here["hostIPs"]]}
    if _part(there, "pod") != _part(here, "pod"):
        found["podIP"] = here.get("podIP") or None
        found["podIPs"] = [REPLACE, *(here.get("podIPs") or [])]
    return found


def _part(status: Json, whose: str) -> Any:
    return bare({name: status.get(name) for name in (f"{whose}IP", f"{whose}IPs")})


def _conditions(there: list[Json], here: list[Json]) -> list[Json]:
    known = {c.get("type"): bare(c) for c in there}
    changed = []
    for condition in here:
        if known.get(condition["type"]) != bare(condition):
            # What an earlier state said about the reason must not stay beside the new one.
            changed.append({"reason": None, "message": None, **condition})
    return changed


def legal(there: Json, here: Json, restart_policy: str) -> bool:
    """Whether the server's status may become ours; False = the mirror is to be made anew (7.5.3).

    A finished pod that a person starts again, and containers that ended for good and run again, are
    another pod in the API's eyes.
    """
    if there.get("phase") in TERMINAL and there.get("phase") != here.get("phase"):
        return False
    if restart_policy == "Always":
        return True
    now = {c["name"]: c for c in here.get("containerStatuses") or ()}
    for before in there.get("containerStatuses") or ():
        ended = (before.get("state") or {}).get("terminated")
        if ended and (restart_policy == "Never" or ended.get("exitCode") == 0):
            after = now.get(before["name"])
            if after is not None and "terminated" not in after.get("state", {}):
                return False
    return True


def bare(value: Any) -> Any:
    """Without what an API server leaves out: nulls and empty texts, lists and objects."""
    if isinstance(value, dict):
        found = {k: bare(v) for k, v in value.items()}
        return {k: v for k, v in found.items() if v not in (None, "", [], {})}
    if isinstance(value, list):
        return [bare(v) for v in value]
    return value
