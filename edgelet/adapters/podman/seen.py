"""Pure: what Podman's list and inspect answers say, as `model.observed` values.

List answers carry whole seconds and no conmon; `Details`, from one inspect per state change, carries the rest.
"""

from __future__ import annotations

import datetime
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...model import hooks, labels
from ...model.observed import Image, ObservedContainer, ObservedPod, State
from ...model.pod import Container, PodKey

Answer = Mapping[str, Any]

STATES = {
    "created": State.CREATED,
    "configured": State.CREATED,
    "initialized": State.CREATED,
    "running": State.RUNNING,
    "stopping": State.RUNNING,
    "paused": State.RUNNING,
    "exited": State.EXITED,
    "stopped": State.EXITED,
    "dead": State.EXITED,
}


STARTED_TWICE = ": container is running"
"""What Podman 5 notes as a container's error, for ever, when it was told to start what ran already."""


@dataclass(frozen=True, slots=True)
class Details:
    """What only an inspect tells. Times are epoch seconds, 0 = never."""

    started_at: float = 0.0
    finished_at: float = 0.0
    pid: int = 0
    conmon_pid: int = 0
    oci_config: str = ""
    oom_killed: bool = False
    error: str = ""
    exit_code: int = 0
    stop_signal: str = "SIGTERM"
    log_path: str = ""
    ips: tuple[str, ...] = ()


def details(answer: Answer) -> Details:
    """From the answer of containers/<id>/json."""
    state = answer["State"]
    config = answer.get("Config") or {}
    log_config = (answer.get("HostConfig") or {}).get("LogConfig") or {}
    return Details(
        started_at=epoch(state.get("StartedAt", "")),
        finished_at=epoch(state.get("FinishedAt", "")),
        pid=state.get("Pid") or 0,
        conmon_pid=state.get("ConmonPid") or 0,
        oci_config=answer.get("OCIConfigPath") or "",
        oom_killed=bool(state.get("OOMKilled")),
        error=state.get("Error") or "",
        exit_code=_exit_code(state.get("ExitCode") or 0),
        stop_signal=signal_name(config.get("StopSignal")),
        log_path=log_config.get("Path") or "",
        ips=addresses(answer.get("NetworkSettings") or {}),
    )


def _exit_code(code: int) -> int:
    """Podman says -1 where conmon left no exit file: the process was killed unseen."""
    return code if code >= 0 else 137


def addresses(settings: Answer) -> tuple[str, ...]:
    """IPv4 then IPv6 addresses of all networks."""
    networks = (settings.get("Networks") or {}).values()
    found = [n.get(field) for field in ("IPAddress", "GlobalIPv6Address") for n in networks]
    return tuple(dict.fromkeys(a for a in found if a))


def signal_name(value: object) -> str:
    """Podman 4 tells a number, Podman 5 a name."""
    if isinstance(value, str) and value and not value.isdigit():
        return value if value.startswith("SIG") else f"SIG{value}"
    number = int(value) if isinstance(value, (int, str)) and value else int(signal.SIGTERM)
    if number > int(signal.SIGRTMIN):
        return f"SIGRTMIN+{number - int(signal.SIGRTMIN)}"
    try:
        return signal.Signals(number).name
    except ValueError:
        return "SIGTERM"


def epoch(text: str) -> float:
    """Epoch seconds of an RFC 3339 time with up to nine digits; Go's zero time gives 0."""
    if not text or text.startswith("0001-"):
        return 0.0
    head, _, tail = text.partition(".")
    digits = tail[: len(tail) - len(tail.lstrip("0123456789"))]
    zone = tail[len(digits) :] if tail else ""
    moment = datetime.datetime.fromisoformat(head + zone if tail else text)
    return moment.timestamp() + (float(f"0.{digits}") if digits else 0.0)


def state(row: Answer) -> State:
    """A container row's state."""
    return STATES.get(str(row.get("State", "")).lower(), State.UNKNOWN)


def row_labels(row: Answer) -> Mapping[str, str]:
    """Labels of a row; Podman says null for none."""
    return row.get("Labels") or {}


def container(row: Answer, seen: Details | None) -> ObservedContainer:
    """One row of containers/json, with details where they were asked for; the *_mono fields stay 0."""
    marks = row_labels(row)
    what = state(row)
    basic = ObservedContainer(
        id=row["Id"],
        name=marks.get(labels.CONTAINER_NAME, ""),
        state=what,
        restart_count=_int(marks.get(labels.RESTART_COUNT)),
        image=row.get("Image") or "",
        image_id=_image_id(row.get("ImageID") or ""),
        created_at=epoch(row.get("Created") or ""),
        grace=_grace(marks),
        pre_stop=hooks.parse(marks.get(labels.PRE_STOP, "")),
        sidecar=_int(marks[labels.SIDECAR]) if labels.SIDECAR in marks else None,
        message_file=marks.get(labels.MESSAGE_FILE, ""),
        message_policy=marks.get(labels.MESSAGE_POLICY, "File"),
    )
    return basic if seen is None else with_details(basic, seen)


def inspected(answer: Answer) -> ObservedContainer:
    """The answer of containers/<id>/json as an observation."""
    config = answer.get("Config") or {}
    row = {
        "Id": answer["Id"],
        "Labels": config.get("Labels"),
        "State": answer["State"].get("Status"),
        "Image": answer.get("ImageName"),
        "ImageID": answer.get("Image"),
        "Created": answer.get("Created"),
    }
    return container(row, details(answer))


def with_details(seen: ObservedContainer, more: Details) -> ObservedContainer:
    """Fill in what an inspect told.

    After a reboot Podman 5 calls what ran "exited" with code 0, though it saw no end: that is no success, and is
    told as Podman 4 does, as made and not running.
    """
    if seen.state is State.EXITED and not more.finished_at:
        seen = replace(seen, state=State.CREATED)
        more = replace(more, log_path="", started_at=0.0)
    exited = seen.state is State.EXITED
    return replace(
        seen,
        pid=more.pid if seen.running else 0,
        conmon_pid=more.conmon_pid if seen.running else 0,
        oci_config=more.oci_config,
        started_at=more.started_at,
        finished_at=more.finished_at if exited else 0.0,
        exit_code=more.exit_code if exited else None,
        oom_killed=more.oom_killed and exited,
        error="" if more.error.endswith(STARTED_TWICE) else more.error,
        log_path=more.log_path,
        stop_signal=more.stop_signal,
    )


def pod(row: Answer, infra: Answer | None, ips: tuple[str, ...]) -> ObservedPod:
    """One row of pods/json; `infra` is its infra container's row of containers/json, if it has one.

    A pod that lacks the infra container it was to have (Podman died, or the power, while it was made)
    counts as one whose infra container is dead: nothing can be created in it.
    """
    marks = row_labels(row)
    infra_id = row.get("InfraId") or ""
    infra_state = State.CREATED if infra is None or _ended_unseen(infra) else state(infra)
    running = infra_state is State.RUNNING
    half_made = not infra_id and marks.get(labels.INFRA) == "true"
    return ObservedPod(
        key=PodKey(marks.get(labels.POD_NAMESPACE, ""), marks.get(labels.POD_NAME, "")),
        id=row["Id"],
        uid=marks.get(labels.POD_UID, ""),
        config_hash=marks.get(labels.CONFIG_HASH, ""),
        source=marks.get(labels.SOURCE, ""),
        boot_id=marks.get(labels.BOOT_ID, ""),
        grace=_int(marks.get(labels.GRACE), 30),
        infra_id=infra_id,
        infra_dead=half_made or infra_state is State.EXITED,
        infra_pid=(infra or {}).get("Pid") or 0 if running else 0,
        created_at=epoch(row.get("Created") or ""),
        ips=ips if running else (),
        host_network=marks.get(labels.HOST_NETWORK) == "true",
        attempt=_int(marks.get(labels.ATTEMPT)),
    )


def _ended_unseen(row: Answer) -> bool:
    """Whether Podman 5 forgot over a reboot that the container of this row ran; see with_details."""
    return state(row) is State.EXITED and int(row.get("ExitedAt") or 0) < 0


def created_pod(told: Answer | list[Answer]) -> ObservedPod:
    """The answer of pods/<id>/json for a pod that has not run yet; newer Podman wraps it in a list."""
    answer = told[0] if isinstance(told, list) else told
    row = {
        "Id": answer["Id"],
        "Labels": answer.get("Labels"),
        "InfraId": answer.get("InfraContainerID"),
        "Created": answer.get("Created"),
    }
    return pod(row, None, ())


def with_infra(sandbox: ObservedPod, answer: Answer) -> ObservedPod:
    """The pod with what containers/<id>/json tells of its infra container."""
    found, what = details(answer), state({"State": answer["State"].get("Status")})
    running = what is State.RUNNING
    return replace(
        sandbox,
        infra_dead=what is State.EXITED,
        infra_pid=found.pid if running else 0,
        ips=found.ips if running else (),
    )


def created_container(
    made: str, spec: Container, count: int, grace: int, log_path: str, now: float
) -> ObservedContainer:
    """A container that was just created: known without asking."""
    return ObservedContainer(
        id=made,
        name=spec.name,
        state=State.CREATED,
        restart_count=count,
        image=spec.image,
        created_at=now,
        grace=grace,
        log_path=log_path,
    )


def image(answer: Answer) -> Image:
    """The answer of images/<name>/json."""
    config = answer.get("Config") or {}
    return Image(
        id=_image_id(answer.get("Id") or ""),
        digest=_repo_digest(answer),
        size=answer.get("Size") or 0,
        user=config.get("User") or answer.get("User") or "",
        stop_signal=signal_name(config["StopSignal"]) if config.get("StopSignal") else "",
        layers=_layers(answer.get("GraphDriver") or {}),
    )


def _layers(driver: Answer) -> tuple[str, ...]:
    data = driver.get("Data") or {}
    if driver.get("Name") != "overlay" or not data.get("UpperDir"):
        return ()
    return (data["UpperDir"], *filter(None, (data.get("LowerDir") or "").split(":")))


def _repo_digest(answer: Answer) -> str:
    digests = answer.get("RepoDigests") or []
    return digests[0] if digests else answer.get("Digest") or ""


def _image_id(text: str) -> str:
    return text if not text or text.startswith("sha256:") else f"sha256:{text}"


def _grace(marks: Mapping[str, str]) -> int | None:
    text = marks.get(labels.GRACE)
    return _int(text) if text else None


def _int(text: str | None, default: int = 0) -> int:
    try:
        return int(text) if text else default
    except ValueError:
        return default
