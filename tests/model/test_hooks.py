"""Hooks as text for a label, and back."""

from __future__ import annotations

import pytest

from edgelet.model import hooks
from edgelet.model.pod import Container, Exec, HookHandler, HttpGet, Port, Sleep, TcpSocket

WEB = Container("web", "demo", ports=(Port(8080, name="http"), Port(9090, name="other")))


@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        (Exec(("sh", "-c", "exit")), Exec(("sh", "-c", "exit"))),
        (Sleep(3), Sleep(3)),
        (TcpSocket(80, "h"), TcpSocket(80, "h")),
        (HttpGet("http", "/x", headers=(("A", "b"),)), HttpGet(8080, "/x", headers=(("A", "b"),))),
        (HttpGet("unknown"), HttpGet("unknown")),
        (HttpGet(9000, scheme="HTTPS", host="h"), HttpGet(9000, scheme="HTTPS", host="h")),
    ],
)
def test_a_label_is_enough_to_run_a_hook(hook: HookHandler, expected: HookHandler) -> None:
    assert hooks.parse(hooks.text(hook, WEB)) == expected


@pytest.mark.parametrize("label", ["", "{", "[]", "3", '{"kind":"Later"}', '{"kind":"Sleep","years":1}', "{}"])
def test_what_cannot_be_read_is_no_hook(label: str) -> None:
    assert hooks.parse(label) is None
