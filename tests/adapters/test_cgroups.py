"""Control groups as the kernel writes them, v1, v2 and mixed."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgelet.adapters.cgroups import Cgroups
from edgelet.model.usage import Interface

PID = 77


def tree(tmp_path: Path, files: dict[str, str], mounts: str, groups: str) -> Cgroups:
    """A machine below a directory."""
    proc = tmp_path / "proc"
    for path, text in files.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (proc / "self").mkdir(parents=True)
    (proc / "self/mountinfo").write_text(mounts.replace("AT", str(tmp_path)))
    (proc / str(PID)).mkdir(exist_ok=True)
    (proc / f"{PID}/cgroup").write_text(groups)
    return Cgroups(str(proc))


def test_version_1_is_read_also_where_the_mount_shows_only_a_part(tmp_path: Path) -> None:
    cgroups = tree(
        tmp_path,
        {
            "memory/libpod-1/memory.usage_in_bytes": "10485760\n",
            "memory/libpod-1/memory.limit_in_bytes": "67108864\n",
            "memory/libpod-1/memory.max_usage_in_bytes": "20971520\n",
            "memory/libpod-1/memory.failcnt": "3\n",
            "memory/libpod-1/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
            "memory/libpod-1/memory.stat": "cache 1\ntotal_cache 4096\ntotal_rss 8192\ntotal_inactive_file 1048576\n"
            "total_mapped_file 5\ntotal_swap 6\ntotal_pgfault 7\ntotal_pgmajfault 8\n",
            "cpu/libpod-1/cpuacct.usage": "1500000000\n",
            "cpu/libpod-1/cpuacct.stat": "user 100\nsystem 50\n",
            "cpu/libpod-1/cpu.stat": "nr_periods 9\nnr_throttled 4\nthrottled_time 2000000000\n",
            "pids/libpod-1/pids.current": "5\n",
        },
        "1 0 0:1 /outer AT/memory rw - cgroup cgroup rw,memory\n"
        "2 0 0:2 / AT/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
        "3 0 0:3 / AT/pids rw - cgroup cgroup rw,pids\n"
        "4 0 0:4 / AT/unified rw - cgroup2 cgroup2 rw\nbroken line\n",
        "9:memory:/outer/libpod-1\n8:cpu,cpuacct:/libpod-1\n7:pids:/libpod-1\n0::/\n",
    )
    found = cgroups.usage(PID)
    assert cgroups.version == 1
    assert found is not None
    assert (found.cpu, found.cpu_user, found.cpu_system) == (1.5, 1.0, 0.5)
    assert (found.periods, found.throttled_periods, found.throttled) == (9, 4, 2.0)
    assert (found.memory, found.working_set, found.rss, found.cache) == (10485760, 9437184, 8192, 4096)
    assert (found.memory_limit, found.memory_peak, found.memory_failures) == (67108864, 20971520, 3)
    assert (found.page_faults, found.major_faults, found.oom_kills, found.processes) == (7, 8, 2, 5)
    (tmp_path / "memory/libpod-1/memory.limit_in_bytes").write_text("9223372036854771712\n")
    unlimited = cgroups.usage(PID)
    assert unlimited is not None
    assert unlimited.memory_limit is None


def test_version_2_is_read(tmp_path: Path) -> None:
    group = "cg/machine.slice/libpod-1.scope"
    cgroups = tree(
        tmp_path,
        {
            f"{group}/cpu.stat": "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\nnr_periods 1\n",
            f"{group}/memory.current": "1000000\n",
            f"{group}/memory.max": "max\n",
            f"{group}/memory.peak": "1200000\n",
            f"{group}/memory.stat": "anon 600000\nfile 300000\ninactive_file 250000\npgfault 10\n",
            f"{group}/memory.events": "max 1\noom_kill 2\n",
            f"{group}/memory.swap.current": "64\n",
            f"{group}/pids.current": "3\n",
        },
        "1 0 0:1 / AT/cg rw - cgroup2 cgroup2 rw\n",
        "0::/machine.slice/libpod-1.scope\n",
    )
    found = cgroups.usage(PID)
    assert cgroups.version == 2
    assert found is not None
    assert (found.cpu, found.memory, found.working_set, found.rss) == (2.5, 1000000, 750000, 600000)
    assert (found.memory_limit, found.swap, found.memory_peak, found.oom_kills) == (None, 64, 1200000, 2)
    assert found.processes == 3
    (tmp_path / f"{group}/memory.max").write_text("2000000\n")
    (tmp_path / f"{group}/memory.swap.current").unlink()  # a kernel without swap accounting
    limited = cgroups.usage(PID)
    assert limited is not None
    assert (limited.memory_limit, limited.swap) == (2000000, 0)


@pytest.mark.parametrize("below", ["", "/container", "/container/init.scope"])
def test_the_groups_below_a_containers_own_are_part_of_it(tmp_path: Path, below: str) -> None:
    own = "cg/machine.slice/machine-libpod_pod_ab.slice/libpod-1.scope"
    files = {f"{own}/memory.current": "500\n", f"{own}/memory.max": "1000\n", f"{own}/cpu.stat": "usage_usec 7000000\n"}
    inner = {f"{own}/container/memory.current": "100\n", f"{own}/container/memory.max": "max\n"}
    group = f"0::/{own.removeprefix('cg/')}{below}\n"
    found = tree(tmp_path, files | inner, "1 0 0:1 / AT/cg rw - cgroup2 cgroup2 rw\n", group).usage(PID)
    assert found is not None
    assert (found.memory, found.memory_limit, found.cpu) == (500, 1000, 7.0)


@pytest.mark.parametrize("text", ["", "nonsense\n", "0::/gone\n"])
def test_a_process_that_is_gone_has_no_figures(tmp_path: Path, text: str) -> None:
    cgroups = tree(tmp_path, {}, "1 0 0:1 / AT/cg rw - cgroup2 cgroup2 rw\n", text)
    assert cgroups.usage(PID) is None
    assert cgroups.usage(PID + 1) is None
    assert cgroups.interfaces(PID) == ()


def test_interfaces_are_counted_without_the_loopback(tmp_path: Path) -> None:
    head = "Inter-|   Receive\n face |bytes\n"
    rows = "    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0: 10 2 3 4 0 0 0 0 50 6 7 8 0 0 0 0\n"
    cgroups = tree(tmp_path, {f"proc/{PID}/net/dev": head + rows}, "", "")
    assert cgroups.interfaces(PID) == (Interface("eth0", 10, 2, 3, 4, 50, 6, 7, 8),)
