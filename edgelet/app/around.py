"""What stands around a pod: the node's name, address and size, ConfigMaps and Secrets; looked up when asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from ..core import values
from ..model.objects import LocalObject


@dataclass(frozen=True, slots=True)
class Around:
    """Callable: all of it, for a pod with those addresses. `memory` in bytes, `root_dir` says which disk is meant."""

    node_name: str
    address: Callable[[], str]
    memory: int
    root_dir: str
    objects: Callable[[], tuple[LocalObject, ...]]

    def __call__(self, ips: tuple[str, ...]) -> values.Around:
        """One look."""
        disk = os.statvfs(self.root_dir)
        return values.Around(
            node_name=self.node_name,
            host_ip=self.address(),
            ips=ips,
            cpus=os.cpu_count() or 1,
            memory=self.memory,
            storage=disk.f_blocks * disk.f_frsize,
            objects={one.id: one for one in self.objects()},
        )
