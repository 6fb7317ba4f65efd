"""Builds the API server. Imported once the engine runs: its library is the larger half of the start."""

from __future__ import annotations

from collections.abc import Callable

from ..adapters.logs.reader import LogReader
from ..adapters.server.api import ApiServer
from ..adapters.server.contracts import Services
from ..engine.counts import Counts
from ..model.agent_report import LinkReport
from . import configz, control, execs, machine, measures, submissions
from .node import Node
from .tls import read_only_port, tls_port
from .usage import Looks
from .wiring import Agent


def server(agent: Agent, link: Callable[[], LinkReport | None]) -> ApiServer:
    """The API server of a running agent."""
    base, engine = agent.base, agent.engine
    asked = control.Control(_parts(agent, link))
    requests, responses = Counts(), Counts()
    looks = Looks(engine.observer.all, base.clock, base.settings.root_dir)
    services = Services(
        store=base.store,
        events=base.events,
        control=asked,
        logs=LogReader(base.layout),
        execs=execs.Execs(engine.observer, engine.director, engine.runner),
        submissions=submissions.Submissions(
            agent.sources.submitted, engine.director, agent.sources.all, base.node.name
        ),
        clock=base.clock,
        usage=looks,
        metrics=measures.Measures(
            asked.report,
            base.store,
            engine.prober.counters,
            looks,
            base.calls.calls,
            base.service.describe,
            engine.workers.work,
            requests,
            responses,
        ),
        requests=requests,
        responses=responses,
        node=_node(agent, asked),
        node_name=base.node.name,
        config=lambda: configz.shown(base.settings),
        objects=engine.director.objects,
        secure=tls_port(base.settings, base.node.name, base.clock.time),
        read_only=read_only_port(base.settings, base.node.name),
    )
    return ApiServer(base.settings.socket, services, fatal=base.beat.fatal)


def _parts(agent: Agent, link: Callable[[], LinkReport | None]) -> control.Parts:
    base, engine = agent.base, agent.engine
    notes = tuple(n for n in (base.node.warning, *base.settings.warnings) if n)
    return control.Parts(
        node=base.node.name,
        clock=base.clock,
        director=engine.director,
        workers=engine.workers,
        observer=engine.observer,
        sources=agent.sources.all,
        service=base.service.describe,
        version=base.runtime.version,
        beat=lambda: base.beat.at,
        notes=notes,
        link=link,
    )


def _node(agent: Agent, asked: control.Control) -> Node:
    base = agent.base
    return Node(
        base.node.name,
        base.settings.root_dir,
        base.settings.max_pods,
        machine.Address(base.clock, base.settings.node_ip),
        base.runtime.version,
        lambda: _trouble(asked),
    )


def _trouble(asked: control.Control) -> str:
    """Why no pod can be started now."""
    report = asked.report()
    return "" if report.podman_ok else (report.podman_message or "Podman does not answer")
