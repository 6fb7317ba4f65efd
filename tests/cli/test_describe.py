"""`edgelet describe pod` prints what kubectl printed for the same recorded objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgelet.cli import describe, tabs

RECORDED = Path(__file__).parents[2].parent / "shared" / "data" / "apiserver-responses"
PODS = ("web-edge1", "crash-edge1", "pending-edge1", "initfail-edge1")


def recorded(name: str) -> Any:
    """A recorded pod."""
    if not RECORDED.is_dir():
        pytest.skip(f"needs the recorded answers in {RECORDED.name} beside the checkout")
    items = json.loads((RECORDED / "list_pods.json").read_text())["items"]
    return next(item for item in items if item["metadata"]["name"] == name)


@pytest.mark.parametrize("name", PODS)
def test_a_pod_is_described_as_kubectl_describes_it(name: str) -> None:
    pod = recorded(name)
    if name == "web-edge1":
        pod["metadata"]["annotations"]["x"] = "z"  # set between the recordings
    expected = (RECORDED / "kubectl-output" / f"describe_pod_{name}.txt").read_text()
    assert describe.pod_text(pod, [], 1_796_050_000) == expected


def test_events_show_repeats_and_the_reason_stands_above() -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "d", "annotations": {"edgelet.io/summary": "container c: exits with 1"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Pending"},
    }
    event = {
        "type": "Warning",
        "reason": "BackOff",
        "count": 3,
        "firstTimestamp": "2026-11-30T14:00:00Z",
        "lastTimestamp": "2026-11-30T14:05:00Z",
        "source": {"component": "kubelet"},
        "message": "Back-off restarting\n",
    }
    text = describe.pod_text(pod, [event], 1_796_047_800.0)
    assert "Why:          container c: exits with 1\n" in text
    assert text.endswith(
        "Events:\n"
        "  Type     Reason   Age               From     Message\n"
        "  ----     ------   ----              ----     -------\n"
        "  Warning  BackOff  5m (x3 over 10m)  kubelet  Back-off restarting\n"
    )


def test_columns_end_where_a_line_has_no_cell() -> None:
    assert tabs.align("a\tb\nccc\td\nplain\ne\tf") == "a    b\nccc  d\nplain\ne  f"
