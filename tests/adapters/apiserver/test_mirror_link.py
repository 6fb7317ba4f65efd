"""The link itself: how it logs in, what it survives, how it is told, against a fake API server with faults."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from edgelet.adapters.apiserver.cache import RemotePods
from edgelet.core.mirror_pods import Remote
from edgelet.model.pod import PodKey
from tests.adapters.apiserver.rig import NODE, Rig, pod, pressed, rig, running
from tests.support.apiserver.identity import User
from tests.support.certificates import Authority
from tests.support.connect_proxy import connect_proxy

PODS = "/api/v1/namespaces/default/pods"
NODE_USER = f"system:node:{NODE}"


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Rig]:
    """A box whose mirror runs."""
    with rig(tmp_path) as made:
        yield made


@pytest.fixture
def still(tmp_path: Path) -> Iterator[Rig]:
    """A box whose mirror has not begun."""
    with rig(tmp_path, begin=False) as made:
        yield made


def config(box: Rig) -> dict[str, Any]:
    """The node's kubeconfig as an object, to be changed and written back."""
    found: dict[str, Any] = json.loads(box.server.kubeconfig.read_text())
    return found


def write(box: Rig, changed: dict[str, Any]) -> None:
    """Replace it, as a tool does."""
    beside = box.server.kubeconfig.with_suffix(".beside")
    beside.write_text(json.dumps(changed))
    beside.replace(box.server.kubeconfig)


def shown(box: Rig) -> None:
    """The mirror works: something new gets there."""
    box.put(pod("proof"))
    box.wait("the mirror to work", lambda: box.told("proof-n1"))


def test_7_5_5_nothing_of_the_mirror_is_imported_without_a_kubeconfig() -> None:
    program = (
        "import sys, edgelet.app, edgelet.app.wiring, edgelet.app.serving\n"
        "sys.exit(any(m.startswith('edgelet.adapters.apiserver') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_certificates_may_stand_in_the_kubeconfig_and_there_may_be_several_contexts(still: Rig) -> None:
    found = config(still)
    user, cluster = found["users"][0]["user"], found["clusters"][0]["cluster"]
    for place, name in ((user, "client-certificate"), (user, "client-key"), (cluster, "certificate-authority")):
        place[f"{name}-data"] = base64.b64encode(Path(place.pop(name)).read_bytes()).decode()
    found["clusters"].insert(0, {"name": "other", "cluster": {"server": "https://192.0.2.1:1"}})
    found["contexts"].insert(0, {"name": "other", "context": {"cluster": "other", "user": "me"}})
    write(still, found)
    still.mirror.start()
    shown(still)


@pytest.mark.parametrize(("wrong", "right"), [("nobody", "kubernetes"), ("192.0.2.1", "127.0.0.1")])
def test_a_server_may_be_known_by_another_name(still: Rig, wrong: str, right: str) -> None:
    found = config(still)
    cluster = found["clusters"][0]["cluster"]
    cluster["tls-server-name"] = wrong
    write(still, found)
    still.mirror.start()
    still.wait("the refusal", lambda: "certificate is not accepted" in still.mirror.report().message)
    cluster["tls-server-name"] = right
    write(still, found)
    shown(still)


def test_a_proxy_may_stand_between_and_may_fail(still: Rig) -> None:
    with connect_proxy() as proxy:
        found = config(still)
        cluster = found["clusters"][0]["cluster"]
        cluster["proxy-url"] = proxy.url
        write(still, found)
        still.mirror.start()
        shown(still)
        assert set(proxy.asked) == {cluster["server"].removeprefix("https://")}
        proxy.refusing = True
        proxy.cut()
        still.put(pod("later"))
        still.wait("the loss", lambda: not still.mirror.report().up)
        proxy.refusing = False
        still.wait("the mirror to work", lambda: still.told("later-n1"))
        still.mirror.stop()


FIFTY_YEARS = 50 * 365.25 * 86400.0


def test_a_clock_that_jumps_by_fifty_years_changes_nothing_but_the_times(tmp_path: Path) -> None:
    with rig(tmp_path, lease_duration=8.0) as box:
        web = box.put(pod("web"))
        box.settle()
        for number, jump in enumerate((FIFTY_YEARS, -FIFTY_YEARS, 0.0)):
            box.clock.wall = jump
            now = datetime.fromtimestamp(box.clock.time(), UTC).isoformat()[:7]
            box.event(web, "Jumped", f"number {number}")
            box.put(web, running(web, restarts=number + 1))
            box.wait("a renewal", lambda now=now: str(box.lease()["spec"]["renewTime"]).startswith(now))
            box.settle()
            assert (box.mirror.report().up, box.mirror.report().problems) == (True, ())
        told = [e["metadata"]["name"] for e in box.server.list("events") if e["reason"] == "Jumped"]
        mine = [e.name for e in box.events.events() if e.reason == "Jumped"]
        assert sorted(told, key=lambda name: int(name.rpartition(".")[2], 16)) == mine
        assert len(set(mine)) == 3


def test_a_token_file_is_read_again_when_it_changes(still: Rig, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    still.server.tokens["first"] = still.server.node_user()
    still.options["kubeconfig"] = still.server.write_kubeconfig("token", tokenFile=str(token))
    still.restart()
    shown(still)
    still.server.tokens = {"second": still.server.node_user()}
    still.put(pod("later"))
    still.wait("the refusal", lambda: "credentials" in still.mirror.report().message)
    token.write_text("second!"[:-1])
    still.wait("the mirror to work", lambda: still.told("later-n1"))


def test_a_plug_in_is_asked_for_credentials_and_asked_again_when_they_are_refused(still: Rig, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    plugin = tmp_path / "plugin"
    answer = '{"kind": "ExecCredential", "status": {"token": "\'$(cat "$TOKEN")\'"}}'
    plugin.write_text(f"#!/bin/sh\nexec echo '{answer}'\n")
    plugin.chmod(0o755)
    still.server.tokens["one"] = still.server.node_user()
    how = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    how["env"] = [{"name": "TOKEN", "value": str(token)}]  # type: ignore[assignment]
    still.options["kubeconfig"] = still.server.write_kubeconfig("exec", exec=how)
    still.restart()
    shown(still)
    token.write_text("two")
    still.server.tokens = {"two": still.server.node_user()}
    still.put(pod("later"))
    still.wait("the mirror to work", lambda: still.told("later-n1"))


def test_a_replaced_certificate_is_used(box: Rig) -> None:
    shown(box)
    pair = box.server.authority.issue(NODE_USER, group="system:nodes")
    found = config(box)
    found["users"][0]["user"] = {"client-certificate": pair.cert, "client-key": pair.key}
    write(box, found)
    connections = box.server.requests.connections
    box.put(pod("later"))
    box.wait("the mirror to work", lambda: box.told("later-n1"))
    assert box.server.requests.connections > connections


def test_a_kubeconfig_that_is_broken_for_a_moment_changes_nothing(box: Rig) -> None:
    shown(box)
    good = box.server.kubeconfig.read_text()
    box.server.kubeconfig.write_text("{ half")
    box.put(pod("later"))
    box.wait("the mirror to work", lambda: box.told("later-n1"))
    box.server.kubeconfig.write_text(good)
    box.put(pod("last"))
    box.wait("the mirror to work", lambda: box.told("last-n1"))


def test_a_kubeconfig_that_comes_late_is_used(still: Rig) -> None:
    good = still.server.kubeconfig.read_text()
    still.server.kubeconfig.unlink()
    still.mirror.start()
    still.wait("the complaint", lambda: "cannot read kubeconfig" in still.mirror.report().message)
    still.server.kubeconfig.write_text(good)
    shown(still)


def test_an_authority_that_is_not_the_servers_is_told_and_its_replacement_used(still: Rig, tmp_path: Path) -> None:
    found = config(still)
    good = found["clusters"][0]["cluster"]["certificate-authority"]
    found["clusters"][0]["cluster"]["certificate-authority"] = Authority(tmp_path / "other", "other").ca
    write(still, found)
    still.mirror.start()
    still.wait("the refusal", lambda: "certificate" in still.mirror.report().message)
    found["clusters"][0]["cluster"]["certificate-authority"] = good
    write(still, found)
    shown(still)


def test_a_replaced_server_gets_everything_anew(box: Rig) -> None:
    web = box.put(pod("web"))
    box.event(web, "Started")
    box.settle()
    first = box.uid("web-n1")
    box.server.wipe()
    box.event(web, "Again")
    box.settle()
    assert box.uid("web-n1") not in ("", first)
    assert box.node() and box.lease()


def test_a_node_that_goes_with_its_lease_is_registered_again_though_no_pod_tells(tmp_path: Path) -> None:
    with rig(tmp_path, lease_duration=8.0) as box:
        web = box.put(pod("web"))
        box.event(web, "Started")
        box.settle()
        box.store.remove(web.key)
        box.wait("the mirror to go", lambda: not box.there("web-n1"))
        first = box.node()["metadata"]["uid"]
        box.server.delete(f"/api/v1/nodes/{NODE}")
        box.server.delete(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NODE}")
        box.wait("another Node", lambda: box.node().get("metadata", {}).get("uid", first) != first)
        box.settle()


def test_a_node_that_is_deleted_is_registered_again(box: Rig) -> None:
    box.put(pod("web"))
    box.settle()
    box.server.delete(f"/api/v1/nodes/{NODE}")
    box.server.delete(f"{PODS}/web-n1", gracePeriodSeconds=0)
    box.wait("the node", box.node)
    box.wait("a mirror that it owns", lambda: owner(box) == box.node()["metadata"]["uid"])
    box.settle()


def owner(box: Rig) -> str:
    """The uid of the Node that the mirror belongs to, "" without a mirror."""
    found = box.there("web-n1").get("metadata", {}).get("ownerReferences") or [{}]
    return str(found[0].get("uid", ""))


def test_events_of_an_outage_are_sent_in_order_and_once_also_over_a_restart(box: Rig) -> None:
    web = box.put(pod("web"))
    box.settle()
    box.server.down()
    for number in range(20):
        box.event(web, "Offline", f"number {number}")
    box.restart()
    box.event(web, "Offline", "the last")
    box.server.up()
    box.settle()
    assert box.server.requests.count("create", "events", 201) == len(box.server.list("events"))
    texts = [e["message"] for e in box.server.list("events") if e["reason"] == "Offline"]
    assert len(texts) == 21
    box.restart()
    box.event(web, "More")
    box.settle()
    # The ledger knew them all, but for one whose answer the restart may have cut off.
    assert box.server.requests.count("create", "events", 409) <= 1


def test_what_a_killed_agent_remembers_is_right_whatever_it_had_told(box: Rig) -> None:
    web = box.put(pod("web"))
    for _ in range(3):
        box.event(web, "Again")
    box.settle()
    remembered, before = box.events.dump(), _again(box)
    for _ in range(4):
        box.clock.shift += 1.0
        box.event(web, "Again")
    box.settle()
    assert _again(box) != before
    box.kill(remembered)
    box.wait("the older figures", lambda: _again(box) == before)
    box.event(web, "Again")
    box.settle()
    assert box.server.requests.count("create", "events", 409) == 0


def test_an_answer_that_a_killed_agent_did_not_see_is_no_reason_to_believe_the_server(box: Rig) -> None:
    web = box.put(pod("web"))
    box.event(web, "Again")
    box.settle()
    remembered, before = box.events.dump(), _again(box)
    ledger = box.directory / "mirror/events.sent"
    box.clock.shift += 5.0
    box.event(web, "Again")
    box.settle()
    box.mirror.stop()
    lines = ledger.read_bytes().splitlines(keepends=True)
    assert json.loads(lines[-1])[1:] != json.loads(lines[-2])[1:] == []  # about to be told, and told
    ledger.write_bytes(b"".join(lines[:-1]))
    box.kill(remembered)
    box.wait("the older figures", lambda: _again(box) == before)


def test_only_what_a_killed_agent_would_remember_is_told(box: Rig) -> None:
    web = box.put(pod("web"))
    box.event(web, "Early")
    box.settle()
    box.kept = max(e.version for e in box.events.events())
    box.event(web, "Late")
    box.put(web, running(web, restarts=1))
    box.wait("the status", lambda: box.told("web-n1"))
    assert [e["reason"] for e in box.server.list("events")].count("Late") == 0
    box.kept = sys.maxsize
    box.settle()


def _again(box: Rig) -> tuple[object, ...]:
    """What the server says of the event that repeats."""
    found = [
        (e["count"], e["lastTimestamp"], e["message"]) for e in box.server.list("events") if e["reason"] == "Again"
    ]
    return tuple(found)


def test_what_the_server_asks_for_is_waited_for(box: Rig) -> None:
    box.put(pod("web"))
    box.settle()
    box.server.faults.add("refuse", verb="create", resource="pods", code=429, retry_after=2, times=1)
    begin = time.monotonic()
    box.put(pod("later"))
    box.wait("the mirror", lambda: box.told("later-n1"))
    assert time.monotonic() - begin >= 2
    after = [r for r in box.server.requests.log if r.code == 429]
    (refused,) = after
    assert not [r for r in box.server.requests.log if 0 < r.time - refused.time < 1.9 and r.code == 0]


def test_a_link_that_was_lost_is_tried_at_once_when_the_network_changes(box: Rig) -> None:
    box.put(pod("web"))
    box.settle()
    box.mirror._network.stop()  # this machine's own network may change meanwhile, and one hurry is all there is
    box.server.down()
    box.put(pod("later"))
    box.wait("some failures", lambda: box.mirror._link.failures >= 4)
    box.server.up()
    box.mirror._network_changed()
    assert box.mirror._link.retry_at - box.clock.monotonic() < 1  # the fifth wait is at least 8 s
    box.wait("the mirror", lambda: box.told("later-n1"))


def test_pain_125_a_box_that_is_off_is_told_by_its_lease(tmp_path: Path) -> None:
    with rig(tmp_path, lease_duration=4.0) as box:
        box.wait("the lease", box.lease)
        box.mirror.stop()
        last = box.lease()["spec"]["renewTime"]
        time.sleep(1.5)
        assert box.lease()["spec"]["renewTime"] == last
        assert box.condition("Ready")["lastHeartbeatTime"]


def test_pain_127_a_mirror_that_somebody_keeps_deleting_is_made_ever_more_rarely(box: Rig) -> None:
    box.put(pod("web"))
    box.settle()
    until, made = time.monotonic() + 6, set()
    while time.monotonic() < until:
        found = box.uid("web-n1")
        if found:
            made.add(found)
            box.server.delete(f"{PODS}/web-n1", gracePeriodSeconds=0)
        time.sleep(0.02)
    assert len(made) <= 6
    box.wait("it to come back all the same", lambda: box.uid("web-n1") not in ("", *made))


def test_a02_an_answer_that_comes_after_the_news_of_the_deletion_brings_no_mirror_back() -> None:
    news: list[PodKey] = []
    cache = RemotePods(news.append, lambda: None)
    gone, other = (Remote(PodKey("default", "web-n1"), uid, "7", "hash") for uid in ("first", "second"))
    cache.put(gone)
    cache.removed(gone)
    cache.put(gone)
    assert (cache.get(gone.key), news) == (None, [gone.key])
    cache.put(other)
    assert cache.get(gone.key) == other


def test_pain_127_two_boxes_with_one_name_notice_and_do_not_fight(tmp_path: Path) -> None:
    with rig(tmp_path, lease_duration=8.0) as first:
        first.put(pod("one"))
        first.settle()
        second = Rig(first.server, tmp_path / "second", lease_duration=8.0)
        second.facts = pressed(second.facts, machine_id="m2")
        second.put(pod("two"))
        second.mirror.start()
        try:
            for one in (first, second):
                one.wait("the clash", lambda o=one: any("another machine" in p for p in o.mirror.report().problems))
            settled = first.server.requests.count("create", "pods") + first.server.requests.count("delete", "pods")
            time.sleep(2)
            assert (
                first.server.requests.count("create", "pods") + first.server.requests.count("delete", "pods") == settled
            )
        finally:
            second.mirror.stop()
        first.wait("the end of it", lambda: not any("another machine" in p for p in first.mirror.report().problems))
        first.settle()


def test_a_restart_of_the_agent_is_no_clash(tmp_path: Path) -> None:
    with rig(tmp_path, lease_duration=4.0) as box:
        box.put(pod("web"))
        box.settle()
        box.restart()
        box.put(pod("more"))
        box.settle()
        assert box.mirror.report().problems == ()


def test_writers_never_wait_for_a_server_that_hangs(box: Rig) -> None:
    web = box.put(pod("web"))
    box.settle()
    box.server.faults.add("hang")
    box.put(web, running(web, 1))
    longest = 0.0
    for number in range(2000):
        begin = time.monotonic()
        box.put(web, running(web, number))
        box.event(web, "Busy", f"{number % 50}")
        longest = max(longest, time.monotonic() - begin)
    assert longest < 2
    box.server.faults.clear()
    box.settle()


def test_an_idle_box_sends_its_heartbeat_and_nothing_else(tmp_path: Path) -> None:
    """The kubelet's pattern, quicker here; what an hour of it costs stands in docs/mirror.md."""
    with rig(tmp_path, lease_duration=8.0) as box:
        box.put(pod("web"))
        box.settle()
        box.wait("quiet", lambda: box.mirror.report().pending == 0)
        traffic = box.server.requests
        puts = traffic.count("update", "leases")
        box.wait("a renewal", lambda: traffic.count("update", "leases") > puts)
        traffic.reset()
        box.wait("the next", lambda: traffic.count("update", "leases") >= 1)
        assert traffic.count() == traffic.count("update", "leases")
        assert traffic.connections == 0
        # Of what the server sent, some may still belong to what was before.
        assert traffic.received / traffic.count() < 1500


def test_5000_changes_of_110_pods_in_an_hour_without_a_link(tmp_path: Path) -> None:
    with rig(tmp_path) as box:
        pods = [box.put(pod(f"p{number}")) for number in range(110)]
        box.wait("the start", lambda: len(box.server.list("pods")) == 110)
        box.settle()
        box.server.down()
        for number in range(5000):
            one = pods[number % 110]
            box.put(one, running(one, number))
            box.event(one, "BackOff", f"number {number // 500}")
        box.clock.shift += 3600.0
        assert box.mirror.report().pending <= 110 + 1000
        box.server.up()
        box.mirror._network_changed()
        before = box.server.requests.count()
        box.settle(240.0)
        # At the default rate all of it fits into a minute (26 s were measured on an idle machine).
        assert (box.server.requests.count() - before - 100) / 50 < 60
        assert box.server.requests.count("create", "events", 201) == len(box.server.list("events"))


NETWORK = """
import subprocess, sys, threading
from edgelet.adapters.apiserver.network import NetworkWatch
def ip(*words): subprocess.run(["ip", *words], check=True)
ip("link", "set", "lo", "up")
ip("link", "add", "d0", "type", "veth", "peer", "name", "p0")
ip("link", "set", "p0", "up")
news = threading.Event()
watch = NetworkWatch(news.set, lambda: "https://192.0.2.77:6443")
watch.start()
ip("link", "add", "d1", "type", "veth", "peer", "name", "p1")
ip("link", "set", "p1", "up")
ip("addr", "add", "10.9.9.1/24", "dev", "d1")
ip("link", "set", "d1", "up")
assert not news.wait(1.5), "a pod's interface is no news"
ip("addr", "add", "192.0.2.5/24", "dev", "d0")
ip("link", "set", "d0", "up")
assert news.wait(30), "a way to the server is"
watch.stop()
"""


def test_a_way_to_the_server_that_appears_is_news_and_a_pods_interface_is_not() -> None:
    if subprocess.run(["unshare", "--net", "ip", "link", "add", "d0", "type", "veth"], check=False).returncode:
        pytest.skip("needs a network namespace with a veth pair")
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", NETWORK], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def bootstrapped(tmp_path: Path) -> Iterator[Rig]:
    """A box with a bootstrap token and no kubeconfig yet."""
    with rig(tmp_path, begin=False) as box:
        box.server.tokens["boot"] = User("system:bootstrap:x", frozenset({"system:bootstrappers"}))
        box.options["bootstrap"] = str(box.server.write_kubeconfig("bootstrap", token="boot"))
        box.options["kubeconfig"] = str(tmp_path / "made.kubeconfig")
        yield box


def test_a_certificate_is_asked_for_and_used(bootstrapped: Rig, tmp_path: Path) -> None:
    bootstrapped.restart()
    shown(bootstrapped)
    made = tmp_path / "made.kubeconfig"
    assert made.stat().st_mode & 0o077 == 0
    assert "boot" not in made.read_text().replace("bootstrap", "")
    assert bootstrapped.server.requests.count("create", "certificatesigningrequests") == 1


def test_a_clock_that_runs_ahead_does_not_ask_for_one_certificate_after_the_other(bootstrapped: Rig) -> None:
    bootstrapped.clock.wall = FIFTY_YEARS
    bootstrapped.restart()
    made = bootstrapped.directory / "mirror/client.pem"
    bootstrapped.wait("a certificate", made.exists)
    until = time.monotonic() + 3
    while time.monotonic() < until:
        assert bootstrapped.server.requests.count("create", "certificatesigningrequests") == 1
        time.sleep(0.1)
    bootstrapped.clock.wall = 0.0
    bootstrapped.restart()
    shown(bootstrapped)
    assert bootstrapped.server.requests.count("create", "certificatesigningrequests") == 1


def test_a_request_that_waits_for_a_person_says_what_to_do(bootstrapped: Rig) -> None:
    bootstrapped.server.signer.automatic = False
    bootstrapped.restart()
    bootstrapped.wait("the hint", lambda: bootstrapped.mirror.report().problems)
    (hint,) = bootstrapped.mirror.report().problems
    assert "kubectl certificate approve node-csr-" in hint
    bootstrapped.server.signer.approve(hint.rpartition(" ")[2])
    shown(bootstrapped)
    assert bootstrapped.mirror.report().problems == ()


def test_a_certificate_is_renewed_before_it_ends(bootstrapped: Rig, tmp_path: Path) -> None:
    bootstrapped.restart()
    shown(bootstrapped)
    life = tmp_path / "mirror" / "client.json"
    first = (tmp_path / "mirror" / "client.pem").read_bytes()
    begin, end = json.loads(life.read_text())
    life.write_text(json.dumps([begin - 20 * (end - begin), time.time() + 60]))  # as if its life were nearly over
    bootstrapped.restart()
    bootstrapped.wait("another one", lambda: (tmp_path / "mirror" / "client.pem").read_bytes() != first)
    bootstrapped.put(pod("later"))
    bootstrapped.wait("the mirror to work", lambda: bootstrapped.told("later-n1"))
