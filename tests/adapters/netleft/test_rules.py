"""Rules of the firewall, from what iptables-save has written."""

from __future__ import annotations

from edgelet.adapters.netleft import rules
from edgelet.model.network import Rule

HOLDER = "33e51d28eb35c35a7255d5f312ee51b231314ae7eebd00b973befd192787ba5f"
SAVED = f"""\
*nat
:NETAVARK-DN-1D8721804F16F - [0:0]
-A POSTROUTING -s 10.87.0.0/24 -j NETAVARK-1D8721804F16F
-A NETAVARK-1D8721804F16F -d 10.87.0.0/24 -j ACCEPT
-A NETAVARK-DN-1D8721804F16F -s 127.0.0.1/32 -p udp -m udp --dport 18998 -j NETAVARK-HOSTPORT-SETMARK
-A NETAVARK-DN-1D8721804F16F -p udp -m udp --dport 18998 -j DNAT --to-destination 10.87.0.2:80
-A NETAVARK-DN-1D8721804F16F -d 127.0.0.1/32 -p tcp -m tcp --dport 18999 -j DNAT --to-destination 10.87.0.2:80
-A NETAVARK-HOSTPORT-DNAT -p tcp -m tcp --dport 18999 -m comment --comment "dnat name: podman id: {HOLDER}" \
-j NETAVARK-DN-1D8721804F16F
-A KUBE-SERVICES -p tcp --dport 80 -j NETAVARK-DN-1D8721804F16F
COMMIT
"""


def test_rules_for_ports_are_read_and_no_others() -> None:
    found = rules.parse(SAVED)
    assert [(r.port, r.network, r.address, r.holder) for r in found] == [
        ("udp 18998", "1D8721804F16F", "", ""),
        ("udp 18998", "1D8721804F16F", "10.87.0.2", ""),
        ("127.0.0.1/32 tcp 18999", "1D8721804F16F", "10.87.0.2", ""),
        ("tcp 18999", "1D8721804F16F", "", HOLDER),
    ]


def test_the_text_is_what_a_deletion_wants() -> None:
    rule = rules.parse(SAVED)[1]
    assert rule == Rule(
        "NETAVARK-DN-1D8721804F16F -p udp -m udp --dport 18998 -j DNAT --to-destination 10.87.0.2:80",
        "udp 18998",
        "1D8721804F16F",
        "10.87.0.2",
    )
