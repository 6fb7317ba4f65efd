"""Whether a container that has ended runs again (semantics 3.5), and how its end is called (3.13.2)."""

from __future__ import annotations

from ..model.observed import ObservedContainer, State
from ..model.pod import Container, Pod, RestartRule
from ..model.status import Terminated
from . import text
from .memory import ContainerMemory, PodMemory

STATUS_UNKNOWN = "ContainerStatusUnknown"
START_FAILED_CODE = 128
KILLED_CODE = 137
_PROBE_CAUSES = {"liveness": "LivenessProbe", "startup": "StartupProbe"}
_LOST = "The container could not be located: it was removed, or the power failed while it ran."


def policy(pod: Pod, container: Container) -> str:
    """The effective restart policy of a container."""
    return container.restart_policy or pod.restart_policy


def succeeded(pod: Pod, container: Container, end: Terminated) -> bool:
    """Exit 0; a regular init container that was OOM-killed failed even with code 0 (3.3.1)."""
    return end.exit_code == 0 and not (pod.is_init(container.name) and end.reason == "OOMKilled")


def again(pod: Pod, container: Container, end: Terminated) -> bool:
    """Whether a container that ended like `end` is to be started again."""
    ok = succeeded(pod, container, end)
    once = pod.is_init(container.name) and not pod.is_sidecar(container)
    if once and ok:
        return False
    if rule(container, end) is not None:
        return True
    effective = policy(pod, container)
    return effective == "Always" or (effective == "OnFailure" and not ok) or (once and effective != "Never")


def rule(container: Container, end: Terminated) -> RestartRule | None:
    """The container's first rule about that exit code; rules count beside a policy of its own only."""
    return next((r for r in container.restart_rules if container.restart_policy and r.matches(end.exit_code)), None)


def gives_up(pod: Pod) -> bool:
    """Whether no container of the pod is ever started a second time."""
    return all(policy(pod, c) == "Never" and not c.restart_rules for c in pod.containers)


def ended(instance: ObservedContainer, memory: ContainerMemory) -> Terminated | None:
    """How an instance ended; None while it is created or running."""
    failed = memory.start_error
    if failed and failed.container_id == instance.id and not instance.running:
        return Terminated(START_FAILED_CODE, "StartError", 0.0, instance.created_at, failed.message, instance.id)
    if instance.state is not State.EXITED:
        return None
    code = KILLED_CODE if instance.exit_code is None else instance.exit_code
    return Terminated(
        exit_code=code,
        reason=_reason(instance, code),
        started_at=instance.started_at,
        finished_at=instance.finished_at,
        message=": ".join(part for part in (instance.error, instance.message) if part),  # 3.14.2
        container_id=instance.id,
    )


def stopped(instance: ObservedContainer, memory: ContainerMemory) -> bool:
    """Whether we told this instance to end: now, or in an earlier life of the agent.

    One whose postStart hook failed counts as having ended by itself: its exit code decides, and the back-off
    goes on (3.8).
    """
    if memory.stopping is not None and memory.stopping.container_id == instance.id:
        return memory.stopping.reason != text.POST_START_FAILED
    return memory.stopped and memory.last is not None and memory.last.container_id == instance.id


def cause(name: str, instance: ObservedContainer | None, memory: ContainerMemory) -> str:
    """Why a container is started again, in one word of few: what ended it, or how it ended by itself."""
    if instance is None:
        return "SandboxChanged"
    if memory.stopping is not None and memory.stopping.container_id == instance.id:
        causes = {text.probe_kill(name, kind): reason for kind, reason in _PROBE_CAUSES.items()}
        return {**causes, text.POST_START_FAILED: "PostStartHook"}.get(memory.stopping.reason, "Asked")
    end = ended(instance, memory)
    return end.reason if end is not None else STATUS_UNKNOWN


def _reason(instance: ObservedContainer, code: int) -> str:
    if instance.oom_killed:
        return "OOMKilled"
    if instance.exit_code is None:
        return STATUS_UNKNOWN
    return "Completed" if code == 0 else "Error"


def remembered(memory: PodMemory, name: str) -> Terminated | None:
    """How a container without an instance ended; None if it never ran.

    One that was known to run and has vanished counts as killed with an unknown status (3.13.3).
    """
    known = memory.of(name)
    if known.restart_count < 0:
        return None
    if known.ended and known.last:
        return known.last
    return Terminated(KILLED_CODE, STATUS_UNKNOWN, message=_LOST)
