"""Maps each verb to one call on the runtime, and each outcome to memory and events. Nothing else acts.

Every method takes the pod's `Local` and an action and answers the `Local` after it.  A failure that
belongs to one container (no image, bad command, missing volume) becomes that container's waiting
state; any other RuntimeFailure goes up to the reconciler, which backs off and observes anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from .. import errors, ports
from ..core import absorb, backoff, deadline, nonroot, stopping, values
from ..core import memory as memories
from ..core.memory import PodMemory, Pull, PullState, RestartingAll, StartError
from ..model.actions import Action, Verb
from ..model.hooks import HookKind, HookState
from ..model.observed import ObservedContainer, ObservedPod
from ..model.pod import Container, HookHandler, Pod
from ..model.status import Waiting
from . import observer, puller, targets
from .furnishing import Furnishing
from .local import Local

log = logging.getLogger(__name__)

CONFIG_RETRY = 10.0
"""Seconds until a container that could not be made is tried again, doubling to CONFIG_CAP."""
CONFIG_CAP = 60.0
POST_START_LIMIT = 365 * 86_400.0
"""Seconds until a postStart hook is given up: it has no timeout of its own (3.8)."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What acting needs; `around` tells what stands around a pod that has those addresses."""

    runtime: ports.Runtime
    volumes: ports.Volumes
    observer: observer.Observer
    puller: puller.Puller
    recorder: ports.Recorder
    clock: ports.Clock
    hooks: ports.Hooks
    repairs: ports.Repairs
    around: Callable[[tuple[str, ...]], values.Around] = lambda ips: values.Around(ips=ips)


class Executor:
    """Carries out single actions."""

    def __init__(self, tools: Tools) -> None:
        self._t = tools
        self._furnish = Furnishing(tools.runtime, tools.volumes, tools.around)
        self._table: dict[Verb, Callable[[Local, Action], Local]] = {
            Verb.PULL_IMAGE: self._pull_image,
            Verb.CREATE_POD: self._create_pod,
            Verb.START_POD: self._start_pod,
            Verb.REMOVE_POD: self._remove_pod,
            Verb.CREATE_CONTAINER: self._create_container,
            Verb.START_CONTAINER: self._start_container,
            Verb.RUN_PRE_STOP: self._run_pre_stop,
            Verb.ANNOUNCE_STOP: self._announce_stop,
            Verb.STOP_CONTAINER: self._stop_container,
            Verb.KILL_CONTAINER: self._kill_container,
            Verb.REMOVE_CONTAINER: self._remove_container,
            Verb.INSPECT_CONTAINER: self._inspect_container,
            Verb.RESTART_ALL: self._restart_all,
            Verb.FAIL_POD: self._fail_pod,
            Verb.REMOVE_DATA: self._remove_data,
            Verb.SETTLE_CONTAINER: self._settle_container,
            Verb.RENEW_IMAGE: self._renew_image,
            Verb.RENEW_SERVICE: self._renew_service,
            Verb.REPORT: self._report,
        }

    def do(self, local: Local, action: Action) -> Local:
        """Carry out `action`. Raises errors.RuntimeFailure or errors.VolumeError."""
        log.info("%s: %s", local.key, action)
        return self._table[action.verb](local, action)

    # -- images ---------------------------------------------------------------------------------

    def _pull_image(self, local: Local, action: Action) -> Local:
        incoming = action.config_hash != local.memory.config_hash
        pod = local.desired if incoming else local.current
        memory = local.incoming if incoming else local.memory
        container = pod.image(action.container) if pod is not None else None
        if pod is None or container is None:
            return local
        known = memory.of(container.name).pull
        ask = puller.Request(local.key, pod.config_hash, container, local.ref(container.name), known)
        return local.with_pull(pod.config_hash, container.name, self._t.puller.request(ask))

    # -- sandbox --------------------------------------------------------------------------------

    def _create_pod(self, local: Local, action: Action) -> Local:
        pod = local.desired
        if pod is None:
            return local
        self._furnish.check(pod)
        if action.number:
            self._event(local, "Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
        made = self._t.runtime.create_pod(pod, action.number)
        return self._saw(replace(local, spec=pod), made)

    def _start_pod(self, local: Local, action: Action) -> Local:
        """Its network and address are there before anything runs in it: containers are told them."""
        if local.observed is None:
            return local
        return self._saw(local, self._t.runtime.start_container(local.observed, action.target))

    def _remove_pod(self, local: Local, action: Action) -> Local:
        self._t.runtime.remove_pod(action.target)
        if local.observed is not None:
            local = local.with_memory(absorb.removed(local.memory, local.observed))
        return self._saw(local, None)

    def _remove_data(self, local: Local, action: Action) -> Local:
        try:
            self._t.volumes.remove(action.target)
        except (errors.StateError, errors.VolumeError) as error:
            log.warning("%s: %s; it is tried again later", local.key, error)
        if local.desired is not None and local.desired.config_hash == local.memory.config_hash:
            return local.with_memory(memories.once_more(local.memory, self._t.clock.time()))
        return local.with_memory(PodMemory(boot_id=local.memory.boot_id))

    # -- containers -----------------------------------------------------------------------------

    def _create_container(self, local: Local, action: Action) -> Local:
        pod, container = local.current, _container(local.current, action)
        if pod is None or container is None or local.observed is None:
            return local
        try:
            if why := self._root_refused(pod, container):
                return self._not_made(local, container, "CreateContainerConfigError", "Failed", f"Error: {why}")
            ips = local.observed.ips
            ready = self._furnish.variables(pod, container, ips)
            layers, absent = self._furnish.layers(pod, container)
            if absent is not None:
                return local.with_pull(pod.config_hash, absent.name, self._missing(local, absent))
            binds = self._furnish.binds(pod, container, action.number, ips, layers)
            made = self._t.runtime.create_container(local.observed, pod, ready, action.number, binds)
        except errors.ImageMissing:
            return local.with_pull(pod.config_hash, container.name, self._missing(local, container))
        except errors.ReferenceMissing as error:
            return self._not_made(local, container, "CreateContainerConfigError", "Failed", f"Error: {error}")
        except errors.VolumeError as error:
            event = "FailedMount" if error.reason == "ContainerCreating" else "Failed"
            return self._not_made(local, container, error.reason, event, str(error))
        except errors.Permanent as error:
            return self._not_made(local, container, "CreateContainerError", "Failed", f"Error: {error.said}")
        if local.memory.of(container.name).pull is None:
            self._event(local, "Normal", "Pulled", puller.present(container.image), container.name)
        self._event(local, "Normal", "Created", "Container created", container.name)
        return self._saw(local, local.observed.with_container(made))

    def _root_refused(self, pod: Pod, container: Container) -> str:
        """Why runAsNonRoot forbids this start ("" = it does not). Raises ImageMissing: its user is not known."""
        security = container.security
        if not security.run_as_non_root or security.run_as_user is not None:
            return nonroot.refusal(pod, container, "")
        image = self._t.runtime.image(container.image)
        if image is None:
            raise errors.ImageMissing(f"cannot tell which user image {container.image} runs as: it is not here")
        return nonroot.refusal(pod, container, image.user)

    def _missing(self, local: Local, container: Container) -> Pull:
        """The image was not there when the container was to be created."""
        now = self._t.clock.monotonic()
        known = local.memory.of(container.name).pull
        if container.pull_policy == "Never":
            message = f'Container image "{container.image}" is not present with pull policy of Never'
            self._event(local, "Warning", "ErrImageNeverPull", message, container.name)
            return Pull(PullState.FAILED, "ErrImageNeverPull", message, now, puller.NEVER_PULL_RETRY)
        if known is not None and known.state is PullState.READY:
            # It was there a moment ago: waiting keeps two answers that disagree from becoming a busy loop.
            message = f'image "{container.image}" is said to be here, but no container can be made from it'
            return Pull(PullState.FAILED, "ErrImagePull", message, now, backoff.INITIAL)
        return Pull(PullState.MISSING, at=now)

    def _not_made(self, local: Local, container: Container, reason: str, event: str, message: str) -> Local:
        known = local.memory.of(container.name)
        failures = known.failures + 1
        waiting = Waiting(reason, message.removeprefix("Error: "))
        if known.waiting != waiting:
            self._event(local, "Warning", event, message, container.name)
        retry_at = self._t.clock.monotonic() + backoff.steps(failures, CONFIG_RETRY, CONFIG_CAP)
        return local.with_memory(
            local.memory.update(container.name, waiting=waiting, failures=failures, retry_at=retry_at)
        )

    def _start_container(self, local: Local, action: Action) -> Local:
        if local.observed is None:
            return local
        try:
            sandbox = self._t.runtime.start_container(local.observed, action.target)
        except errors.Permanent as error:
            said = error.said.replace(action.target, action.container)  # the same words at each try, to be counted
            self._event(local, "Warning", "Failed", f"Error: {said}", action.container)
            failed = StartError(action.target, said, self._t.clock.monotonic())
            return local.with_memory(
                local.memory.update(action.container, start_error=failed, waiting=Waiting("RunContainerError", said))
            )
        self._event(local, "Normal", "Started", "Container started", action.container)
        return self._post_start(self._saw(local, sandbox), sandbox.by_id(action.target))

    def _post_start(self, local: Local, running: ObservedContainer | None) -> Local:
        """Begin the hook of a container that was started just now; one that an earlier agent started has had it."""
        if running is None or local.current is None or not running.running:
            return local
        container = local.current.container(running.name)
        hook = container.lifecycle.post_start if container is not None else None
        if hook is None or local.observed is None:
            return local
        return self._hook(local, HookKind.POST_START, running, hook, POST_START_LIMIT)

    def _hook(self, local: Local, kind: HookKind, seen: ObservedContainer, hook: HookHandler, limit: float) -> Local:
        if local.observed is None:
            return local
        self._t.hooks.begin(kind, targets.target(local, local.observed, seen), hook, limit)
        hooks = {**local.memory.hooks, (seen.id, kind): HookState.RUNNING}
        return local.with_memory(replace(local.memory, hooks=hooks))

    def _run_pre_stop(self, local: Local, action: Action) -> Local:
        """Begin it; should it not end, it is given up once its container must be gone."""
        seen = local.observed.by_id(action.target) if local.observed else None
        if local.observed is None or seen is None or seen.pre_stop is None:
            return local
        self._event(local, "Normal", "Killing", action.reason, action.container)
        limit = action.number + stopping.MINIMUM + stopping.KILL_AGAIN
        local = self._hook(local, HookKind.PRE_STOP, seen, seen.pre_stop, limit)
        return self._note_stop(local, action)

    def _note_stop(self, local: Local, action: Action) -> Local:
        stop = stopping.hooked(action.target, action.number, action.reason, self._t.clock.monotonic())
        return local.with_memory(local.memory.update(action.container, stopping=stop))

    def _announce_stop(self, local: Local, action: Action) -> Local:
        """Its end is told now, its signal comes when its turn is there."""
        self._event(local, "Normal", "Killing", action.reason, action.container)
        return self._note_stop(local, action)

    def _stop_container(self, local: Local, action: Action) -> Local:
        observed = local.observed.by_id(action.target) if local.observed else None
        before = local.memory.of(action.container).stopping
        hooked = before is not None and before.container_id == action.target
        if action.container and not hooked:
            self._event(local, "Normal", "Killing", action.reason, action.container)
        self._t.runtime.signal_container(action.target, observed.stop_signal if observed else "SIGTERM")
        now = self._t.clock.monotonic()
        if before is not None and hooked:
            stop = stopping.signalled(before, action.number, now)
        else:
            stop = stopping.begun(action.target, action.number, action.reason, now)
        return local.with_memory(local.memory.update(action.container, stopping=stop))

    def _kill_container(self, local: Local, action: Action) -> Local:
        stop = local.memory.of(action.container).stopping
        self._t.runtime.signal_container(action.target, "SIGKILL")
        if stop is None:
            return local
        after = stopping.killed(stop, self._t.clock.monotonic())
        return replace(
            local, memory=local.memory.update(action.container, stopping=after), stale=local.stale or stop.kills > 0
        )

    def _remove_container(self, local: Local, action: Action) -> Local:
        self._t.runtime.remove_container(action.target)
        if local.observed is None:
            return local
        left = local.observed.without_container(action.target)
        return self._saw(
            local.with_memory(absorb.removed(local.memory, local.observed, action.target)),
            left,
        )

    def _inspect_container(self, local: Local, action: Action) -> Local:
        if local.observed is None:
            return local
        known = local.observed.by_id(action.target)
        seen = self._t.runtime.inspect_container(action.target)
        if known is None:
            return local
        if seen.running:
            seen = self._phantom(local, action, replace(known, partial=False))
        mono = known.finished_mono or seen.finished_mono
        return self._saw(local, local.observed.with_container(replace(seen, finished_mono=mono)))

    def _phantom(self, local: Local, action: Action, known: ObservedContainer) -> ObservedContainer:
        """Podman says that it runs, the kernel that it has ended: Podman would say so for ever, and not remove it."""
        why = "Podman says that it runs though its process has ended; its exit file is written by hand"
        self._event(local, "Warning", "Repairing", why, action.container)
        self._settle_container(local, action)
        seen = self._t.runtime.inspect_container(action.target)
        return known if seen.running else replace(seen, exit_code=known.exit_code or seen.exit_code)

    # -- repairs ----------------------------------------------------------------------------------

    def _settle_container(self, local: Local, action: Action) -> Local:
        try:
            self._t.repairs.settle(action.target)
        except errors.StateError as error:
            raise errors.Temporary(str(error)) from error
        return replace(local, stale=True)

    def _renew_image(self, local: Local, action: Action) -> Local:
        self._t.repairs.drop_image(action.target)
        missing = Pull(PullState.MISSING, at=self._t.clock.monotonic())
        return local.with_memory(local.memory.update(action.container, pull=missing))

    def _renew_service(self, local: Local, action: Action) -> Local:
        if not self._t.repairs.renew_service():
            log.info("%s: the Podman service is left alone: it is not ours, or was restarted just now", local.key)
        return replace(local, stale=True)

    def _report(self, local: Local, action: Action) -> Local:
        self._event(local, "Warning", "RepairFailed", action.reason, action.container)
        return local

    def _restart_all(self, local: Local, action: Action) -> Local:
        """Note it first: from here on it is carried through, also by another agent."""
        seen = local.observed.by_id(action.target) if local.observed else None
        what = f"Container {action.container}: {action.reason}, all containers of the pod run again"
        self._event(local, "Normal", "RestartingAllContainers", what, action.container)
        begun = RestartingAll(action.container, action.target, seen.finished_mono if seen else 0.0)
        return local.with_memory(replace(local.memory, restarting=begun))

    def _fail_pod(self, local: Local, action: Action) -> Local:
        failure = deadline.FAILURE
        self._event(local, "Normal", failure.reason, failure.message)
        return local.with_memory(replace(local.memory, failed=failure))

    # -- shared -----------------------------------------------------------------------------------

    def _saw(self, local: Local, pod: ObservedPod | None) -> Local:
        self._t.observer.put(local.key, pod)
        return replace(local, observed=self._t.observer.get(local.key))

    def _event(self, local: Local, kind: str, reason: str, message: str, container: str = "") -> None:
        self._t.recorder.event(local.ref(container), kind, reason, message)


def _container(pod: Pod | None, action: Action) -> Container | None:
    return pod.container(action.container) if pod is not None else None
