"""Which containers runAsNonRoot keeps from starting."""

from __future__ import annotations

import pytest

from edgelet.core import nonroot
from edgelet.model.pod import Container, Pod, SecurityContext

ROOT = "container has runAsNonRoot and image will run as root"
NAMED = "container has runAsNonRoot and image has non-numeric user ({}), cannot verify user is non-root"
SPEC = "container's runAsUser breaks non-root policy"


@pytest.mark.parametrize(
    ("strict", "user", "image_user", "said"),
    [
        (True, 0, "99", SPEC),
        (True, 99, "", ""),
        (True, 99, "nobody", ""),
        (True, None, "", ROOT),
        (True, None, "0", ROOT),
        (True, None, "00", ROOT),
        (True, None, "0:99", ROOT),
        (True, None, "99", ""),
        (True, None, "99:0", ""),
        (True, None, "nobody", NAMED.format("nobody")),
        (True, None, "root:99", NAMED.format("root")),
        (True, None, ":99", ROOT),
        (False, 0, "", ""),
        (None, None, "nobody", ""),
    ],
)
def test_who_may_start(strict: bool | None, user: int | None, image_user: str, said: str) -> None:
    security = SecurityContext(run_as_non_root=strict, run_as_user=user)
    container = Container("app", "image", security=security)
    pod = Pod("web-n1", "prod", "u-1", "1-abc", "file", (container,))
    where = ' (pod: "web-n1_prod(u-1)", container: app)' if said else ""
    assert nonroot.refusal(pod, container, image_user) == said + where
