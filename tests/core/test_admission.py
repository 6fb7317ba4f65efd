"""Which pods a node takes (1.7): numbers, resources, host ports; and that a refusal ends with its cause."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.core import admission
from edgelet.core.admission import Capacity, HostPort, judge
from edgelet.model.gate import Gate
from edgelet.model.pod import Container, Pod, PodKey, Port, Resources
from tests.core.scenes import pod

NODE = Capacity(cpu=1000, memory=1 << 30, pods=3)


def named(name: str, *containers: Container, host_network: bool = False) -> Pod:
    """A pod of that name."""
    return replace(pod(*containers), name=name, short_name=name, host_network=host_network)


def takes(cpu: int | None = None, memory: int | None = None, *ports: Port, name: str = "app") -> Container:
    """A container that asks for this."""
    return Container(name, "demo", resources=Resources(cpu_request=cpu, memory_request=memory), ports=ports)


def reasons(*pods: Pod, running: tuple[str, ...] = (), done: tuple[str, ...] = ()) -> dict[str, str]:
    """The reasons by name."""
    keys = {p.key: p for p in pods}
    found = judge(keys, {k for k in keys if k.name in running}, {k for k in keys if k.name in done}, NODE)
    return {key.name: gate.reason for key, gate in found.items()}


CASES = [
    ("room for all", [named("a", takes(500)), named("b", takes(500))], {}),
    ("cpu", [named("a", takes(500)), named("b", takes(501))], {"b": "OutOfcpu"}),
    ("memory", [named("a", takes(memory=1 << 30)), named("b", takes(memory=1))], {"b": "OutOfmemory"}),
    ("the first one alone is too large", [named("a", takes(1001)), named("b", takes(1000))], {"a": "OutOfcpu"}),
    ("pods", [named(n) for n in "abcd"], {"d": "OutOfpods"}),
    ("one that asks for nothing fits beside a full node", [named("a", takes(1000)), named("b")], {}),
    (
        "number comes before cpu",
        [named("a", takes(1000)), *(named(n, takes(1)) for n in "bcd")],
        {"b": "OutOfcpu", "c": "OutOfcpu", "d": "OutOfcpu"},
    ),
    (
        "ports",
        [named("a", takes(None, None, Port(80, 8080))), named("b", takes(None, None, Port(81, 8080)))],
        {"b": "NodePorts"},
    ),
    (
        "another protocol",
        [named("a", takes(None, None, Port(80, 8080))), named("b", takes(None, None, Port(80, 8080, protocol="UDP")))],
        {},
    ),
    ("no host port", [named("a", takes(None, None, Port(80))), named("b", takes(None, None, Port(80)))], {}),
    (
        "the host's network",
        [named("a", takes(None, None, Port(80)), host_network=True), named("b", takes(None, None, Port(1, 80)))],
        {"b": "NodePorts"},
    ),
]


@pytest.mark.parametrize(("pods", "refused"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_in_order_each_beside_those_before_it(pods: list[Pod], refused: dict[str, str]) -> None:
    assert reasons(*pods) == refused


def test_what_runs_stays_and_what_is_done_holds_nothing() -> None:
    a, b = named("a", takes(600)), named("b", takes(600))
    assert reasons(a, b) == {"b": "OutOfcpu"}
    assert reasons(a, b, running=("b",)) == {"a": "OutOfcpu"}
    assert reasons(a, b, running=("a", "b")) == {}
    assert reasons(a, b, running=("a",), done=("a",)) == {}


def test_the_words_are_the_kubelets_and_the_holder_is_named() -> None:
    a, b = named("a", takes(600, None, Port(80, 8080, "127.0.0.1"))), named("b", takes(600))
    gates = judge({a.key: a, b.key: b}, {a.key}, (), NODE)
    assert gates[b.key] == Gate(
        "OutOfcpu",
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 600, used: 600, capacity: 1000",
    )
    c = named("c", takes(None, None, Port(80, 8080)))
    assert judge({a.key: a, c.key: c}, {a.key}, (), NODE)[c.key].message == (
        "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports:"
        " pod default/a holds host port TCP 8080"
    )


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        ("", "", True),
        ("", "127.0.0.1", True),
        ("0.0.0.0", "10.0.0.1", True),
        ("10.0.0.1", "::", True),
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
    ],
)
def test_addresses_of_host_ports(one: str, other: str, clash: bool) -> None:
    assert HostPort("TCP", 80, one).clashes(HostPort("TCP", 80, other)) is clash
    assert HostPort("TCP", 80, other).clashes(HostPort("TCP", 80, one)) is clash
    assert not HostPort("TCP", 80, one).clashes(HostPort("TCP", 81, one))
    assert str(HostPort("UDP", 53, "10.0.0.1")) == "UDP 10.0.0.1:53"


def init(cpu: int, sidecar: bool = False) -> Container:
    """An init container."""
    return replace(takes(cpu, name=f"i{cpu}"), restart_policy="Always" if sidecar else "")


REQUESTS = [
    ("regular ones add up", pod(takes(100), takes(200, name="b")), 300),
    ("init containers run alone", pod(takes(100), inits=(init(250), init(150))), 250),
    ("unless that is less", pod(takes(300), inits=(init(250),)), 300),
    ("sidecars stay", pod(takes(100), inits=(init(50, True),)), 150),
    ("an init container beside a sidecar", pod(takes(10), inits=(init(50, True), init(200))), 250),
    ("a sidecar after an init container", pod(takes(10), inits=(init(200), init(50, True))), 200),
    ("a limit counts where there is no request", pod(Container("a", "d", resources=Resources(cpu_limit=70))), 70),
    ("a request of nothing is one", pod(Container("a", "d", resources=Resources(cpu_limit=70, cpu_request=0))), 0),
]


@pytest.mark.parametrize(("asking", "cpu"), [r[1:] for r in REQUESTS], ids=[r[0] for r in REQUESTS])
def test_requests(asking: Pod, cpu: int) -> None:
    assert admission.requests(asking) == (cpu, 0)


def test_sidecars_hold_host_ports_and_init_containers_do_not() -> None:
    ported = replace(takes(None, None, Port(80, 8080)), name="i")
    assert admission.host_ports(pod(inits=(ported,))) == ()
    assert admission.host_ports(pod(inits=(replace(ported, restart_policy="Always"),))) == (HostPort("TCP", 8080),)


@given(st.lists(st.tuples(st.integers(0, 700), st.sampled_from([0, 80, 81]), st.booleans()), max_size=8))
def test_what_is_taken_always_fits_and_a_refusal_has_a_cause(rows: list[tuple[int, int, bool]]) -> None:
    pods = [named(f"p{n}", takes(cpu, None, Port(1, port))) for n, (cpu, port, _) in enumerate(rows)]
    keys = {p.key: p for p in pods}
    running: list[PodKey] = []
    refused = judge(keys, running, (), NODE)
    taken = [p for k, p in keys.items() if k not in refused]
    assert len(taken) <= NODE.pods
    assert sum(admission.requests(p)[0] for p in taken) <= NODE.cpu
    ports = [h for p in taken for h in admission.host_ports(p)]
    assert len(ports) == len(set(ports))
    for key in refused:
        alone = judge({key: keys[key]}, (), (), NODE)
        assert not alone, "refused only because of the others"
    again = judge(keys, [p.key for p in taken], (), NODE)
    assert again.keys() == refused.keys()
