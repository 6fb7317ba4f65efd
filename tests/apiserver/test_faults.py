"""What can go wrong with the fake server: every fault is seen by a client as it would be with a real one."""

from __future__ import annotations

import base64
import http.client
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.apiserver.client import STRATEGIC, Client
from tests.apiserver.conftest import PODS
from tests.support.apiserver import FakeServer
from tests.support.certificates import Authority, Pair
from tests.support.web import WebServer, answer

NODES = "/api/v1/nodes"
NODE = f"{NODES}/n1"
BODY = {"metadata": {"name": "n1"}}
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
BROKEN = (OSError, http.client.HTTPException)


@pytest.fixture
def node(server_alone: FakeServer) -> Client:
    """The node as a client."""
    return Client(server_alone.kubeconfig)


def test_an_answer_of_any_code(server_alone: FakeServer, node: Client) -> None:
    server_alone.faults.add("refuse", code=429, retry_after=3, verb="create", times=1)
    answer = node.post(NODES, BODY)
    assert (answer.code, answer.headers["Retry-After"], answer.body["reason"]) == (429, "3", "TooManyRequests")
    assert node.post(NODES, BODY).code == 201, "once only"


def test_a_fault_is_about_its_verb_and_resource(server_alone: FakeServer, node: Client) -> None:
    server_alone.faults.add("refuse", code=500, verb="patch", resource="nodes/status")
    assert node.post(NODES, BODY).code == 201
    assert node.patch(NODE, {"metadata": {"labels": {"a": "b"}}}).code == 200
    assert node.patch(f"{NODE}/status", {"status": {}}).code == 500


@pytest.mark.parametrize(("action", "acted"), [("cut_request", False), ("cut_answer", True), ("cut_half", True)])
def test_a_connection_that_ends_within_a_request(
    server_alone: FakeServer, node: Client, action: str, acted: bool
) -> None:
    server_alone.faults.add(action, verb="create", times=1)
    with pytest.raises(BROKEN):
        node.post(NODES, BODY)
    assert (server_alone.find(NODE) is not None) == acted


def test_half_a_request_is_none(server_alone: FakeServer, node: Client) -> None:
    assert node.post(NODES, BODY).code == 201
    node.send_half("PATCH", f"{NODE}/status", STRATEGIC)
    assert node.patch(f"{NODE}/status", {"status": {}}).code == 200
    server_alone.down()  # ends its threads: whatever it makes of the half has been made
    assert server_alone.violations == []


@pytest.mark.parametrize("resource", ["", "connect"])
def test_a_server_that_hangs_until_it_does_not(server_alone: FakeServer, node: Client, resource: str) -> None:
    rule = server_alone.faults.add("hang", resource=resource)
    ended = threading.Event()

    def ask() -> None:
        with pytest.raises(BROKEN):
            node.get(NODE)
        ended.set()

    asking = threading.Thread(target=ask)
    asking.start()
    assert not ended.wait(0.3)
    server_alone.faults.remove(rule)
    asking.join(30)
    assert ended.is_set() and node.get(NODE).code == 404


def test_a_slow_server(server_alone: FakeServer, node: Client) -> None:
    server_alone.faults.add("slow", seconds=0.5)
    began = time.monotonic()
    assert node.get(NODE).code == 404 and time.monotonic() - began >= 0.5


def test_a_server_that_is_down_and_up_again_where_it_was(server_alone: FakeServer, node: Client) -> None:
    node.post(NODES, BODY)
    server_alone.down()
    with pytest.raises(ConnectionRefusedError):
        node.get(NODE)
    server_alone.up()
    assert node.get(NODE).code == 200


def test_a_server_replaced_by_an_empty_one(server_alone: FakeServer, node: Client) -> None:
    uid = node.post(NODES, BODY).body["metadata"]["uid"]
    server_alone.wipe()
    assert node.get(NODE).code == 404
    assert node.post(NODES, BODY).body["metadata"]["uid"] != uid
    assert [n["metadata"]["name"] for n in server_alone.list("namespaces")] == [
        "default", "kube-node-lease", "kube-public", "kube-system",
    ]  # fmt: skip


def test_chances_repeat_by_seed(server_alone: FakeServer) -> None:
    def draw() -> list[bool]:
        server_alone.faults.seed(7)
        return [server_alone.faults.find("get", "pods") is not None for _ in range(40)]

    server_alone.faults.add("refuse", chance=0.5)
    once = draw()
    assert draw() == once and len(set(once)) == 2


def test_credentials_that_are_no_good_are_401(server_alone: FakeServer, tmp_path: Path) -> None:
    authority = server_alone.authority
    ended = authority.issue("system:node:n1", end="210101", group="system:nodes")
    assert Client(server_alone.write_kubeconfig("ended", ended)).get(NODE).code == 401
    assert Client(server_alone.write_kubeconfig("unknown", token="x")).get(NODE).code == 401
    server_alone.tokens["x"] = server_alone.node_user()
    assert Client(server_alone.write_kubeconfig("known", token="x")).get(NODE).code == 404
    assert Client(server_alone.write_kubeconfig("nobody")).get(NODE).code == 403
    server_alone.issuers.clear()
    assert Client(server_alone.kubeconfig).get(NODE).code == 401
    foreign = Authority(tmp_path / "other", "other").issue("system:node:n1", group="system:nodes")
    with pytest.raises(BROKEN):
        Client(server_alone.write_kubeconfig("foreign", foreign)).get(NODE)


def test_a_pod_is_known_to_the_authorizer_a_moment_later(server_alone: FakeServer, node: Client) -> None:
    s = server_alone
    s.store.lag = 3600
    s.create(NODES, BODY)
    s.create(PODS, {"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}})
    assert node.get(f"{PODS}/p").code == 403
    s.store.lag = 0
    assert node.get(f"{PODS}/p").code == 200
    s.store.lag = 3600
    s.delete(f"{PODS}/p", gracePeriodSeconds=0)
    assert node.get(f"{PODS}/p").code == 404
    s.store.lag = 0
    assert node.get(f"{PODS}/p").code == 403


def test_traffic_is_counted(server_alone: FakeServer, node: Client) -> None:
    node.post(NODES, BODY)
    node.get(NODE)
    node.get(f"{NODES}/other")
    seen = server_alone.requests
    assert (seen.count(), seen.count("get", "nodes"), seen.count(code=403), seen.connections) == (3, 2, 1, 3)
    assert seen.received > 100 and seen.sent > 100
    assert [r.name for r in seen.log] == ["", "n1", "other"] and {r.user for r in seen.log} == {"system:node:n1"}
    seen.reset()
    assert (seen.count(), seen.sent) == (0, 0)


def test_watches_tell_what_changes_and_end_with_the_server(server_alone: FakeServer, node: Client) -> None:
    s = server_alone
    version = s.get(NODES)["metadata"]["resourceVersion"]
    s.create(NODES, BODY)
    s.delete(NODE)
    query = f"watch=1&fieldSelector=metadata.name%3Dn1&timeoutSeconds=1&resourceVersion={version}"
    lines = node.stream(f"{NODES}?{query}")
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in lines] == [("ADDED", "n1"), ("DELETED", "n1")]
    s.wipe()
    ahead = node.stream(f"{NODES}?{query.replace(version, '9999')}")
    assert [(e["type"], e["object"]["code"]) for e in ahead] == [("ERROR", 410)]


def _request(folder: Path, name: str) -> str:
    at = folder / "r.pem"
    command = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", f"{folder}/r.key", "-subj", f"/O=system:nodes/CN={name}", "-out", str(at)]
    subprocess.run(command, check=True, capture_output=True)
    return base64.b64encode(at.read_bytes()).decode()


def _csr(request: str) -> dict[str, object]:
    signer, usages = "kubernetes.io/kube-apiserver-client-kubelet", ["client auth", "digital signature"]
    return {"metadata": {"name": "r"}, "spec": {"request": request, "signerName": signer, "usages": usages}}


def test_a_signing_request_of_the_node_is_signed(server_alone: FakeServer, node: Client, tmp_path: Path) -> None:
    assert node.post(CSRS, _csr(_request(tmp_path, "system:node:n1"))).code == 201
    status = node.get(f"{CSRS}/r").body["status"]
    assert status["conditions"][0]["type"] == "Approved"
    (tmp_path / "new.pem").write_bytes(base64.b64decode(status["certificate"]))
    renewed = Pair(f"{tmp_path}/new.pem", f"{tmp_path}/r.key")
    assert Client(server_alone.write_kubeconfig("renewed", renewed)).get(NODE).code == 404


def test_a_node_asks_for_no_other_name(node: Client, tmp_path: Path) -> None:
    assert node.post(CSRS, _csr(_request(tmp_path, "system:node:n2"))).code == 403


def test_logs_are_asked_of_the_node(server_alone: FakeServer, tmp_path: Path) -> None:
    s = server_alone
    pair = s.authority.issue("kubelet")
    with WebServer(lambda request: answer(f"log of {request.path}"), pair, s.authority.ca) as kubelet:
        endpoint = {"kubeletEndpoint": {"Port": kubelet.port}}
        status = {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": endpoint}
        s.create(NODES, {"metadata": {"name": "n1"}, "status": status})
        spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
        s.create(PODS, {"metadata": {"name": "p"}, "spec": spec})
        admin = Client(s.admin_kubeconfig)
        assert admin.text(f"{PODS}/p/log?tailLines=5") == "log of /containerLogs/default/p/c?tailLines=5"
        assert admin.get(f"{PODS}/p/log?container=x").code == 400
    assert admin.get(f"{PODS}/p/log").code == 500, "the node does not answer"
    assert Client(s.kubeconfig).get(f"{PODS}/p/log").code == 403
