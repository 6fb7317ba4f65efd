"""What the sweeper of leftovers is told: what Podman knows, and which monitors watch for a container of ours."""

from __future__ import annotations

from collections.abc import Callable

from .. import config
from ..adapters.exits import Place
from ..adapters.netleft import Facts, Sweeper
from ..adapters.podman import Podman
from ..core.conmon import Conmon


def sweeper(runtime: Podman, settings: config.Settings, place: Place, told: Callable[[str], None]) -> Sweeper:
    """One that is not started yet; `told` hears what was taken away."""
    shared = settings.pod_network == config.SHARED_NETWORK  # what is left there may be anybody's

    def facts() -> Facts:
        known = runtime.networks()
        return Facts(known.containers, known.named, () if shared else known.subnets)

    def lost(monitor: Conmon) -> bool:
        """Not known as ours now. That it was: it told its ends to our Podman and wrote below our directory of logs."""
        if runtime.owns(monitor.container_id):
            return False
        ours = monitor.exit_dir == place.directory and monitor.log.startswith(f"k8s-file:{settings.pod_logs_dir}/")
        return ours or runtime.owned(monitor.container_id)

    return Sweeper(facts, told, lost)
