"""Reading pods and events: get, list and watch, as objects or as tables, with selectors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import tornado.iostream

from ...engine import journal
from ...engine.store import Entry
from ...model.events import Event
from ...model.pod import PodKey
from . import objects, paging, params, selectors, statuses, tables
from .base import Access, Refused
from .streaming import Streaming

Json = dict[str, Any]

WATCH_SECONDS = 1800
"""A watch without timeoutSeconds ends after that; clients then start the next one (client-go does)."""

WATCHES = 100
"""Watches at a time; each costs some 30 KiB, and a box has a handful of watchers."""

UNSENT_BYTES = 32 << 10
"""What is written to a watch before its client has to have taken it."""

BOOKMARK_SECONDS = 60
"""How often a watch that allows bookmarks gets one."""


@dataclass(frozen=True, slots=True)
class Item:
    """One object with the journal's version of the change that made it."""

    kind: journal.ChangeKind
    version: int
    body: Json
    previous: Json | None = None


class Feed(Streaming):
    """A resource that can be listed and watched; its subclasses know where it comes from."""

    list_kind: ClassVar[str] = ""
    watching: ClassVar[int] = 0
    look_seconds: ClassVar[float] = 0.0  # 0 = a bookmark is all that is due without news
    table: ClassVar[Callable[..., Json]] = tables.pods

    def snapshot(self) -> tuple[int, Iterable[Json]]:
        """The version of the list, and its objects."""
        raise NotImplementedError

    def changes(self, version: int) -> list[Item]:
        """The changes since a version. Raises journal.Expired."""
        raise NotImplementedError

    def verb(self) -> str:
        verb = super().verb()
        return "list" if verb == "get" and "name" not in (self.path_kwargs or {}) else verb

    async def answer(self, namespace: str) -> None:
        """List or watch, as the query says; namespace "" = all."""
        match = self.matcher(namespace)
        if params.flag(self.param, "watch"):
            await self.watch(match)
            return
        version, items = self.snapshot()
        chosen = [item for item in items if match(item)]
        chosen, more = paging.page(chosen, self.param, version)
        if self.as_table():
            found = self.render_table(chosen, str(version))
        else:
            found = objects.listing(self.list_kind, [_bare(item) for item in chosen], version)
        found["metadata"].update(more)
        self.send(found)

    def matcher(self, namespace: str) -> selectors.Match:
        """Whether an object is asked for: namespace, label and field selector together."""
        by_label = selectors.labels(self.param("labelSelector"))
        by_field = selectors.fields(self.param("fieldSelector"), self.resource)

        def match(item: Json) -> bool:
            inside = not namespace or item["metadata"].get("namespace", "") == namespace
            return inside and by_label(item) and by_field(item)

        return match

    def as_table(self) -> bool:
        """Whether the caller asked for a Table."""
        return params.wants_table(self.request.headers.get("Accept", ""))

    def render_table(self, items: list[Json], version: str, header: bool = True) -> Json:
        """These objects as a Table."""
        include = self.param("includeObject") or "Metadata"
        return type(self).table(items, version, self.services.clock.time(), include, header)

    async def watch(self, match: selectors.Match) -> None:
        """Stream changes as JSON lines until the time is up, the client goes or falls too far behind."""
        if Feed.watching >= WATCHES:
            raise Refused(statuses.failure(429, f"cannot watch: {WATCHES} watches are under way already"))
        self.set_header("Content-Type", "application/json")
        watch = _Watch(self, match)
        Feed.watching += 1
        try:
            with self.streaming():
                await watch.run()
        except tornado.iostream.StreamClosedError:
            pass  # the client went away
        finally:
            Feed.watching -= 1


class _Watch:
    """One watch: its position in the journal is all that it holds."""

    def __init__(self, handler: Feed, match: selectors.Match) -> None:
        self._handler = handler
        self._match = match
        self._table = handler.as_table()
        self._header = True
        self._unsent = 0
        self._bookmarks = params.flag(handler.param, "allowWatchBookmarks")
        seconds = params.integer(handler.param, "timeoutSeconds") or WATCH_SECONDS
        self._deadline = asyncio.get_running_loop().time() + seconds
        given = handler.param("resourceVersion")
        self._version = params.integer(handler.param, "resourceVersion") if given not in ("", "0") else None

    async def run(self) -> None:
        if self._version is None:
            self._version, items = self._handler.snapshot()
            for item in items:
                if self._match(item):
                    await self._write("ADDED", item)
        await self._handler.push()  # headers too: the client waits for them
        while await self._step():
            pass

    async def _step(self) -> bool:
        handler = self._handler
        waiter = handler.waiter()
        try:
            await self._catch_up()
        except journal.Expired as error:
            waiter.cancel()
            self._write_raw("ERROR", statuses.expired(str(error)))
            return False
        await handler.push()
        left = self._deadline - asyncio.get_running_loop().time()
        if not await handler.pause(waiter, min(left, handler.look_seconds or BOOKMARK_SECONDS)):
            self._bookmark()
        return not handler.over and asyncio.get_running_loop().time() < self._deadline

    async def _catch_up(self) -> None:
        for item in self._handler.changes(self._version or 0):
            self._version = item.version
            kind = _kind_for(item, self._match)
            if kind:
                await self._write(kind, item.body)

    async def _write(self, kind: str, item: Json) -> None:
        """One change; a client that does not read is waited for, so that little is kept for it."""
        if self._table:
            version = item["metadata"]["resourceVersion"]
            self._write_raw(kind, self._handler.render_table([item], version, self._header))
            self._header = False
        else:
            self._write_raw(kind, item)
        if self._unsent > UNSENT_BYTES:
            self._unsent = 0
            await self._handler.push()

    def _bookmark(self) -> None:
        if self._bookmarks and not self._table:
            kind = self._handler.list_kind.removesuffix("List")
            meta = {"resourceVersion": str(self._version)}
            self._write_raw("BOOKMARK", {"kind": kind, "apiVersion": "v1", "metadata": meta})

    def _write_raw(self, kind: str, body: Json) -> None:
        line = json.dumps({"type": kind, "object": body}, separators=(",", ":"), ensure_ascii=False)
        data = line.encode("utf-8", "replace") + b"\n"
        self._unsent += len(data)
        self._handler.write(data)


class Pods(Feed):
    """``/api/v1/pods``, ``/api/v1/namespaces/NS/pods[/NAME]``."""

    resource = "pods"
    list_kind = "PodList"
    table = tables.pods

    def snapshot(self) -> tuple[int, Iterable[Json]]:
        version, entries = self.services.store.list()
        return version, (self._render(entry) for entry in entries)

    def changes(self, version: int) -> list[Item]:
        return [
            Item(c.kind, c.version, self._render(c.value), self._render(c.previous) if c.previous else None)
            for c in self.services.store.since(version)
        ]

    async def get(self, namespace: str = "", name: str = "") -> None:
        if not name:
            await self.answer(namespace)
            return
        entry = self.services.store.get(PodKey(namespace, name))
        if entry is None:
            raise Refused(statuses.not_found("pods", name))
        body = self._render(entry)
        self.send(self.render_table([body], str(entry.version)) if self.as_table() else body)

    def _render(self, entry: Entry) -> Json:
        return objects.pod(entry, self.services.node_name)


class Events(Feed):
    """``/api/v1/events``, ``/api/v1/namespaces/NS/events[/NAME]``."""

    resource = "events"
    list_kind = "EventList"
    table = tables.events

    def snapshot(self) -> tuple[int, Iterable[Json]]:
        version, events = self.services.events.list()
        return version, (self._render(event) for event in events)

    def changes(self, version: int) -> list[Item]:
        return [
            Item(c.kind, c.version, self._render(c.value), self._render(c.previous) if c.previous else None)
            for c in self.services.events.since(version)
        ]

    async def get(self, namespace: str = "", name: str = "") -> None:
        if not name:
            await self.answer(namespace)
            return
        _, events = self.services.events.list()
        found = [e for e in events if e.name == name and (e.key.namespace or "default") == namespace]
        if not found:
            raise Refused(statuses.not_found("events", name))
        body = self._render(found[0])
        self.send(self.render_table([body], str(found[0].version)) if self.as_table() else body)

    def _render(self, event: Event) -> Json:
        return objects.event(event, self.services.node_name)


class KubeletPods(Access):
    """``/pods``, as the kubelet serves it: desired pods only, a terminating one is gone (8.2)."""

    resource = "pods"

    async def get(self) -> None:
        _, entries = self.services.store.list()
        wanted = [e for e in entries if not e.status.deleting]
        items = [_bare(objects.pod(entry, self.services.node_name)) for entry in wanted]
        self.send({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})


def _kind_for(item: Item, match: selectors.Match) -> str:
    """What a change is to a watch with selectors: objects enter and leave its view; "" = not seen."""
    now = item.kind is not journal.ChangeKind.DELETED and match(item.body)
    before = item.previous is not None and match(item.previous)
    if now:
        return "MODIFIED" if before else "ADDED"
    return "DELETED" if before else ""


def _bare(item: Json) -> Json:
    """An item of a list carries neither kind nor apiVersion."""
    return {name: value for name, value in item.items() if name not in ("kind", "apiVersion")}
