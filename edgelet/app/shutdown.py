"""What the agent does when the machine goes down: lets all pods end within shutdownGracePeriod (kubelet: the same key).

systemd keeps the containers' scopes until the agent has ended (the package's drop-in orders them so).
"""

from __future__ import annotations

import logging
import subprocess

from ..adapters.systemd import Notifier
from ..core.preemption import shutdown_groups
from .machine import Bell
from .wiring import Agent

log = logging.getLogger(__name__)

AFTER = 3.0
"""Seconds beyond the grace period that ends forced at its last moment may take."""
MARGIN = 10.0
"""Seconds that the agent's own end may take after that."""
LOOK = 5.0
"""Seconds between looks when no news come."""
ASK_SECONDS = 5.0


def machine_goes_down() -> bool:
    """Whether systemd is stopping the whole machine, rather than this service alone."""
    words = ["systemctl", "is-system-running"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=ASK_SECONDS, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return False
    return said.strip() == "stopping"


def drain(agent: Agent, notify: Notifier) -> None:
    """Stop every container, those of critical pods last, and wait no longer than the grace period and a little."""
    base = agent.base
    all_, critical = base.settings.shutdown_grace_period, base.settings.shutdown_grace_period_critical_pods
    groups = shutdown_groups(all_, critical)
    log.info("the machine is going down: pods get %.0f s to end", all_)
    base.events.event(agent.engine.director.node, "Normal", "Shutdown", "Shutdown manager detected shutdown event")
    notify.extend(all_ + len(groups) * AFTER + MARGIN)
    base.service.rely_on_own()  # systemd starts no service any more
    for seconds, below in groups:
        left = _end(agent, notify, seconds, below)
    if left:
        log.warning("the machine goes down with containers still running: %s", ", ".join(left))
    else:
        log.info("all containers have ended")


def _end(agent: Agent, notify: Notifier, seconds: float, below: int | None) -> list[str]:
    """End one group of pods; the containers of it that still run at its end."""
    base, news = agent.base, Bell()
    ended = base.store.subscribe(lambda _: news.ring())
    until = base.clock.monotonic() + seconds + AFTER
    agent.engine.director.go_down(int(seconds), below)
    try:
        while (left := _running(agent)) and (rest := until - base.clock.monotonic()) > 0:
            notify.watchdog()
            news.wait(min(rest, LOOK))
    finally:
        ended()
    return left


def _running(agent: Agent) -> list[str]:
    director, pods = agent.engine.director, agent.engine.observer.all().values()
    going = [pod for pod in pods if director.goes_down(pod.key) is not None]
    return [f"{pod.key}/{c.name}" for pod in going for c in pod.containers if c.running]
