"""The `vm` fixture: one booted machine per test module, with edgelet installed from the package under test.

These tests run only on demand (`make test-vm`): EDGELET_VM names the suite to boot, and without it
they are not collected into an ordinary run.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.support.podman_env import IMAGE, image_tar

from . import machine
from .box import Box

SUITE_VARIABLE = "EDGELET_VM"
PACKAGE_VARIABLE = "EDGELET_DEB"
HERE = Path(__file__).parent
FROZEN = "stopped, 1024 MiB"
"""To be changed with how machines are frozen."""
KEPT = 2
"""Frozen machines kept beside an image."""
IMPORT = f"podman import --change 'ENV PATH=/bin' - {IMAGE}"


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
    path = os.environ.get(PACKAGE_VARIABLE) or next(iter(sorted(Path("dist").glob("edgelet_*_all.deb"))), None)
    if path is None:
        pytest.fail("there is no package to test: run `make deb` first")
    return Path(path).read_bytes()


def _booted(image: Path, directory: str, append: str) -> machine.Machine:
    booted = machine.Machine(image, Path(directory), append=append)
    try:
        booted.boot()
        booted.run(IMPORT, stdin=image_tar(), timeout=600)
    except BaseException:
        booted.power_cut()
        raise
    return booted


def _install(booted: machine.Machine, package: bytes) -> None:
    booted.put("/root/edgelet.deb", package)
    booted.run("dpkg -i /root/edgelet.deb", timeout=600)


@pytest.fixture(scope="module")
def blank(vm_image: Path, request: pytest.FixtureRequest) -> Iterator[machine.Machine]:
    """A running machine without edgelet; a module may set KERNEL to add to its command line."""
    with (
        tempfile.TemporaryDirectory(prefix="edgelet-vm-") as directory,
        _booted(vm_image, directory, getattr(request.module, "KERNEL", "")) as booted,
    ):
        yield booted


@pytest.fixture(scope="session")
def frozen(vm_image: Path, vm_package: bytes) -> Path:
    """A machine with edgelet at work, frozen: each module goes on from there with disks of its own.

    Kept beside the image, as long as the package stays the same.
    """
    kept = vm_image / f"with-{hashlib.sha256(vm_package + FROZEN.encode() + IMPORT.encode()).hexdigest()[:12]}"
    if not kept.exists():
        with tempfile.TemporaryDirectory(prefix="new-", dir=vm_image) as directory:
            _freeze(vm_image, directory, vm_package)
            Path(directory).rename(kept)
            os.mkdir(directory)  # for its removal
    for old in sorted(vm_image.glob("with-*"), key=os.path.getmtime)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return kept


def _freeze(image: Path, directory: str, package: bytes) -> None:
    booted = _booted(image, directory, "")
    try:
        _install(booted, package)
        Box(booted).until("the agent", lambda: bool(booted.ask("/version")))
        booted.run("sync")
        booted.freeze()
    finally:
        booted.power_cut()


@pytest.fixture(scope="module")
def vm(vm_image: Path, vm_package: bytes, request: pytest.FixtureRequest) -> Iterator[machine.Machine]:
    """A machine with edgelet installed, which has started it."""
    if hasattr(request.module, "KERNEL"):
        booted: machine.Machine = request.getfixturevalue("blank")
        _install(booted, vm_package)
        yield booted
        return
    kept: Path = request.getfixturevalue("frozen")
    with (
        tempfile.TemporaryDirectory(prefix="edgelet-vm-") as directory,
        machine.Machine(vm_image, Path(directory), frozen=kept) as booted,
    ):
        booted.boot()
        yield booted


@pytest.fixture(scope="module")
def box(vm: machine.Machine) -> Box:
    """The agent in the machine."""
    return Box(vm)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows what the machine had to say."""
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        booted = item.funcargs.get("vm") or item.funcargs.get("blank")
        if isinstance(booted, machine.Machine):
            report.sections.append(("machine", booted.story()))
    return report
