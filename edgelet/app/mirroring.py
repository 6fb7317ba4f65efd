"""Builds the mirror to an API server: what it may read of the agent, and when a mirror has no pod any more."""

from __future__ import annotations

import logging
import os
from typing import Any

from .. import __version__, errors
from ..adapters.apiserver.mirror import Mirror
from ..adapters.apiserver.parts import Options, Parts
from ..core import desired, mirror_node, mirror_pods
from ..model.pod import PodKey
from . import machine
from .node import Node
from .wiring import Agent

log = logging.getLogger(__name__)


def build(agent: Agent) -> Mirror:
    """The mirror of this agent, not started."""
    base, engine, settings = agent.base, agent.engine, agent.base.settings
    observer = engine.observer

    def trouble() -> str:
        return observer.error or ("" if observer.listed_at > 0 else "Podman has not answered yet")

    registration = mirror_node.Registration(
        labels=dict(settings.node_labels),
        taints=tuple(mirror_node.Taint(*taint) for taint in settings.register_with_taints),
        port=settings.port,
        version=__version__,
    )
    options = Options(
        kubeconfig=settings.kubeconfig,
        node=base.node.name,
        register=settings.register_node,
        registration=registration,
        bootstrap=settings.bootstrap_kubeconfig,
        state_dir=os.path.join(settings.root_dir, "mirror"),
        update_frequency=settings.node_status_update_frequency,
        report_frequency=settings.node_status_report_frequency,
        lease_duration=settings.node_lease_duration,
        qps=settings.kube_api_qps,
        burst=settings.kube_api_burst,
    )
    facts = Node(
        base.node.name,
        settings.root_dir,
        settings.max_pods,
        machine.Address(base.clock, settings.node_ip),
        base.runtime.version,
        trouble,
    )
    return Mirror(
        Parts(
            options=options,
            store=base.store,
            events=base.events,
            clock=base.clock,
            facts=facts,
            images=lambda: _images(agent),
            gone=lambda key, source: _gone(agent, key, source),
            kept=lambda: base.event_file.kept,
        )
    )


def _images(agent: Agent) -> tuple[dict[str, Any], ...]:
    try:
        return agent.base.runtime.images()
    except errors.RuntimeFailure as error:
        log.info("cannot list the images for the node's status: %s", error)
        return ()


def _gone(agent: Agent, key: PodKey, source: str) -> bool:
    """Podman has been listed, the source has spoken, and nothing of that name is wanted, runs or ends."""
    engine = agent.engine
    if engine.observer.listed_at <= 0 or not desired.may_end(source, engine.director.snapshots(), agent.order):
        return False
    node = agent.base.node.name
    wanted = {mirror_pods.key_of(pod, node) for pod in engine.director.wanted().pods.values()}
    # A submitted pod has no suffix here; who is in doubt waits.
    names = {key, PodKey(key.namespace, key.name.removesuffix(f"-{node}"))}
    return key not in wanted and not names & {pod.key for pod in engine.director.running()}
