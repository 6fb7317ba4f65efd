"""Keeps the Node and its Lease on the server: registration, status, heartbeat (semantics 7.1, 7.2)."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from typing import Any

from ...core import mirror_link, mirror_node
from ...errors import Refused
from . import api
from .connection import Reply
from .parts import Parts, Problems, node_ref

log = logging.getLogger(__name__)
Json = dict[str, Any]

NODE, LEASE, CLASH, LABELS = "node", "lease", "clash", "labels"
"""Names of problems."""
LEASE_TRIES = 5
"""Tries within one renewal, as the kubelet has (7.2): who was there first, and answers that were lost, take some."""


class NodeState:
    """What the mirror's tasks know of the Node. One thread writes; others read single values.

    `uid` "" = it is not known to exist.  `changed` is called when it became another one.
    """

    def __init__(self, parts: Parts, problems: Problems) -> None:
        self.options = parts.options
        self.clock = parts.clock
        self.problems = problems
        self.uid = ""
        self.known_at = float("-inf")
        self.document: Json = {}
        self.holder = mirror_link.Holder()
        self.heartbeat = 0.0
        self.on_new: Callable[[], None] = lambda: None
        self.look = False

    @property
    def clash(self) -> bool:
        """Another box uses this node's name now: nothing but the heartbeat is sent."""
        return mirror_link.clash(self.holder, self.options.lease_duration, self.clock.monotonic())

    def suspect(self) -> None:
        """A refusal may mean that the Node is gone: look before the next thing."""
        self.look = True

    def foreign(self, holder: mirror_link.Holder) -> None:
        """What is known of who else renews the lease."""
        self.holder = holder
        if not self.clash:
            self.problems.clear(CLASH)
            return
        text = (
            f"another machine reports as node {self.options.node}: give each box a node name of its own (--node-name);"
            " until then nothing of this one is shown"
        )
        self.problems.set(CLASH, node_ref(self.options.node), text)


class NodeTask:
    """Registers the Node and reports its status."""

    name = NODE

    def __init__(self, parts: Parts, asked: api.Api, state: NodeState) -> None:
        self._parts = parts
        self._o = parts.options
        self._api = asked
        self._state = state
        self._due = 0.0
        self._failures = 0
        self._reported = float("-inf")
        self._images: Sequence[Json] | None = None
        self._pulled = True
        self._unsubscribe = parts.events.subscribe(lambda change: self._note(change.value.reason))

    def _note(self, reason: str) -> None:
        if reason == "Pulled":
            self._pulled = True

    def due(self, now: float) -> float | None:
        """See parts.Task."""
        if self._state.look:
            self._state.look = False
            self._due = min(self._due, now)
            self._state.document = {}
        return self._due

    def lost(self) -> None:
        """Everything is computed and sent in full after a loss (pain 133)."""
        self._state.document = {}
        self._due = 0.0

    def run(self, now: float) -> None:
        """See parts.Task."""
        try:
            self._round(now)
        except Refused as error:
            self._failures += 1
            self._due = now + mirror_link.object_retry(self._failures, random.random())
            if self._failures >= mirror_link.TELL_AFTER:
                self._state.problems.set(NODE, node_ref(self._o.node), str(error))
            return
        self._failures = 0
        self._state.problems.clear(NODE)
        self._due = now + mirror_link.jittered(self._o.update_frequency, random.random())

    def _round(self, now: float) -> None:
        facts = self._parts.facts()
        if not self._state.document:
            self._get_or_create(now)
            self._reported = float("-inf")
        if self._state.clash:
            self._state.foreign(self._state.holder)
            return
        here = mirror_node.status(facts, self._o.registration, self._listed(), self._parts.clock.time())
        there = self._state.document.get("status") or {}
        heartbeat = now - self._reported >= self._o.report_frequency
        patch = mirror_node.patch(there, here, heartbeat)
        if not patch:
            return
        reply = self._api.patch_node_status(patch)
        if reply.code == 404:
            self._state.document = {}
        if reply.code != 200:
            raise api.refused(f"report the status of node {self._o.node}", reply)
        self._tell(there, reply.document.get("status") or {})
        self._state.document = reply.document
        self._reported = now

    def _tell(self, there: Json, now: Json) -> None:
        before, after = (mirror_node.readiness(s.get("conditions") or ()) for s in (there, now))
        if before != after:
            reason = "NodeReady" if after == "True" else "NodeNotReady"
            text = f"Node {self._o.node} status is now: {reason}"
            self._parts.events.event(node_ref(self._o.node), "Normal", reason, text)

    def _get_or_create(self, now: float) -> None:
        reply = self._api.node()
        if reply.code == 404:
            reply = self._create()
        elif reply.code == 200:
            self._examine(reply.document, now)
            reply = self._reconcile(reply)
        if reply.code not in (200, 201):
            raise api.refused(f"read node {self._o.node}", reply)
        uid = str((reply.document.get("metadata") or {}).get("uid", ""))
        self._state.document = reply.document
        if uid != self._state.uid:
            self._state.uid, self._state.known_at = uid, now
            log.info("node %s is registered at the API server", self._o.node)
            self._state.on_new()

    def _create(self) -> Reply:
        node = self._o.node
        if not self._o.register:
            text = f"node {node} does not exist at the API server and registerNode is false: create it there"
            raise Refused(text, 404)
        reply = self._api.create_node(mirror_node.body(self._parts.facts(), self._o.registration))
        if reply.code == 409:  # the answer to an earlier try was lost
            reply = self._api.node()
        if reply.code not in (200, 201):
            raise api.refused(f"register node {node}", reply)
        return reply

    def _examine(self, there: Json, now: float) -> None:
        """Who filled the Node in last: this machine before a reboot, or another one that still lives?"""
        facts = self._parts.facts()
        if mirror_node.rebooted(there, facts) and not mirror_node.other_machine(there, facts):
            text = f"Node {self._o.node} has been rebooted, boot id: {facts.boot_id}"
            self._parts.events.event(node_ref(self._o.node), "Warning", "Rebooted", text)
        if not mirror_node.other_machine(there, facts):
            return
        lease = self._api.lease()
        renewed = str((lease.document.get("spec") or {}).get("renewTime", "")) if lease.code == 200 else ""
        fresh = bool(renewed) and mirror_node.fresh(lease.document, self._parts.clock.time())
        self._state.foreign(mirror_link.judged(self._state.holder, renewed, fresh, now))

    def _reconcile(self, there: Reply) -> Reply:
        if not self._o.register or self._state.clash:
            return there
        patch = mirror_node.reconcile(there.document, self._parts.facts(), self._o.registration)
        if not patch:
            self._state.problems.clear(LABELS)
            return there
        reply = self._api.patch_node(patch)
        if reply.code != 200:
            error = api.refused(f"set labels of node {self._o.node}", reply)
            self._state.problems.set(LABELS, node_ref(self._o.node), str(error))
            return there
        self._state.problems.clear(LABELS)
        return reply

    def _listed(self) -> Sequence[Json]:
        """The images, asked for at the start and after pulls only: Podman is to stay idle."""
        if self._pulled or self._images is None:
            self._pulled = False
            self._images = self._parts.images()
        return self._images


class LeaseTask:
    """Renews the Lease: the heartbeat, and the first to notice that the link is lost."""

    name = LEASE

    def __init__(self, parts: Parts, asked: api.Api, state: NodeState) -> None:
        self._o = parts.options
        self._clock = parts.clock
        self._api = asked
        self._state = state
        self._due = 0.0
        self._failures = 0
        self._known: Json | None = None

    def due(self, now: float) -> float | None:
        """See parts.Task."""
        return self._due if self._state.uid else None

    def lost(self) -> None:
        """The first thing that is tried again."""
        self._due = 0.0

    def anew(self) -> None:
        """The Node is another one: its Lease is too."""
        self._known = None
        self._due = 0.0

    def run(self, now: float) -> None:
        """See parts.Task."""
        self._due = now + mirror_link.renew_interval(self._o.lease_duration)
        try:
            self._renew(now)
        except Refused as error:
            self._known = None
            self._failures += 1
            self._due = min(self._due, now + mirror_link.object_retry(self._failures, random.random()))
            if self._failures >= mirror_link.TELL_AFTER:
                self._state.problems.set(LEASE, node_ref(self._o.node), str(error))
            return
        self._failures = 0
        self._state.heartbeat = self._clock.time()
        self._state.problems.clear(LEASE)
        self._state.foreign(self._state.holder)

    def _renew(self, now: float) -> None:
        if self._known is None:
            self._read()
        for _ in range(LEASE_TRIES):
            reply = self._send()
            if reply.code in (200, 201):
                self._known = reply.document
                return
            if reply.code == 404 and self._known is not None:
                self._gone()
            elif reply.code == 409:
                self._judge(now)
            else:
                break
        raise api.refused(f"renew the lease of node {self._o.node}", reply)

    def _send(self) -> Reply:
        body = mirror_node.lease(self._o.node, self._state.uid, self._o.lease_duration, self._clock.time(), self._known)
        self._state.holder = mirror_link.trying(self._state.holder, body["spec"]["renewTime"])
        return self._api.renew_lease(body) if self._known is not None else self._api.create_lease(body)

    def _read(self) -> None:
        reply = self._api.lease()
        if reply.code not in (200, 404):
            raise api.refused(f"read the lease of node {self._o.node}", reply)
        self._known = reply.document if reply.code == 200 else None

    def _gone(self) -> None:
        """The Lease goes with its Node: it, or the whole server, may be a new one."""
        self._known = None
        self._state.suspect()

    def _judge(self, now: float) -> None:
        """Somebody changed it since: an own renewal whose answer was lost, or another box."""
        self._read()
        if self._known is None:
            self._gone()  # a server calls it a conflict when a Lease with an uid is put that is not there
            return
        renewed = str((self._known.get("spec") or {}).get("renewTime", ""))
        fresh = mirror_node.fresh(self._known, self._clock.time())
        self._state.foreign(mirror_link.judged(self._state.holder, renewed, fresh, now))
