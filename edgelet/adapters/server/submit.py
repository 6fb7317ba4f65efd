"""Writing to ``/api/v1/namespaces/NS/pods``: create, replace, patch, delete pods submitted through the API.

One write at a time.  Pods of files and URLs are read-only here, and the refusal says where to change
them.  Answers show the pod as the store knows it after the change.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import tornado.web

from ... import errors
from ...engine.store import Entry
from ...model.pod import Pod, PodKey
from ...model.problems import Problem
from ...model.status import PodStatus
from ...model.submission import Applied, Expect
from . import manifests, objects, params, patches, statuses
from .base import Refused
from .params import BadRequest
from .resources import Pods

Json = dict[str, Any]

SHOWN_SECONDS = 2.0
"""How long an answer waits for the pod's worker to show the change."""

SUBMITTED = "api"

_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_JSON_PATCH = "application/json-patch+json"
_APPLY = ("application/apply-patch+yaml", "application/apply-patch+cbor")
_BODIES = ("application/json", "application/yaml", "application/x-yaml", "text/yaml", "")


class SubmittedPods(Pods):
    """Adds the writing verbs to the reading ones."""

    async def post(self, namespace: str, name: str = "") -> None:
        """Create."""
        _only(not name)
        self._expect_type(_BODIES)
        tree = manifests.named(manifests.document(self.request.body), namespace)
        key = PodKey(namespace, str(manifests.metadata(tree).get("name", "")))
        async with self.hub.writing:
            self._refuse_taken(key)
            await self._apply(key, tree, Expect.NEW, 201)

    async def put(self, namespace: str, name: str = "") -> None:
        """Replace."""
        _only(name)
        self._expect_type(_BODIES)
        tree = manifests.document(self.request.body)
        key = PodKey(namespace, name)
        async with self.hub.writing:
            before = self._writable(key)
            self._refuse_stale(before, manifests.metadata(tree))
            await self._apply(key, manifests.named(tree, namespace, name), Expect.EXISTING, 200, before)

    async def patch(self, namespace: str, name: str = "") -> None:
        """Patch, or (server-side) apply, which also creates."""
        _only(name)
        kind = self._content_type()
        self._expect_type((*_APPLY, _MERGE, _STRATEGIC, _JSON_PATCH))
        key = PodKey(namespace, name)
        async with self.hub.writing:
            if kind in _APPLY and self._free(key):
                tree = manifests.named(manifests.document(self.request.body), namespace, name)
                await self._apply(key, tree, Expect.NEW, 201)
                return
            before = self._writable(key)
            tree = self._patched(before, kind)
            await self._apply(key, manifests.named(tree, namespace, name), Expect.EXISTING, 200, before)

    async def delete(self, namespace: str, name: str = "") -> None:
        """Delete; with a grace period, that of the pod otherwise. Propagation means nothing here."""
        _only(name)
        options = manifests.document(self.request.body) if self.request.body.strip() else {}
        key = PodKey(namespace, name)
        grace = self._grace(options)
        async with self.hub.writing:
            entry = self._deletable(key)
            self._check_preconditions(entry, options.get("preconditions") or {})
            if self._dry_run(options):
                self.send(objects.pod(entry, self.services.node_name))
                return
            await asyncio.to_thread(self.services.submissions.delete, key, grace)
            shown = await self._shown(key, lambda e: e is None or e.status.deleting > 0)
        self.send(objects.pod(shown or _ending(entry, self.services.clock.time(), grace), self.services.node_name))

    # -- what is there -------------------------------------------------------------------------------

    def _free(self, key: PodKey) -> bool:
        return self.services.store.get(key) is None and self.services.submissions.owner(key) is None

    def _refuse_taken(self, key: PodKey) -> None:
        owner = self.services.submissions.owner(key)
        entry = self.services.store.get(key)
        if owner is None and entry is not None:
            raise Refused(statuses.already_exists("pods", key.name, "object is being deleted: "))
        if owner is not None:
            more = "" if owner == SUBMITTED else f"; it comes from {owner}: change it there, or choose another name"
            raise Refused(statuses.already_exists("pods", key.name, more=more))

    def _writable(self, key: PodKey) -> Entry:
        """The submitted pod of that name. Refuses what is not there, is ending, or belongs to another source."""
        owner, entry = self.services.submissions.owner(key), self.services.store.get(key)
        if owner is None and entry is None:
            raise Refused(statuses.not_found("pods", key.name))
        if owner is None:
            raise Refused(statuses.conflict("pods", key.name, "the pod is being deleted"))
        if owner != SUBMITTED:
            raise Refused(statuses.read_only("pods", key.name, owner))
        pod = self.services.submissions.get(key)
        if pod is None:
            raise Refused(statuses.not_found("pods", key.name))
        return entry if entry is not None and entry.pod == pod else self._new_entry(pod)

    def _deletable(self, key: PodKey) -> Entry:
        """The pod: a submitted one, or any that is ending already (it may be hurried)."""
        entry = self.services.store.get(key)
        if entry is not None and entry.status.deleting and self.services.submissions.owner(key) is None:
            return entry
        return self._writable(key)

    def _refuse_stale(self, entry: Entry, meta: Json) -> None:
        version, uid = meta.get("resourceVersion"), meta.get("uid")
        if uid and uid != entry.pod.uid:
            said = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {entry.pod.uid}"
            raise Refused(statuses.conflict("pods", entry.pod.name, said))
        if version and version != str(entry.version):
            said = "the object has been modified; please apply your changes to the latest version and try again"
            raise Refused(statuses.conflict("pods", entry.pod.name, said))

    def _check_preconditions(self, entry: Entry, given: Any) -> None:
        if not isinstance(given, dict):
            raise BadRequest("preconditions must be a mapping")
        self._refuse_stale(entry, given)

    # -- what is wanted ------------------------------------------------------------------------------

    def _patched(self, entry: Entry, kind: str) -> Json:
        body = manifests.document(self.request.body) if kind != _JSON_PATCH else {}
        if kind in _APPLY and "spec" in body:
            return body  # one owner: what is applied is the whole manifest; without a spec it is a remark
        self._refuse_stale(entry, manifests.metadata(body))
        written, live = self._written(entry), manifests.clean(objects.pod(entry, self.services.node_name))
        try:
            if kind == _JSON_PATCH:
                return self._json_patched(written, live)
            return patches.strategic(written, body) if kind != _MERGE else dict(patches.merge(written, body))
        except patches.Unfit as error:
            raise Refused(statuses.failure(422, f"the patch cannot be applied: {error}")) from error

    def _json_patched(self, written: Json, live: Json) -> Json:
        """Pointers are made from what was seen, which has the defaults in it; as written is tried first."""
        try:
            operations = json.loads(self.request.body)
        except (ValueError, RecursionError) as error:
            raise BadRequest(f"cannot read the patch: {error}") from error
        try:
            found = patches.json_patch(written, operations)
        except patches.Unfit:
            found = patches.json_patch(live, operations)
        if not isinstance(found, dict):
            raise BadRequest("the patch leaves no object")
        return found

    def _written(self, entry: Entry) -> Json:
        """The manifest as it was sent, where that was this pod alone; else as it was understood."""
        data = self.services.submissions.manifest(entry.pod.key)
        live = manifests.clean(objects.pod(entry, self.services.node_name))
        try:
            tree = manifests.document(data) if data else live
        except BadRequest:
            return live  # several documents
        return tree if tree.get("kind") == "Pod" else live

    def _grace(self, options: Json) -> int | None:
        given = params.integer(self.param, "gracePeriodSeconds")
        value = options.get("gracePeriodSeconds", given)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            raise BadRequest("gracePeriodSeconds must be a whole number of at least 0")
        return value

    def _dry_run(self, options: Json | None = None) -> bool:
        values = self.get_query_arguments("dryRun") or list((options or {}).get("dryRun") or ())
        if any(value != "All" for value in values):
            raise BadRequest(f"dryRun can only be All, not {values}")
        return bool(values)

    def _validation(self) -> str:
        value = self.param("fieldValidation") or "Warn"
        if value not in ("Strict", "Warn", "Ignore"):
            raise BadRequest(f'fieldValidation can be Strict, Warn or Ignore, not "{value}"')
        return value

    def _content_type(self) -> str:
        return self.request.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    def _expect_type(self, known: tuple[str, ...]) -> None:
        if self._content_type() not in known:
            said = (
                f"the body of the request was in an unknown format - accepted media types include: {', '.join(known)}"
            )
            raise Refused(statuses.failure(415, said))

    # -- doing it ------------------------------------------------------------------------------------

    async def _apply(self, key: PodKey, tree: Json, expect: Expect, code: int, before: Entry | None = None) -> None:
        validation, dry_run = self._validation(), self._dry_run()
        data = json.dumps(tree, ensure_ascii=False).encode("utf-8", "replace")
        applied = await asyncio.to_thread(self._checked, key, data, expect, validation, dry_run)
        for text in manifests.warnings(applied.warnings, validation):
            self.add_header("Warning", text)
        entry = _as_if(before, applied.pod) if dry_run else None
        if not dry_run:
            entry = await self._shown(key, lambda e: e is not None and e.pod.config_hash == applied.pod.config_hash)
        self.send(objects.pod(entry or self._new_entry(applied.pod), self.services.node_name), code)

    def _checked(self, key: PodKey, data: bytes, expect: Expect, validation: str, dry_run: bool) -> Applied:
        """Validate before anything is changed, then take it in. Runs in a thread: it waits for the disk."""
        submissions = self.services.submissions
        try:
            if validation == "Strict":
                refusal = manifests.strict(submissions.check(data))
                if refusal is not None:
                    raise Refused(refusal)
            return submissions.apply(data, expect, dry_run)[0]
        except errors.NameTaken as error:
            raise Refused(statuses.conflict("pods", key.name, str(error))) from error
        except errors.ManifestError as error:
            problems = tuple(p for p in error.problems if isinstance(p, Problem))
            raise Refused(manifests.invalid(key.name, problems)) from error

    async def _shown(self, key: PodKey, seen: Callable[[Entry | None], bool]) -> Entry | None:
        """The entry once it looks like that, or as it is after a while."""
        until = time.monotonic() + SHOWN_SECONDS
        while True:
            waiter = self.hub.waiter()
            entry = self.services.store.get(key)
            left = until - time.monotonic()
            if seen(entry) or left <= 0 or self.over:
                waiter.cancel()
                return entry if seen(entry) else None
            await asyncio.wait((waiter,), timeout=left)
            waiter.cancel()

    def _new_entry(self, pod: Pod) -> Entry:
        version, _ = self.services.store.list()
        return Entry(pod, PodStatus("Pending"), version, self.services.clock.time())


def _as_if(before: Entry | None, pod: Pod) -> Entry | None:
    """What a dry run shows: the changed manifest, everything else as it is; `kubectl diff` compares the two."""
    return before and replace(before, pod=replace(pod, uid=before.pod.uid, config_hash=before.pod.config_hash))


def _only(right: object) -> None:
    """Some verbs are for the collection, the others for one pod."""
    if not right:
        raise tornado.web.HTTPError(405)


def _ending(entry: Entry, now: float, grace: int | None) -> Entry:
    """The pod as its deletion begins; its worker has not said so yet, or it is gone already."""
    status = PodStatus(entry.status.phase, start_time=entry.status.start_time, deleting=now, deletion_grace=grace)
    return Entry(entry.pod, status, entry.version, entry.seen_at)
