"""Errors as the Kubernetes API words them: v1.Status objects (pure)."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def failure(code: int, message: str, reason: str = "", details: Json | None = None) -> Json:
    """A v1.Status that reports a failure; the reason follows from the code unless given."""
    status: Json = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason or REASONS.get(code, ""),
    }
    if details is not None:  # kubectl looks into an empty one too
        status["details"] = details
    return {**status, "code": code}


def success(details: Json | None = None) -> Json:
    """A v1.Status that reports a success."""
    status: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return {**status, "details": details} if details else status


def not_found(resource: str, name: str) -> Json:
    """The object of that name does not exist."""
    return failure(404, f'{resource} "{name}" not found', details={"name": name, "kind": resource})


def no_such_path() -> Json:
    """Nothing is served at the path asked for."""
    return failure(404, "the server could not find the requested resource", details={})


def method_not_allowed() -> Json:
    """The path exists, the method does not."""
    return failure(405, "the server does not allow this method on the requested resource", details={})


def not_written(resource: str, why: str) -> Json:
    """Objects of that kind are shown, and made elsewhere."""
    return failure(405, f"{resource} cannot be written through this API: {why}", details={"kind": resource})


def forbidden(resource: str, user: str, verb: str, namespace: str = "", name: str = "") -> Json:
    """The caller is known but may not do that."""
    what = f'{resource} "{name}"' if name else resource
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    message = f'{what} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group "" {where}'
    return failure(403, message, details={"name": name, "kind": resource} if name else {"kind": resource})


def read_only(resource: str, name: str, owner: str) -> Json:
    """The object is another source's: `owner` says whose, as a thing that can be changed."""
    message = f'{resource} "{name}" is forbidden: it comes from {owner}; change or remove it there'
    return failure(403, message, details={"name": name, "kind": resource})


def already_exists(resource: str, name: str, before: str = "", more: str = "") -> Json:
    """A new object was to have the name of one that is there."""
    message = f'{before}{resource} "{name}" already exists{more}'
    return failure(409, message, "AlreadyExists", {"name": name, "kind": resource})


def conflict(resource: str, name: str, why: str) -> Json:
    """The object is not (any more) what the caller takes it for."""
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return failure(409, message, details={"name": name, "kind": resource})


def expired(message: str) -> Json:
    """The resourceVersion asked for is not in the journal (any more): list again."""
    return failure(410, message)


def exit_status(code: int) -> Json:
    """How a finished exec is told to a v5.channel.k8s.io client."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
