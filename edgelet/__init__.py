"""edgelet: Kubernetes static pods on a box without a control plane, run under Podman.

The package is four layers, and imports go one way:
``cli -> app -> adapters -> engine -> core -> model``.  `errors` and `ports` may be used by all.
See docs/architecture.md for the tour.
"""

__version__ = "0.1.0"
