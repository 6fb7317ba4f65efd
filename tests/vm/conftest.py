"""The `vm` fixture: one booted machine per test module, with edgelet installed from the package under test.

These tests run only on demand (`make test-vm`): EDGELET_VM names the suite to boot, and without it
they are not collected into an ordinary run.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import machine

SUITE_VARIABLE = "EDGELET_VM"
PACKAGE_VARIABLE = "EDGELET_DEB"
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip all of these where no machine was asked for."""
    if os.environ.get(SUITE_VARIABLE):
        return
    skip = pytest.mark.skip(reason="virtual machine tests run by `make test-vm` only")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def vm_image() -> Path:
    """The built image's directory (built at the first use, then cached)."""
    if reason := machine.available():
        pytest.skip(reason)
    suite = os.environ[SUITE_VARIABLE]
    done = subprocess.run([HERE / "build.sh", suite], check=True, stdout=subprocess.PIPE)
    return Path(done.stdout.decode().strip())


@pytest.fixture(scope="session")
def vm_package() -> bytes:
    """The Debian package under test (`make deb`, or the file that EDGELET_DEB names)."""
    path = os.environ.get(PACKAGE_VARIABLE) or next(iter(sorted(Path("dist").glob("edgelet_*_amd64.deb"))), None)
    if path is None:
        pytest.fail("there is no package to test: run `make deb` first")
    return Path(path).read_bytes()


@pytest.fixture(scope="module")
def vm(vm_image: Path, vm_package: bytes, request: pytest.FixtureRequest) -> Iterator[machine.Machine]:
    """A machine with edgelet installed and enabled; a module may set KERNEL to add to its command line."""
    append = getattr(request.module, "KERNEL", "")
    with (
        tempfile.TemporaryDirectory(prefix="edgelet-vm-") as directory,
        machine.Machine(vm_image, Path(directory), append=append) as booted,
    ):
        booted.boot()
        booted.put("/root/edgelet.deb", vm_package)
        booted.run("dpkg -i /root/edgelet.deb", timeout=180)
        yield booted
