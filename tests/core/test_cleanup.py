"""Leftovers on the disk: only what nobody wants, runs or works on, and only once every source has spoken."""

from __future__ import annotations

import pytest

from edgelet.core.cleanup import orphans
from edgelet.core.desired import Desired
from tests.core.scenes import KEY, pod, sandbox

WANTED = Desired({KEY: pod()})
NOTHING = Desired({})
DISK = ("uid-a", "uid-b")


@pytest.mark.parametrize(
    ("wanted", "running", "working", "expected"),
    [
        (NOTHING, (), (), {"uid-a", "uid-b"}),
        (WANTED, (), (), {"uid-b"}),
        (NOTHING, (sandbox(),), (), {"uid-b"}),
        (NOTHING, (), ("uid-a",), {"uid-b"}),
        (WANTED, (sandbox(uid="uid-b"),), (), set()),
        (Desired({}, unseen=("http:x",)), (), (), set()),
    ],
)
def test_orphans(wanted: Desired, running: tuple[object, ...], working: tuple[str, ...], expected: set[str]) -> None:
    assert orphans(DISK, wanted, running, working) == expected  # type: ignore[arg-type]
