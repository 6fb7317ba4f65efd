"""Golden bodies: what libpod is sent for a pod. EDGELET_GOLDEN=1 writes them anew: read the diff."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.adapters.podman import spec
from edgelet.core import hosts
from edgelet.model import labels
from edgelet.model.observed import Bind
from edgelet.model.pod import (
    Container,
    EnvVar,
    Exec,
    HttpGet,
    Lifecycle,
    Pod,
    Port,
    Resources,
    SecurityContext,
)

GOLDEN = Path(__file__).parent / "golden"
NAMING = spec.Naming("default", "boot-1")
FACTS = spec.HostFacts(memory=4 << 30)


def container(**fields: object) -> Container:
    return dataclasses.replace(Container("web", "nginx:1"), **fields)  # type: ignore[arg-type]


def pod(*containers: Container, **fields: object) -> Pod:
    base = Pod("shop-box", "default", "uid-1", "1-abc", "file", containers or (container(),))
    return dataclasses.replace(base, **fields)  # type: ignore[arg-type]


def instance(*binds: Bind, facts: spec.HostFacts = FACTS) -> spec.Instance:
    return spec.Instance("podid", 3, binds, "/logs/web/3.log", facts)


FULL = container(
    command=("run", "$(HOME_DIR)/bin"),
    args=("--port=$(PORT)", "$$(PORT)"),
    working_dir="/srv",
    env=(EnvVar("PORT", "80"), EnvVar("HOME_DIR", "/srv/$(PORT)")),
    ports=(Port(80, 8080, "127.0.0.1"), Port(53, 53, protocol="UDP"), Port(9000)),
    resources=Resources(cpu_limit=500, memory_limit=128 << 20, cpu_request=100, memory_request=64 << 20),
    security=SecurityContext(
        run_as_user=1000,
        run_as_group=2000,
        allow_privilege_escalation=False,
        read_only_root_filesystem=True,
        add_capabilities=("NET_ADMIN", "cap_sys_time"),
        drop_capabilities=("ALL",),
    ),
    lifecycle=Lifecycle(pre_stop=Exec(("sh", "-c", "sleep 1"))),
    stdin=True,
    tty=True,
)
BINDS = (
    Bind("/data/a", "/a"),
    Bind("/data/b", "/b", read_only=True, propagation="HostToContainer"),
    Bind("/data/c", "/c", propagation="Bidirectional"),
    Bind("/dev/ttyUSB0", "/dev/modem", kind="device"),
)
POD_CASES = {
    "pod": pod(labels={"app": "shop"}, hostname="till"),
    "pod_ports": pod(FULL),
    "pod_host_network_one": pod(host_network=True),
    "pod_host_network_two": pod(container(), container(name="b"), host_network=True),
    "pod_namespaces": pod(host_ipc=True, share_process_namespace=True),
}
CONTAINER_CASES = {
    "container_plain": (pod(), instance()),
    "container_full": (pod(FULL, grace=5), instance(*BINDS)),
    "container_host": (pod(host_network=True, host_pid=True, host_ipc=True), instance()),
    "container_privileged": (pod(container(security=SecurityContext(privileged=True))), instance()),
}


def check(name: str, body: spec.Body) -> None:
    path = GOLDEN / f"{name}.json"
    text = json.dumps(body, indent=1, sort_keys=True) + "\n"
    if os.environ.get("EDGELET_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", POD_CASES)
def test_pod_body(name: str) -> None:
    check(name, spec.pod_body(POD_CASES[name], NAMING, 2))


@pytest.mark.parametrize("name", CONTAINER_CASES)
def test_container_body(name: str) -> None:
    wanted, made = CONTAINER_CASES[name]
    check(name, spec.container_body(wanted, wanted.containers[0], made, NAMING))


def test_names_are_deterministic_and_apart_per_owner() -> None:
    other = spec.Naming("1a2b3c4d", "boot-1")
    assert NAMING.pod(pod()) == "shop-box_default"
    assert other.pod(pod()) == "shop-box_default_1a2b3c4d"
    assert NAMING.container(pod(), container(), 3) == "shop-box_default_web_3"
    assert other.container(pod(), container(), 3) == "shop-box_default_web_3_1a2b3c4d"


def test_a_pod_label_cannot_take_the_place_of_ours() -> None:
    body = spec.pod_body(pod(labels={labels.OWNER: "thief", labels.POD_UID: "other"}), NAMING, 0)
    assert body["labels"][labels.OWNER] == "default"
    assert body["labels"][labels.POD_UID] == "uid-1"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a" * 70, "a" * 63), ("a" * 62 + "-b", "a" * 62), ("a" * 61 + ".-b", "a" * 61), ("short", "short")],
)
def test_hostname_is_cut_as_the_kubelet_does(name: str, expected: str) -> None:
    assert hosts.hostname(pod(name=name)) == expected


def test_what_the_kernel_cannot_do_is_left_out_and_said() -> None:
    poor = spec.HostFacts(memory_cgroup=False, swap_cgroup=False, cpu_cgroup=False, pids_cgroup=False)
    wanted = pod(FULL)
    body = spec.container_body(wanted, FULL, instance(facts=poor), NAMING)
    assert body["resource_limits"] == {}
    said = spec.dropped_limits(FULL, poor)
    assert [("memory" in s, "CPU" in s) for s in said] == [(True, False), (False, True)]
    assert spec.dropped_limits(FULL, FACTS) == ()
    assert spec.dropped_limits(container(), poor) == ()


def test_no_swap_accounting_means_no_swap_limit() -> None:
    body = spec.container_body(pod(FULL), FULL, instance(facts=spec.HostFacts(swap_cgroup=False)), NAMING)
    assert body["resource_limits"]["memory"] == {"limit": 128 << 20}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (Resources(), 1000),
        (Resources(cpu_limit=1, memory_limit=1), -997),
        (Resources(memory_request=1 << 30), 750),
        (Resources(memory_request=8 << 30), 3),
        (Resources(cpu_request=1), 999),
        (Resources(memory_limit=1 << 30), 750),
    ],
)
def test_oom_score(resources: Resources, expected: int) -> None:
    wanted = pod(container(resources=resources))
    assert spec.oom_score_adj(wanted, wanted.containers[0], FACTS) == expected


def test_oom_score_is_not_lower_than_this_process_may_set() -> None:
    wanted = pod(container(resources=Resources(cpu_limit=1, memory_limit=1)))
    assert spec.oom_score_adj(wanted, wanted.containers[0], spec.HostFacts(oom_min=0)) == 0


@given(st.one_of(st.none(), st.integers(0, 10**7)), st.one_of(st.none(), st.integers(0, 10**7)))
def test_cpu_values_stay_within_what_the_kernel_takes(limit: int | None, request: int | None) -> None:
    wanted = container(resources=Resources(cpu_limit=limit, cpu_request=request))
    cpu = spec.container_body(pod(wanted), wanted, instance(), NAMING)["resource_limits"]["cpu"]
    assert 2 <= cpu["shares"] <= 262_144
    assert cpu.get("quota", 1000) >= 1000
    assert ("quota" in cpu) == bool(limit)


def test_the_hook_on_the_label_is_enough_to_run_it() -> None:
    hooked = container(lifecycle=Lifecycle(pre_stop=HttpGet(8080, "/bye", headers=(("A", "b"),))))
    body = spec.container_body(pod(hooked), hooked, instance(), NAMING)
    assert json.loads(body["labels"][labels.PRE_STOP]) == {
        "kind": "HttpGet", "port": 8080, "path": "/bye", "scheme": "HTTP", "host": "", "headers": [["A", "b"]],
    }  # fmt: skip


def test_labels_say_where_the_termination_message_is_and_what_stands_in_for_it() -> None:
    message, other = Bind("/pods/1/00000003", "/dev/termination-log", kind="file"), Bind("/a", "/b")
    body = spec.container_body(pod(), container(), instance(other, message), NAMING)
    assert body["labels"][labels.MESSAGE_FILE] == "/pods/1/00000003"
    assert labels.MESSAGE_POLICY not in body["labels"]
    silent = container(termination_message_path="", termination_message_policy="FallbackToLogsOnError")
    body = spec.container_body(pod(silent), silent, instance(other, Bind("/c", "")), NAMING)
    assert labels.MESSAGE_FILE not in body["labels"]
    assert body["labels"][labels.MESSAGE_POLICY] == "FallbackToLogsOnError"
