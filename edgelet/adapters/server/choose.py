"""Which pod and which container of it a request means; the refusals are worded as the API server's."""

from __future__ import annotations

from ...engine.store import Entry, StatusStore
from ...model.pod import PodKey
from ...model.status import ContainerStatus, PodStatus, Waiting
from . import statuses
from .base import Refused

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


def pod(store: StatusStore, key: PodKey) -> Entry:
    """The pod, or 404."""
    entry = store.get(key)
    if entry is None:
        raise Refused(statuses.not_found("pods", key.name))
    return entry


def name(entry: Entry, given: str) -> str:
    """The container meant: the one given, the annotated default, or the only one; else 400."""
    pod = entry.pod
    chosen = given or pod.annotations.get(DEFAULT_CONTAINER, "")
    if chosen:
        if pod.container(chosen) is None:
            raise Refused(statuses.failure(400, f"container {chosen} is not valid for pod {pod.name}"))
        return chosen
    if len(pod.containers) == 1:
        return pod.containers[0].name
    regular = " ".join(c.name for c in pod.containers)
    message = f"a container name must be specified for pod {pod.name}, choose one of: [{regular}]"
    if pod.init_containers:
        message += f" or one of the init containers: [{' '.join(c.name for c in pod.init_containers)}]"
    raise Refused(statuses.failure(400, message))


def container(entry: Entry, given: str) -> ContainerStatus:
    """The status of the container meant; one that has none yet counts as waiting."""
    chosen = name(entry, given)
    found = status_of(entry.status, chosen)
    if found is not None:
        return found
    image = next((c.image for c in entry.pod.all_containers if c.name == chosen), "")
    return ContainerStatus(chosen, image, Waiting("ContainerCreating"))


def status_of(status: PodStatus, name: str) -> ContainerStatus | None:
    """The status of the container of that name."""
    return next((c for c in (*status.init_containers, *status.containers) if c.name == name), None)
