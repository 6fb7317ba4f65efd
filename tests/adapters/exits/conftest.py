"""The isolated Podman of tests.support.podman_env, for this folder."""

from tests.support.podman_env import podman_env

__all__ = ["podman_env"]
