"""The node's own address where no route leads anywhere: that of a network card, never that of a bridge of pods."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ASK = """
import sys
from edgelet.app import machine
print(machine.Address(machine.SystemClock())(), machine.card_address(sys.argv[1]))
"""


def addresses(cards: Path, *links: str) -> list[str]:
    """What a new network says that has `links`: name=address each."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and iproute2, to make a network")
    made = ["set -e"]
    for link in links:
        name, _, address = link.partition("=")
        made += [f"ip link add {name} type bridge", f"ip address add {address} dev {name}", f"ip link set {name} up"]
    script = "\n".join([*made, 'exec "$0" -c "$1" "$2"'])
    words = ["unshare", "--net", "sh", "-c", script, sys.executable, ASK, str(cards)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if "ip link" in done.stderr or "unshare" in done.stderr or "RTNETLINK" in done.stderr:
        pytest.skip(f"no network can be made here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip("\n").split(" ")


def card(directory: Path, name: str, *below: str, device: bool = False) -> None:
    """An entry as in /sys/class/net."""
    (directory / name).mkdir()
    if device:
        (directory / name / "device").mkdir()
    for other in below:
        (directory / name / f"lower_{other}").symlink_to(directory / other)


def test_a_card_without_a_default_route_has_the_address_and_a_bridge_of_pods_has_not(tmp_path: Path) -> None:
    card(tmp_path, "pods0")
    card(tmp_path, "card0", device=True)
    assert addresses(tmp_path, "pods0=10.88.0.1/16", "card0=192.0.2.7/24")[1] == "192.0.2.7"


def test_a_bridge_over_a_card_counts_as_one(tmp_path: Path) -> None:
    card(tmp_path, "card0", device=True)
    card(tmp_path, "br0", "card0")
    assert addresses(tmp_path, "card0=fe80::1/64", "br0=2001:db8::7/64")[1] == "2001:db8::7"


def test_no_card_no_address(tmp_path: Path) -> None:
    card(tmp_path, "pods0")
    assert addresses(tmp_path, "pods0=10.88.0.1/16") == ["", ""]
