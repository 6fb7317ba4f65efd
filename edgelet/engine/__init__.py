"""Threads and state: drives the core against the ports; knows Podman only as a Protocol."""
