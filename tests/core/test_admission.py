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
    assert admission.held(asking) == {"pods": 1, "cpu": cpu, "memory": 0, "ephemeral-storage": 0}


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
    assert sum(admission.held(p)["cpu"] for p in taken) <= NODE.cpu
    ports = [h for p in taken for h in admission.host_ports(p)]
    assert len(ports) == len(set(ports))
    for key in refused:
        alone = judge({key: keys[key]}, (), (), NODE)
        assert not alone, "refused only because of the others"
    again = judge(keys, [p.key for p in taken], (), NODE)
    assert again.keys() == refused.keys()


def test_the_disk_counts_where_its_size_is_known() -> None:
    small = replace(named("a"), containers=(Container("c", "d", resources=Resources(storage_limit=6)),))
    other = replace(small, name="b")
    both = {p.key: p for p in (small, other)}
    assert judge(both, (), (), NODE) == {}
    found = judge(both, (), (), replace(NODE, storage=10))
    assert {k.name: g.reason for k, g in found.items()} == {"b": "OutOfephemeral-storage"}


# ---- kernel settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "allowed", "where", "said"),
    [
        ("net.ipv4.tcp_syncookies", (), "", ""),
        ("net.core.somaxconn", (), "", 'forbidden sysctl: "net.core.somaxconn" not allowlisted'),
        ("net.core.somaxconn", ("net.core.*",), "", ""),
        ("net.core.somaxconn", ("net.core.somaxconn",), "", ""),
        ("net.core.somaxconn", ("net.core.som",), "", 'forbidden sysctl: "net.core.somaxconn" not allowlisted'),
        (
            "net.ipv4.tcp_syncookies",
            (),
            "network",
            'forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host net enabled',
        ),
        ("kernel.shm_rmid_forced", (), "network", ""),
        (
            "kernel.shm_rmid_forced",
            (),
            "ipc",
            'forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host ipc enabled',
        ),
    ],
)
def test_kernel_settings(name: str, allowed: tuple[str, ...], where: str, said: str) -> None:
    asking = replace(named("a"), sysctls=((name, "1"),), host_network=where == "network", host_ipc=where == "ipc")
    gates = judge({asking.key: asking}, (), (), replace(NODE, sysctls=allowed))
    expected = Gate("SysctlForbidden", f"Pod was rejected: {said}") if said else None
    assert gates.get(asking.key) == expected


# ---- room for those that matter more -----------------------------------------------------------------------


def of(name: str, cpu: int, priority: int = 0, source: str = "api", limit: int | None = None) -> Pod:
    """A pod of that priority."""
    made = named(name, Container("app", "demo", resources=Resources(cpu_request=cpu, cpu_limit=limit)))
    return replace(made, priority=priority, source=source)


def leaves(pods: list[Pod], running: str) -> dict[str, str]:
    """The reasons by name, where those named by a letter run."""
    keys = {p.key: p for p in pods}
    found = judge(keys, [k for k in keys if k.name in running], (), replace(NODE, pods=9))
    return {key.name: gate.reason for key, gate in found.items()}


NEW = of("n", 600, 5, "file")
ROOM = [
    ("one of lower priority", [NEW, of("a", 500)], {"a": "Preempting", "n": "WaitingForRoom"}),
    ("not one of the same", [NEW, of("a", 500, 5)], {"n": "OutOfcpu"}),
    ("not for one that is submitted", [replace(NEW, source="api"), of("a", 500)], {"n": "OutOfcpu"}),
    (
        "unless its priority is critical",
        [replace(NEW, source="api", priority=2_000_000_000), of("a", 500)],
        {"a": "Preempting", "n": "WaitingForRoom"},
    ),
    ("all of them are not enough", [of("n", 1001, 5, "file"), of("a", 500)], {"n": "OutOfcpu"}),
    ("the fewest", [NEW, of("a", 100), of("b", 450), of("c", 200)], {"b": "Preempting", "n": "WaitingForRoom"}),
    ("of equals the smallest", [NEW, of("a", 400), of("b", 300)], {"b": "Preempting", "n": "WaitingForRoom"}),
    (
        "several",
        [of("n", 900, 5, "file"), of("a", 400), of("b", 300)],
        {"a": "Preempting", "b": "Preempting", "n": "WaitingForRoom"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("pods", "expected"), [r[1:] for r in ROOM], ids=[r[0] for r in ROOM])
def test_room_is_made_by(pods: list[Pod], expected: dict[str, str]) -> None:
    assert leaves(pods, "abc") == expected


def test_nobody_ends_for_a_pod_that_lacks_more_than_room() -> None:
    asking = replace(of("n", 600, 5, "file"), sysctls=(("net.core.x", "1"),))
    assert leaves([asking, of("a", 500)], "a") == {"n": "SysctlForbidden"}


def test_a_guaranteed_pod_ends_last() -> None:
    sure = replace(
        named("a"),
        containers=(Container("app", "demo", resources=Resources(300, 1, 300, 1)),),
        source="api",
    )
    assert leaves([of("n", 600, 5, "file"), sure, of("b", 500)], "ab") == {"b": "Preempting", "n": "WaitingForRoom"}


@given(st.lists(st.tuples(st.integers(1, 700), st.integers(0, 3), st.booleans()), max_size=7))
def test_making_room_comes_to_an_end_and_all_that_runs_fits(rows: list[tuple[int, int, bool]]) -> None:
    pods = {p.key: p for p in (of(f"p{n}", cpu, rank, "file") for n, (cpu, rank, _) in enumerate(rows))}
    node = replace(NODE, pods=9)
    running: set[PodKey] = set()
    for key, (_, _, runs) in zip(pods, rows, strict=True):
        if runs and sum(admission.held(pods[k])["cpu"] for k in {*running, key}) <= node.cpu:
            running.add(key)
    for _ in range(len(pods) + 2):
        gates = judge(pods, running, (), node)
        ends = {k for k, g in gates.items() if g.ends}
        for k in ends:
            assert k in running
            assert any(pods[k].priority < pods[w].priority for w, g in gates.items() if not g.refused)
        running = {k for k in pods if k not in gates} | (running - ends)
        assert sum(admission.held(pods[k])["cpu"] for k in running) <= node.cpu
    assert not any(g.ends or not g.refused for g in gates.values()) if pods else True
