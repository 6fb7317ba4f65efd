"""What an API server answers when it refuses: Status objects, worded as the real one words them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]


class Refusal(Exception):
    """An answer that is no object: `code` and `reason` are the API's; `retry_after` in seconds, 0 = not said."""

    def __init__(self, code: int, reason: str, message: str, details: Json | None = None, retry_after: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = details or {}
        self.retry_after = retry_after

    def body(self) -> Json:
        """The Status object."""
        details = {**self.details, **({"retryAfterSeconds": self.retry_after} if self.retry_after else {})}
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
            **({"details": details} if details else {}),
            "code": self.code,
        }


def success(name: str, plural: str, uid: str) -> Json:
    """What a deletion answers when the object is gone."""
    details = {"name": name, "kind": plural, "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def bad_request(message: str) -> Refusal:
    """400."""
    return Refusal(400, "BadRequest", message)


def unauthorized() -> Refusal:
    """401: the client is nobody that the server knows."""
    return Refusal(401, "Unauthorized", "Unauthorized")


def forbidden(plural: str, name: str, why: str, group: str = "") -> Refusal:
    """403."""
    what = f'{_full(plural, group)} "{name}"' if name else _full(plural, group)
    return Refusal(403, "Forbidden", f"{what} is forbidden: {why}", _details(plural, name, group))


def not_found(plural: str, name: str, group: str = "") -> Refusal:
    """404."""
    return Refusal(404, "NotFound", f'{_full(plural, group)} "{name}" not found', _details(plural, name, group))


def no_such_path() -> Refusal:
    """404 for what is no resource."""
    return Refusal(404, "NotFound", "the server could not find the requested resource")


def exists(plural: str, name: str, group: str = "", why: str = "already exists") -> Refusal:
    """409 of a creation."""
    return Refusal(409, "AlreadyExists", f'{_full(plural, group)} "{name}" {why}', _details(plural, name, group))


def conflict(plural: str, name: str, why: str, group: str = "") -> Refusal:
    """409 of a change or deletion."""
    what = f'Operation cannot be fulfilled on {_full(plural, group)} "{name}": {why}'
    return Refusal(409, "Conflict", what, _details(plural, name, group))


def modified(plural: str, name: str, group: str = "") -> Refusal:
    """409: the resourceVersion is an old one."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(plural, name, why, group)


def invalid(kind: str, name: str, causes: Iterable[tuple[str, str]]) -> Refusal:
    """422: causes are (field, message)."""
    told = [{"reason": "FieldValueInvalid", "message": message, "field": field} for field, message in causes]
    lines = [f"{c['field']}: {c['message']}" for c in told]
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    return Refusal(422, "Invalid", f'{kind} "{name}" is invalid: {text}', {"name": name, "kind": kind, "causes": told})


def gone() -> Refusal:
    """410: a watch from a version that is not remembered any more."""
    return Refusal(410, "Expired", "The resourceVersion for the provided watch is too old.")


def _full(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def _details(plural: str, name: str, group: str) -> Json:
    found = {"name": name, "group": group, "kind": plural}
    return {key: value for key, value in found.items() if value}
