"""The isolated Podman of tests.support.podman_env, for this folder."""

from tests.support.podman_env import own_podman, podman_env

__all__ = ["own_podman", "podman_env"]
