"""What Podman's bridge network has on this machine: namespaces, veths, leases, rules.

All is looked at from the network namespace and the mount namespace of the caller.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support import leases

NAMESPACES = Path("/run/netns")
APART = ("unshare", "--mount", "--net", "--propagation", "private")
"""Runs a command in namespaces of its own, where everything that this finds is its own; `private` comes first there."""


def found() -> list[str]:
    """Everything that belongs to a single pod's network, as sentences; [] = nothing is left of any pod.

    A namespace without an address is not in it (see `blank`).
    """
    spaces = sorted(p.name for p in NAMESPACES.glob("netns-*") if _has_address(p))
    held = [f"lease {address} of {holder[:12]}" for address, holder in sorted(leases.leases().items())]
    return [*(f"network namespace {s}" for s in spaces), *(f"link {v}" for v in veths()), *held, *rules()]


def blank() -> list[str]:
    """Namespaces in which nothing was set up: a Podman was killed right there, and nothing tells whose they were."""
    return sorted(p.name for p in NAMESPACES.glob("netns-*") if not _has_address(p))


def _has_address(space: Path) -> bool:
    words = ["nsenter", f"--net={space}", "ip", "-o", "addr", "show", "scope", "global"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode == 0 and bool(done.stdout.strip())


def veths() -> list[str]:
    """The veths here: one per pod, its other end is in the pod's namespace."""
    said = subprocess.run(["ip", "-o", "link", "show", "type", "veth"], capture_output=True, text=True, check=True)
    return sorted(line.split()[1].rstrip(":") for line in said.stdout.splitlines())


def rules() -> list[str]:
    """The rules of the firewall that lead to one container."""
    said = subprocess.run(["iptables-save", "-t", "nat"], capture_output=True, text=True, check=True)
    return [f"rule {r}" for r in said.stdout.splitlines() if "--to-destination" in r or "podman id: " in r]


def private() -> None:
    """Empty places for Podman's network files, and a loopback: first thing in namespaces of its own."""
    for place in (NAMESPACES, Path("/run/containers")):
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", str(place)], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
