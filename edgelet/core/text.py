"""Texts that appear on the wire as the kubelet writes them."""

from __future__ import annotations

from ..model.pod import Pod

INIT_STATUS_LOST = (
    "Unable to get init container status from container runtime and pod has been initialized,"
    " treat it as exited normally"
)
"""Message of an init container that was removed after the pod had been initialised (3.13.4)."""


POST_START_FAILED = "FailedPostStartHook"
"""Text of the Killing event of a container whose postStart hook failed (3.8)."""


DEADLINE = "Pod was active on the node longer than the specified deadline"
"""Message of a pod, and of the event, with reason DeadlineExceeded (3.10)."""


def go_duration(seconds: float) -> str:
    """Seconds as Go prints a duration of whole seconds: 10s, 2m40s, 5m0s, 1h0m0s."""
    total = round(seconds)
    hours, rest = divmod(total, 3600)
    minutes, secs = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{secs}s"
    return f"{minutes}m{secs}s" if minutes else f"{secs}s"


def pod_format(pod: Pod) -> str:
    """A pod as the kubelet names it in messages: name_namespace(uid)."""
    return f"{pod.name}_{pod.namespace}({pod.uid})"


def crash_loop(pod: Pod, container: str, delay: float) -> str:
    """Message of the waiting reason CrashLoopBackOff (3.6.4)."""
    return f"back-off {go_duration(delay)} restarting failed container={container} pod={pod_format(pod)}"


def probe_kill(container: str, kind: str) -> str:
    """Text of the Killing event after a failed probe (4.3)."""
    return f"Container {container} failed {kind} probe, will be restarted"


def stopping(container: str) -> str:
    """Text of the Killing event of an ordinary stop (3.4.1)."""
    return f"Stopping container {container}"
