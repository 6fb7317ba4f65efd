"""Where edgelet keeps its files: one pure table of paths, the kubelet's names where it has them."""

from __future__ import annotations

import os.path
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """All paths that edgelet owns.

    `root_dir` survives reboots (/var/lib/edgelet), `run_dir` does not (/run/edgelet),
    `pod_logs_dir` is /var/log/pods, with the kubelet's layout (semantics 6.4.1).
    """

    root_dir: str
    run_dir: str
    pod_logs_dir: str

    def pod_dir(self, uid: str) -> str:
        """Directory of one pod's data."""
        return os.path.join(self.root_dir, "pods", uid)

    def empty_dir(self, uid: str, volume: str) -> str:
        """Host directory of an emptyDir volume."""
        return os.path.join(self.pod_dir(uid), "volumes", "kubernetes.io~empty-dir", volume)

    def files_dir(self, uid: str, volume: str) -> str:
        """Host directory of a volume of files (configMap, secret, downwardAPI, projected)."""
        return os.path.join(self.pod_dir(uid), "volumes", "kubernetes.io~projected", volume)

    def image_dir(self, uid: str, volume: str) -> str:
        """Host directory of an image volume."""
        return os.path.join(self.pod_dir(uid), "volumes", "kubernetes.io~image", volume)

    def hosts_file(self, uid: str) -> str:
        """A pod's /etc/hosts (5.2)."""
        return os.path.join(self.pod_dir(uid), "etc-hosts")

    def message_dir(self, uid: str, container: str) -> str:
        """Directory of a container's termination messages (3.14.1)."""
        return os.path.join(self.pod_dir(uid), "containers", container)

    def message_file(self, uid: str, container: str, count: int) -> str:
        """Termination message of one instance: eight hex digits, as in the kubelet; here they count instances."""
        return os.path.join(self.message_dir(uid, container), f"{count:08x}")

    def log_dir(self, namespace: str, name: str, uid: str) -> str:
        """Log directory of a pod."""
        return os.path.join(self.pod_logs_dir, f"{namespace}_{name}_{uid}")

    def log_path(self, namespace: str, name: str, uid: str, container: str, count: int) -> str:
        """Log file of one container instance."""
        return os.path.join(self.log_dir(namespace, name, uid), container, f"{count}.log")

    @property
    def sources_dir(self) -> str:
        """Last known good manifests, one file per source."""
        return os.path.join(self.root_dir, "sources")

    @property
    def states_dir(self) -> str:
        """Restart counts and last states, one file per pod."""
        return os.path.join(self.root_dir, "states")

    @property
    def socket(self) -> str:
        """The agent's own API socket, when not given by flag."""
        return os.path.join(self.run_dir, "edgelet.sock")
