"""What each verb does: create, get, list, update, patch, delete, on any of the resources."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from edgelet.adapters.server import patches
from edgelet.model import check

from . import admission, others, pods, signing, written
from .answers import Refusal, bad_request, conflict, exists, invalid, modified, not_found, success, unauthorized
from .answers import forbidden as refused
from .identity import User, refusal, told
from .kinds import RESOURCES, Call, comparisons
from .schema import Look
from .store import Key, Store

Json = dict[str, Any]

_FIXED = ("uid", "name", "namespace", "creationTimestamp")
_CONDITIONAL = frozenset(("leases", "certificatesigningrequests"))
"""Resources of which a PUT must say the version."""
_MADE_BY_PUT = frozenset(("leases", "events"))
_CHECKS: dict[str, Callable[[Json], Iterator[pods.Cause]]] = {
    "pods": pods.problems,
    "nodes": others.node_problems,
    "events": others.event_problems,
    "leases": others.lease_problems,
    "certificatesigningrequests": others.csr_problems,
}


class Verbs:
    """The resources of one server. `violations` gets a line for all that a careful client would not send."""

    def __init__(self, store: Store, violations: list[str], signer: signing.Signer) -> None:
        self.store = store
        self._violations = violations
        self._signer = signer

    def run(self, user: User | None, call: Call, body: bytes, kind: str) -> tuple[int, Json]:
        """Code and object of the answer. Raises Refusal."""
        if user is None:
            raise unauthorized()
        self.allow(user, call)
        match call.verb:
            case "get":
                return 200, self._found(call)
            case "list":
                return 200, self.collection(call)
            case "create":
                return 201, self._create(user, call, self._document(call, body, call.resource.kind))
            case "update":
                return self._put(user, call, self._document(call, body, call.resource.kind))
            case "patch":
                return self._patch(user, call, body, kind)
            case "delete":
                return self._delete(user, call, body)
        raise Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")

    def allow(self, user: User, call: Call) -> None:
        """Raises Refusal (403) for what the user may not do."""
        why = refusal(user, call, self.store)
        if why is not None:
            name = "" if call.verb == "create" else call.name
            raise refused(call.resource.plural, name, told(user, call, why), call.resource.group)

    def collection(self, call: Call) -> Json:
        """The list object."""
        with self.store.changed:
            items = [i for i in self.store.items(call.resource.plural, call.namespace) if selected(i, call)]
            metadata = {"resourceVersion": str(self.store.revision)}
        kind = f"{call.resource.kind}List"
        return {"kind": kind, "apiVersion": call.resource.api_version, "metadata": metadata, "items": items}

    # ---- bodies ---------------------------------------------------------------------------------

    def _document(self, call: Call, body: bytes, kind: str, patch: bool = False) -> Json:
        """The body with its known fields; what is wrong with it is told. Raises Refusal (400)."""
        try:
            found = yaml.safe_load(body) if patch and body[:1] != b"{" else json.loads(body)
        except (ValueError, yaml.YAMLError) as error:
            raise bad_request(f"the object provided is unrecognized: {error}") from error
        look = Look(patch)
        clean: Json = look.row(found, kind)
        self._violations += [f"{call.verb} {call.target} {call.namespace}/{call.name}: {line}" for line in look]
        if look.wrong:
            raise bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {look.wrong[0]}')
        if not patch and kind != "DeleteOptions":
            self._typed(call, clean)
        return clean

    @staticmethod
    def _typed(call: Call, item: Json) -> None:
        wanted = {"apiVersion": call.resource.api_version, "kind": call.resource.kind}
        for name, value in wanted.items():
            if item.setdefault(name, value) != value:
                raise bad_request(f"the API version or kind in the data ({item[name]}) does not match {value}")
        metadata = item.setdefault("metadata", {})
        if call.resource.namespaced and metadata.setdefault("namespace", call.namespace) != call.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if call.name and metadata.setdefault("name", call.name) != call.name:
            text = f"the name of the object ({metadata['name']}) does not match the name on the URL ({call.name})"
            raise bad_request(text)

    # ---- one object -----------------------------------------------------------------------------

    @staticmethod
    def _key(call: Call, name: str = "") -> Key:
        return call.resource.plural, call.namespace, name or call.name

    def _found(self, call: Call) -> Json:
        found = self.store.get(self._key(call))
        if found is None:
            raise not_found(call.resource.plural, call.name, call.resource.group)
        return found

    def _create(self, user: User, call: Call, item: Json) -> Json:
        resource, metadata = call.resource, item["metadata"]
        name = metadata.get("name", "")
        for field in ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "managedFields"):
            if metadata.pop(field, None) and field == "resourceVersion":
                raise bad_request("resourceVersion should not be set on objects to be created")
        owners = metadata.get("ownerReferences", [])
        if owners:
            metadata["ownerReferences"] = [o for at, o in enumerate(owners) if o not in owners[:at]]
        with self.store.changed:
            admission.create(user, call, item, self.store)
            if resource.plural == "pods":
                pods.prepare(item)
            if resource.plural == "namespaces":
                item |= {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
            if resource.plural == "certificatesigningrequests":
                item["spec"] |= {"username": user.name, "groups": sorted(user.groups)}
                item.pop("status", None)
            self._right(call, name, [*_named(name), *_CHECKS.get(resource.plural, _nothing)(item)])
            old = self.store.get(self._key(call, name))
            if old is not None:
                going = "deletionTimestamp" in old["metadata"]
                why = f'object is being deleted: {resource.plural} "{name}" already exists' if going else ""
                raise exists(resource.plural, name, resource.group) if not why else _going(call, name, why)
            if call.query.get("dryRun") == "All":
                return item
            written.zero_values(item)
            written.managed(item, self._manager(user, call), "Update", "")
            made = self.store.add(self._key(call, name), item)
            if resource.plural == signing.PLURAL:
                self._signer.created(made)
            return made

    def _right(self, call: Call, name: str, causes: list[pods.Cause]) -> None:
        if causes:
            raise invalid(call.resource.kind, name, causes)

    def _put(self, user: User, call: Call, item: Json) -> tuple[int, Json]:
        plural = call.resource.plural
        with self.store.changed:
            old = self.store.get(self._key(call))
            if old is None:
                uid = item["metadata"].get("uid", "")
                if plural in _MADE_BY_PUT and uid:
                    why = f"StorageError: invalid object, Code: 4, AdditionalErrorMsg: Precondition failed: UID: {uid}"
                    raise conflict(plural, call.name, why, call.resource.group)
                if plural in _MADE_BY_PUT:
                    item["metadata"].pop("resourceVersion", None)
                    return 201, self._create(user, call, item)
                raise not_found(plural, call.name, call.resource.group)
            given = item["metadata"].get("resourceVersion", "")
            if not given and plural in _CONDITIONAL:
                self._right(
                    call,
                    call.name,
                    [("metadata.resourceVersion", "Invalid value: 0x0: must be specified for an update")],
                )
            uid = item["metadata"].get("uid", "")
            if uid and uid != old["metadata"]["uid"]:
                why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}"
                raise conflict(plural, call.name, why, call.resource.group)
            if call.sub == "finalize" and not item.get("spec", {}).get("finalizers"):
                return 200, self._finalize(call, old)
            return 200, self._change(user, call, item, old)

    def _finalize(self, call: Call, namespace: Json) -> Json:
        """A namespace that was deleted goes, with all that is in it."""
        if "deletionTimestamp" in namespace["metadata"]:
            for plural in RESOURCES:
                for item in self.store.items(plural, call.name):
                    self.store.remove((plural, call.name, item["metadata"]["name"]))
            self.store.remove(self._key(call))
        return namespace

    def _patch(self, user: User, call: Call, body: bytes, kind: str) -> tuple[int, Json]:
        if kind == "application/json-patch+json":
            change: Any = json.loads(body)
        else:
            change = self._document(call, body, call.resource.kind, patch=True)
        with self.store.changed:
            old = self._found(call)
            try:
                new = _patched(old, change, kind)
            except patches.Unfit as error:
                raise bad_request(str(error)) from error
            return 200, self._change(user, call, new, old)

    def _change(self, user: User, call: Call, new: Json, old: Json) -> Json:
        metadata, before = new.setdefault("metadata", {}), old["metadata"]
        if metadata.get("resourceVersion") not in (None, "", before["resourceVersion"]):
            raise modified(call.resource.plural, call.name, call.resource.group)
        metadata["resourceVersion"] = before["resourceVersion"]
        causes = [
            (f"metadata.{f}", "Invalid value: field is immutable") for f in _FIXED if _differs(metadata, before, f)
        ]
        for field in _FIXED:
            if field in before:
                metadata[field] = before[field]
        causes += self._prepare(call, new, old)
        admission.update(user, call, new, old)
        self._right(call, call.name, causes)
        if self._finished(new):
            return self.store.remove(self._key(call)) or new
        written.zero_values(new)
        if _content(new) == _content(old):
            return old
        written.managed(new, self._manager(user, call), "Update", call.sub)
        return self.store.replace(self._key(call), new)

    @staticmethod
    def _manager(user: User, call: Call) -> str:
        """Who writes, as far as it tells."""
        return call.query.get("fieldManager", "edgelet" if user.node else "admin")

    def _prepare(self, call: Call, new: Json, old: Json) -> list[pods.Cause]:
        """What a change may not touch is put back; what is wrong with the rest."""
        plural = call.resource.plural
        if plural == "pods":
            (pods.keep_spec if call.sub == "status" else pods.keep_status)(new, old)
            return list((pods.status_problems if call.sub == "status" else pods.spec_problems)(new, old))
        if plural == "nodes":
            kept = "spec" if call.sub == "status" else "status"
            new[kept] = old.get(kept, {})
        return list(_CHECKS.get(plural, _nothing)(new))

    @staticmethod
    def _finished(item: Json) -> bool:
        """Whether it only waited for its finalizers."""
        metadata = item["metadata"]
        return metadata.get("deletionGracePeriodSeconds") == 0 and not metadata.get("finalizers")

    def _delete(self, user: User, call: Call, body: bytes) -> tuple[int, Json]:
        options = self._document(call, body, "DeleteOptions") if body.strip() else {}
        grace = options.get("gracePeriodSeconds")
        if grace is None and "gracePeriodSeconds" in call.query:
            grace = int(call.query["gracePeriodSeconds"])
        with self.store.changed:
            old = self._found(call)
            self._preconditions(call, old, options.get("preconditions", {}))
            admission.delete(user, call, old)
            grace = _grace(call, old, grace)
            return self._end(call, old, grace)

    def _preconditions(self, call: Call, old: Json, wanted: Json) -> None:
        for field, what in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            live = old["metadata"][field]
            if wanted.get(field, live) != live:
                why = f"the {what} in the precondition ({wanted[field]}) does not match the {what} in record ({live})."
                raise conflict(
                    call.resource.plural,
                    call.name,
                    f"{why} The object might have been deleted and then recreated",
                    call.resource.group,
                )

    def _end(self, call: Call, old: Json, grace: int) -> tuple[int, Json]:
        """A pod is changed before it goes, whatever the grace, and so seen as ending for a moment."""
        metadata, plural = old["metadata"], call.resource.plural
        if plural == "namespaces":
            old["status"] = {"phase": "Terminating"}
        elif plural != "pods" and not metadata.get("finalizers"):
            self.store.remove(self._key(call))
            return 200, success(call.name, plural, metadata["uid"])
        before = metadata.get("deletionGracePeriodSeconds")
        if before is None or grace < before:
            ends = datetime.now(UTC) + timedelta(seconds=grace)
            metadata |= {
                "deletionTimestamp": ends.strftime("%Y-%m-%dT%H:%M:%SZ"), "deletionGracePeriodSeconds": grace,
                "generation": metadata.get("generation", 0) + 1,
            }  # fmt: skip
            old = self.store.replace(self._key(call), old)
        if not grace and plural == "pods" and not metadata.get("finalizers"):
            old = self.store.remove(self._key(call)) or old
        return 200, old


def _going(call: Call, name: str, why: str) -> Refusal:
    found = exists(call.resource.plural, name, call.resource.group)
    return Refusal(409, "AlreadyExists", why, found.details)


def _nothing(_item: Json) -> Iterator[pods.Cause]:
    yield from ()


def _named(name: str) -> Iterator[pods.Cause]:
    if not name:
        yield "metadata.name", "Required value: name or generateName is required"
    elif len(name) > 253 or not check.SUBDOMAIN.fullmatch(name):
        yield "metadata.name", f'Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist of lower case'


def _content(item: Json) -> Json:
    """All but who wrote it."""
    return item | {"metadata": {k: v for k, v in item["metadata"].items() if k != "managedFields"}}


def _differs(new: Json, old: Json, field: str) -> bool:
    return new.get(field) not in (None, "", old.get(field))


def _grace(call: Call, old: Json, grace: int | None) -> int:
    """Seconds that a deletion leaves; only pods on a node have any."""
    if call.resource.plural != "pods" or not old["spec"].get("nodeName"):
        return 0
    if old.get("status", {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    return int(old["spec"].get("terminationGracePeriodSeconds", 30)) if grace is None else grace


def _patched(old: Json, change: Any, kind: str) -> Json:
    match kind:
        case "application/json-patch+json":
            found: Json = patches.json_patch(old, change)
        case "application/merge-patch+json":
            found = patches.merge(old, change)
        case "application/strategic-merge-patch+json" | "application/apply-patch+yaml":
            found = patches.strategic(old, change)
        case _:
            raise Refusal(415, "UnsupportedMediaType", f"the body of the request was in an unknown format - {kind}")
    return found


def selected(item: Json, call: Call) -> bool:
    """Whether the item is one that the selectors of the query mean."""
    labels = item["metadata"].get("labels", {})
    by_label = comparisons(call.query.get("labelSelector", ""))
    by_field = comparisons(call.query.get("fieldSelector", ""))
    return all((labels.get(name) == value) == equal for name, equal, value in by_label) and all(
        (_field(item, name) == value) == equal for name, equal, value in by_field
    )


def shown(item: Json, accept: str) -> Json:
    """The object as the client wishes to see it: whole, or its metadata alone."""
    if "as=PartialObjectMetadata" not in accept or item.get("kind") == "Status":
        return item
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    if "items" not in item:
        return partial | {"metadata": item["metadata"]}
    items = [partial | {"metadata": i["metadata"]} for i in item["items"]]
    return partial | {"kind": "PartialObjectMetadataList", "metadata": item["metadata"], "items": items}


def _field(item: Json, path: str) -> str:
    value: Any = item
    for part in path.split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    return str(value)
