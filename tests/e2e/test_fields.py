"""The fields of a manifest, seen from inside the containers and from the host."""

from __future__ import annotations

import os
import socket
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import SERVE, container, env, exec_probe, mount, pod

CGROUPS = Path("/sys/fs/cgroup")


def sh(agent: Agent, name: str, script: str, container: str = "app") -> str:
    """What a script prints inside a container."""
    return agent.inside(name, "sh", "-c", script, container=container).strip()


def bounding(agent: Agent, name: str, container: str) -> int:
    """The capabilities that process 1 of a container may ever have, as bits."""
    return int(sh(agent, name, "grep CapBnd /proc/1/status", container).split()[1], 16)


def free_port() -> int:
    """A TCP port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answer(port: int) -> str:
    """What a web server on this machine answers; "" if none does."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=2) as reply:
            return str(reply.read().decode())
    except OSError:
        return ""


def web(port: int, text: str) -> str:
    """A script that serves `text`."""
    return f"mkdir /tmp/w; echo {text} > /tmp/w/index.html; httpd -f -p {port} -h /tmp/w & wait"


# ---- volumes ---------------------------------------------------------------------------------------


def test_a26_empty_dirs_are_shared_and_memory_is_a_tmpfs_inside_the_container(agent: Agent) -> None:
    mounts = [mount("disk", "/disk"), mount("memory", "/memory")]
    agent.start().write(
        pod(
            "shared",
            container("writer", f"echo 1 > /disk/a; echo 2 > /memory/b; {SERVE}", volumeMounts=mounts),
            container("reader", volumeMounts=[mounts[0], mount("memory", "/memory", readOnly=True)]),
            volumes=[
                {"name": "disk", "emptyDir": {}},
                {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            ],
        )
    )
    agent.wait_ready("shared")
    agent.wait(
        "the writer", lambda: sh(agent, "shared", "cat /disk/a /memory/b 2>/dev/null || true", "reader") == "1\n2"
    )
    assert sh(agent, "shared", "stat -f -c %T /memory", "reader") == "tmpfs"
    disk, memory = sh(agent, "shared", "stat -c %d /disk /memory", "reader").split()
    assert int(disk) == agent.root.stat().st_dev != int(memory)
    assert sh(agent, "shared", "stat -c %a /disk /memory", "reader") == "777\n777"
    assert sh(agent, "shared", "touch /memory/c 2>&1; true", "reader") == "touch: /memory/c: Read-only file system"
    full = agent.inside(
        "shared", "sh", "-c", "dd if=/dev/zero of=/memory/big bs=64k count=32 2>&1; true", container="writer"
    )
    assert "No space left on device" in full


def test_empty_dir_lives_as_long_as_the_pod_and_no_longer(agent: Agent) -> None:
    app = container(script=f"echo run >> /data/runs; {SERVE}", volumeMounts=[mount("data", "/data")])
    document = pod("data", app, volumes=[{"name": "data", "emptyDir": {}}])
    agent.start().write(document)
    agent.wait_ready("data")
    agent.podman("kill", "--signal", "KILL", agent.running_id("data"))
    agent.wait("a restart", lambda: agent.restarts("data") == 1 and agent.running_id("data"))
    agent.wait("both runs", lambda: agent.inside("data", "cat", "/data/runs").split() == ["run"] * 2)
    agent.write(pod("data", {**app, "env": env(NEW="1")}, volumes=[{"name": "data", "emptyDir": {}}]))
    agent.wait("the new version", lambda: agent.restarts("data") == 0 and agent.ready("data"))
    assert agent.inside("data", "cat", "/data/runs").split() == ["run"]


def test_host_paths_of_every_type(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "x").write_text("from the host")
    (tmp_path / "file").write_text("a file")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "sock"))
    kinds = {
        "plain": ("dir", ""),
        "dir": ("dir", "Directory"),
        "newdir": ("made/dir", "DirectoryOrCreate"),
        "file": ("file", "File"),
        "newfile": ("made-file", "FileOrCreate"),
        "sock": ("sock", "Socket"),
    }
    volumes = [{"name": n, "hostPath": {"path": str(tmp_path / p), "type": t}} for n, (p, t) in kinds.items()]
    volumes.append({"name": "zero", "hostPath": {"path": "/dev/zero", "type": "CharDevice"}})
    mounts = [mount(v["name"], f"/m/{v['name']}") for v in volumes]  # type: ignore[arg-type]
    agent.start().write(pod("host", container(volumeMounts=mounts), volumes=volumes))
    agent.wait_ready("host")
    assert sh(agent, "host", "cat /m/plain/x /m/dir/x /m/file") == "from the hostfrom the hosta file"
    assert sh(agent, "host", "test -S /m/sock && test -c /m/zero && head -c 2 /m/zero | od -An -tx1") == "00 00"
    sh(agent, "host", "echo 1 > /m/newdir/y; echo 2 > /m/newfile")
    assert (tmp_path / "made" / "dir" / "y").read_text() == "1\n"
    assert (tmp_path / "made-file").read_text() == "2\n"
    server.close()


@pytest.mark.parametrize("kind", ["Directory", "File", "Socket", "CharDevice", "BlockDevice"])
def test_a27_a_host_path_that_is_not_there_says_so_and_is_tried_again(agent: Agent, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "later"
    app = container(volumeMounts=[mount("v", "/v")])
    agent.start().write(pod("host", app, volumes=[{"name": "v", "hostPath": {"path": str(path), "type": kind}}]))
    agent.wait("the event", lambda: agent.events("host", "FailedMount"))
    assert "hostPath type check failed" in agent.events("host", "FailedMount")[0]["message"]
    assert (agent.phase("host"), bool(str(path) in agent.summary("host"))) == ("Pending", True)
    if kind == "Directory":
        path.mkdir()
        agent.wait_ready("host")


def test_sub_paths(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "a.conf").write_text("a")
    mounts = [
        mount("host", "/etc/a.conf", subPath="conf/a.conf"),
        mount("data", "/one", subPath="one"),
        mount("data", "/all"),
    ]
    volumes = [{"name": "host", "hostPath": {"path": str(tmp_path)}}, {"name": "data", "emptyDir": {}}]
    agent.start().write(pod("sub", container(volumeMounts=mounts), volumes=volumes))
    agent.wait_ready("sub")
    assert agent.inside("sub", "sh", "-c", "cat /etc/a.conf; echo x > /one/f; cat /all/one/f") == "ax\n"


# ---- network ---------------------------------------------------------------------------------------


def test_a_host_port_can_be_reached_and_is_free_again_afterwards(agent: Agent) -> None:
    port = free_port()
    app = container(script=web(8080, "hello"), ports=[{"containerPort": 8080, "hostPort": port}])
    agent.start().write(pod("web", app))
    agent.wait("an answer", lambda: answer(port) == "hello\n")
    agent.wait_ready("web")
    address = agent.status("web")["podIP"]
    assert address.startswith("10.87.")
    agent.remove("web")
    agent.wait("the port to be free", lambda: not answer(port))


def test_a_host_port_moves_to_the_new_version(agent: Agent) -> None:
    """The old pod holds the port: the new one can only have it because it starts after the end of the old one."""
    port = free_port()
    ports = [{"containerPort": 8080, "hostPort": port}]
    agent.start().write(pod("web", container(script=web(8080, "one"), ports=ports)))
    agent.wait("an answer", lambda: answer(port) == "one\n")
    agent.write(pod("web", container(script=web(8080, "two"), ports=ports)))
    agent.wait("the new answer", lambda: answer(port) == "two\n")


def test_a06_a_host_network_pod_listens_on_the_host_also_after_an_edit(agent: Agent) -> None:
    port = free_port()
    agent.start().write(pod("host", container("first", web(port, "first")), hostNetwork=True))
    agent.wait("an answer", lambda: answer(port) == "first\n")
    agent.write(pod("host", container("second", web(port, "second")), hostNetwork=True))
    agent.wait("the answer of the renamed container", lambda: answer(port) == "second\n")
    agent.wait_ready("host")
    assert agent.status("host")["podIP"] == agent.status("host")["hostIP"]


def test_containers_of_a_pod_share_the_network(agent: Agent) -> None:
    agent.start().write(pod("both", container("server", web(8080, "near")), container("client")))
    agent.wait_ready("both")
    fetch = "wget -qO- http://127.0.0.1:8080/ || true"
    agent.wait("an answer", lambda: sh(agent, "both", fetch, "client") == "near")
    assert agent.inside("both", "hostname", container="client").strip() == "both-n1"


# ---- process -----------------------------------------------------------------------------------------


def test_environment_arguments_and_working_directory(agent: Agent) -> None:
    app = container(
        command=["sh", "-c", f'echo "$0|$1|$GREETING|$(pwd)|$ODD"; trap "exit 0" TERM; {SERVE}'],
        args=["$(NAME)", "$$(NAME)"],
        env=env(NAME="world", GREETING="hello $(NAME)", ODD="$(MISSING) 'quoted' #x"),
        workingDir="/tmp",
    )
    agent.start().write(pod("words", app))
    agent.wait_ready("words")
    agent.wait("its line", lambda: agent.container_log("words"))
    assert agent.container_log("words") == "world|$(NAME)|hello world|/tmp|$(MISSING) 'quoted' #x\n"


def test_security_context(agent: Agent) -> None:
    app = container(
        "app",
        securityContext={
            "runAsUser": 1234,
            "runAsGroup": 4321,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
        },
    )
    root = container("root", securityContext={"capabilities": {"drop": ["CHOWN"], "add": ["NET_ADMIN"]}})
    strong = container("strong", securityContext={"privileged": True})
    agent.start().write(pod("secure", app, root, strong))
    agent.wait_ready("secure")
    assert sh(agent, "secure", "id -u; id -g").split() == ["1234", "4321"]
    assert "Read-only file system" in sh(agent, "secure", "touch /x 2>&1; true")
    assert sh(agent, "secure", "grep NoNewPrivs /proc/1/status").split()[1] == "1"
    assert bounding(agent, "secure", "app") == 1 << 10
    assert (bounding(agent, "secure", "root") >> 0 & 1, bounding(agent, "secure", "root") >> 12 & 1) == (0, 1)
    assert bounding(agent, "secure", "strong") >> 21 & 1  # CAP_SYS_ADMIN


def test_a30_run_as_non_root_refuses_root(agent: Agent) -> None:
    agent.env.add_image("localhost/named:1", "USER nobody")
    agent.env.add_image("localhost/number:1", "USER 99")
    strict = {"runAsNonRoot": True}
    agent.start().write(
        pod(
            "root",
            container("spec", securityContext={**strict, "runAsUser": 0}),
            container("image", securityContext=strict),
            container("named", image="localhost/named:1", securityContext=strict),
            container("good", image="localhost/number:1", securityContext=strict),
        )
    )
    refused = ("spec", "image", "named")
    config_error = "CreateContainerConfigError"
    agent.wait("the reasons", lambda: all(agent.waiting("root", name) == config_error for name in refused))
    agent.wait("the one that may", lambda: agent.running_id("root", "good"))
    told = [agent.container("root", name)["state"]["waiting"]["message"] for name in refused]
    assert told[0].startswith("container's runAsUser breaks non-root policy (pod: \"root-n1_default(")
    assert told[1].startswith("container has runAsNonRoot and image will run as root (pod: ")
    assert told[2].startswith("container has runAsNonRoot and image has non-numeric user (nobody), cannot verify")
    assert len(agent.of_pod("root")) == 1
    assert "root" in agent.summary("root")


def test_limits_reach_the_cgroup(agent: Agent) -> None:
    limits = {"limits": {"memory": "48Mi", "cpu": "250m"}, "requests": {"cpu": "100m"}}
    agent.start().write(pod("small", container(resources=limits)))
    agent.wait_ready("small")
    (made,) = agent.of_pod("small")
    found = {**cgroup_values(made["State"]["Pid"])}
    if not found:
        pytest.skip("this kernel has no memory or cpu controller")
    assert found.get("memory", 48 << 20) == 48 << 20
    assert found.get("cpu", 0.25) == 0.25
    assert agent.status("small")["qosClass"] == "Burstable"


def cgroup_values(pid: int) -> dict[str, float]:
    """Memory limit in bytes and CPU limit in cores of a process, for the controllers that this kernel has."""
    found: dict[str, float] = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        names = controllers.split(",")
        if "memory" in names and (v1 := CGROUPS / "memory" / path[1:] / "memory.limit_in_bytes").exists():
            found["memory"] = int(v1.read_text())
        if "cpu" in names and (v1 := CGROUPS / "cpu" / path[1:] / "cpu.cfs_quota_us").exists():
            found["cpu"] = int(v1.read_text()) / int((v1.parent / "cpu.cfs_period_us").read_text())
        if not controllers and (v2 := CGROUPS / path[1:] / "memory.max").exists():
            found["memory"] = int(v2.read_text())
            quota, period = (v2.parent / "cpu.max").read_text().split()
            found["cpu"] = int(quota) / int(period)
    return found


def test_a_container_over_its_memory_limit_is_said_to_be_oom_killed(agent: Agent) -> None:
    if not has_memory_controller():
        pytest.skip("this kernel has no memory controller for containers")
    eater = container(command=["dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=1"])
    agent.start().write(pod("big", {**eater, "resources": {"limits": {"memory": "16Mi"}}}, restartPolicy="Never"))
    agent.wait("the end", lambda: agent.phase("big") in ("Failed", "Succeeded"))
    ended = agent.container("big")["state"]["terminated"]
    assert (agent.phase("big"), ended["exitCode"]) == ("Failed", 137)
    (made,) = agent.of_pod("big")
    if not made["State"]["OOMKilled"] and not os.access("/dev/kmsg", os.R_OK):
        pytest.skip("conmon of this machine does not notice OOM kills (seen with hybrid cgroups), nor is there a log")
    # The code is known from conmon's file at once, the reason a moment later.
    agent.wait("the reason", lambda: agent.container("big")["state"]["terminated"]["reason"] == "OOMKilled")
    assert "OOMKilled" in agent.summary("big")


def has_memory_controller() -> bool:
    """Whether memory limits work here, with cgroup v1 or v2."""
    v2 = CGROUPS / "cgroup.controllers"
    return "memory" in v2.read_text().split() if v2.exists() else (CGROUPS / "memory").is_dir()


def test_names_and_labels_reach_podman(agent: Agent) -> None:
    document = pod("named", labels={"app": "x", "tier": "edge"})
    document["metadata"]["namespace"] = "prod"
    document["metadata"]["annotations"] = {"note": "kept"}
    agent.start().write(document)
    agent.wait("it to run", lambda: agent.condition("named") == "True")
    assert agent.pod("named")["metadata"]["namespace"] == "prod"
    assert agent.pod("named")["metadata"]["annotations"]["note"] == "kept"
    told = agent.podman("pod", "ps", "--filter", "label=tier=edge", "--format", "{{.Name}}")
    assert told.startswith("named-n1_prod")
    assert "named-n1" in agent.cli("get", "pods", "-A", "-l", "app=x").stdout
    assert "No resources found" in agent.cli("get", "pods", "-n", "prod", "-l", "app=y").stderr


def test_a_probe_by_name_of_port_and_a_pod_without_infra(agent: Agent) -> None:
    port = free_port()
    app = container(
        script=web(port, "x"),
        ports=[{"name": "web", "containerPort": port}],
        livenessProbe={"httpGet": {"port": "web", "host": "127.0.0.1"}, "periodSeconds": 1, "initialDelaySeconds": 1},
        readinessProbe=exec_probe("true"),
    )
    agent.start().write(pod("plain", app, hostNetwork=True))
    agent.wait_ready("plain")
    assert len(agent.podman("ps", "-q", "--pod", "--filter", f"pod={podman_pod(agent, 'plain')}").split()) == 1


def podman_pod(agent: Agent, name: str) -> str:
    """Podman's id of the pod."""
    (made,) = agent.of_pod(name)
    return str(made["Pod"])
