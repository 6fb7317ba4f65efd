"""The server itself: one thread with one asyncio loop on a unix socket, its routes and its bounds."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import tornado.httpserver
import tornado.netutil
import tornado.routing
import tornado.web

from ... import errors
from . import (
    agent,
    apply,
    base,
    bounds,
    cluster,
    discovery,
    doors,
    kubeconfig,
    kubelet,
    logs,
    openapi,
    peers,
    place,
    resources,
    reviews,
    stats,
    submit,
    upgrades,
)
from .contracts import Services
from .hub import Hub
from .secure import Port, SecurePort
from .tokens import Tokens

logger = logging.getLogger(__name__)

HEADER_BYTES = 64 << 10
IDLE_SECONDS = 120.0
"""A kept-alive connection without a request, or a body that does not come, ends after that."""

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

LOOK_SECONDS = 10.0
"""Seconds between looks whether the socket file is still there."""

STOP_SECONDS = 5.0
DRAIN_SECONDS = 1.0

_Route = tuple[str, type[tornado.web.RequestHandler]]

_CORE = r"/api/v1"
READ_ONLY = (agent.Health, resources.KubeletPods, stats.Metrics, stats.Summary)
"""What the read-only port shows (semantics 8.2, column R)."""

_NS = r"/namespaces/(?P<namespace>[^/]+)"
_CONTAINER = r"(?P<namespace>[^/]+)/(?P<name>[^/]+)(?:/[^/]+)?/(?P<container>[^/]+)"
"""The kubelet's paths may have the pod's uid in the middle."""
_POD = rf"{_NS}/pods/(?P<name>[^/]+)"


class ApiServer:
    """Serves `services` on `socket_path` (mode 0660, group `services.group` where it exists).

    `fatal` is told when the server has ended though nobody stopped it.
    """

    def __init__(self, socket_path: str, services: Services, fatal: Callable[[str], None] | None = None) -> None:
        self._path = socket_path
        self._services = services
        self._fatal = fatal
        self._thread = threading.Thread(target=self._run, name="api", daemon=True)
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._made = 0  # inode of the socket file that is ours

    def start(self) -> None:
        """Listen; requests are answered once this returns. Raises errors.StateError."""
        place.clear(self._path)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            self._thread.join()
            raise errors.StateError(f"cannot listen on {self._path}: {self._failure}") from self._failure

    def stop(self) -> None:
        """End all requests and the thread, within some seconds; the socket file goes too."""
        if self._loop is not None and self._end is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join(STOP_SECONDS)
            if self._thread.is_alive():
                logger.warning("the API server did not end within %.0f s", STOP_SECONDS)

    def _run(self) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(self._serve())
        except BaseException as error:  # guard
            if not self._started.is_set():  # start() tells
                self._failure = error
                self._started.set()
                return
            logger.critical("the API server has ended", exc_info=True)
            if self._fatal is None:
                raise
            self._fatal(f"the API server has ended: {error}")

    async def _until_the_end(self, server: tornado.httpserver.HTTPServer) -> None:
        """Until stopped; a socket file that somebody removed is made anew meanwhile."""
        if self._end is None:
            return
        while not self._end.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._end.wait(), LOOK_SECONDS)
            if self._end.is_set() or _inode(self._path) == self._made:
                continue
            try:
                place.clear(self._path)
                server.add_socket(_bind(self._path, self._services.group))
            except (OSError, errors.StateError) as error:
                logger.warning("cannot make the API socket %s anew: %s", self._path, errors.cause(error))
                continue
            self._made = _inode(self._path)
            logger.warning("the API socket %s was gone; it has been made anew", self._path)

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        listener = _bind(self._path, self._services.group)
        self._made = _inode(self._path)
        hub = Hub(self._loop)
        ends = (self._services.store.subscribe(hub.pulse), self._services.events.subscribe(hub.pulse))
        server = _server(self._services, hub, doors.UnixDoor(self._services.group))
        server.add_socket(listener)
        tcp = _tcp_ports(self._services, hub)
        self._started.set()
        await _first(self._until_the_end(server), [asyncio.create_task(port.serve()) for port in tcp])
        server.stop()
        for port in tcp:
            port.stop()
        for end in ends:
            end()
        hub.close()
        await _drain(server, hub)
        for port in tcp:
            await port.close()
        if _inode(self._path) == self._made:  # another agent's may be there by now
            with contextlib.suppress(OSError):
                os.unlink(self._path)


async def _first(end: Coroutine[Any, Any, None], serving: list[asyncio.Task[None]]) -> None:
    """Until the end is asked for; a port that fails in an unforeseen way is a fault of the server."""
    asked = asyncio.create_task(end)
    done, left = await asyncio.wait((asked, *serving), return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    for task in done:
        task.result()


def _tcp_ports(services: Services, hub: Hub) -> list[Port]:
    """Those that are switched on; what is in their way is told by `hub.trouble`."""
    found: list[Port] = []
    if services.secure is not None:
        door = doors.TlsDoor(Tokens(services.secure.token_file), services.secure.names)
        found.append(SecurePort(services.secure, lambda context: _server(services, hub, door, context)))
    if services.read_only is not None:
        anybody = doors.OpenDoor(services.read_only.names)
        open_to_all = services.read_only
        found.append(
            Port(open_to_all.address, open_to_all.port, lambda context: _server(services, hub, anybody, context))
        )
    hub.trouble = lambda: "; ".join(port.trouble for port in found if port.trouble)
    return found


async def _drain(server: tornado.httpserver.HTTPServer, hub: Hub) -> None:
    """Let answers under way come to their end for a moment, then cut."""
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while hub.streams:
                await asyncio.sleep(0.01)
            await server.close_all_connections()
    except TimeoutError:
        logger.debug("some connections were cut")


def routes(services: Services, hub: Hub, door: doors.Door) -> list[tornado.routing.Rule]:
    """All paths. Kubelet paths and Kubernetes paths do not collide (design, section 5)."""
    table: list[_Route] = [
        (r"/(?P<name>healthz|livez|readyz)(?:/(?P<check>[a-z]+))?", agent.Health),
        (r"/version", agent.Version),
        (r"/api", discovery.Api),
        (_CORE, discovery.Core),
        (r"/apis", discovery.Groups),
        (r"/pods/?", resources.KubeletPods),
        (rf"{_CORE}/pods", resources.Pods),
        (rf"{_CORE}{_NS}/pods", submit.SubmittedPods),
        (rf"{_CORE}{_POD}", submit.SubmittedPods),
        (r"/apis/edgelet\.io/v1/apply", apply.Apply),
        (r"/apis/edgelet\.io/v1/kubeconfig", kubeconfig.Kubeconfig),
        (rf"{_CORE}{_POD}/log", logs.Log),
        (rf"{_CORE}{_POD}/exec", upgrades.late("exec", "Exec")),
        (rf"{_CORE}{_POD}/attach", upgrades.late("exec", "Attach")),
        (rf"{_CORE}{_POD}/portforward", upgrades.NotServed),
        (rf"{_CORE}/events", resources.Events),
        (rf"{_CORE}{_NS}/events", resources.Events),
        (rf"{_CORE}{_NS}/events/(?P<name>[^/]+)", resources.Events),
        (rf"{_CORE}/(?:namespaces)", cluster.Namespaces),
        (rf"{_CORE}/namespaces/(?P<name>[^/]+)", cluster.Namespaces),
        (rf"{_CORE}/nodes", cluster.Nodes),
        (rf"{_CORE}/nodes/(?P<name>[^/]+)", cluster.Nodes),
        *_namespaced("configmaps", cluster.ConfigMaps),
        *_namespaced("secrets", cluster.Secrets),
        (r"/metrics(?:/(?P<name>probes|resource|cadvisor))?", stats.Metrics),
        (r"/stats/summary/?", stats.Summary),
        (r"/runningpods/?", kubelet.RunningPods),
        (r"/configz", kubelet.Configz),
        (rf"/containerLogs/{_CONTAINER}", kubelet.ContainerLogs),
        (rf"/exec/{_CONTAINER}", upgrades.late("kubelet_exec", "KubeletExec")),
        (r"/(?:run|logs|attach|portForward|checkpoint|debug|cri)(?:/.*)?", kubelet.Disabled),
        (r"/apis/metrics\.k8s\.io/v1beta1/nodes", stats.NodeMetrics),
        (r"/apis/metrics\.k8s\.io/v1beta1/nodes/(?P<name>[^/]+)", stats.NodeMetrics),
        (r"/apis/metrics\.k8s\.io/v1beta1/pods", stats.PodMetrics),
        (rf"/apis/metrics\.k8s\.io/v1beta1{_NS}/pods", stats.PodMetrics),
        (rf"/apis/metrics\.k8s\.io/v1beta1{_POD}", stats.PodMetrics),
        (r"/openapi/v3", openapi.Index),
        (r"/openapi/v3/api/v1", openapi.Document),
        (r"/apis/authorization\.k8s\.io/v1/selfsubjectaccessreviews", reviews.SelfReview),
        (r"/apis/(?P<group>[a-z0-9.]+)(?:/(?P<version>v[a-z0-9]+))?", discovery.Group),
        (r"/apis/edgelet\.io/v1/status", agent.Status),
        (r"/apis/edgelet\.io/v1/sources", agent.Sources),
        (rf"/apis/edgelet\.io/v1{_POD}/(?P<order>restart|stop|start)", agent.Order),
    ]
    given = {"services": services, "hub": hub, "door": door}
    return [tornado.web.url(path, handler, given) for path, handler in table]


def _namespaced(plural: str, handler: type[tornado.web.RequestHandler]) -> list[_Route]:
    one = rf"{_CORE}{_NS}/{plural}"
    return [(rf"{_CORE}/{plural}", handler), (one, handler), (rf"{one}/(?P<name>[^/]+)", handler)]


def _server(
    services: Services, hub: Hub, door: doors.Door, context: ssl.SSLContext | None = None
) -> tornado.httpserver.HTTPServer:
    given = {"services": services, "hub": hub, "door": door}
    rules = routes(services, hub, door)
    if isinstance(door, doors.OpenDoor):
        rules = [rule for rule in rules if rule.target in READ_ONLY]
    application = tornado.web.Application(
        list(rules),
        default_handler_class=base.Unknown,
        default_handler_args=given,
        log_function=lambda handler: _finished(handler, services),
        websocket_max_message_size=1 << 20,
        websocket_ping_interval=30,
    )
    server = bounds.Bounded(
        application,
        max_header_size=HEADER_BYTES,
        max_body_size=bounds.BODY_BYTES,
        max_buffer_size=2 * bounds.BODY_BYTES,
        idle_connection_timeout=IDLE_SECONDS,
        body_timeout=IDLE_SECONDS,
        ssl_options=context,
    )
    server.door = door
    return server


def _finished(handler: tornado.web.RequestHandler, services: Services) -> None:
    """After each answer: counted, and logged with who asked."""
    _log_request(handler)
    method = handler.request.method if handler.request.method in METHODS else "other"
    path, long = (handler.resource, handler.long_running) if isinstance(handler, base.Access) else ("other", False)
    seconds = handler.request.request_time()
    services.requests.add(method or "other", path, "true" if long else "", seconds=seconds)
    services.responses.add(str(handler.get_status()))


def _log_request(handler: tornado.web.RequestHandler) -> None:
    user = getattr(handler, "user", None)
    name = user.name if isinstance(user, peers.User) else "-"
    request = handler.request
    code = handler.get_status()
    plain = request.method in ("GET", "HEAD") and code not in (401, 403)
    level = logging.DEBUG if plain else logging.INFO  # the path only: a query may hold what was typed
    logger.log(level, "%s %s %s %d", name, request.method, request.path, code)


def _bind(path: str, group: str) -> socket.socket:
    """A listening socket at `path`.

    Made under another name and renamed: whoever sees the path can connect, and its owner is right from the start.
    """
    directory = os.path.dirname(path) or "."
    os.makedirs(directory, exist_ok=True)
    beside = os.path.join(directory, f".{os.getpid():x}")  # short: a socket's path has 107 bytes
    listener = tornado.netutil.bind_unix_socket(beside, mode=0o660)
    try:
        number = peers.group_id(group)
        if number is not None and os.geteuid() == 0:
            os.chown(beside, 0, number)
        os.rename(beside, path)
    except OSError:
        listener.close()
        os.unlink(beside)
        raise
    return bounds.patient(listener)


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0
