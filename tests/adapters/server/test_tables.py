"""Tables: the cells a real API server answered for the same recorded objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgelet.adapters.server import humans, tables

RECORDED = Path(__file__).parents[3].parent / "shared" / "data" / "apiserver-responses"


def recorded(name: str) -> Any:
    """A recorded answer."""
    if not RECORDED.is_dir():
        pytest.skip(f"needs the recorded answers in {RECORDED.name} beside the checkout")
    return json.loads((RECORDED / name).read_text())


def test_pod_cells_are_those_of_a_real_api_server() -> None:
    now = humans.parse("2026-11-30T14:50:41Z")
    expected = {row["cells"][0]: row["cells"] for row in recorded("table_pods.json")["rows"]}
    cells = [tables.pod_cells(item, now) for item in recorded("list_pods.json")["items"]]
    assert {row[0]: row for row in cells} == expected


def test_column_names_formats_and_priorities_are_those_of_a_real_api_server() -> None:
    for name, made in (("table_pods.json", tables.pods), ("table_events.json", tables.events)):
        expected = [(c["name"], c["format"], c["priority"]) for c in recorded(name)["columnDefinitions"]]
        table = made([], "1", 0.0)
        assert [(c["name"], c["format"], c["priority"]) for c in table["columnDefinitions"]] == expected
        assert table["kind"] == "Table"


def test_event_cells_are_those_of_a_real_api_server() -> None:
    row = recorded("table_events.json")["rows"][0]["cells"]
    event = {
        "metadata": {"name": "crash-edge1.0"},
        "involvedObject": {"kind": "Pod", "name": "crash-edge1", "fieldPath": "spec.containers{web}"},
        "source": {"component": "kubelet", "host": "edge1"},
        "type": "Normal",
        "reason": "Pulling",
        "message": 'Pulling image "docker.io/library/nginx:1.27"',
        "firstTimestamp": "2026-11-30T14:00:00Z",
        "lastTimestamp": "2026-11-30T14:20:00Z",
        "count": 1,
    }
    assert tables.event_cells(event, humans.parse("2026-11-30T14:50:41Z")) == row


def container(name: str = "c", ready: bool = False, restarts: int = 0, **state: Any) -> dict[str, Any]:
    """A container status in that state."""
    return {"name": name, "state": state, "ready": ready, "restartCount": restarts, "started": ready}


def pod(*containers: dict[str, Any], inits: list[dict[str, Any]] | None = None, **status: Any) -> dict[str, Any]:
    """A pod whose spec follows from its statuses; sidecars are the inits whose name begins with s."""
    given = inits or []
    spec_inits = [{"name": i["name"], **({"restartPolicy": "Always"} if i["name"][0] == "s" else {})} for i in given]
    return {
        "metadata": {"name": "p", "deletionTimestamp": status.pop("deleted", None)},
        "spec": {"containers": [{"name": c["name"]} for c in containers], "initContainers": spec_inits},
        "status": {"phase": "Pending", **status, "containerStatuses": [*containers], "initContainerStatuses": given},
    }


def blocked(inits: list[dict[str, Any]]) -> dict[str, Any]:
    """A pod whose regular container waits for these init containers."""
    return pod(container(waiting={}), inits=inits)


UP: dict[str, Any] = {"running": {"startedAt": "2026-11-30T14:00:00Z"}}
DONE: dict[str, Any] = {"terminated": {"exitCode": 0, "reason": "Completed"}}
READY = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    ("value", "ready", "status"),
    [
        (pod(container(waiting={"reason": "ContainerCreating"})), "0/1", "ContainerCreating"),
        (pod(container(ready=True, **UP), phase="Running"), "1/1", "Running"),
        (pod(container(**UP), phase="Running"), "0/1", "Running"),
        (pod(container(**DONE), container("d", True, **UP), phase="Running", conditions=READY), "1/2", "Running"),
        (pod(container(**DONE), container("d", True, **UP), phase="Running"), "1/2", "NotReady"),
        (pod(container(terminated={"exitCode": 137, "reason": "OOMKilled"})), "0/1", "OOMKilled"),
        (pod(container(terminated={"exitCode": 3})), "0/1", "ExitCode:3"),
        (pod(container(terminated={"exitCode": 0, "signal": 9})), "0/1", "Signal:9"),
        (blocked([container("i", **UP)]), "0/1", "Init:0/1"),
        (blocked([container("i", **DONE), container("j", **UP)]), "0/1", "Init:1/2"),
        (blocked([container("i", waiting={"reason": "PodInitializing"})]), "0/1", "Init:0/1"),
        (blocked([container("i", waiting={"reason": "ErrImagePull"})]), "0/1", "Init:ErrImagePull"),
        (blocked([container("i", terminated={"exitCode": 2})]), "0/1", "Init:ExitCode:2"),
        (blocked([container("i", terminated={"exitCode": 2, "signal": 6})]), "0/1", "Init:Signal:6"),
        (pod(container(ready=True, **UP), inits=[container("s", True, **UP)], phase="Running"), "2/2", "Running"),
        (pod(container(ready=True, **UP), phase="Running", deleted="2026-11-30T14:00:00Z"), "1/1", "Terminating"),
        (pod(container(**DONE), phase="Succeeded", deleted="2026-11-30T14:00:00Z"), "0/1", "Completed"),
        (pod(container(**DONE), phase="Running", reason="Stopped"), "0/1", "Stopped"),
        (pod(phase="Failed", reason="Evicted"), "0/0", "Evicted"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_status_and_ready_are_computed_as_kubectl_does(value: dict[str, Any], ready: str, status: str) -> None:
    cells = tables.pod_cells(value, 0.0)
    assert (cells[1], cells[2]) == (ready, status)


def test_restarts_of_sidecars_count_those_of_init_containers_only_while_initializing() -> None:
    inits = [container("i", restarts=4, **DONE), container("s", True, restarts=2, **UP)]
    assert tables.pod_cells(pod(container(ready=True, restarts=1, **UP), inits=inits), 0.0)[3] == "3"
    failing = [container("i", restarts=4, waiting={"reason": "CrashLoopBackOff"})]
    assert tables.pod_cells(blocked(failing), 0.0)[3] == "4"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (247, "4m7s"),
        (600, "10m"),
        (179 * 60, "179m"),
        (180 * 60, "3h"),
        (5 * 3600 + 120, "5h2m"),
        (8 * 3600 + 60, "8h"),
        (47 * 3600, "47h"),
        (76 * 3600, "3d4h"),
        (48 * 3600, "2d"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (770 * 86400, "2y40d"),
        (730 * 86400, "2y"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_ages_have_the_precision_of_kubectl(seconds: float, text: str) -> None:
    assert humans.duration(seconds) == text
