"""The closed set of things edgelet can do to a pod: values with a verb, a target and a reason.

`core.plan` makes them, `engine.executor` maps each verb to one call, and the log line, the event
and the metric of an action all come from the value itself.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from .status import Waiting


class Verb(enum.Enum):
    """What to do. Nothing else may change the runtime."""

    PULL_IMAGE = "pull image"
    CREATE_POD = "create pod"
    START_POD = "start pod"
    REMOVE_POD = "remove pod"
    CREATE_CONTAINER = "create container"
    START_CONTAINER = "start container"
    RUN_PRE_STOP = "run the preStop hook of container"
    ANNOUNCE_STOP = "let those before it end first, then stop container"
    STOP_CONTAINER = "stop container"
    KILL_CONTAINER = "kill container"
    REMOVE_CONTAINER = "remove container"
    INSPECT_CONTAINER = "inspect container"
    RESTART_ALL = "restart all containers after the end of container"
    FAIL_POD = "fail pod"
    REMOVE_DATA = "remove data"
    SETTLE_CONTAINER = "end, without Podman, container"
    RENEW_IMAGE = "fetch anew the image of container"
    RENEW_SERVICE = "restart the Podman service"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class Action:
    """One step.

    `container` is the container's name in the pod, `target` a Podman id (or the image for
    PULL_IMAGE, the pod uid for REMOVE_DATA), `number` the restart count for CREATE_CONTAINER,
    the attempt for CREATE_POD, the grace in seconds for RUN_PRE_STOP, ANNOUNCE_STOP and STOP_CONTAINER.  `reason` is a
    phrase an operator can read.  `config_hash` is the generation that a PULL_IMAGE is for.
    `rung` > 0 = a step of the repair ladder (core.repair), counted from its foot.
    """

    verb: Verb
    reason: str
    container: str = ""
    target: str = ""
    number: int = 0
    config_hash: str = ""
    rung: int = 0

    def __str__(self) -> str:
        target = self.target if self.verb in (Verb.PULL_IMAGE, Verb.RENEW_IMAGE) else self.target[:12]
        what = " ".join(x for x in (self.container, target) if x)
        return f"{self.verb.value} {what}: {self.reason}" if what else f"{self.verb.value}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Plan:
    """One round of steps, then observe again.

    `wake_at` (monotonic seconds) = plan again then.  `waiting` says by container name why a
    container that should run is not being started now.  `ending` is the reason for which the whole
    pod is being ended ("" = it is not), `keep_data` whether its volumes outlive that, `anew` whether
    a person asked for it: then how its containers ended does not keep them from running again.
    """

    actions: tuple[Action, ...] = ()
    wake_at: float | None = None
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    ending: str = ""
    keep_data: bool = False
    anew: bool = False
