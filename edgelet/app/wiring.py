"""Builds the agent from its settings: adapters and engine; nothing is started here."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass

from .. import config, durable, errors, node_name, ports
from ..adapters import podman
from ..adapters.event_file import EventFile
from ..adapters.exits import CONMON_DIED, ExitWatcher, Place
from ..adapters.files import FileSource
from ..adapters.logs import last_words
from ..adapters.logs.rotation import LogRotator, Policy
from ..adapters.netleft import Sweeper
from ..adapters.probe_results import ProbeResults
from ..adapters.runtime_exec import OciExec
from ..adapters.submitted import Submitted
from ..adapters.url import Access, UrlSource, prune
from ..adapters.url.source import source_name
from ..adapters.volumes import HostVolumes
from ..core import cleanup
from ..engine.admitter import Admitter, Surroundings
from ..engine.director import Director
from ..engine.executor import Executor, Tools
from ..engine.hooks import Hooks
from ..engine.observer import Observer
from ..engine.prober import Prober
from ..engine.puller import Puller
from ..engine.reconciler import Context, Reconciler
from ..engine.recorder import EventRing
from ..engine.states import States
from ..engine.store import StatusStore
from ..engine.workers import Workers
from ..model.layout import Layout
from ..model.objects import LocalObject
from ..model.pod import Pod, PodKey
from ..model.status import PodStatus
from . import machine, orphans, sweeping
from .around import Around
from .counted import Counted
from .node import capacity
from .pod_data import PodData
from .repairs import Repairs

log = logging.getLogger(__name__)

BOOT_ID_VARIABLE = "EDGELET_BOOT_ID"
"""Overrides the kernel's boot id: tests simulate a reboot with it."""


DEFAULT_POD_LOGS = "/var/log/pods"
CONTAINER_LINKS = "/var/log/containers"
"""Log collectors expect one link per container here (6.4.2); kept only beside the usual log directory."""


class Beat:
    """When the main loop last went round, and the first fault that must take the process down."""

    def __init__(self, clock: machine.SystemClock) -> None:
        self._clock = clock
        self.at = clock.monotonic()
        self.fault = ""
        self.on_fault: Callable[[], None] = lambda: None

    def now(self) -> None:
        """The main loop goes round."""
        self.at = self._clock.monotonic()

    def fatal(self, message: str) -> None:
        """From any thread: something that must not end has ended."""
        self.fault = self.fault or message
        self.on_fault()


class HoldFile:
    """director.Holds on a checked file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def read(self) -> bytes | None:
        """The newest good copy, or None. Raises errors.StateError."""
        found = durable.read_checked(self._path)
        return found.data if found else None

    def write(self, data: bytes) -> None:
        """Replace it. Raises errors.StateError."""
        durable.write_checked(self._path, data)


@dataclass(frozen=True, slots=True)
class Base:
    """What everything else stands on."""

    settings: config.Settings
    layout: Layout
    clock: machine.SystemClock
    beat: Beat
    node: node_name.NodeName
    boot_id: str
    host: podman.Host
    service: podman.Service
    runtime: podman.Podman
    calls: Counted
    data: PodData
    events: EventRing
    event_file: EventFile
    store: StatusStore


@dataclass(frozen=True, slots=True)
class Engine:
    """The threads around the core."""

    workers: Workers
    exits: ExitWatcher
    observer: Observer
    director: Director
    puller: Puller
    prober: Prober
    hooks: Hooks
    runner: OciExec
    states: States
    sweeper: Sweeper


@dataclass(frozen=True, slots=True)
class Sources:
    """Where pods come from: those that look by themselves, and the pods given through the API."""

    watched: tuple[FileSource | UrlSource, ...]
    submitted: Submitted

    @property
    def all(self) -> tuple[FileSource | UrlSource | Submitted, ...]:
        """In the order in which they are asked and shown."""
        return (*self.watched, self.submitted)


@dataclass(frozen=True, slots=True)
class Agent:
    """All parts, to be started and stopped in order by `app.run`."""

    base: Base
    engine: Engine
    sources: Sources
    rotator: LogRotator
    order: tuple[str, ...] = ()


def build(settings: config.Settings) -> Agent:
    """Everything wired. Raises errors.StateError when the state directory cannot be used."""
    base = _base(settings)
    order = _order(settings)
    place = Place(os.path.join(settings.run_dir, "exit-directory"))
    engine = _engine(base, order, _sweeper(base, place), place)
    sources = _sources(base, engine.director)
    rotator = LogRotator(
        base.clock,
        lambda: engine.observer.all().values(),
        Policy(settings.container_log_max_size, settings.container_log_max_files),
        links_dir=CONTAINER_LINKS if settings.pod_logs_dir == DEFAULT_POD_LOGS else "",
        period=settings.container_log_monitor_interval,
    )
    return Agent(base, engine, sources, rotator, order)


def _base(settings: config.Settings) -> Base:
    clock = machine.SystemClock()
    layout = Layout(settings.root_dir, settings.run_dir, settings.pod_logs_dir)
    _directory(settings.run_dir)
    node = node_name.pin(settings.root_dir, settings.node_name, socket.gethostname())
    host = podman.read()
    boot_id = os.environ.get(BOOT_ID_VARIABLE) or host.boot_id
    service = podman.Service(settings.podman_socket or config.DEFAULT_PODMAN_SOCKET, settings.run_dir, host=host)
    events = EventRing(clock, node.name)
    runtime = podman.Podman(
        service,
        config.owner(settings.root_dir),
        layout,
        clock,
        boot_id=boot_id,
        facts=podman.facts(host),
        network=podman.Network(settings.pod_network, settings.pod_cidr),
        warn=_warner(events),
        message=last_words.read,
    )
    return Base(
        settings=settings,
        layout=layout,
        clock=clock,
        beat=Beat(clock),
        node=node,
        boot_id=boot_id,
        host=host,
        service=service,
        runtime=runtime,
        calls=Counted(runtime),
        data=PodData(HostVolumes(layout, memory=host.memory), settings.pod_logs_dir),
        events=events,
        event_file=EventFile(os.path.join(settings.root_dir, "events.jsonl"), events),
        store=StatusStore(clock),
    )


def _directory(path: str) -> None:
    durable.make_directory(path, 0o755)
    if not os.path.isdir(path):
        raise errors.StateError(f"cannot use {path} as the run directory: it is no directory; give another --run-dir")


def _warner(events: EventRing) -> Callable[[Pod, str], None]:
    def warn(pod: Pod, message: str) -> None:
        events.event(ports.EventRef(pod.key, pod.uid), "Warning", "LimitNotApplied", message)

    return warn


def _engine(base: Base, order: tuple[str, ...], sweeper: Sweeper, place: Place) -> Engine:
    workers = Workers(base.clock, base.beat.fatal)
    late: list[Director] = []

    def wake(key: PodKey) -> None:
        if not workers.wake(key) and late:
            late[0].recheck()

    def exited(container_id: str, code: int | None, how: str) -> None:
        if how == CONMON_DIED:
            orphans.tell(observer, base.events, container_id)
            sweeper.suspect()
        observer.exited(container_id, code, how)

    def objects() -> tuple[LocalObject, ...]:
        return late[0].objects()

    exits = ExitWatcher(exited, fatal=base.beat.fatal, place=place)
    states = _states(base)
    observer = Observer(
        base.calls,
        base.clock,
        exits,
        wake,
        lambda: _listed(late[0], base, states, sweeper),
        base.beat.fatal,
        last_words.read,
    )
    rated = (base.settings.registry_pull_qps, base.settings.registry_burst)
    puller = Puller(base.calls, base.clock, base.events, workers.pulled, base.beat.fatal, workers.hurry, rated)
    runner = OciExec(os.path.join(base.settings.run_dir, "exec"))
    prober = _prober(base, runner, wake)
    hooks = Hooks(base.clock, runner, base.events, wake, base.beat.fatal)
    address = machine.Address(base.clock, base.settings.node_ip)
    around = Around(base.node.name, address, base.host.memory, base.settings.root_dir, objects)
    tools = Tools(
        base.calls, base.data, observer, puller, base.events, base.clock, hooks, _repairs(base, exits), around
    )
    workers.use(Reconciler(_context(base, tools, prober, states, address, workers)))
    late.append(_director(base, order, workers, observer))
    return Engine(workers, exits, observer, late[0], puller, prober, hooks, runner, states, sweeper)


def _context(
    base: Base, tools: Tools, prober: Prober, states: States, address: machine.Address, workers: Workers
) -> Context:
    return Context(
        executor=Executor(tools),
        observer=tools.observer,
        probes=prober,
        hooks=tools.hooks,
        recorder=base.events,
        statuses=base.store,
        memories=states,
        clock=base.clock,
        boot_id=base.boot_id,
        host_ip=address,
        work=workers.work,
    )


def _director(base: Base, order: tuple[str, ...], workers: Workers, observer: Observer) -> Director:
    holds = HoldFile(os.path.join(base.settings.root_dir, "holds"))
    made = Director(order, workers, observer, base.events, holds, base.node.name, _admitter(base))
    base.store.subscribe(lambda _: made.news())
    return made


def _admitter(base: Base) -> Admitter:
    def status(key: PodKey) -> PodStatus | None:
        entry = base.store.get(key)
        return entry.status if entry is not None else None

    node = capacity(base.settings.max_pods, base.settings.root_dir, base.settings.allowed_unsafe_sysctls)
    return Admitter(Surroundings(lambda: node, status, base.clock, base.boot_id), base.events)


def _repairs(base: Base, exits: ExitWatcher) -> Repairs:
    return Repairs(exits.settle, base.runtime.drop_image, base.service.renew)


def _prober(base: Base, runner: OciExec, wake: ports.Wake) -> Prober:
    results = ProbeResults(os.path.join(base.settings.run_dir, "probes.json"))
    return Prober(base.clock, runner, base.events, wake, results=results, fatal=base.beat.fatal)


def _sweeper(base: Base, place: Place) -> Sweeper:
    def told(what: str) -> None:
        message = f"removed what a Podman that was killed had left: {what}"
        base.events.event(ports.EventRef(PodKey("", base.node.name), base.node.name), "Warning", "Repaired", message)

    sweeper = sweeping.sweeper(base.runtime, base.settings, place, told)
    base.service.died = sweeper.died
    return sweeper


def _states(base: Base) -> States:
    store = durable.Store(base.layout.states_dir)
    loaded = store.load()
    for complaint in loaded.complaints:
        log.warning("%s", complaint)
    return States(store, loaded.entries, base.boot_id)


def _listed(director: Director, base: Base, states: States, sweeper: Sweeper) -> None:
    """After each full list: let wishes out, and take leftovers away."""
    sweeper.suspect()
    director.open()
    wanted, running = director.wanted(), director.running()
    known = base.data.uids() | states.uids()
    for uid in cleanup.orphans(known, wanted, running, director.working()):
        log.info("removing what is left of a pod that is gone: %s", uid)
        states.drop(uid)
        try:
            base.data.remove(uid)
        except errors.EdgeletError as error:
            log.warning("%s", error)


def _order(settings: config.Settings) -> tuple[str, ...]:
    """All sources by name, the strongest first: files, URLs as configured, submitted pods."""
    files = ("file",) if settings.static_pod_path else ()
    return (*files, *(source_name(url) for url in settings.static_pod_url), Submitted.name)


def _sources(base: Base, director: Director) -> Sources:
    settings = base.settings
    found: list[FileSource | UrlSource] = []
    if settings.static_pod_path:
        found.append(
            FileSource(
                settings.static_pod_path,
                base.node.name,
                director,
                base.clock,
                os.path.join(base.layout.sources_dir, "file"),
                check_frequency=settings.file_check_frequency,
                strict=settings.strict,
            )
        )
    store = os.path.join(base.layout.sources_dir, "http")
    prune(store, settings.static_pod_url)
    access = Access(
        headers=settings.static_pod_url_header,
        header_file=settings.static_pod_url_header_file,
        token_file=settings.static_pod_url_token_file,
        ca_file=settings.static_pod_url_ca_file,
        client_cert=settings.static_pod_url_client_cert,
        client_key=settings.static_pod_url_client_key,
    )
    for url in settings.static_pod_url:
        frequency = settings.http_check_frequency
        found.append(
            UrlSource(url, base.node.name, director, base.clock, store, frequency, access, strict=settings.strict)
        )
    submitted = Submitted(
        base.layout.sources_dir, director, base.node.name, _owner_of(director), strict=settings.strict
    )
    return Sources(tuple(found), submitted)


def _owner_of(director: Director) -> Callable[[PodKey], str | None]:
    def owner_of(key: PodKey) -> str | None:
        pod = director.pod(key)
        return pod.source if pod is not None else None

    return owner_of
