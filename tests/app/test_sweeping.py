"""Which monitors watch for a container of ours that is gone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from edgelet.adapters.exits import Place
from edgelet.app import sweeping
from edgelet.core.conmon import Conmon

EXITS, LOGS = "/run/libpod/exits", "/var/log/pods"


@pytest.mark.parametrize(
    ("monitor", "lost"),
    [
        (Conmon("new", exit_dir=EXITS, log=f"k8s-file:{LOGS}/default_web_1/app/0.log"), True),
        (Conmon("known", exit_dir=EXITS, log=f"k8s-file:{LOGS}/default_web_1/app/0.log"), False),
        (Conmon("gone", exit_dir=EXITS), True),  # an infra container that we had
        (Conmon("cri", exit_dir="/var/run/crio/exits", log=f"{LOGS}/default_web_1/app/0.log"), False),
        (Conmon("other-podman", exit_dir="/tmp/exits", log=f"k8s-file:{LOGS}/default_web_1/app/0.log"), False),
        (Conmon("other-agent", exit_dir=EXITS, log="k8s-file:/var/log/pods-of-another/default_web_1/app/0.log"), False),
        (Conmon("foreign", exit_dir=EXITS, log="k8s-file:/var/lib/containers/ctr.log"), False),
    ],
    ids=lambda v: v.container_id if isinstance(v, Conmon) else str(v),
)
def test_ours_is_what_told_our_podman_and_wrote_where_we_keep_logs(monitor: Conmon, lost: bool, tmp_path: Path) -> None:
    runtime = SimpleNamespace(owns=lambda i: i == "known", owned=lambda i: i == "gone")
    settings = SimpleNamespace(pod_network="edgelet", pod_logs_dir=LOGS)
    made = sweeping.sweeper(cast(Any, runtime), cast(Any, settings), Place(str(tmp_path / "p"), EXITS), print)
    assert made._lost(monitor) is lost
