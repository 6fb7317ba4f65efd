"""Makes the targets of probes and hooks: what is to be probed, or called, and where. Pure."""

from __future__ import annotations

from .. import ports
from ..model.observed import ObservedContainer, ObservedPod
from ..model.pod import Container
from .local import Local


def probed(local: Local) -> tuple[ports.Target, ...]:
    """The running containers that have probes; of those in a pod that ends only readiness is probed (4.7)."""
    pod, observed = local.current, local.observed
    if pod is None or observed is None:
        return ()
    found = []
    for container in pod.all_containers:
        instance = observed.newest(container.name)
        has_probe = container.liveness or container.readiness or container.startup
        if instance is None or not instance.running or not has_probe:
            continue
        if not observed.host_network and not observed.ips:
            continue  # an empty address would mean the host's own network
        found.append(target(local, observed, instance))
    return tuple(found)


def target(local: Local, observed: ObservedPod, instance: ObservedContainer) -> ports.Target:
    """One instance as a target; of one whose manifest is gone only what Podman knows."""
    pod = local.current
    spec = pod.container(instance.name) if pod is not None else None
    return ports.Target(
        key=local.key,
        uid=observed.uid,
        container=spec or Container(instance.name, instance.image),
        container_id=instance.id,
        pid=instance.pid,
        oci_config=instance.oci_config,
        ip="" if observed.host_network or not observed.ips else observed.ips[0],
        started_mono=instance.started_mono,
        field_path=local.ref(instance.name).field_path,
        terminating=local.memory.ending is not None,
    )
