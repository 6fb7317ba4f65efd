"""One line for a person: why a pod is not (fully) up. Empty when there is nothing to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model.status import ContainerStatus, PodStatus, Terminated, Waiting

if TYPE_CHECKING:
    from .phase import Facts

_QUIET = {"ContainerCreating", "PodInitializing"}


def summary(facts: Facts, made: PodStatus) -> str:
    """The most useful thing to know about the pod of `facts` right now."""
    if facts.held:
        return f"stopped by a person; `edgelet start {facts.pod.short_name or facts.pod.name}` runs it again"
    trouble = facts.memory.trouble
    parts = [facts.note] if facts.note else []
    if trouble is not None:
        parts.append(f"{trouble.message} (tried {trouble.failures} times, goes on trying)")
    elif facts.memory.failed is not None:
        parts.append(f"{facts.memory.failed.reason}: {facts.memory.failed.message}")
    elif facts.memory.ending is not None:
        parts.append(f"being stopped: {facts.memory.ending.reason}")
    else:
        parts += [line for c in made.init_containers + made.containers if (line := _container(facts, c))][:1]
    return "; ".join(parts)


def _container(facts: Facts, status: ContainerStatus) -> str:
    state, name = status.state, status.name
    if isinstance(state, Waiting):
        return _waiting(status, state)
    if isinstance(state, Terminated):
        if state.exit_code == 0:
            return ""
        return f"container {name} ended: {_end(state)}"
    if status.ready:
        return ""
    container = facts.pod.container(name)
    if container is not None and facts.pod.is_init(name) and not facts.pod.is_sidecar(container):
        return f"init container {name} runs, the others wait for it"
    if not status.started:
        return f"container {name} runs, its startup probe has not succeeded yet"
    return f"container {name} runs, its readiness probe does not succeed"


def _waiting(status: ContainerStatus, state: Waiting) -> str:
    if state.reason in _QUIET:
        return f"container {status.name} is being created" + (f": {state.message}" if state.message else "")
    last = status.last_state
    cause = f"; last end: {_end(last)}" if last and last.message != state.message else ""
    return f"container {status.name}: {state.reason}: {state.message}{cause}"


def _end(end: Terminated) -> str:
    text = f"exit code {end.exit_code} ({end.reason})"
    return f"{text}: {end.message}" if end.message else text
