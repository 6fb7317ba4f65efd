"""The isolated Podman of tests.support.podman_env, for this folder."""

from tests.support.podman_env import own_podman

__all__ = ["own_podman"]
