"""The commands end to end against a real server on a real socket."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgelet import __version__, ports
from edgelet.adapters.logs.reader import LogReader
from edgelet.cli import client
from edgelet.cli import logs as logs_command
from edgelet.cli.get import Usage
from edgelet.cli.main import COMMANDS, main
from edgelet.model.agent_report import SourceReport
from edgelet.model.layout import Layout
from edgelet.model.sources import FileState
from edgelet.model.status import ContainerStatus, PodStatus, Running, Waiting
from tests.support.serving import NOW, Rig, pod, running, serving
from tests.support.sessions import LocalExecs


@pytest.fixture
def execs() -> LocalExecs:
    return LocalExecs()


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, execs: LocalExecs) -> Iterator[Rig]:
    with serving(tmp_path, LogReader(Layout("", "", "")), execs) as rig:
        monkeypatch.setenv("EDGELET_SOCKET", rig.socket)
        yield rig


class Edgelet:
    """Runs commands and keeps what they printed."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capture = capfd

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        self._capture.readouterr()
        code = main(arguments)
        sys.stdout.flush()
        out, err = self._capture.readouterr()
        return code, out, err


@pytest.fixture
def edgelet(capfd: pytest.CaptureFixture[str]) -> Edgelet:
    return Edgelet(capfd)


def fill(rig: Rig) -> None:
    """Two pods, one of them in trouble, one in another namespace, and an event."""
    rig.store.put(pod(app="web"), running(2))
    waiting = ContainerStatus("c", "localhost/nope:1", Waiting("ImagePullBackOff", "no such image"))
    status = PodStatus("Pending", containers=(waiting,), summary="container c: cannot pull localhost/nope:1")
    rig.store.put(pod("db"), status)
    rig.store.put(pod("far", "other"), running())
    ref = ports.EventRef(pod().key, "uid-web", "spec.containers{c}")
    rig.events.event(ref, "Warning", "BackOff", "Back-off restarting failed container")


def test_get_pods_is_aligned_like_kubectl(rig: Rig, edgelet: Edgelet) -> None:
    fill(rig)
    assert edgelet("get", "pods") == (
        0,
        "NAME        READY   STATUS             RESTARTS   AGE\n"
        "db-edge1    0/1     ImagePullBackOff   0          0s\n"
        "web-edge1   1/1     Running            2          100s\n",
        "",
    )


def test_get_pods_wide_shows_source_and_reason(rig: Rig, edgelet: Edgelet) -> None:
    fill(rig)
    _, out, _ = edgelet("get", "po", "-o", "wide")
    header, db, web = out.splitlines()
    assert header.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "SOURCE", "MESSAGE"]
    assert db.endswith("<none>      edge1   file     container c: cannot pull localhost/nope:1")
    assert web.split()[5:] == ["10.89.0.5", "edge1", "file"]


def test_get_pods_of_all_namespaces(rig: Rig, edgelet: Edgelet) -> None:
    fill(rig)
    _, out, _ = edgelet("get", "pods", "-A")
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["NAMESPACE", "NAME"],
        ["default", "db-edge1"],
        ["default", "web-edge1"],
        ["other", "far-edge1"],
    ]


@pytest.mark.parametrize("name", ["web", "web-edge1", "pod/web"])
def test_a_pod_is_found_by_its_short_and_its_full_name(rig: Rig, edgelet: Edgelet, name: str) -> None:
    fill(rig)
    assert edgelet("get", "pod", name, "-o", "name") == (0, "pod/web-edge1\n", "")


def test_several_names_come_in_the_order_asked_for(rig: Rig, edgelet: Edgelet) -> None:
    fill(rig)
    assert edgelet("get", "pods", "web", "db", "-o", "name")[1] == "pod/web-edge1\npod/db-edge1\n"
    _, *rows = edgelet("get", "pods", "web", "db")[1].splitlines()
    assert [row.split()[0] for row in rows] == ["web-edge1", "db-edge1"]


def test_an_unknown_pod_is_worded_as_kubectl_words_it(rig: Rig, edgelet: Edgelet) -> None:
    fill(rig)
    assert edgelet("get", "pod", "nope") == (1, "", 'Error from server (NotFound): pods "nope" not found\n')
    code, _, err = edgelet("get", "pod", "far")
    assert (code, "add -n other" in err) == (1, True)


def test_nothing_found_is_said_on_standard_error(rig: Rig, edgelet: Edgelet) -> None:
    assert edgelet("get", "pods") == (0, "", "No resources found in default namespace.\n")
    assert edgelet("get", "pods", "-A") == (0, "", "No resources found\n")


def test_json_and_yaml_are_objects_or_lists(rig: Rig, edgelet: Edgelet) -> None:
    fill(rig)
    one = json.loads(edgelet("get", "pod", "web", "-o", "json")[1])
    assert (one["kind"], one["metadata"]["name"]) == ("Pod", "web-edge1")
    many = yaml.safe_load(edgelet("get", "pods", "-o", "yaml")[1])
    assert (many["kind"], [i["kind"] for i in many["items"]]) == ("List", ["Pod", "Pod"])


def test_selectors_and_headings(rig: Rig, edgelet: Edgelet) -> None:
    fill(rig)
    _, out, _ = edgelet("get", "pods", "-l", "app=web", "--no-headers")
    assert out.split()[0] == "web-edge1"
    assert "db-edge1" in edgelet("get", "pods", "--field-selector", "status.phase=Pending")[1]


def test_events_are_listed_and_narrowed_to_a_pod(rig: Rig, edgelet: Edgelet) -> None:
    fill(rig)
    _, out, _ = edgelet("get", "events")
    assert out == (
        "LAST SEEN   TYPE      REASON    OBJECT          MESSAGE\n"
        "0s          Warning   BackOff   pod/web-edge1   Back-off restarting failed container\n"
    )
    assert edgelet("events", "--for", "web")[1] == out
    assert edgelet("events", "--for", "pod/db")[2].startswith("No resources found")


def test_sources_show_what_is_wrong_with_them(rig: Rig, edgelet: Edgelet) -> None:
    lost = SourceReport("file", "/m", ok=False, message="cannot read /m", pods=2)
    bad = SourceReport("http", "https://x/", problems=("pod.yaml:3: error: spec: x",))
    rig.control.answer = rig.control.answer.__class__("edge1", "1", sources=(lost, bad))
    assert edgelet("get", "sources")[1] == (
        "NAME   STATE    PODS   LOCATION     MESSAGE\n"
        "file   Lost     2      /m           cannot read /m\n"
        "http   Faulty   0      https://x/   \n"
        "  pod.yaml:3: error: spec: x\n"
    )
    assert edgelet("get", "sources", "-o", "name")[1] == "source/file\nsource/http\n"


FILES = (
    FileState("a.yaml", ("default/a-edge1",)),
    FileState("b.yaml", ("default/b-edge1", "default/c-edge1"), warnings=("b.yaml:2: warning: x", "b.yaml:3: ...")),
    FileState("d.yaml", ("default/d-edge1",), accepted=False, error="d.yaml:1: error: y", from_last_good=True),
    FileState("e.yaml", accepted=False, error="e.yaml:1: error: z"),
    FileState("f.yaml~", accepted=False, skipped="its name does not end in .yaml, .yml or .json"),
)


def test_every_file_of_a_source_has_a_state(rig: Rig, edgelet: Edgelet) -> None:
    source = SourceReport("file", "/m", pods=4, read_at=NOW, tried_at=NOW + 60, from_last_good=True, files=FILES)
    rig.control.answer = rig.control.answer.__class__("edge1", "1", sources=(source,))
    assert edgelet("get", "sources", "-o", "wide")[1] == (
        "NAME   STATE   PODS   LAST GOOD READ         LAST TRY               LOCATION   MESSAGE\n"
        "file   Good    4      2023-11-14T22:13:20Z   2023-11-14T22:14:20Z   /m         \n"
        "\n"
        "FILE      STATE      PODS                              MESSAGE\n"
        "a.yaml    Good       default/a-edge1                   \n"
        "b.yaml    Warned     default/b-edge1,default/c-edge1   b.yaml:2: warning: x (and 1 more)\n"
        "d.yaml    LastGood   default/d-edge1                   d.yaml:1: error: y\n"
        "e.yaml    Refused    <none>                            e.yaml:1: error: z\n"
        "f.yaml~   Skipped    <none>                            its name does not end in .yaml, .yml or .json\n"
    )
    (found,) = json.loads(edgelet("get", "sources", "-o", "json")[1])["items"]
    assert (found["fromLastGood"], found["triedAt"]) == (True, "2023-11-14T22:14:20Z")
    assert found["files"][2] == {
        "file": "d.yaml",
        "pods": ["default/d-edge1"],
        "accepted": False,
        "warnings": [],
        "error": "d.yaml:1: error: y",
        "fromLastGood": True,
        "skipped": "",
    }
    assert "files" not in json.loads(edgelet("status", "-o", "json")[1])["sources"][0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("get", "deployments"), "known are pods, events and sources"),
        (("get", "pods", "web", "-A"), "leave -A out"),
        (("get", "pods", "a", "b", "-w"), "cannot watch several names"),
        (("describe", "node"), "only pods can be described"),
        (("logs", "web", "--since", "soon"), "give a duration"),
        (("logs", "web", "--since", "5s", "--since-time", "2026-11-30T14:00:00Z"), "together"),
        (("logs", "web", "--all-containers", "-f"), "leave one out"),
    ],
)
def test_what_does_not_go_together_is_explained(
    rig: Rig, edgelet: Edgelet, arguments: tuple[str, ...], says: str
) -> None:
    fill(rig)
    code, _, err = edgelet(*arguments)
    assert code == 1
    assert says in err


def test_unknown_flags_and_commands_are_wrong_usage(rig: Rig) -> None:
    for arguments in (["get", "pods", "--colour"], ["fly"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2


def test_orders_reach_the_agent(rig: Rig, edgelet: Edgelet) -> None:
    fill(rig)
    assert edgelet("restart", "web", "-c", "c") == (0, "pod/web-edge1 restarting\n", "")
    assert edgelet("stop", "web", "db")[1].splitlines() == [
        "pod/web-edge1 stopping (edgelet start ends that)",
        "pod/db-edge1 stopping (edgelet start ends that)",
    ]
    assert edgelet("start", "web")[0] == 0
    assert [(order, key.name, container) for order, key, container in rig.control.orders] == [
        ("restart", "web-edge1", "c"),
        ("stop", "web-edge1", ""),
        ("stop", "db-edge1", ""),
        ("start", "web-edge1", ""),
    ]


def test_status_says_good_degraded_or_down_by_its_exit_code(rig: Rig, edgelet: Edgelet) -> None:
    rig.store.put(pod(), running())
    code, out, _ = edgelet("status")
    assert (code, out) == (
        0,
        "Node:          edge1\n"
        "Agent:         edgelet 0.1.0\n"
        "Podman:        4.3.1\n"
        "Source file:   1 pod from /etc/kubernetes/manifests\n"
        "Pods:          1/1 ready\n"
        "good\n",
    )
    rig.store.put(pod("db"), PodStatus("Pending", summary="container c: cannot pull x"))
    code, out, _ = edgelet("status")
    assert code == 1
    assert out.endswith("Pods:          1/2 ready\n  default/db-edge1: container c: cannot pull x\ndegraded\n")
    assert json.loads(edgelet("status", "-o", "json")[1])["degraded"]
    code, out, err = edgelet("status", "--socket", rig.socket + ".gone")
    assert (code, out) == (2, "")
    assert "it is not running; start it (systemctl start edgelet, or edgelet run)" in err


def test_pain_140_a_pending_pod_says_why_everywhere(rig: Rig, edgelet: Edgelet) -> None:
    fill(rig)
    why = "container c: cannot pull localhost/nope:1"
    for arguments in (("status",), ("get", "pods", "-o", "wide"), ("describe", "pod", "db")):
        assert why in edgelet(*arguments)[1], arguments


def test_describe_shows_the_pod_and_its_events(rig: Rig, edgelet: Edgelet) -> None:
    fill(rig)
    _, out, _ = edgelet("describe", "pod", "web")
    assert out.startswith("Name:         web-edge1\nNamespace:    default\nNode:         edge1/\n")
    assert "BackOff" in out
    assert "BackOff  " not in edgelet("describe", "pod/db")[1]
    assert edgelet("describe", "pods")[1].count("Name:     ") == 2


def with_log(rig: Rig, tmp_path: Path) -> Path:
    """The pod web with a log of two lines."""
    log = tmp_path / "0.log"
    log.write_text("2023-11-14T22:13:10Z stdout F one\n2023-11-14T22:13:15Z stderr F two\n")
    made = ContainerStatus("c", "i", Running(NOW), ready=True, log_path=str(log))
    rig.store.put(pod(), running(containers=(made,)))
    return log


def test_logs(rig: Rig, edgelet: Edgelet, tmp_path: Path) -> None:
    with_log(rig, tmp_path)
    assert edgelet("logs", "web") == (0, "one\ntwo\n", "")
    assert edgelet("logs", "web", "--tail", "1")[1] == "two\n"
    assert edgelet("logs", "web", "c", "--since", "7s")[1] == "two\n"
    assert edgelet("logs", "web", "-c", "c", "--prefix", "--tail", "1")[1] == ("[pod/web-edge1/c] two\n")
    assert edgelet("logs", "web", "--timestamps", "--limit-bytes", "24")[1] == "2023-11-14T22:13:10Z one"
    assert edgelet("logs", "web", "--all-containers", "--prefix")[1].count("[pod/web-edge1/c] ") == 2
    code, _, err = edgelet("logs", "web", "--previous")
    assert code == 1
    assert 'previous terminated container "c" in pod "web-edge1" not found' in err


@pytest.mark.parametrize(("text", "expected"), [("5s", 5), ("2m", 120), ("1h30m", 5400), ("100ms", 1), ("1.5h", 5400)])
def test_durations_are_read_as_go_reads_them(text: str, expected: int) -> None:
    assert logs_command.seconds(text) == expected


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "-5s", "5x"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(Usage):
        logs_command.seconds(text)


def test_exec_hands_on_output_and_exit_code(rig: Rig, edgelet: Edgelet, execs: LocalExecs) -> None:
    rig.store.put(pod(), running())
    assert edgelet("exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 7") == (7, "out\n", "err\n")
    assert execs.asked[0][1:] == ("c", ("sh", "-c", "echo out; echo err >&2; exit 7"), False, False)
    code, _, err = edgelet("exec", "web", "--", "/no/such")
    assert code == 126
    assert "cannot execute /no/such" in err
    assert edgelet("exec", "web")[0] == 126
    assert edgelet("exec", "nope", "--", "true")[0] == 1


def command(*arguments: str) -> list[str]:
    """The command line of a process of its own."""
    return [sys.executable, "-m", "edgelet.cli.main", *arguments]


def test_exec_copies_standard_input_to_its_end(rig: Rig) -> None:
    rig.store.put(pod(), running())
    data = os.urandom(3 << 20)
    copy = command("exec", "-i", "web", "--", "cat")
    done = subprocess.run(copy, input=data, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout == data, done.stderr) == (0, True, b"")


def test_exec_with_a_terminal_is_a_terminal_and_leaves_it_as_it_was(rig: Rig) -> None:
    rig.store.put(pod(), running())
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    shell = "stty size; read line; echo got $line; exit 3"
    run = command("exec", "-it", "web", "--", "sh", "-c", shell)
    process = subprocess.Popen(run, stdin=slave, stdout=slave, stderr=slave)
    os.write(master, b"hello\r")
    out = b""
    deadline = time.monotonic() + 30
    while (process.poll() is None or b"got" not in out) and time.monotonic() < deadline:
        if select.select([master], [], [], 0.1)[0]:
            out += os.read(master, 1000)
    assert process.wait(10) == 3
    assert b"got hello" in out
    assert termios.tcgetattr(slave) == before
    os.close(slave)
    os.close(master)


class Process:
    """A command under way, its lines as they come."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, text=True)

    def line(self) -> str:
        """The next line."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: Any) -> None:
        self.process.kill()
        self.process.communicate()


def test_a_watch_prints_changes_below_the_list_in_its_columns(rig: Rig) -> None:
    fill(rig)
    with Process("get", "pods", "-w") as watch:
        lines = [watch.line() for _ in range(3)]
        rig.store.put(pod(app="web"), running(3))
        assert watch.line() == lines[2].replace(" 2 ", " 3 ")
        rig.store.remove(pod().key)
        assert watch.line().startswith("web-edge1 ")


def test_logs_are_followed(rig: Rig, tmp_path: Path) -> None:
    log = with_log(rig, tmp_path)
    with Process("logs", "-f", "web") as follow:
        assert [follow.line(), follow.line()] == ["one\n", "two\n"]
        with log.open("a") as more:
            more.write("2023-11-14T22:13:25Z stdout F three\n")
        assert follow.line() == "three\n"


def test_the_version_is_told_without_an_agent(edgelet: Edgelet) -> None:
    done = subprocess.run(command("--version"), capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == f"edgelet {__version__}\n"


def test_asking_for_the_version_imports_nothing_heavy() -> None:
    code = "import sys, edgelet.cli.main; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True).stdout
    assert not {"tornado", "yaml", "podman", "requests", "asyncio", "http.client", "json"} & set(loaded.split())


def test_get_imports_no_server(rig: Rig) -> None:
    code = "import sys; from edgelet.cli.main import main; main(['get', 'pods']); print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True).stdout
    assert not {"tornado", "yaml", "podman", "requests", "asyncio"} & set(loaded.split())


def test_a_bare_call_lists_the_commands(edgelet: Edgelet) -> None:
    code, out, _ = edgelet()
    assert code == 2
    assert all(name in out for name in COMMANDS)


@pytest.mark.parametrize("name", [c for c in COMMANDS if c not in ("run", "validate")])
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert "--socket" in capsys.readouterr().out


def test_the_socket_can_be_named_before_and_after_the_command(rig: Rig, edgelet: Edgelet) -> None:
    os.environ["EDGELET_SOCKET"] = "/nowhere"
    assert edgelet("--socket", rig.socket, "get", "pods")[0] == 0
    assert edgelet("get", "pods", "--socket", rig.socket)[0] == 0
    code, _, err = edgelet("get", "pods")
    assert (code, "/nowhere" in err) == (1, True)


def test_a_watch_is_told_to_list_again(rig: Rig, edgelet: Edgelet, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(rig)
    expired = {"type": "ERROR", "object": {"reason": "Expired", "message": "too old resource version", "code": 410}}
    bookmark = {"type": "BOOKMARK", "object": {}}
    monkeypatch.setattr(client.Client, "lines", lambda *_: iter([bookmark, expired]))
    code, out, err = edgelet("get", "pods", "-w")
    assert (code, err) == (1, "Error from server (Expired): too old resource version\n")
    assert out.startswith("NAME ")


def test_a_watch_prints_whole_objects_too(rig: Rig) -> None:
    rig.store.put(pod(), running())
    with Process("get", "pods", "-w", "-o", "name") as watch:
        assert watch.line() == "pod/web-edge1\n"
        rig.store.put(pod(), running(1))
        assert watch.line() == "pod/web-edge1\n"
    with Process("get", "pods", "-w", "-o", "yaml") as watch:
        for _ in range(2):
            assert [watch.line(), watch.line()] == ["---\n", "apiVersion: v1\n"]
            rig.store.put(pod(), running(2))
            while not watch.line().startswith("  startTime"):
                pass


def test_sources_as_json_and_yaml(rig: Rig, edgelet: Edgelet) -> None:
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        assert read(edgelet("get", "sources", "-o", form)[1])["items"][0]["name"] == "file"


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (PermissionError(13, "x"), "permission denied; be root, or join the group edgelet"),
        (FileNotFoundError(2, "x"), "it is not running; start it"),
        (ConnectionRefusedError(111, "x"), "it is not running; start it"),
        (TimeoutError(), "no answer within 30 s"),
        (OSError(5, "odd"), "odd"),
    ],
)
def test_why_the_agent_cannot_be_reached(error: Exception, says: str) -> None:
    assert says in client.unreachable("/s", error)


def test_an_answer_that_is_no_status_is_shown_as_it_is() -> None:
    assert client.status_of(b"Bad Request\n", 400) == {"message": "Bad Request", "code": 400}
    assert str(client.ApiFailure(client.status_of(b"oops", 502))) == "Error from server: oops"


def test_an_agent_that_stops_ends_a_stream_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def readline(self) -> bytes:
            raise ConnectionResetError

        def read1(self, _size: int) -> bytes:
            raise ConnectionResetError

    monkeypatch.setattr(client.Client, "_open", lambda *_: Broken())
    for stream in (client.Client("/s").lines("/x"), client.Client("/s").chunks("/x")):
        with pytest.raises(client.AgentDown, match="the agent at /s went away"):
            list(stream)


GOOD_HEAD = b"HTTP/1.1 200 OK\r\nServer: edgelet\r\n"
GARBAGE = {
    "nothing": b"",
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "another server": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "no JSON": GOOD_HEAD + b"Content-Length: 3\r\n\r\nabc",
    "a list": GOOD_HEAD + b"Content-Length: 2\r\n\r\n[]",
    "no fields": GOOD_HEAD + b"Content-Length: 2\r\n\r\n{}",
    "too deep": GOOD_HEAD + b"Content-Length: 100000\r\n\r\n" + b"[" * 100_000,
    "cut off": GOOD_HEAD + b"Content-Length: 99\r\n\r\n{}",
    "no chunks": GOOD_HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}",
    "an odd failure": b"HTTP/1.1 500 x\r\nContent-Length: 100000\r\n\r\n" + b"[" * 100_000,
    "a failure that is cut off": b"HTTP/1.1 500 x\r\nContent-Length: 99\r\n\r\n[]",
}
ASKING = (
    ("get", "pods"),
    ("get", "pods", "-w"),
    ("get", "pods", "web", "-o", "json"),
    ("get", "sources"),
    ("describe", "pod", "web"),
    ("logs", "web"),
    ("exec", "web", "--", "ls"),
    ("top", "nodes"),
    ("status",),
    ("stop", "web"),
    ("delete", "pod", "web"),
)


@pytest.mark.parametrize("answer", GARBAGE.values(), ids=GARBAGE)
def test_whatever_answers_at_the_socket_a_person_reads_one_sentence(
    tmp_path: Path, edgelet: Edgelet, answer: bytes
) -> None:
    path = str(tmp_path / "s")

    def answering(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # closed: the test is over
            while True:
                caller, _ = listener.accept()
                with caller, contextlib.suppress(OSError):
                    caller.recv(65536)
                    caller.sendall(answer)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        thread = threading.Thread(target=answering, args=(listener,), daemon=True)
        thread.start()
        for words in ASKING:
            code, out, err = edgelet("--socket", path, *words)
            assert code in ((2,) if words == ("status",) else (1, 126)), (words, out, err)
            assert err.startswith(("cannot ", "Error from server")), (words, err)
            assert "Traceback" not in err
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def test_a_reader_that_has_seen_enough_is_no_error(rig: Rig) -> None:
    for number in range(400):
        rig.store.put(pod(f"p{number}"), running())
    many = subprocess.Popen(command("get", "pods", "-o", "yaml"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert many.stdout is not None
    many.stdout.read(10)
    many.stdout.close()
    assert many.stderr is not None
    assert many.stderr.read() == b""
    many.stderr.close()
    assert many.wait(30) == 0


def test_a_full_disk_behind_the_output_is_a_sentence(rig: Rig) -> None:
    rig.store.put(pod(), running())
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "edgelet.cli.main", "--socket", rig.socket, "get", "pods", "-A"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.decode() == "cannot write the output: No space left on device\n"
