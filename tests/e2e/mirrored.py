"""Whether an API server shows exactly what an agent has: Node, Lease, mirror pods, statuses, events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from tests.apiserver.client import Client
from tests.e2e.agent import NODE, Agent

Json = dict[str, Any]
MIRROR, HASH = "kubernetes.io/config.mirror", "kubernetes.io/config.hash"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NODE}"
PATIENCE = 120.0
"""Seconds until all is told: several failures in a row are answered with growing patience."""
_OUR_CONDITIONS = frozenset(("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"))


def wait_equal(agent: Agent, server: Client, seconds: float = PATIENCE) -> None:
    """Until nothing differs; fails with what does."""
    try:
        agent.wait("the server to show what is here", lambda: not differences(agent, server), seconds)
    except AssertionError as error:
        found = "\n".join(differences(agent, server))
        raise AssertionError(f"{error}\n{found}") from error


def differences(agent: Agent, server: Client) -> list[str]:
    """A line for each."""
    return [*_node(agent, server), *_lease(server), *_pods(agent, server), *_events(agent, server)]


def _node(agent: Agent, server: Client) -> Iterator[str]:
    there = _object(server, f"/api/v1/nodes/{NODE}")
    here = agent.get(f"/api/v1/nodes/{NODE}")
    conditions = [_conditions(n.get("status", {}), _OUR_CONDITIONS) for n in (here, there)]
    words = [{k: v["status"] for k, v in c.items()} for c in conditions]
    if words[0] != words[1]:
        yield f"conditions of the Node: {words[0]} here, {words[1]} there"
    for part in ("addresses", "nodeInfo"):
        mine, shown = (n.get("status", {}).get(part) for n in (here, there))
        if mine != shown:
            yield f"{part} of the Node: {mine} here, {shown} there"


def _lease(server: Client) -> Iterator[str]:
    spec = _object(server, LEASE).get("spec", {})
    if spec.get("holderIdentity") != NODE:
        yield f"the Lease is held by {spec.get('holderIdentity')!r}"
        return
    age = (datetime.now(UTC) - datetime.fromisoformat(spec["renewTime"])).total_seconds()
    if age > spec["leaseDurationSeconds"]:
        yield f"the Lease was renewed {age:.1f} s ago"


def _pods(agent: Agent, server: Client) -> Iterator[str]:
    uid = _object(server, f"/api/v1/nodes/{NODE}").get("metadata", {}).get("uid", "")
    query = f"/api/v1/pods?fieldSelector=spec.nodeName%3D{NODE}"
    here, there = (
        {_place(p): p for p in items} for items in (agent.get("/api/v1/pods")["items"], _items(server, query))
    )
    for place in sorted(here.keys() ^ there.keys()):
        yield f"pod {place} is {'here' if place in here else 'there'} only"
    for place in sorted(here.keys() & there.keys()):
        yield from (f"pod {place}: {line}" for line in _pod(here[place], there[place], uid))


def _place(item: Json) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def _items(server: Client, path: str) -> list[Json]:
    found: list[Json] = _object(server, path).get("items") or []
    return found


def _object(server: Client, path: str) -> Json:
    """{} = it is not there."""
    answer = server.get(path)
    return answer.body if answer.code == 200 else {}


def _pod(here: Json, there: Json, node_uid: str) -> Iterator[str]:
    metadata = there["metadata"]
    if metadata.get("deletionTimestamp"):
        yield "is being deleted there"
    if [o["uid"] for o in metadata.get("ownerReferences", [])] != [node_uid]:
        yield "belongs to another Node there"
    mine, shown = _of_spec(here), _of_spec(there)
    if mine != shown:
        yield f"{mine} here, {shown} there"
    yield from _status(here["status"], there["status"])


def _of_spec(pod: Json) -> Json:
    """What a change of the manifest changes here."""
    return {c["name"]: (c["image"], c.get("env", [])) for c in pod["spec"]["containers"]}


def _status(here: Json, there: Json) -> Iterator[str]:
    for part in sorted((here.keys() | there.keys()) - {"conditions"}):
        if bare(here.get(part)) != bare(there.get(part)):
            yield f"{part} is {here.get(part)} here, {there.get(part)} there"
    mine, shown = _conditions(here), _conditions(there)
    if mine != shown:
        yield f"conditions are {mine} here, {shown} there"


def _conditions(status: Json, only: frozenset[str] = frozenset()) -> dict[str, Json]:
    every = status.get("conditions") or []
    return {c["type"]: bare(c) for c in every if not only or c["type"] in only}


def bare(value: Any) -> Any:
    """Without what means nothing: null, "", [], {}."""
    if isinstance(value, dict):
        found = {k: bare(v) for k, v in value.items()}
        return {k: v for k, v in found.items() if v not in (None, "", [], {})}
    return [bare(v) for v in value] if isinstance(value, list) else value


def _events(agent: Agent, server: Client) -> Iterator[str]:
    here = {e["metadata"]["name"]: _event(e) for e in agent.get("/api/v1/events")["items"]}
    mine = [e for e in _items(server, "/api/v1/events") if e.get("source", {}).get("host") == NODE]
    there = {e["metadata"]["name"]: _event(e) for e in mine}
    for name in sorted(here.keys() - there.keys()):
        yield f"event {name} is not told: {here[name]}"
    for name in sorted(here.keys() & there.keys()):
        if here[name] != there[name]:
            yield f"event {name}: {here[name]} here, {there[name]} there"
    # Two pods of one name may say the same within a second: as often as here is not too often.
    happened = Counter(about[:-2] for about in here.values())
    told = Counter((e["involvedObject"].get("uid", ""), *_event(e)[:-2]) for e in mine)
    twice = {about: count for about, count in told.items() if count > max(1, happened[about[1:]])}
    yield from (f"event told {count} times: {about}" for about, count in twice.items())


def _event(event: Json) -> tuple[Any, ...]:
    """What it says: the last two parts change when it repeats."""
    about = event["involvedObject"]
    where = (about.get("kind"), about.get("namespace", ""), about.get("name"), about.get("fieldPath", ""))
    first = event.get("firstTimestamp")
    return (
        *where,
        event.get("reason"),
        event.get("message"),
        event.get("type"),
        first,
        event.get("count"),
        event.get("lastTimestamp"),
    )
