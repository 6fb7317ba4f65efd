"""The order in which pods begin at boot: annotation `edgelet.io/after` names pods that must be Ready first. Pure.

``edgelet.io/after: db,broker`` waits for these pods (of the same namespace; `other/db` for another one), by
short name or full name.  ``edgelet.io/after-timeout: 90s`` gives the wait up; without it a pod waits for ever.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ..model.gate import Gate
from ..model.pod import Pod, PodKey

AFTER = "edgelet.io/after"
TIMEOUT = "edgelet.io/after-timeout"
_DURATION = re.compile(r"(?=\d)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")


def gates(
    pods: Mapping[PodKey, Pod], ready: Collection[PodKey], begun: Collection[PodKey], since: Mapping[PodKey, float]
) -> dict[PodKey, Gate]:
    """The pods that may not begin yet, and why.

    `begun` = they have begun in this boot: no order matters to them any more.  `since` = the monotonic second at
    which each was first wanted.
    """
    names = _names(pods)
    found = {}
    for key, pod in pods.items():
        if key in begun or AFTER not in pod.annotations:
            continue
        gate = _gate(pod, pods, names, ready, since.get(key, 0.0))
        if gate is not None:
            found[key] = gate
    return found


def _gate(
    pod: Pod,
    pods: Mapping[PodKey, Pod],
    names: Mapping[tuple[str, str], PodKey],
    ready: Collection[PodKey],
    since: float,
) -> Gate | None:
    circle = cycle(pod.key, pods)
    if circle:
        chain = " -> ".join(str(k) for k in circle)
        return Gate("DependencyCycle", f"Pod was rejected: {AFTER}: these pods wait for each other: {chain}")
    seconds = timeout(pod)
    if seconds is None and pod.annotations.get(TIMEOUT):
        wrong = pod.annotations[TIMEOUT][:40]
        return Gate("DependencyInvalid", f"Pod was rejected: {TIMEOUT}: {wrong!r} is no duration such as 90s or 5m")
    missing = [_said(pod, name, names.get(name), ready) for name in wanted(pod) if names.get(name) not in ready]
    if not missing:
        return None
    until = since + seconds if seconds is not None else None
    return Gate("WaitingForPods", f"waits for {', '.join(missing)}", refused=False, until=until)


def _said(pod: Pod, name: tuple[str, str], key: PodKey | None, ready: Collection[PodKey]) -> str:
    short = name[1] if name[0] == pod.namespace else "/".join(name)
    return f"pod {short} to be Ready" if key is not None else f"pod {short}, which nobody has asked for"


def wanted(pod: Pod) -> tuple[tuple[str, str], ...]:
    """Namespace and name of each pod that it waits for, as written."""
    words = [w.strip() for w in pod.annotations.get(AFTER, "").split(",")]
    pairs = [w.rpartition("/") for w in words if w]
    return tuple((namespace or pod.namespace, name) for namespace, _, name in pairs)


def timeout(pod: Pod) -> float | None:
    """Seconds after which it begins all the same; None = never, or not to be understood."""
    found = _DURATION.fullmatch(pod.annotations.get(TIMEOUT, "").strip())
    if found is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(hours * 3600 + minutes * 60 + seconds)


def cycle(key: PodKey, pods: Mapping[PodKey, Pod]) -> tuple[PodKey, ...]:
    """A way from a pod back to itself, () = there is none."""
    names = _names(pods)
    paths: list[tuple[PodKey, ...]] = [(key,)]
    seen: set[PodKey] = set()
    while paths:
        path = paths.pop()
        for name in wanted(pods[path[-1]]):
            target = names.get(name)
            if target == key:
                return (*path, key)
            if target is not None and target not in seen:
                seen.add(target)
                paths.append((*path, target))
    return ()


def _names(pods: Mapping[PodKey, Pod]) -> dict[tuple[str, str], PodKey]:
    """Every way to name a pod; a full name beats another pod's short one."""
    short = {(p.namespace, p.short_name): key for key, p in pods.items() if p.short_name}
    return {**short, **{(key.namespace, key.name): key for key in pods}}
