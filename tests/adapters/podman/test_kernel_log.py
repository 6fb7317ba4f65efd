"""OOM kills by the kernel's log; the record is a real one, of Debian 12's kernel with crun."""

from __future__ import annotations

from pathlib import Path

from edgelet.adapters.podman import kernel_log

ID = "5c3e6a3f90a7926cdd895db116f8c603c8eb8810e74d31077342864f1c6e45b6"
SLICE = "/machine.slice/machine-libpod_pod_3446210862a06d08e39f955fdcf0525b9c1ed086104abbff3d71367bb18c167f.slice"
RECORD = (
    "6,1012,512049584,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=container,mems_allowed=0,"
    f"oom_memcg={SLICE}/libpod-{ID}.scope/container,task_memcg={SLICE}/libpod-{ID}.scope/container,"
    "task=sh,pid=1449,uid=0\n"
)


def log(tmp_path: Path, text: str) -> str:
    """A log of one record."""
    path = tmp_path / "kmsg"
    path.write_text(text)
    return str(path)


def test_the_container_whose_task_was_killed_is_named(tmp_path: Path) -> None:
    path = log(tmp_path, RECORD)
    assert kernel_log.oom_killed(ID, path)
    assert not kernel_log.oom_killed("0" * 64, path)


def test_a_container_that_only_shares_the_limit_that_was_hit_is_not_named(tmp_path: Path) -> None:
    other = RECORD.replace(f"task_memcg={SLICE}/libpod-{ID}", f"task_memcg={SLICE}/libpod-{'1' * 64}")
    assert not kernel_log.oom_killed(ID, log(tmp_path, other))


def test_no_record_no_device_no_kill(tmp_path: Path) -> None:
    assert not kernel_log.oom_killed(ID, log(tmp_path, f"6,1,1,-;Started libpod-{ID}.scope\n"))
    assert not kernel_log.oom_killed(ID, str(tmp_path / "none"))
