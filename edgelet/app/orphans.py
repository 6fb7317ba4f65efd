"""Tells what became of containers whose conmon has died: nobody could stop, log or reap them any more.

The exit watcher has ended such a container and written its exit file by then, so that everything
that follows is an ordinary exit (design section 3: without the file even `podman rm -f` fails).
"""

from __future__ import annotations

from .. import ports
from ..engine.observer import Observer
from ..model.observed import ObservedPod


def tell(observer: Observer, recorder: ports.Recorder, container_id: str) -> None:
    """Record the loss as an event of the container, if it is one of ours; any thread."""
    for pod in observer.all().values():
        if pod.infra_id == container_id:
            _event(recorder, pod, "The pod's infra container", "")
            return
        instance = pod.by_id(container_id)
        if instance is not None:
            _event(recorder, pod, f"Container {instance.name}", f"spec.containers{{{instance.name}}}")
            return


def _event(recorder: ports.Recorder, pod: ObservedPod, what: str, field_path: str) -> None:
    recorder.event(
        ports.EventRef(pod.key, pod.uid, field_path),
        "Warning",
        "ConmonDied",
        f"{what} has lost its monitor process (conmon): nobody could log or stop it, so it was ended",
    )
