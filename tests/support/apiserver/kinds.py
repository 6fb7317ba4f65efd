"""Which resources there are, and what a request means: verb, resource, subresource, namespace, name."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from .answers import Refusal, bad_request, no_such_path


@dataclass(frozen=True)
class Resource:
    """One kind of object; `subs` are the subresources that take changes."""

    plural: str
    kind: str
    namespaced: bool = True
    group: str = ""
    subs: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """As objects carry it."""
        return f"{self.group}/v1" if self.group else "v1"


RESOURCES = {
    r.plural: r
    for r in (
        Resource("pods", "Pod", subs=("status", "log")),
        Resource("nodes", "Node", namespaced=False, subs=("status",)),
        Resource("events", "Event"),
        Resource("namespaces", "Namespace", namespaced=False, subs=("status", "finalize")),
        Resource("configmaps", "ConfigMap"),
        Resource("secrets", "Secret"),
        Resource("leases", "Lease", group="coordination.k8s.io"),
        Resource(
            "certificatesigningrequests",
            "CertificateSigningRequest",
            False,
            "certificates.k8s.io",
            ("status", "approval"),
        ),
    )
}
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTIVE = {"get": "list", "delete": "deletecollection"}


@dataclass(frozen=True)
class Call:
    """A request for a resource; `selectors` are those of the query: (fields, labels) as key -> value."""

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    sub: str = ""
    query: dict[str, str] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """Resource with subresource: pods/status."""
        return f"{self.resource.plural}/{self.sub}" if self.sub else self.resource.plural

    def fields(self) -> dict[str, str]:
        """What the field selector wants to be equal. Raises Refusal for one that makes no sense."""
        return {name: value for name, equal, value in comparisons(self.query.get("fieldSelector", "")) if equal}


def comparisons(text: str) -> list[tuple[str, bool, str]]:
    """A selector as (name, whether equal, value); sets are not known here. Raises Refusal (400)."""
    found = []
    for part in filter(None, text.split(",")):
        name, sign, value = part.replace("==", "=").partition("=")
        if not sign:
            raise bad_request(f"this server knows no selector {part!r}")
        found.append((name.removesuffix("!"), not name.endswith("!"), value))
    return found


def parse(method: str, target: str) -> Call:
    """What is asked for. Raises Refusal (404, 405) where there is nothing."""
    url = urlsplit(target)
    parts = [unquote(p) for p in url.path.strip("/").split("/")]
    group, rest = _group(parts)
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    resource = RESOURCES.get(rest[0]) if rest else None
    if resource is None or resource.group != group or len(rest) > 3 or (namespace and not resource.namespaced):
        raise no_such_path()
    name, sub = [*rest[1:], "", ""][:2]
    if sub and sub not in resource.subs:
        raise no_such_path()
    return Call(
        _verb(method, name, query, bool(namespace) or not resource.namespaced), resource, namespace, name, sub, query
    )


def _group(parts: list[str]) -> tuple[str, list[str]]:
    if parts[:2] == ["api", "v1"]:
        return "", parts[2:]
    if len(parts) > 2 and parts[0] == "apis" and parts[2] == "v1":
        return parts[1], parts[3:]
    raise no_such_path()


def _verb(method: str, name: str, query: dict[str, str], placed: bool) -> str:
    verb = _VERBS.get(method, "")
    if verb == "get" and query.get("watch") in ("1", "true"):
        return "watch"
    if not name:
        verb = _COLLECTIVE.get(verb, verb)
    # A name is given with all but collections and creations; a creation needs its namespace.
    wanted = bool(name) if verb == "create" else not name and verb not in ("list", "watch", "deletecollection")
    if not verb or wanted or (verb == "create" and not placed):
        raise Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    return verb
