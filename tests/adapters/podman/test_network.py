"""The network that pods join: Podman's own without names, or one that is made and has a name service."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from edgelet.adapters import podman
from edgelet.adapters.podman import spec
from edgelet.model.observed import ObservedContainer
from edgelet.model.pod import Container, Pod
from tests.support.podman_env import IMAGE, PodmanEnv, network_slot

WEB = "mkdir /tmp/w; echo hello >/tmp/w/index.html; exec httpd -f -p 8080 -h /tmp/w"
FETCH = "for _ in $(seq 50); do wget -qO- http://{}:8080/ && exit; sleep 0.2; done"
NAME_SERVERS = ("/usr/lib/podman/aardvark-dns", "/usr/libexec/podman/aardvark-dns")


def pod(name: str, script: str = "exec sleep 1000") -> Pod:
    """A pod of one container."""
    one = Container("app", IMAGE, command=("sh", "-c", script))
    return Pod(f"{name}-n1", "default", f"uid-{name}", "1-abc", "file", (one,), short_name=name)


def test_a_pod_has_its_names_where_there_is_a_name_service() -> None:
    own = spec.pod_body(pod("web"), spec.Naming(), 0, "edgelet")
    assert own["Networks"] == {"edgelet": {"aliases": ["web", "web-n1"]}}
    named = spec.pod_body(replace(pod("web"), hostname="shop"), spec.Naming(), 0, "edgelet")
    assert named["Networks"] == {"edgelet": {"aliases": ["web", "web-n1", "shop"]}}
    assert spec.pod_body(pod("web"), spec.Naming(), 0)["Networks"] == {"podman": {}}


@dataclass(frozen=True, slots=True)
class Own:
    """A Podman whose pods have a network of their own."""

    env: PodmanEnv
    runtime: podman.Podman
    network: podman.Network

    def start(self, wanted: Pod) -> ObservedContainer:
        """Make and start it."""
        sandbox = self.runtime.create_pod(wanted, 0)
        made = self.runtime.create_container(sandbox, wanted, wanted.containers[0], 0, ())
        self.runtime.start_container(sandbox, made.id)
        return made


@pytest.fixture
def own(podman_env: PodmanEnv) -> Iterator[Own]:
    """A network with a name and addresses that no other test run on this machine has."""
    if not any(os.path.exists(path) for path in NAME_SERVERS):
        pytest.skip("aardvark-dns is not installed")
    number, holder = network_slot()
    network = podman.Network(f"edgedns{number}", f"10.86.{number}.0/24")
    runtime = podman_env.runtime("names", network=network)
    with holder:
        yield Own(podman_env, runtime, network)
        for found in runtime.list():
            runtime.remove_pod(found.id)
        podman_env.run("network", "rm", "--force", network.name)


@pytest.mark.podman
def test_pods_find_each_other_by_name_on_a_network_that_is_made(own: Own) -> None:
    assert own.network.subnet not in own.runtime.networks().subnets
    own.start(pod("web", WEB))
    client = own.start(pod("client"))
    for name in ("web", "web-n1"):
        assert own.env.run("exec", client.id, "sh", "-c", FETCH.format(name)) == "hello\n"
    assert own.network.subnet in own.runtime.networks().subnets
    labels = own.env.run("network", "inspect", own.network.name, "--format", "{{json .Labels}}")
    assert labels.strip() == '{"io.edgelet.owner":"names"}'
    assert own.runtime.list()[0].ips[0].startswith(own.network.subnet[:-4])
