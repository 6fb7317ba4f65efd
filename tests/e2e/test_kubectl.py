"""kubectl without a control plane: the real one, over TLS, against live pods."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.agent import Agent
from tests.e2e.kubectl import Kubectl, serve
from tests.e2e.manifests import container, pod


def write(agent: Agent, name: str, document: object) -> str:
    """A file for -f."""
    path = Path(agent.directory) / name
    path.write_text(json.dumps(document))
    return str(path)


def test_pods_are_applied_compared_changed_and_deleted(agent: Agent) -> None:
    serve(agent)
    kubectl = Kubectl(agent)
    first = write(agent, "a.json", pod("web", labels={"app": "web"}))
    second = write(agent, "b.json", pod("web", labels={"app": "web", "tier": "x"}))
    assert kubectl("apply", "-f", first).stdout == "pod/web created\n"
    assert kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=60s").stdout == "pod/web condition met\n"
    assert kubectl("apply", "-f", first).stdout == "pod/web unchanged\n"
    assert kubectl("diff", "-f", first).stdout == ""
    changes = [line for line in kubectl("diff", "-f", second, check=False).stdout.splitlines() if line[0] in "+-"]
    assert changes[2:] == ["+    tier: x"]
    assert kubectl("apply", "-f", second).stdout == "pod/web configured\n"
    done = kubectl("apply", "--server-side", "-f", first)
    assert (done.stdout, done.stderr) == ("pod/web serverside-applied\n", "")
    assert kubectl("replace", "-f", second).stdout == "pod/web replaced\n"
    kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
    assert kubectl("get", "pods", "-l", "tier=x", "-o", "name").stdout == "pod/web\n"
    assert kubectl("delete", "pod", "web", "--grace-period=1").stdout == 'pod "web" deleted\n'
    assert agent.pods() == {}


def test_run_exec_logs_and_copy(agent: Agent) -> None:
    serve(agent)
    kubectl = Kubectl(agent)
    script = "echo one; echo two; trap 'exit 0' TERM; while :; do sleep 1; done"
    agent.write(pod("web", container(script=script)))
    agent.wait_ready("web")
    assert kubectl("logs", "web-n1", "--tail=1").stdout == "two\n"
    failed = kubectl("exec", "web-n1", "--", "sh", "-c", "echo out; exit 7", check=False)
    assert (failed.returncode, failed.stdout) == (7, "out\n")
    data = "0123456789abcdef" * 655_360  # 10 MB
    assert kubectl("exec", "-i", "web-n1", "--", "cat", given=data).stdout == data
    kubectl("exec", "web-n1", "--", "busybox", "ln", "-s", "busybox", "/bin/tar")
    file = Path(write(agent, "there.json", {"a": "b"}))
    kubectl("cp", str(file), "web-n1:/tmp/x.json")
    kubectl("cp", "web-n1:/tmp/x.json", str(file.with_name("back.json")))
    assert file.with_name("back.json").read_bytes() == file.read_bytes()
    image = agent.pod("web")["spec"]["containers"][0]["image"]
    made = kubectl("run", "job", f"--image={image}", "--restart=Never", "--", "sh", "-c", "exit 0")
    assert made.stdout == "pod/job created\n"
    once = ("run", "once", "-i", "--rm", "--quiet", f"--image={image}", "--restart=Never", "--", "sh", "-c")
    told = kubectl(*once, "sleep 1; echo said; exit 4", check=False)
    assert (told.returncode, told.stdout) == (4, "said\n")
    kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/job", "--timeout=60s")
    refused = kubectl("delete", "pod", "web-n1", check=False)
    assert str(agent.manifests / "web.yaml") in refused.stderr
    forward = kubectl("port-forward", "pod/web-n1", "1:2", check=False)
    assert "ssh -L" in forward.stderr
    kubectl("delete", "pod", "job")


def test_a_viewer_sees_and_changes_nothing(agent: Agent) -> None:
    serve(agent)
    kubectl = Kubectl(agent, "view")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull"}, "stringData": {"token": "hunter2"}}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "visible"}}
    agent.write(pod("web"), secret, settings)
    agent.wait_ready("web")
    assert kubectl("get", "pods", "-o", "name").stdout == "pod/web-n1\n"
    assert kubectl("get", "nodes", "-o", "name").stdout == "node/n1\n"
    assert kubectl("get", "secrets", "--no-headers").stdout.split()[:3] == ["pull", "Opaque", "1"]
    for asked in ("get secret pull -o yaml", "get cm,secret -o json", "describe secret"):
        told = kubectl(*asked.split()).stdout
        assert ("token" in told, "aHVudGVyMg" in told, "hunter2" in told, "visible" in told) == (True, *[False] * 3)
    admin = Kubectl(agent)
    assert admin("get", "secret", "pull", "-o", "jsonpath={.data.token}").stdout == "aHVudGVyMg=="
    assert admin("get", "cm", "settings", "-o", "jsonpath={.data.a}").stdout == "visible"
    assert "token:  7 bytes" in admin("describe", "secret", "pull").stdout
    assert kubectl("auth", "can-i", "delete", "pods", check=False).stdout == "no - the role view may not do that\n"
    for words in (("exec", "web-n1", "--", "true"), ("delete", "pod", "web-n1"), ("label", "pod", "web-n1", "a=b")):
        assert "Forbidden" in kubectl(*words, check=False).stderr
    assert "forbidden" in kubectl("run", "x", "--image=y", check=False).stderr


def test_a_pod_on_the_hosts_network_can_do_nothing_without_a_token(agent: Agent) -> None:
    port = serve(agent)
    agent.write(pod("near", hostNetwork=True))
    agent.wait_ready("near")
    plain = f"printf 'GET /pods HTTP/1.0\\r\\n\\r\\n' | busybox nc 127.0.0.1 {port}; true"
    assert "200" not in agent.inside("near", "sh", "-c", plain)
    # The same network namespace as ours, so what it can send over TLS can be sent from here.
    assert agent.inside("near", "busybox", "readlink", "/proc/self/ns/net").strip() == os.readlink("/proc/self/ns/net")
    anybody = ssl._create_unverified_context()
    for path in ("healthz", "pods", "api/v1/secrets", "metrics", "version", "apis/edgelet.io/v1/kubeconfig"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"https://127.0.0.1:{port}/{path}", context=anybody, timeout=30)
        assert refused.value.code == 401
    assert agent.inside("near", "sh", "-c", f"ls {agent.socket} 2>&1; true").endswith("No such file or directory\n")


def test_top_and_the_raw_metrics(agent: Agent) -> None:
    serve(agent)
    kubectl = Kubectl(agent)
    agent.write(pod("web"))
    agent.wait_ready("web")
    assert kubectl("top", "node", "--no-headers").stdout.split()[0] == "n1"
    agent.wait("it to be seen using something", lambda: kubectl("top", "pod", "--no-headers", check=False).stdout)
    both = [kubectl("top", "pod", "web-n1", *more, "--no-headers").stdout.split() for more in ((), ("--containers",))]
    assert [words[:-2] for words in both] == [["web-n1"], ["web-n1", "app"]]
    assert both[0][-1].endswith("Mi")
    for path in ("", "/probes", "/resource", "/cadvisor"):
        assert "# TYPE" in kubectl("get", "--raw", f"/metrics{path}").stdout


def test_attach_shows_output_takes_input_and_ends_nothing(agent: Agent) -> None:
    serve(agent)
    kubectl = Kubectl(agent)
    echo = 'while read -r line; do echo "got $line"; [ "$line" = end ] && exit 3; done'
    agent.write(pod("web", container(command=["sh", "-c", echo], stdin=True), restartPolicy="Never"))
    agent.wait_ready("web")
    done = kubectl("attach", "-i", "web-n1", given="one\nend\n")
    assert done.stdout == "got one\ngot end\n"
    agent.wait("its end", lambda: agent.phase("web") == "Failed")
    state = agent.status("web")["containerStatuses"][0]
    assert state["state"]["terminated"]["exitCode"] == 3
    count = "i=0; trap 'exit 0' TERM; while :; do i=$((i+1)); echo $i; echo e$i >&2; sleep 0.2; done"
    agent.write(pod("loud", container(command=["sh", "-c", count])))
    agent.wait_ready("loud")
    watcher = subprocess.Popen(
        ["kubectl", "attach", "loud-n1"], env=kubectl.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert watcher.stdout is not None
    assert watcher.stdout.readline().strip().isdigit()
    watcher.kill()
    watcher.wait(10)
    assert agent.ready("loud")
