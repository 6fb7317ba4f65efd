"""What a Podman that was killed leaves of pods: their networks and monitors, found and taken away.

`spaces` knows network namespaces, `leases` Podman's database of addresses, `rules` the firewall,
`monitors` the conmon processes;
`sweep` looks twice and removes what was stale both times (core.leftovers decides).
"""

from .sweep import Facts, Sweeper

__all__ = ["Facts", "Sweeper"]
