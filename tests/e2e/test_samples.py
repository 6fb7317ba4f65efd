"""Samples of the Kubernetes documentation behave as their pages say; only their images are others."""

from __future__ import annotations

import http.server
import json
import re
import threading
from pathlib import Path

import pytest

from tests.e2e.agent import NODE, Agent
from tests.support.podman_env import IMAGE

SAMPLES = Path(__file__).parents[3] / "shared" / "data" / "manifests"


def sample(name: str, image: str = "") -> str:
    """The text of a sample, with an image that is here; it ends at once: its shells do not listen to SIGTERM."""
    path = SAMPLES / name
    if not path.exists():
        pytest.skip(f"the sample {name} is not on this machine")
    text = re.sub(r"\bspec: \{", "spec: {terminationGracePeriodSeconds: 1,", path.read_text(), count=1)
    text = re.sub(r"^spec:\n", "spec:\n  terminationGracePeriodSeconds: 1\n", text, count=1, flags=re.MULTILINE)
    text = re.sub(r"registry\.k8s\.io/busybox(:[\d.]+)?", IMAGE, text)
    return re.sub(r"(?<=image: )( *\"?)(busybox:1.28|debian|nginx)\b", rf"\1{image or IMAGE}", text)


def gateway(agent: Agent) -> str:
    """The host, as pods see it."""
    (network,) = json.loads(agent.podman("network", "inspect", "podman"))
    return str(network["subnets"][0]["gateway"])


def test_startup_coordination_the_sidecar_writes_before_the_application_reads(agent: Agent) -> None:
    agent.start().write_text(sample("131-web-startup-coordination.yaml"), "sample")
    name = "startup-coordination-example"
    agent.wait_ready(name)
    agent.wait("what it read", lambda: agent.container_log(name, "main-app") == "greeting=hello\n")
    assert agent.running_id(name, "config-sidecar")
    assert agent.condition(name, "Initialized") == "True"


def test_dapi_volume_the_pod_reads_its_labels_and_annotations(agent: Agent) -> None:
    agent.start().write_text(sample("133-web-dapi-volume-kyaml.yaml"), "sample")
    name = "kubernetes-downwardapi-volume-example"
    agent.wait_ready(name)
    agent.wait("its output", lambda: "builder=" in agent.container_log(name, "client-container"))
    said = agent.container_log(name, "client-container")
    assert 'cluster="test-cluster1"\nrack="rack-22"\nzone="us-est-coast"' in said
    assert 'build="two"\nbuilder="john-doe"\n' in said


def test_api_env_values_come_from_where_they_are_kept(agent: Agent) -> None:
    beside = """
---
{apiVersion: v1, kind: Secret, metadata: {name: test-secret}, stringData: {key-1: value-1}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: test-configmap}, data: {key-2: value-2}}
"""
    agent.start().write_text(sample("026-hack-pod-with-api-env.yaml") + beside, "sample")
    agent.wait("its end", lambda: agent.phase("env-test-pod") == "Succeeded")
    said = agent.container_log("env-test-pod", "test-container").splitlines()
    assert {"TEST_CMD_1=value-1", "TEST_CMD_2=value-2", f"TEST_CMD_3=env-test-pod-{NODE}"} <= set(said)


class Page(http.server.BaseHTTPRequestHandler):
    """The page that the init container fetches."""

    def do_GET(self) -> None:
        """One answer for all."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"the first website")

    def log_message(self, *_: object) -> None:
        """Quietly."""


def test_init_demo_the_web_server_serves_what_its_init_container_fetched(agent: Agent) -> None:
    image = "localhost/nginx:1"
    agent.env.add_image(image, 'ENTRYPOINT ["httpd","-f","-p","80","-h","/usr/share/nginx/html"]')
    with http.server.ThreadingHTTPServer(("0.0.0.0", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        text = sample("130-web-init-containers-kyaml.yaml", image)
        text = text.replace("http://info.cern.ch", f"http://{gateway(agent)}:{server.server_port}")
        agent.start().write_text(text, "sample")
        agent.wait_ready("init-demo")
        server.shutdown()
    assert agent.inside("init-demo", "wget", "-qO-", "http://127.0.0.1/", container="nginx") == "the first website"
    assert agent.condition("init-demo", "Initialized") == "True"


def test_envars_file_a_variable_comes_from_what_an_init_container_wrote(agent: Agent) -> None:
    agent.start().write_text(sample("134-web-envars-file-container.yaml"), "sample")
    agent.wait("its end", lambda: agent.phase("envfile-test-pod") == "Succeeded")
    said = agent.container_log("envfile-test-pod", "use-envfile").splitlines()
    assert "DB_ADDRESS=address" in said
    assert not any(line.startswith("REST_ENDPOINT=") for line in said)


def test_image_volumes_a_container_mounts_a_directory_of_an_image_read_only(agent: Agent) -> None:
    artifact = "localhost/artifact:2"
    agent.env.add_image(artifact, extra={"dir/file": b"2", "file": b"1"})
    text = sample("136-web-image-volumes-subpath-kyaml.yaml").replace("quay.io/crio/artifact:v2", artifact)
    agent.start().write_text(text, "sample")
    agent.wait_ready("image-volume", seconds=60)
    assert agent.inside("image-volume", "cat", "/volume/file", container="shell") == "2"
    mounted = agent.inside("image-volume", "cat", "/proc/mounts", container="shell").splitlines()
    (options,) = [line.split()[3].split(",") for line in mounted if line.split()[1] == "/volume"]
    assert {"ro", "noexec"} <= set(options)


def test_image_volumes_an_image_that_is_not_here_is_waited_for(agent: Agent) -> None:
    late = "localhost/late:1"
    text = sample("136-web-image-volumes-subpath-kyaml.yaml").replace("quay.io/crio/artifact:v2", late)
    agent.start().write_text(text.replace("IfNotPresent", "Never").replace('subPath: "dir",', ""), "sample")
    agent.wait("the reason", lambda: agent.waiting("image-volume", "shell") == "ErrImageNeverPull")
    agent.env.add_image(late, extra={"only": b"here"})
    agent.wait_ready("image-volume", seconds=60)
    assert agent.inside("image-volume", "cat", "/volume/only", container="shell") == "here"
