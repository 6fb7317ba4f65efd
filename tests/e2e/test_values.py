"""Variables that refer to something, and /etc/hosts, through the real agent on real Podman (semantics 5.1, 5.2)."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from tests.e2e.agent import NODE, Agent
from tests.e2e.manifests import SERVE, container, mount, pod

Json = dict[str, Any]


def field(name: str, path: str) -> Json:
    """A variable with a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def amount(name: str, resource: str, **more: str) -> Json:
    """A variable with an amount of a container."""
    return {"name": name, "valueFrom": {"resourceFieldRef": {"resource": resource, **more}}}


def config_map(name: str, **data: str) -> Json:
    """A ConfigMap document."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def environment(agent: Agent, name: str) -> dict[str, str]:
    """What process 1 of the container was given."""
    text = agent.inside(name, "cat", "/proc/1/environ")
    return dict(row.partition("=")[::2] for row in text.split("\0") if row)


def test_a28_variables_tell_the_pod_what_it_is(agent: Agent) -> None:
    env = [
        field("NAME", "metadata.name"),
        field("NAMESPACE", "metadata.namespace"),
        field("POD_IP", "status.podIP"),
        field("HOST_IP", "status.hostIP"),
        field("NODE", "spec.nodeName"),
        field("APP", "metadata.labels['app']"),
        field("NONE", "metadata.annotations['none']"),
        amount("CPU", "limits.cpu", divisor="1m"),
        amount("MEMORY", "requests.memory", divisor="1Mi"),
        {"name": "BOTH", "value": "$(NAME)@$(POD_IP)"},
    ]
    app = container(env=env, resources={"limits": {"cpu": "150m"}, "requests": {"memory": "10Mi"}})
    agent.start().write(pod("who", app, labels={"app": "shop"}))
    agent.wait_ready("who")
    found, status = environment(agent, "who"), agent.status("who")
    assert status["podIP"]
    expected = {
        "NAME": f"who-{NODE}",
        "NAMESPACE": "default",
        "POD_IP": status["podIP"],
        "HOST_IP": status["hostIP"],
        "NODE": NODE,
        "APP": "shop",
        "NONE": "",
        "CPU": "150",
        "MEMORY": "10",
        "BOTH": f"who-{NODE}@{status['podIP']}",
    }
    assert {k: found.get(k) for k in expected} == expected


def test_a29_etc_hosts_is_managed_except_where_a_container_mounts_its_own(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "own").write_text("127.0.0.1 own\n")
    volumes = [{"name": "own", "hostPath": {"path": str(tmp_path / "own"), "type": "File"}}]
    alias = [{"ip": "10.1.2.3", "hostnames": ["db", "db.local"]}]
    two = container("two")
    mine = container("mine", volumeMounts=[mount("own", "/etc/hosts")])
    agent.start().write(
        pod("hosts", container(), two, mine, initContainers=[container("init", "cat /etc/hosts")], volumes=volumes,
            hostAliases=alias)
    )  # fmt: skip
    agent.write(pod("host", hostNetwork=True, hostAliases=alias))
    agent.wait_ready("hosts", "host")
    text = agent.inside("hosts", "cat", "/etc/hosts")
    ip = agent.status("hosts")["podIP"]
    assert text.startswith("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n")
    assert f"\n{ip}\thosts-{NODE}\n" in text
    assert text.endswith("\n\n# Entries added by HostAliases.\n10.1.2.3\tdb\tdb.local\n")
    assert agent.inside("hosts", "cat", "/etc/hosts", container="two") == text
    assert agent.container_log("hosts", "init") == text
    assert agent.inside("hosts", "cat", "/etc/hosts", container="mine") == "127.0.0.1 own\n"
    on_host = agent.inside("host", "cat", "/etc/hosts")
    assert on_host.startswith("# Kubernetes-managed hosts file (host network).\n" + Path("/etc/hosts").read_text())
    assert on_host.endswith("\t".join(["10.1.2.3", "db", "db.local"]) + "\n")


def test_variables_from_config_maps_and_secrets_beside_the_pod(agent: Agent) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "login"},
        "data": {"password": base64.b64encode(b"p$(NAME)w").decode()},
    }
    env = [
        {"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "look", "key": "colour"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}},
        {"name": "MAYBE", "valueFrom": {"configMapKeyRef": {"name": "other", "key": "x", "optional": True}}},
    ]
    more = [{"configMapRef": {"name": "look"}, "prefix": "L_"}, {"secretRef": {"name": "none", "optional": True}}]
    app = container(env=env, envFrom=more, script=f"echo $COLOUR; {SERVE}")
    agent.start().write(config_map("look", colour="red", size="9"), secret, pod("cm", app), name="cm")
    agent.wait_ready("cm")
    found = environment(agent, "cm")
    assert (found["COLOUR"], found["PASSWORD"], found["L_size"]) == ("red", "p$(NAME)w", "9")
    assert "MAYBE" not in found
    assert "p$(NAME)w" not in agent.log_text()


def test_a_missing_config_map_is_told_and_the_pod_starts_when_it_comes(agent: Agent) -> None:
    env = [{"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "colour"}}}]
    agent.start().write(pod("need", container(env=env)))
    agent.wait("the reason", lambda: agent.waiting("need") == "CreateContainerConfigError")
    assert agent.container("need")["state"]["waiting"]["message"] == 'configmap "late" not found'
    assert agent.events("need", "Failed")[0]["message"] == 'Error: configmap "late" not found'
    agent.write(config_map("late", size="1"))
    agent.wait("the next reason", lambda: "couldn't find key colour in ConfigMap default/late" in agent.summary("need"))
    agent.write(config_map("late", colour="blue"))
    agent.wait_ready("need")
    assert environment(agent, "need")["COLOUR"] == "blue"


def test_files_from_config_maps_secrets_and_the_pod(agent: Agent) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "login"},
        "stringData": {"password": "hunter2"},
    }
    volumes: list[Json] = [
        {"name": "cm", "configMap": {"name": "look"}},
        {"name": "secret", "secret": {"secretName": "login", "defaultMode": 0o400}},
        {
            "name": "all",
            "projected": {
                "sources": [
                    {"configMap": {"name": "look", "items": [{"key": "colour", "path": "etc/colour", "mode": 0o600}]}},
                    {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
                    {"downwardAPI": {"items": [{"path": "mem", "resourceFieldRef": {"resource": "limits.memory"}}]}},
                ]
            },
        },
    ]
    mounts = [mount(v["name"], f"/{v['name']}") for v in volumes]
    mounts.append(mount("cm", "/one", subPath="colour"))
    app = container(volumeMounts=mounts, resources={"limits": {"memory": "64Mi"}})
    first = config_map("look", colour="red", size="9")
    agent.start().write(first, secret, pod("files", app, labels={"b": "2", "a": "1"}, volumes=volumes), name="files")
    agent.wait_ready("files")
    assert agent.inside("files", "ls", "/cm").split() == ["colour", "size"]
    assert agent.inside("files", "cat", "/cm/colour", "/one", "/all/etc/colour") == "redredred"
    assert agent.inside("files", "cat", "/all/labels", "/all/mem") == f'a="1"\nb="2"{64 * 2**20}'
    assert agent.inside(
        "files", "stat", "-L", "-c", "%a", "/secret/password", "/all/etc/colour", "/cm/size"
    ).split() == [
        "400",
        "600",
        "644",
    ]
    assert agent.inside("files", "cat", "/secret/password") == "hunter2"
    assert "tmpfs" in agent.inside("files", "sh", "-c", "grep ' /secret ' /proc/mounts")
    assert "ok" not in agent.inside("files", "sh", "-c", "echo x > /cm/colour && echo ok || true")
    agent.write(config_map("look", colour="blue", size="9"), secret,
                pod("files", app, labels={"b": "2", "a": "1"}, volumes=volumes), name="files")  # fmt: skip
    before = agent.running_id("files")
    known = "/api/v1/namespaces/default/configmaps/look"
    agent.wait("the new ConfigMap", lambda: agent.get(known)["data"]["colour"] == "blue")
    agent.podman("kill", before)
    agent.wait("another instance", lambda: agent.running_id("files") not in ("", before))
    assert agent.inside("files", "cat", "/cm/colour") == "blue"


def test_a_pod_that_lacks_a_volume_of_files_waits_for_it(agent: Agent) -> None:
    volumes = [{"name": "cm", "configMap": {"name": "late"}}]
    agent.start().write(pod("need", container(volumeMounts=[mount("cm", "/cm")]), volumes=volumes))
    agent.wait("the reason", lambda: agent.events("need", "FailedMount"))
    message = 'MountVolume.SetUp failed for volume "cm" : configmap "late" not found'
    assert agent.events("need", "FailedMount")[0]["message"] == message
    assert agent.phase("need") == "Pending"
    agent.write(config_map("late", colour="blue"))
    agent.wait_ready("need")
    assert agent.inside("need", "cat", "/cm/colour") == "blue"
