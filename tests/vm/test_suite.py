"""The end-to-end suite of the main job, inside the machine: cgroup v2, crun, systemd, and the installed package.

EDGELET_VM_TESTS narrows it (pytest arguments, such as "tests/e2e/test_probes.py -k exec").
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import os
import tarfile
import time
from pathlib import Path

import pluggy
import pytest

from .machine import Machine

TOP = Path(__file__).parents[2]
HOURS = 3.0
PATIENCE = 10
"""How many times as long as elsewhere a deadline of the suite may be here."""
# What runs tests, all of it plain Python: Debian's own is too old for the fixtures here.
RUNNERS = (*("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py", "pytest_timeout"),)
# hypothesis has parts for one version of Python only; of it, end-to-end tests need what conftest.py says.
HYPOTHESIS = """
class settings:
    register_profile = load_profile = staticmethod(lambda *_, **__: None)
class Phase:
    explicit = generate = None
"""
INI = """[pytest]
addopts = --import-mode=importlib -p pytest_timeout -p no:cacheprovider
pythonpath = . site /usr/lib/edgelet
markers =
    podman: real Podman
    e2e: end to end
    slow: slow
timeout = 900
"""
LOG = "/root/suite.log"
SAMPLES = TOP.parent / "shared" / "data" / "manifests"
"""Read-only papers that some tests read, where the machine has them; those tests are skipped without."""
# As on the machine of the main job there is an address that pods on the host's network have (RFC 5737).
NETWORK = """
ip link add lan type dummy && ip address add 192.0.2.10/24 dev lan && ip link set lan up
ip route add default via 192.0.2.1
"""


def bundle() -> bytes:
    """The tests and their runner, below suite/, and what they read beside it, as a tar archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=6) as tar:
        tar.add(TOP / "tests", "suite/tests", filter=_source)
        tar.add(TOP / "manifests", "suite/manifests")
        if SAMPLES.exists():
            tar.add(SAMPLES, "shared/data/manifests")
        for name in RUNNERS:
            found = importlib.util.find_spec(name)
            if found is None or found.origin is None:
                continue
            place = Path(found.origin)
            package = found.submodule_search_locations is not None
            tar.add(place.parent if package else place, f"suite/site/{name if package else place.name}", filter=_source)
        # pytest asks for pluggy's version when it starts.
        metadata = f"pluggy-{importlib.metadata.version('pluggy')}.dist-info"
        tar.add(Path(pluggy.__file__).parents[1] / metadata, f"suite/site/{metadata}")
        for path, text in (("suite/pytest.ini", INI), ("suite/site/hypothesis.py", HYPOTHESIS)):
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def _source(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    skipped = ("__pycache__", ".so", ".pyc", "mutants")
    return None if any(part.endswith(skipped) for part in Path(entry.name).parts) else entry


@pytest.mark.timeout(HOURS * 3600)
def test_the_end_to_end_suite_passes_here(vm: Machine) -> None:
    vm.put("/root/suite.tgz", bundle())
    vm.run(NETWORK)
    vm.run("systemctl stop edgelet; tar -xzf /root/suite.tgz -C /root", timeout=300)
    what = os.environ.get("EDGELET_VM_TESTS", "tests/e2e")
    # --slice: not below a service that a test could stop; what the suite asks systemd for is beside it.
    vm.run(
        "systemd-run --unit=suite --collect --working-directory=/root/suite "
        f"-E PATH=$PATH -E PYTHONPATH=/root/suite/site -E EDGELET_TEST_PATIENCE={PATIENCE} "
        f"sh -c 'python3 -m pytest -v -rs {what} >{LOG} 2>&1; echo ended $? >>{LOG}'"
    )
    began, shown = time.monotonic(), 0
    while time.monotonic() - began < HOURS * 3600:
        lines = vm.run(f"cat {LOG} 2>/dev/null", check=False, timeout=120).out.splitlines()
        print("\n".join(lines[shown:]), flush=True)
        shown = len(lines)
        if lines and lines[-1].startswith("ended "):
            assert lines[-1] == "ended 0", "\n".join(lines[-40:])
            return
        time.sleep(10)
    pytest.fail("the suite did not end in time")
