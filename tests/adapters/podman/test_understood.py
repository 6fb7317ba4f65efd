"""Something else than Podman answers on its socket: that is trouble, and not the end of the agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from edgelet import errors
from edgelet.adapters import podman
from edgelet.adapters.podman import api
from edgelet.model.layout import Layout
from tests.fakes import FakeClock

SHAPES: list[Any] = [
    {},
    {"a": 1},
    [],
    [{}],
    [1, 2],
    5,
    "x",
    [{"Id": 5, "Labels": 7, "State": 9}],
    [{"Id": "a", "Labels": {"io.kubernetes.pod.name": "a-n1"}, "State": "running", "Created": "nonsense", "Pid": "x"}],
]
CALLS: dict[str, Callable[[podman.Podman], object]] = {
    "list": lambda runtime: runtime.list(),
    "inspect": lambda runtime: runtime.inspect_container("a"),
    "signal": lambda runtime: runtime.signal_container("a", "SIGTERM"),
    "remove": lambda runtime: runtime.remove_container("a"),
    "remove pod": lambda runtime: runtime.remove_pod("a"),
    "image": lambda runtime: runtime.image("a"),
    "images": lambda runtime: runtime.images(),
    "networks": lambda runtime: runtime.networks(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("answer", SHAPES, ids=repr)
def test_an_answer_of_any_shape_is_taken_or_is_a_failure_of_the_runtime(
    monkeypatch: pytest.MonkeyPatch, call: Callable[[podman.Podman], object], answer: Any
) -> None:
    runtime = podman.Podman(api.Fixed("/none"), "o", Layout("/r", "/s", "/l"), FakeClock(), boot_id="b")
    for verb in ("_call", "get", "post", "delete"):
        monkeypatch.setattr(runtime._api, verb, lambda *_, **__: answer)
    try:
        call(runtime)
    except errors.RuntimeFailure as error:
        assert str(error).startswith("cannot ")
