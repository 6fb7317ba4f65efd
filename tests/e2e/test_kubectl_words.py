"""Every way to ask that people use with kubectl, against live pods: forms of output, logs, terminals, edit."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.agent import Agent
from tests.e2e.kubectl import Kubectl, serve
from tests.e2e.manifests import container, exec_probe, pod
from tests.e2e.test_commands import Lines, end, read_until


def test_pods_are_got_in_every_form(agent: Agent) -> None:
    serve(agent)
    kubectl = Kubectl(agent)
    agent.write(pod("web", container(livenessProbe=exec_probe("true")), labels={"app": "web"}))
    agent.write(pod("job", container(script="exit 0"), restartPolicy="Never", labels={"app": "job"}))
    agent.wait_ready("web")
    agent.wait("the job's end", lambda: agent.phase("job") == "Succeeded")
    wide = [line.split() for line in kubectl("get", "pods", "-A", "-o", "wide").stdout.splitlines()]
    assert wide[0][:8] == ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
    rows = {row[1]: row for row in wide[1:]}
    assert (rows["web-n1"][2:5], rows["job-n1"][2:5]) == (["1/1", "Running", "0"], ["0/1", "Completed", "0"])
    assert (rows["web-n1"][6], rows["web-n1"][7]) == (agent.status("web")["podIP"], "n1")
    one = json.loads(kubectl("get", "pod", "web-n1", "-o", "json").stdout)
    assert one["status"]["phase"] == "Running"
    assert yaml.safe_load(kubectl("get", "pod", "web-n1", "-o", "yaml").stdout)["spec"] == one["spec"]
    assert kubectl("get", "pods", "-l", "app in (web)", "-o", "name").stdout == "pod/web-n1\n"
    chosen = ("get", "pods", "--field-selector=status.phase!=Running")
    assert kubectl(*chosen, "-o", "jsonpath={.items[*].metadata.name}").stdout == "job-n1"
    columns = "-o=custom-columns=N:.metadata.name,P:.status.phase"
    assert kubectl("get", "pods", columns, "--sort-by=.metadata.name").stdout.split() == [
        "N", "P", "job-n1", "Succeeded", "web-n1", "Running",
    ]  # fmt: skip
    told = kubectl("describe", "pod", "web-n1").stdout
    for words in ("Liveness:", "State:          Running"):
        assert words in told
    assert re.search(r"QoS Class: +BestEffort", told)
    assert re.search(r"Normal +Started +\S+ +kubelet +Container started", told)
    node = kubectl("describe", "node", "n1").stdout
    assert re.search(r"Ready +True", node)
    assert "web-n1" in node
    reasons = kubectl("get", "events", "--sort-by=.lastTimestamp", "-o", "custom-columns=R:.reason").stdout.split()
    assert {"Created", "Started"} <= set(reasons)
    names = {line.split()[0] for line in kubectl("api-resources", "--no-headers").stdout.splitlines()}
    assert {"pods", "nodes", "events", "namespaces", "configmaps", "secrets"} <= names
    assert "terminationGracePeriodSeconds" in kubectl("explain", "pod.spec").stdout


def test_a_watch_shows_each_change(agent: Agent) -> None:
    serve(agent)
    kubectl = Kubectl(agent)
    agent.write(pod("web", container(readinessProbe=exec_probe("test", "-e", "/tmp/ok"))))
    agent.wait("it to run", lambda: agent.running_id("web"))
    watch = subprocess.Popen(
        ["kubectl", "get", "pods", "-w"], env=kubectl.environment, stdout=subprocess.PIPE, text=True
    )
    lines = Lines(watch)
    try:
        assert lines.with_text("web-n1", 60).split()[1] == "0/1"
        agent.inside("web", "touch", "/tmp/ok")
        assert lines.with_text("1/1", 60).split()[0] == "web-n1"
        agent.remove("web")
        assert lines.with_text("Terminating", 60).split()[0] == "web-n1"
    finally:
        end(watch)


def test_logs_in_every_way(agent: Agent) -> None:
    serve(agent)
    kubectl = Kubectl(agent)
    script = """
        echo first
        while [ ! -e /tmp/end ]; do [ -e /tmp/say ] && { echo later; rm /tmp/say; }; sleep 0.1; done
        exit 1"""
    agent.write(pod("talk", container(script=script), container("side", script="echo beside; sleep 1000 & wait")))
    agent.wait("its lines", lambda: agent.container_log("talk") and agent.container_log("talk", "side"))
    assert kubectl("logs", "talk-n1", "-c", "side").stdout == "beside\n"
    both = kubectl("logs", "talk-n1", "--all-containers", "--prefix").stdout
    assert sorted(both.splitlines()) == ["[pod/talk-n1/app] first", "[pod/talk-n1/side] beside"]
    assert kubectl("logs", "talk-n1", "-c", "app", "--since=1h").stdout == "first\n"
    assert kubectl("logs", "talk-n1", "-c", "app", "--since-time=2999-01-01T00:00:00Z").stdout == ""
    assert kubectl("logs", "talk-n1", "-c", "app", "--limit-bytes=3").stdout == "fir"
    assert kubectl("logs", "talk-n1", "-c", "app", "--timestamps").stdout[:2] == "20"
    assert "previous terminated container" in kubectl("logs", "talk-n1", "-c", "app", "--previous", check=False).stderr
    words = ["kubectl", "logs", "-f", "talk-n1", "-c", "app", "--tail=1"]
    follow = subprocess.Popen(words, env=kubectl.environment, stdout=subprocess.PIPE, text=True)
    lines = Lines(follow)
    try:
        assert lines.with_text("first", 60) == "first"  # it follows from here
        agent.inside("talk", "touch", "/tmp/say")
        assert lines.with_text("later", 60) == "later"
        agent.inside("talk", "touch", "/tmp/end")
        assert follow.wait(60) == 0  # the instance has ended, and with it what was followed
    finally:
        follow.kill()
        follow.communicate()
    agent.wait("a restart", lambda: agent.restarts("talk") >= 1 and agent.running_id("talk"), 60)
    assert kubectl("logs", "talk-n1", "-c", "app", "--previous").stdout == "first\nlater\n"


class Terminal:
    """kubectl in a terminal of 40 rows and 100 columns."""

    def __init__(self, kubectl: Kubectl, *words: str) -> None:
        self.outer, inner = pty.openpty()
        self.resize(40, 100)
        self.process = subprocess.Popen(
            ["kubectl", *words],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env=kubectl.environment,
            start_new_session=True,
        )
        os.close(inner)

    def resize(self, rows: int, columns: int) -> None:
        """Another size, as a window manager gives it."""
        fcntl.ioctl(self.outer, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str, answer: str) -> None:
        """Type a line and wait for what is printed."""
        os.write(self.outer, text.encode() + b"\r")
        read_until(self.outer, answer.encode(), 60)

    def end(self) -> int:
        """The exit code, once it has ended by itself."""
        try:
            return self.process.wait(30)
        finally:
            self.process.kill()
            self.process.wait()
            os.close(self.outer)


def test_exec_in_a_terminal_has_its_size_and_passes_the_exit_code_on(agent: Agent) -> None:
    serve(agent)
    kubectl = Kubectl(agent)
    agent.write(pod("web"))
    agent.wait_ready("web")
    terminal = Terminal(kubectl, "exec", "-it", "web-n1", "--", "sh")
    terminal.type("echo $((40+2))", "42")
    # The size is sent once the terminal is there; how soon is not promised.
    loop = "until [ \"$(stty size)\" = '{}' ]; do sleep 0.1; done; echo size is $((1{}))"
    terminal.type(loop.format("40 100", "+1"), "size is 2")
    terminal.resize(24, 80)
    os.kill(
        terminal.process.pid, signal.SIGWINCH
    )  # SIGWINCH, which the kernel sends to the foreground of a terminal only
    terminal.type(loop.format("24 80", "+2"), "size is 3")
    os.write(terminal.outer, b"exit 9\r")
    assert terminal.end() == 9


def test_attach_in_a_terminal_and_copies_of_whole_trees(agent: Agent) -> None:
    serve(agent)
    kubectl = Kubectl(agent)
    echo = 'busybox ln -s busybox /bin/tar; while read -r line; do echo "got $line"; [ "$line" = end ] && exit 3; done'
    agent.write(pod("web", container(command=["sh", "-c", echo], stdin=True, tty=True), restartPolicy="Never"))
    agent.wait_ready("web")
    tree = Path(agent.directory) / "tree"
    (tree / "inner").mkdir(parents=True)
    (tree / "inner/bytes").write_bytes(os.urandom(1 << 20))
    (tree / "empty").write_text("")
    kubectl("cp", str(tree), "web-n1:/tmp/tree")
    kubectl("cp", "web-n1:/tmp/tree", str(tree.with_name("back")), "-c", "app")
    assert (tree.with_name("back") / "inner/bytes").read_bytes() == (tree / "inner/bytes").read_bytes()
    assert (tree.with_name("back") / "empty").read_bytes() == b""
    terminal = Terminal(kubectl, "attach", "-it", "web-n1")
    terminal.type("hello", "got hello")
    terminal.type("end", "got end")
    terminal.end()
    agent.wait("its end", lambda: agent.phase("web") == "Failed")
    assert agent.status("web")["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


def test_edit_label_annotate_and_patch(agent: Agent) -> None:
    serve(agent)
    kubectl = Kubectl(agent)
    file = Path(agent.directory) / "pod.json"
    file.write_text(json.dumps(pod("web", labels={"app": "web"})))
    kubectl("create", "-f", str(file))
    kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
    editor = Path(agent.directory) / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/app: web/app: changed/" "$1"\n')
    editor.chmod(0o755)
    os.environ["KUBE_EDITOR"] = str(editor)
    try:
        assert kubectl("edit", "pod", "web").stdout == "pod/web edited\n"
        unchanged = kubectl("edit", "pod", "web", check=False)
    finally:
        del os.environ["KUBE_EDITOR"]
    assert "no changes" in unchanged.stdout + unchanged.stderr
    assert kubectl("label", "pod", "web", "tier=x").stdout == "pod/web labeled\n"
    assert kubectl("annotate", "pod", "web", "note=y").stdout == "pod/web annotated\n"
    change = '{"spec":{"containers":[{"name":"app","env":[{"name":"A","value":"b"}]}]}}'
    assert kubectl("patch", "pod", "web", "-p", change).stdout == "pod/web patched\n"
    step = '[{"op":"remove","path":"/metadata/labels/tier"}]'
    assert kubectl("patch", "pod", "web", "--type=json", "-p", step).stdout == "pod/web patched\n"
    kubectl("patch", "pod", "web", "--type=merge", "-p", '{"metadata":{"labels":{"more":"z"}}}')
    # A changed spec is another pod; what is read is the old one until its worker has come to that.
    wanted = {"app": "changed", "more": "z"}
    agent.wait("the last change", lambda: _metadata(kubectl)["labels"] == wanted, 90)
    assert _metadata(kubectl)["annotations"]["note"] == "y"
    kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
    ask = ("exec", "web", "--", "sh", "-c", "echo $A")
    agent.wait("the new one", lambda: kubectl(*ask, check=False).stdout == "b\n", 90)
    assert kubectl("delete", "-f", str(file), "--now").stdout == 'pod "web" deleted\n'
    kubectl("wait", "--for=delete", "pod/web", "--timeout=30s")


def _metadata(kubectl: Kubectl) -> Any:
    return json.loads(kubectl("get", "pod", "web", "-o", "json").stdout)["metadata"]
