"""The server on a real socket: lists, watches, orders, health, refusals, bounds."""

from __future__ import annotations

import dataclasses
import http.client
import json
import os
import socket
import stat
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgelet import errors, ports
from edgelet.adapters.server import api, bounds, peers, resources
from edgelet.adapters.server.api import ApiServer
from edgelet.adapters.server.peers import Role, User
from edgelet.cli.client import TABLE, ApiFailure
from edgelet.model.agent_report import SourceReport
from edgelet.model.status import PodStatus
from tests.support.serving import Rig, pod, running, serving

PODS = "/api/v1/pods"
ONE = "/api/v1/namespaces/default/pods/web-edge1"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with serving(tmp_path) as rig:
        yield rig


def raw(rig: Rig, request: bytes) -> bytes:
    """Whatever is answered to these bytes, up to the server's closing."""
    with socket.socket(socket.AF_UNIX) as plain:
        plain.settimeout(20)
        plain.connect(rig.socket)
        plain.sendall(request)
        answer = b""
        while part := plain.recv(65536):
            answer += part
        return answer


class Watch:
    """A watch in a thread of its own, its objects in a list that grows."""

    def __init__(self, rig: Rig, path: str, accept: str = "application/json", **query: str) -> None:
        self.seen: list[Any] = []
        self._lines = rig.client.lines(path, {"watch": "1", **query}, accept)
        self._thread = threading.Thread(target=lambda: self.seen.extend(self._each()), daemon=True)
        self._news = threading.Condition()
        self._thread.start()

    def _each(self) -> Iterator[Any]:
        for line in self._lines:
            with self._news:
                self.seen.append(line)
                self._news.notify_all()
        yield from ()

    def wait(self, count: int) -> list[Any]:
        """The first `count` objects, once they are there."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.seen) >= count, timeout=10), self.seen
        return self.seen[:count]

    def ended(self) -> bool:
        """Whether the server has ended it (waits for that a while)."""
        self._thread.join(10)
        return not self._thread.is_alive()


def names(found: Any) -> list[str]:
    """The names of the items of a list."""
    return [item["metadata"]["name"] for item in found["items"]]


def test_lists_are_by_namespace_and_carry_a_version(rig: Rig) -> None:
    rig.store.put(pod("a"), running())
    rig.store.put(pod("b", namespace="other"), running())
    found = rig.client.get(PODS)
    assert (found["kind"], found["apiVersion"], names(found)) == ("PodList", "v1", ["a-edge1", "b-edge1"])
    assert found["metadata"]["resourceVersion"] == str(rig.store.list()[0])
    assert "kind" not in found["items"][0]
    assert names(rig.client.get("/api/v1/namespaces/other/pods")) == ["b-edge1"]


def test_one_pod_is_got_by_name_and_another_is_not_found(rig: Rig) -> None:
    rig.store.put(pod(), running())
    assert rig.client.get(ONE)["kind"] == "Pod"
    with pytest.raises(ApiFailure, match=r'Error from server \(NotFound\): pods "nope" not found'):
        rig.client.get("/api/v1/namespaces/default/pods/nope")


def test_tables_are_given_to_who_asks_for_them(rig: Rig) -> None:
    rig.store.put(pod(), running())
    table = rig.client.get(PODS, accept=TABLE)
    assert table["kind"] == "Table"
    assert table["rows"][0]["cells"][:4] == ["web-edge1", "1/1", "Running", "0"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert rig.client.get(ONE, accept=TABLE)["rows"][0]["cells"][0] == "web-edge1"
    assert rig.client.get(PODS, {"includeObject": "Object"}, TABLE)["rows"][0]["object"]["kind"] == "Pod"
    assert "object" not in rig.client.get(PODS, {"includeObject": "None"}, TABLE)["rows"][0]
    plain_first = "application/json,application/json;as=Table;v=v1;g=meta.k8s.io"
    assert rig.client.get(PODS, accept=plain_first)["kind"] == "PodList"


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=web", ["a-edge1"]),
        ("app==web", ["a-edge1"]),
        ("app!=web", ["b-edge1", "c-edge1"]),
        ("app", ["a-edge1", "b-edge1"]),
        ("!app", ["c-edge1"]),
        ("app in (web, db)", ["a-edge1", "b-edge1"]),
        ("app notin (web)", ["b-edge1", "c-edge1"]),
        ("app in (web,db),tier=x", ["b-edge1"]),
        ("", ["a-edge1", "b-edge1", "c-edge1"]),
    ],
)
def test_label_selectors_choose(rig: Rig, selector: str, expected: list[str]) -> None:
    rig.store.put(pod("a", app="web"), running())
    rig.store.put(pod("b", app="db", tier="x"), running())
    rig.store.put(pod("c"), running())
    assert names(rig.client.get(PODS, {"labelSelector": selector})) == expected


def test_field_selectors_choose_and_unknown_fields_are_refused(rig: Rig) -> None:
    rig.store.put(pod("a"), running())
    rig.store.put(pod("b"), PodStatus("Pending"))
    assert names(rig.client.get(PODS, {"fieldSelector": "status.phase=Pending,spec.nodeName=edge1"})) == ["b-edge1"]
    assert names(rig.client.get(PODS, {"fieldSelector": "metadata.name!=a-edge1"})) == ["b-edge1"]
    for query in ({"fieldSelector": "spec.x=1"}, {"fieldSelector": "x"}, {"labelSelector": "a=b=c"}):
        with pytest.raises(ApiFailure, match="BadRequest"):
            rig.client.get(PODS, query)


def test_a_watch_starts_with_what_is_there_and_goes_on(rig: Rig) -> None:
    rig.store.put(pod(), running())
    watch = Watch(rig, PODS)
    watch.wait(1)
    rig.store.put(pod(), running(1))
    rig.store.remove(pod().key)
    events = watch.wait(3)
    assert [e["type"] for e in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert events[1]["object"]["status"]["containerStatuses"][0]["restartCount"] == 1
    assert events[0]["object"]["kind"] == "Pod"


def test_a_watch_from_a_version_misses_nothing(rig: Rig) -> None:
    version = rig.client.get(PODS)["metadata"]["resourceVersion"]
    rig.store.put(pod(), running())
    watch = Watch(rig, PODS, resourceVersion=version)
    assert [e["type"] for e in watch.wait(1)] == ["ADDED"]


def test_a_watch_from_a_version_long_gone_is_told_to_list_again(rig: Rig) -> None:
    watch = Watch(rig, PODS, resourceVersion="5")
    event = watch.wait(1)[0]
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert watch.ended()


def test_objects_enter_and_leave_the_view_of_a_selective_watch(rig: Rig) -> None:
    rig.store.put(pod(), PodStatus("Pending"))
    watch = Watch(rig, PODS, fieldSelector="status.phase=Running")
    rig.store.put(pod("other"), PodStatus("Pending"))
    rig.store.put(pod(), running())
    watch.wait(1)
    rig.store.put(pod(), PodStatus("Failed"))
    rig.store.remove(pod().key)
    rig.store.put(pod("late"), running())
    assert [e["type"] for e in watch.wait(3)] == ["ADDED", "DELETED", "ADDED"]


def test_a_table_watch_names_its_columns_once(rig: Rig) -> None:
    rig.store.put(pod(), running())
    watch = Watch(rig, PODS, TABLE)
    watch.wait(1)
    rig.store.put(pod(), running(1))
    first, second = (e["object"] for e in watch.wait(2))
    assert len(first["columnDefinitions"]) == 9
    assert second["columnDefinitions"] is None
    assert second["rows"][0]["cells"][3] == "1"


def test_a_watch_ends_when_its_time_is_up(rig: Rig) -> None:
    watch = Watch(rig, PODS, timeoutSeconds="1")
    assert watch.ended()


def test_watches_end_when_the_server_stops(tmp_path: Path) -> None:
    with serving(tmp_path) as rig:
        rig.store.put(pod(), running())
        watch = Watch(rig, PODS)
        watch.wait(1)
        started = time.monotonic()
    assert time.monotonic() - started < 3
    assert watch.ended()


def test_events_are_listed_and_watched(rig: Rig) -> None:
    ref = ports.EventRef(pod().key, "uid-web", "spec.containers{c}")
    rig.events.event(ref, "Normal", "Started", "Container started")
    found = rig.client.get("/api/v1/namespaces/default/events", {"fieldSelector": "involvedObject.name=web-edge1"})
    assert [e["reason"] for e in found["items"]] == ["Started"]
    name = found["items"][0]["metadata"]["name"]
    assert rig.client.get(f"/api/v1/namespaces/default/events/{name}")["message"] == "Container started"
    assert rig.client.get("/api/v1/events", accept=TABLE)["rows"][0]["cells"][3] == "pod/web-edge1"
    watch = Watch(rig, "/api/v1/events", resourceVersion=found["metadata"]["resourceVersion"])
    rig.events.event(ref, "Normal", "Started", "Container started")
    assert watch.wait(1)[0]["object"]["count"] == 2
    with pytest.raises(ApiFailure, match='events "nope" not found'):
        rig.client.get("/api/v1/namespaces/default/events/nope")


def test_a_terminating_pod_is_gone_from_the_kubelet_path_only(rig: Rig) -> None:
    rig.store.put(pod("a"), running())
    rig.store.put(pod("b"), running(deleting=1_700_000_000.0))
    assert names(rig.client.get("/pods")) == ["a-edge1"]
    assert names(rig.client.get(PODS)) == ["a-edge1", "b-edge1"]


def test_health_tells_of_the_loops_and_readiness_of_podman_too(rig: Rig) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        assert raw(rig, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()).endswith(b"\r\n\r\nok")
    rig.control.answer = dataclasses.replace(rig.control.answer, podman_ok=False, podman_message="no socket")
    assert b" 200 " in raw(rig, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = raw(rig, b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b" 500 " in answer
    assert b"[+]ping ok\n[+]syncloop ok\n[-]podman failed: no socket\nreadyz check failed\n" in answer
    verbose = raw(rig, b"GET /healthz?verbose HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert verbose.endswith(b"[+]ping ok\n[+]syncloop ok\nhealthz check passed\n")
    rig.control.wrong["syncloop"] = "no beat for 90 s"
    for check, code in (("ping", 200), ("syncloop", 500), ("nothing", 404)):
        told = raw(rig, f"GET /healthz/{check} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        assert told.split()[1] == str(code).encode()


def test_status_is_degraded_by_a_pod_a_source_or_podman(rig: Rig) -> None:
    path = "/apis/edgelet.io/v1/status"
    rig.store.put(pod(), running())
    good = rig.client.get(path)
    assert (good["degraded"], good["pods"], good["node"]) == (False, {"ready": 1, "total": 1, "held": 0}, "edge1")
    rig.store.put(pod(), running(ready=False, summary="container c: not ready yet"))
    bad = rig.client.get(path)
    assert bad["degraded"]
    assert bad["notReady"] == [
        {"namespace": "default", "name": "web-edge1", "phase": "Running", "reason": "container c: not ready yet"}
    ]
    rig.store.put(pod(), running(ready=False, held=True))
    assert (rig.client.get(path)["degraded"], rig.client.get(path)["pods"]["held"]) == (False, 1)
    lost = SourceReport("file", "/m", ok=False, message="cannot read /m: it is not there")
    rig.control.answer = dataclasses.replace(rig.control.answer, sources=(lost,))
    assert rig.client.get(path)["degraded"]
    assert rig.client.get("/apis/edgelet.io/v1/sources")["items"][0]["message"] == lost.message


def test_a_finished_pod_does_not_degrade(rig: Rig) -> None:
    rig.store.put(pod(), PodStatus("Succeeded"))
    assert not rig.client.get("/apis/edgelet.io/v1/status")["degraded"]


@pytest.mark.parametrize("order", ["restart", "stop", "start"])
def test_orders_are_handed_on(rig: Rig, order: str) -> None:
    rig.store.put(pod(), running())
    path = f"/apis/edgelet.io/v1/namespaces/default/pods/web-edge1/{order}"
    assert rig.client.post(path)["status"] == "Success"
    assert rig.control.orders == [(order, pod().key, "")]
    with pytest.raises(ApiFailure, match="not found"):
        rig.client.post(path.replace("web", "nope"))


def test_one_container_is_restarted_if_the_pod_has_it(rig: Rig) -> None:
    rig.store.put(pod(), running())
    path = "/apis/edgelet.io/v1/namespaces/default/pods/web-edge1/restart"
    rig.client.post(path, {"container": "c"})
    assert rig.control.orders == [("restart", pod().key, "c")]
    with pytest.raises(ApiFailure, match="container x is not valid for pod web-edge1"):
        rig.client.post(path, {"container": "x"})


def test_what_is_not_served_is_a_status_object(rig: Rig) -> None:
    with pytest.raises(ApiFailure, match=r"\(NotFound\): the server could not find the requested resource"):
        rig.client.get("/api/v1/namespaces/default/services")
    with pytest.raises(ApiFailure, match="MethodNotAllowed"):
        rig.client.post(PODS)
    with pytest.raises(ApiFailure, match=r"BadRequest.*resourceVersion"):
        list(rig.client.lines(PODS, {"watch": "1", "resourceVersion": "x"}))
    with pytest.raises(ApiFailure, match=r"BadRequest.*watch"):
        rig.client.get(PODS, {"watch": "perhaps"})


def test_versions(rig: Rig) -> None:
    assert rig.client.get("/api")["versions"] == ["v1"]
    assert rig.client.get("/version")["gitVersion"].startswith("v1.36.")


def test_every_resource_that_is_told_of_is_served(rig: Rig) -> None:
    rig.store.put(pod(), running())
    for group in rig.client.get("/apis")["groups"]:
        version = group["preferredVersion"]["groupVersion"]
        assert rig.client.get(f"/apis/{group['name']}")["name"] == group["name"]
        assert rig.client.get(f"/apis/{version}")["groupVersion"] == version
    resources = rig.client.get("/api/v1")["resources"]
    listed = [r["name"] for r in resources if "list" in r["verbs"]]
    assert listed == ["configmaps", "events", "namespaces", "nodes", "pods", "secrets"]
    for name in listed:
        assert rig.client.get(f"/api/v1/{name}")["kind"].endswith("List")
    for name in (r["name"] for r in resources if "/" in r["name"]):
        with pytest.raises(ApiFailure, match="BadRequest"):  # not NotFound: no container log, no command
            rig.client.get(f"{ONE}/{name.partition('/')[2]}")


def test_the_socket_is_for_root_and_its_group_only(rig: Rig) -> None:
    assert stat.S_IMODE(os.stat(rig.socket).st_mode) == 0o660


@pytest.mark.parametrize(
    ("role", "method", "path", "allowed"),
    [
        (Role.VIEW, "GET", PODS, True),
        (Role.VIEW, "POST", "/apis/edgelet.io/v1/namespaces/default/pods/web-edge1/stop", False),
        (Role.VIEW, "GET", ONE + "/exec?command=true", False),
        (Role.NONE, "GET", PODS, False),
        (Role.NONE, "GET", "/nothing", False),
    ],
    ids=str,
)
def test_roles(rig: Rig, monkeypatch: pytest.MonkeyPatch, role: Role, method: str, path: str, allowed: bool) -> None:
    monkeypatch.setattr(peers, "user", lambda sock, group: User("uid:1000", role))
    rig.store.put(pod(), running())
    call = rig.client.get if method == "GET" else rig.client.post
    if allowed:
        call(path)
        return
    with pytest.raises(ApiFailure, match=r'Forbidden.*User "uid:1000" cannot'):
        call(path)
    assert rig.control.orders == []


def test_who_is_there_is_asked_of_the_kernel() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert peers.user(ours, "no-such-group-here") == User(f"uid:{os.getuid()}", Role.ADMIN)
    assert peers.group_id("no-such-group-here") is None


class Caller:
    """A socket whose other end is somebody else."""

    def __init__(self, uid: int, gid: int, groups: tuple[int, ...] | None) -> None:
        self._answers = {
            socket.SO_PEERCRED: struct.pack("3i", 1, uid, gid),
            59: None if groups is None else struct.pack(f"{len(groups)}I", *groups),
        }

    def getsockopt(self, _level: int, option: int, _size: int) -> bytes:
        """See socket.socket."""
        answer = self._answers[option]
        if answer is None:
            raise OSError("not supported")
        return answer


@pytest.mark.parametrize(
    ("uid", "gid", "groups", "role"),
    [
        (0, 5, (), Role.ADMIN),
        (4_000_000, 44, (), Role.VIEW),
        (4_000_000, 5, (6, 44), Role.VIEW),
        (4_000_000, 44, None, Role.VIEW),
        (4_000_000, 5, (6,), Role.NONE),
        (4_000_000, 5, None, Role.NONE),
    ],
)
def test_root_is_admin_and_members_of_the_group_may_look(
    monkeypatch: pytest.MonkeyPatch, uid: int, gid: int, groups: tuple[int, ...] | None, role: Role
) -> None:
    monkeypatch.setattr(peers, "group_id", {"edgelet": 44}.get)
    caller: Any = Caller(uid, gid, groups)
    assert peers.user(caller, "edgelet") == User(f"uid:{uid}", role)
    assert peers.user(caller, "other").role is (Role.ADMIN if uid == 0 else Role.NONE)


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (errors.NotFound("pod x is not known here"), 404, "pod x is not known here"),
        (errors.Conflict("the name is taken"), 409, "the name is taken"),
        (errors.StateError("cannot write /x: full"), 500, "cannot write /x: full"),
        (ZeroDivisionError("secret"), 500, "the agent's log says more"),
    ],
)
def test_trouble_behind_an_order_is_a_status_object(rig: Rig, error: Exception, code: int, says: str) -> None:
    def broken(key: object) -> None:
        raise error

    rig.store.put(pod(), running())
    rig.control.stop = broken  # type: ignore[method-assign]
    with pytest.raises(ApiFailure, match=says) as refused:
        rig.client.post("/apis/edgelet.io/v1/namespaces/default/pods/web-edge1/stop")
    assert refused.value.code == code
    assert "secret" not in str(refused.value)


def test_a_watch_that_allows_it_gets_bookmarks(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "BOOKMARK_SECONDS", 0.01)
    watch = Watch(rig, PODS, allowWatchBookmarks="true")
    bookmark = watch.wait(1)[0]
    version = str(rig.store.list()[0])
    assert bookmark == {
        "type": "BOOKMARK",
        "object": {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": version}},
    }


def test_a_client_that_leaves_ends_its_watch(rig: Rig) -> None:
    with socket.socket(socket.AF_UNIX) as plain:
        plain.connect(rig.socket)
        plain.sendall(b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert plain.recv(1000).startswith(b"HTTP/1.1 200 OK")
        rig.store.put(pod(), running())
        assert b"ADDED" in plain.recv(10_000)
    rig.store.put(pod(), running(1))
    assert rig.client.get(PODS)


def test_a_second_agent_does_not_take_the_socket_of_a_living_one(rig: Rig) -> None:
    second = ApiServer(rig.socket, rig.services)
    with pytest.raises(errors.StateError, match="another agent answers there"):
        second.start()
    assert rig.client.get("/api")


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_what_is_no_socket_is_left_alone(rig: Rig, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "precious"
    path.mkdir() if kind == "directory" else path.write_text("mine")
    with pytest.raises(errors.StateError, match="no socket; move it away"):
        ApiServer(str(path), rig.services).start()
    assert path.is_dir() if kind == "directory" else path.read_text() == "mine"


def test_a_socket_that_another_agent_has_made_meanwhile_stays_when_this_one_ends(tmp_path: Path) -> None:
    with serving(tmp_path) as first:
        os.unlink(first.socket)
        second = ApiServer(first.socket, first.services)
        second.start()
    try:
        with socket.socket(socket.AF_UNIX) as plain:
            plain.connect(first.socket)
    finally:
        second.stop()
    assert not os.path.exists(first.socket)


def test_the_socket_of_a_dead_agent_is_taken_over(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "s.sock"))
    with serving(tmp_path) as rig:
        assert rig.client.get("/api")
    assert not (tmp_path / "s.sock").exists()


def test_a_place_that_cannot_be_listened_on_is_named(tmp_path: Path, rig: Rig) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.StateError, match="cannot listen on"):
        ApiServer(str(tmp_path / "file" / "s.sock"), rig.services).start()


def test_a_server_that_ends_by_a_fault_is_fatal(tmp_path: Path, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    faults: list[str] = []
    server = ApiServer(str(tmp_path / "other.sock"), rig.services, faults.append)

    async def broken(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(api, "_drain", broken)
    server.start()
    server.stop()
    assert faults == ["the API server has ended: a fault"]


def test_huge_headers_and_bodies_are_refused(rig: Rig) -> None:
    header = b"GET /api HTTP/1.1\r\nHost: x\r\nX: " + b"x" * (api.HEADER_BYTES + 1) + b"\r\n\r\n"
    assert b'"versions"' not in raw(rig, header)
    body = b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (bounds.BODY_BYTES + 1)
    assert raw(rig, body).startswith(b"HTTP/1.1 400")
    assert rig.client.get("/api")


def test_more_connections_than_the_bound_are_closed_at_once(rig: Rig) -> None:
    """The kernel says who calls on this socket, but only a request makes a caller of a connection."""
    held = []
    try:
        for _ in range(bounds.CONNECTIONS):
            plain = socket.socket(socket.AF_UNIX)
            held.append(plain)
            _connect(plain, rig.socket)
            plain.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
            assert plain.recv(12) == b"HTTP/1.1 200"
        with socket.socket(socket.AF_UNIX) as more:
            _connect(more, rig.socket)
            more.settimeout(10)
            assert more.recv(10) == b""
    finally:
        for plain in held:
            plain.close()
    assert _eventually(lambda: rig.client.get("/api"))


def _connect(plain: socket.socket, path: str) -> None:
    """Connect, also when the server's queue is full for a moment."""
    deadline = time.monotonic() + 10
    while True:
        try:
            plain.connect(path)
            return
        except BlockingIOError:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def _eventually(call: Any) -> Any:
    """Its answer, once the server has noticed that others left."""
    deadline = time.monotonic() + 10
    while True:
        try:
            return call()
        except (errors.EdgeletError, http.client.HTTPException, json.JSONDecodeError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def test_a_socket_that_somebody_removed_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "LOOK_SECONDS", 0.05)
    with serving(tmp_path) as rig:
        os.unlink(rig.socket)
        until = time.monotonic() + 10
        while not os.path.exists(rig.socket) and time.monotonic() < until:
            time.sleep(0.02)
        assert rig.client.get("/api")


def test_a_name_that_is_no_text_breaks_no_answer(rig: Rig) -> None:
    rig.events.event(ports.EventRef(pod().key, "u"), "Warning", "FailedValidation", "b\udcff.yaml: error: no")
    assert "b\\\\xff.yaml" in json.dumps(rig.client.get("/api/v1/events"))
