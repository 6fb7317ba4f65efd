"""What the metrics are made of, collected when somebody asks; the library comes in with the first question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..adapters.metrics.facts import Facts
from ..engine.counts import Counts, Row, Work
from ..engine.probe_tally import Tally
from ..engine.store import StatusStore
from ..model.agent_report import AgentReport
from .usage import Looks


@dataclass(frozen=True, slots=True)
class Measures:
    """Callable: media type and text of /metrics/NAME ("" = /metrics)."""

    report: Callable[[], AgentReport]
    store: StatusStore
    probes: Callable[[], tuple[Tally, ...]]
    usage: Looks
    calls: Callable[[], tuple[Row, ...]]
    service: Callable[[], Mapping[str, Any]]
    work: Work = field(default_factory=Work)
    requests: Counts = field(default_factory=Counts)
    responses: Counts = field(default_factory=Counts)

    def __call__(self, name: str) -> tuple[str, bytes]:
        """Only what that path tells is collected."""
        from ..adapters.metrics import exposition

        facts = Facts(self.report(), cgroup_version=self.usage.cgroup_version)
        if name == "probes":
            facts = Facts(facts.agent, probes=self.probes())
        elif name:
            facts = Facts(facts.agent, usage=self.usage.now())
        else:
            facts = Facts(
                facts.agent,
                self.store.list()[1],
                calls=self.calls(),
                service=self.service(),
                cgroup_version=facts.cgroup_version,
                work=self.work,
                requests=self.requests.rows(),
                responses=self.responses.rows(),
            )
        return exposition.CONTENT_TYPE, exposition.render(name, facts)
