"""ports.Runtime on Podman: ten dull methods that send what `spec` built and return what `seen` read.

Owns the knowledge that no answer carries: which ids are ours, and the monotonic times of containers,
fixed at first sight.  Both are bounded by what Podman lists.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from ... import errors
from ...core.restart import KILLED_CODE
from ...model import labels
from ...model.layout import Layout
from ...model.observed import Bind, Image, ObservedContainer, ObservedPod, State
from ...model.pod import Container, Pod, PodKey
from ...ports import Clock
from . import api, images, kernel_log, networks, seen, spec
from .learnt import Learnt
from .times import Times, lives
from .understood import understood

log = logging.getLogger(__name__)

CREATE_SECONDS = 120.0
LOG_MODE = 0o640
_UNHEARD = ("sending signal to container", "timed out waiting for file")
"""How Podman 5 and 4 tell that a container's end came to no conmon."""

Warn = Callable[[Pod, str], None]


def _to_log(pod: Pod, message: str) -> None:
    log.warning("pod %s: %s", pod.key, message)


Message = Callable[[ObservedContainer], str]


def _no_message(ended: ObservedContainer) -> str:
    return ""


class Podman:
    """See ports.Runtime. Thread-safe.

    connection: where Podman answers.  owner: id of this agent (label and name suffix).  layout:
    paths of logs.  facts: what the host can apply.  boot_id: written on what we create.  warn: told
    what a container has to go without.  message: reads what a container that has ended left (3.14).
    """

    def __init__(
        self,
        connection: api.Connection,
        owner: str,
        layout: Layout,
        clock: Clock,
        *,
        boot_id: str,
        facts: spec.HostFacts | None = None,
        network: networks.Network | None = None,
        warn: Warn = _to_log,
        message: Message = _no_message,
    ) -> None:
        self._api = api.Api(connection)
        self._clock = clock
        self._naming = spec.Naming(owner, boot_id)
        self._layout = layout
        self._facts = facts or spec.HostFacts()
        self._network = network or networks.Network()
        self._warn = warn
        self._message = message
        self._memory = Learnt(Times(clock))

    def version(self) -> str:
        """Podman's version, "" until it has answered once."""
        return self._api.version

    def owns(self, target: str) -> bool:
        """Whether a pod or container of that id is known as ours, without asking Podman."""
        return self._memory.owns(target)

    def owned(self, target: str) -> bool:
        """Whether it was, and has gone lately."""
        return self._memory.owned(target)

    @understood
    def networks(self) -> networks.Known:
        """What Podman knows of networks, to find what it has forgotten. Raises errors.RuntimeFailure."""
        return networks.known(self._api, self._network.name)

    # ---- ports.Runtime ----------------------------------------------------------------------

    @understood
    def list(self, key: PodKey | None = None) -> tuple[ObservedPod, ...]:
        """See ports.Runtime. Two calls, and one inspect per container whose state changed since the last."""
        extra = {} if key is None else {labels.POD_NAME: key.name, labels.POD_NAMESPACE: key.namespace}
        filters = spec.label_filter(self._naming, extra)
        pods = self._api.get("pods/json", {"filters": filters})
        rows = self._api.get("containers/json", {"all": "true", "filters": filters})
        answer = self._observe(pods, rows)
        ids = frozenset(row["Id"] for row in (*rows, *pods))
        if key is None:
            self._memory.keep(answer, ids)
        else:
            self._memory.keep_of(key, ids)
        return answer

    @understood
    def create_pod(self, pod: Pod, attempt: int) -> ObservedPod:
        """See ports.Runtime."""
        body = spec.pod_body(pod, self._naming, attempt, self._network.name)
        if "Networks" in body:
            networks.ensure(self._api, self._network, self._naming.owner)
        made = _id(self._create("pods/create", body, body.get("infra_name", ""), lambda: self._drop_half(body["name"])))
        self._memory.own(made)
        return seen.created_pod(self._api.get(f"pods/{made}/json"))

    @understood
    def remove_pod(self, pod_id: str) -> None:
        """See ports.Runtime."""
        if self._is_ours(f"pods/{pod_id}/json", pod_id):
            # timeout 0: whoever wanted a grace period has had it
            self._gone_is_fine(f"pods/{pod_id}", {"force": "true", "timeout": "0"})

    @understood
    def create_container(
        self, sandbox: ObservedPod, pod: Pod, container: Container, restart_count: int, binds: tuple[Bind, ...]
    ) -> ObservedContainer:
        """See ports.Runtime."""
        path = self._layout.log_path(pod.namespace, pod.name, pod.uid, container.name, restart_count)
        _make_log(path)
        instance = spec.Instance(sandbox.id, restart_count, binds, path, self._facts)
        body = spec.container_body(pod, container, instance, self._naming)
        for sentence in spec.dropped_limits(container, self._facts):
            self._warn(pod, sentence)
        made = _id(self._create("containers/create", body, body["name"]))
        self._memory.own(made)
        return seen.created_container(made, container, restart_count, pod.grace, path, self._clock.time())

    def _create(self, path: str, body: spec.Body, name: str, clear: Callable[[], None] = lambda: None) -> Any:
        """Create; a half-made container of that name, of which Podman itself knows nothing, is removed first.

        `clear` takes away what the attempt that met it has left.
        """
        try:
            return self._api.post(path, body=body, timeout=CREATE_SECONDS, creating=True)
        except errors.Conflict as error:
            orphan = half_made(str(error), name)
            if not orphan or self._exists(orphan):
                raise
        log.warning("removing what a Podman that was killed left of container %s: %s", name, orphan)
        self._gone_is_fine(f"containers/{orphan}", {"force": "true", "timeout": "0"})
        clear()
        return self._api.post(path, body=body, timeout=CREATE_SECONDS, creating=True)

    def _drop_half(self, name: str) -> None:
        """Remove our pod of that name, which got no infra container."""
        try:
            half = self._api.get(f"pods/{name}/json")
        except errors.NotFound:
            return
        if self._mine(half) and not half.get("InfraContainerID"):
            self._gone_is_fine(f"pods/{half['Id']}", {"force": "true", "timeout": "0"})

    def _exists(self, container_id: str) -> bool:
        try:
            self._api.get(f"containers/{container_id}/json")
        except errors.NotFound:
            return False
        return True

    @understood
    def start_container(self, sandbox: ObservedPod, container_id: str) -> ObservedPod:
        """See ports.Runtime."""
        self._require_ours(container_id)
        try:
            self._start(container_id)
        except errors.Temporary as error:
            if "internal libpod error" in str(error) and sandbox.infra_id:
                self._start(sandbox.infra_id)  # Podman hides why the infra container failed: ask for that alone
            raise
        if container_id == sandbox.infra_id:
            return self._with_infra(sandbox)
        return self._with_infra(sandbox).with_container(self.inspect_container(container_id))

    @understood
    def signal_container(self, container_id: str, signal: str) -> None:
        """See ports.Runtime."""
        if not self._is_ours(f"containers/{container_id}/json", container_id):
            return
        try:
            self._api.post(f"containers/{container_id}/kill", {"signal": signal})
        except errors.NotFound:
            return
        except (errors.Temporary, errors.Conflict) as error:  # Podman 4, Podman 5
            improper = "container state improper" in str(error)  # it does not run
            unheard = any(words in str(error) for words in _UNHEARD)
            if not improper and not (unheard and self._has_ended(container_id)):
                raise

    def _has_ended(self, container_id: str) -> bool:
        """Whether nobody is left to signal, though Podman believes so: the container's conmon had died before it."""
        try:
            pid = seen.details(self._api.get(f"containers/{container_id}/json")).pid
        except errors.NotFound:
            return True
        return pid > 0 and not lives(pid)

    @understood
    def remove_container(self, container_id: str) -> None:
        """See ports.Runtime."""
        if self._is_ours(f"containers/{container_id}/json", container_id):
            self._gone_is_fine(f"containers/{container_id}", {"force": "true", "volumes": "true", "timeout": "0"})

    @understood
    def inspect_container(self, container_id: str) -> ObservedContainer:
        """See ports.Runtime."""
        answer = self._api.get(f"containers/{container_id}/json")
        if not self._mine(answer.get("Config") or {}):
            raise errors.NotFound(f"cannot inspect container {container_id}: it is not one of ours")
        return self._memory.remember(self._told(seen.inspected(answer)), seen.details(answer))

    @understood
    def image(self, reference: str) -> Image | None:
        """See ports.Runtime."""
        try:
            return seen.image(self._api.get(f"images/{quote(reference, safe='')}/json"))
        except (errors.ImageMissing, errors.NotFound):
            return None

    @understood
    def images(self) -> tuple[dict[str, Any], ...]:
        """All images as v1.ContainerImage objects."""
        return tuple(images.listed(self._api))

    @understood
    def pull(self, reference: str) -> Image:
        """See ports.Runtime."""
        images.pull(self._api, reference)
        found = self.image(reference)
        if found is None:
            raise errors.PullFailed(f"cannot pull {reference}: Podman says it did, but does not have it")
        return found

    def drop_image(self, reference: str) -> None:
        """Remove an image that no container uses; gone already is success. Raises errors.RuntimeFailure."""
        with contextlib.suppress(errors.NotFound, errors.ImageMissing):
            self._api.delete(f"images/{quote(reference, safe='')}")

    # ---- inside -----------------------------------------------------------------------------

    def _start(self, container_id: str) -> None:
        self._api.post(f"containers/{container_id}/start", timeout=CREATE_SECONDS, creating=True)

    def _with_infra(self, sandbox: ObservedPod) -> ObservedPod:
        """Asked for once per start of the infra container, by its id: a list costs Podman a read of every pod."""
        if sandbox.infra_known:
            return sandbox
        answer = self._api.get(f"containers/{sandbox.infra_id}/json")
        found = seen.details(answer)
        if found.pid:
            self._memory.set_addresses(sandbox.infra_id, found.pid, found.ips)
        return seen.with_infra(sandbox, answer)

    def _observe(self, pods: Any, rows: Any) -> tuple[ObservedPod, ...]:
        infra = {r["Id"]: r for r in rows if r.get("IsInfra")}
        inside: dict[str, list[ObservedContainer]] = {}
        for row in rows:
            if not row.get("IsInfra"):
                inside.setdefault(row.get("Pod") or "", []).append(self._container(row))
        found = []
        for row in pods:
            infra_row = infra.get(row.get("InfraId") or "")
            base = seen.pod(row, infra_row, self._addresses(infra_row))
            mine = sorted(inside.get(base.id, []), key=lambda c: (c.name, c.restart_count, c.created_at))
            found.append(replace(base, containers=tuple(mine)))
        self._memory.own(*(p["Id"] for p in pods), *(r["Id"] for r in rows))
        return tuple(found)

    def _container(self, row: seen.Answer) -> ObservedContainer:
        base = seen.container(row, None)
        if base.state in (State.CREATED, State.UNKNOWN):
            return base
        known = self._memory.recall(base, _row_key(row))
        if known is not None:
            return known
        try:
            answer = self._api.get(f"containers/{base.id}/json")
        except errors.NotFound:
            return base
        return self._memory.remember(self._told(seen.inspected(answer)), seen.details(answer), _row_key(row))

    def _told(self, found: ObservedContainer) -> ObservedContainer:
        """With its termination message, and what the kernel tells of a kill, if it has ended."""
        if found.state is not State.EXITED:
            return found
        oom = found.oom_killed or (found.exit_code == KILLED_CODE and kernel_log.oom_killed(found.id))
        return replace(found, message=self._message(found), oom_killed=oom)

    def _addresses(self, infra: seen.Answer | None) -> tuple[str, ...]:
        """The pod's addresses, asked for once per start of its infra container."""
        if infra is None or seen.state(infra) is not State.RUNNING:
            return ()
        known = self._memory.addresses(infra["Id"], infra.get("Pid") or 0)
        if known is not None:
            return known
        try:
            found = seen.details(self._api.get(f"containers/{infra['Id']}/json")).ips
        except errors.NotFound:
            return ()
        self._memory.set_addresses(infra["Id"], infra.get("Pid") or 0, found)
        return found

    def _mine(self, row: seen.Answer) -> bool:
        return seen.row_labels(row).get(labels.OWNER) == self._naming.owner

    def _is_ours(self, path: str, target: str) -> bool:
        """False = gone. Raises NotFound for another's: we never touch what does not carry our label."""
        if self._memory.owns(target):
            return True
        try:
            answer = self._api.get(path)
        except errors.NotFound:
            return False
        if not self._mine(answer) and not self._mine(answer.get("Config") or {}):
            raise errors.NotFound(f"cannot touch {target}: it is not one of ours")
        self._memory.own(target)
        return True

    def _require_ours(self, container_id: str) -> None:
        if not self._is_ours(f"containers/{container_id}/json", container_id):
            raise errors.NotFound(f"cannot start container {container_id}: there is none")

    def _gone_is_fine(self, path: str, params: dict[str, str]) -> None:
        """Podman's first removal of a container whose conmon has died fails once it has noticed; the next one works."""
        try:
            try:
                self._api.delete(path, params)
            except errors.Temporary as error:
                if "could not be stopped" not in str(error):
                    raise
                log.info("removing once more: %s", error)
                self._api.delete(path, params)
        except errors.NotFound as error:
            self._really_gone(path, error)

    def _really_gone(self, path: str, error: errors.NotFound) -> None:
        """What is believed gone is looked for once more: if it were there, nobody would look at it for a long time."""
        kind, _, target = path.partition("/")
        if self._api.get(f"{kind}/json", {"all": "true", "filters": json.dumps({"id": [target]})}):
            raise errors.Temporary(f"{error}, but lists it") from error


def _id(answer: Any) -> str:
    """Of what was made; if Podman does not tell, it is found by the next list."""
    if not isinstance(answer, dict) or "Id" not in answer:
        raise errors.Temporary("cannot tell what was made: Podman's answer is empty")
    return str(answer["Id"])


def _row_key(row: seen.Answer) -> tuple[object, ...]:
    """Changes whenever the container was started or has ended since."""
    return (str(row.get("State")), row.get("Pid"), row.get("StartedAt"), row.get("ExitedAt"))


_HALF_MADE = re.compile(r'creating container storage: the container name "([^"]+)" is already in use by ([0-9a-f]{64})')


def half_made(message: str, name: str) -> str:
    """The storage id in Podman's refusal of `name`, if its storage holds that name; "" if it is another refusal.

    A Podman that is killed between two writes of a create leaves a name in its storage for which its
    own database has no container; the name can then never be used again.
    """
    found = _HALF_MADE.search(message)
    return found[2] if found and found[1] == name else ""


def _make_log(path: str) -> None:
    """The file that conmon will append to: of a disk that takes none conmon tells nobody."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, LOG_MODE))
    except OSError as error:
        why = f"cannot make the log file {path}: {error.strerror}"
        raise errors.VolumeError(why, reason="CreateContainerConfigError") from error
