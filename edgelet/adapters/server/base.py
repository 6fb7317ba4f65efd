"""What all request handlers share: who may do what, JSON answers, errors as v1.Status, no caching."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Awaitable
from http import HTTPStatus
from typing import Any, ClassVar, cast

import tornado.web

from ... import errors
from . import doors, params, peers, statuses
from .contracts import Services
from .hub import Hub

logger = logging.getLogger(__name__)

Json = dict[str, Any]

_VERBS = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Refused(tornado.web.HTTPError):
    """Ends a request with this v1.Status."""

    def __init__(self, status: Json) -> None:
        super().__init__(status["code"], status["message"])
        self.status = status


class Access(tornado.web.RequestHandler):
    """Mixed into every handler: authentication before anything else, errors as Status objects."""

    resource: ClassVar[str] = "paths"
    services: Services
    hub: Hub
    door: doors.Door
    user: peers.User

    def initialize(self, services: Services, hub: Hub, door: doors.Door) -> None:
        """Take what the routes hand to every handler."""
        self.services = services
        self.hub = hub
        self.door = door
        self.user = peers.User("unknown", peers.Role.NONE)

    def set_default_headers(self) -> None:
        self.set_header("Server", "edgelet")
        self.set_header("Cache-Control", "no-cache, private")
        self.set_header("X-Content-Type-Options", "nosniff")

    def compute_etag(self) -> str | None:
        return None

    def prepare(self) -> Awaitable[None] | None:
        if not self.door.host_is_ours(self.request.headers.get("Host", "")):
            raise Refused(statuses.failure(403, "the Host header of the request names another machine"))
        self.user = self.door.user(self._socket(), self.request.headers)
        if self.user is doors.NOBODY:
            raise Refused(statuses.failure(401, "Unauthorized"))
        verb = self.verb()
        allowed = self.user.role is peers.Role.ADMIN or (self.user.role is peers.Role.VIEW and verb in ("get", "list"))
        if not allowed:
            place = self.path_kwargs or {}
            namespace, name = place.get("namespace") or "", place.get("name") or ""
            raise Refused(statuses.forbidden(self.resource, self.user.name, verb, namespace, name))
        return None

    @property
    def long_running(self) -> bool:
        """Whether the answer goes on for as long as the client likes."""
        return False

    def verb(self) -> str:
        """The Kubernetes verb of this request: reading is "get" or "list", all else needs the admin role."""
        return _VERBS.get(self.request.method or "", "create")

    def param(self, name: str) -> str:
        """The last value of that query parameter, "" when absent."""
        return self.get_query_argument(name, "") or ""

    def send(self, body: Json, code: int = 200, kind: str = "application/json") -> None:
        """Answer with a JSON object."""
        self.set_status(code)
        self.set_header("Content-Type", kind)
        text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        self.finish(text.encode("utf-8", "replace") + b"\n")

    def send_text(self, text: str, code: int = 200) -> None:
        """Answer with plain text."""
        self.set_status(code)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(text)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        error = kwargs["exc_info"][1] if kwargs.get("exc_info") else None
        status = _status_of(error, status_code)
        if status["code"] == 401:
            self.set_header("WWW-Authenticate", "Bearer")
        elif status["code"] == 429:
            self.set_header("Retry-After", "5")
        self.send(status, status["code"])

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        if isinstance(value, tornado.web.HTTPError | errors.EdgeletError | params.BadRequest):
            logger.debug("%s %s refused: %s", self.request.method, self.request.path, value)
        else:
            logger.error("cannot answer %s %s", self.request.method, self.request.path, exc_info=value)

    def _socket(self) -> socket.socket:
        stream = getattr(self.request.connection, "stream", None)
        if stream is None or stream.socket is None:
            raise Refused(statuses.failure(400, "the connection is gone"))
        return cast(socket.socket, stream.socket)


def _status_of(error: BaseException | None, code: int) -> Json:
    match error:
        case Refused():
            return error.status
        case params.BadRequest():
            return statuses.failure(400, str(error))
        case errors.NotFound():
            return statuses.failure(404, str(error))
        case errors.Conflict():
            return statuses.failure(409, str(error))
        case errors.EdgeletError():
            return statuses.failure(500, str(error))
        case tornado.web.HTTPError() if code == 405:
            return statuses.method_not_allowed()
        case tornado.web.HTTPError():
            return statuses.failure(code, error.log_message or HTTPStatus(code).phrase)
    return statuses.failure(500, "Internal error occurred: the agent's log says more")


class Unknown(Access):
    """No such path."""

    def prepare(self) -> Awaitable[None] | None:
        super().prepare()
        raise Refused(statuses.no_such_path())
