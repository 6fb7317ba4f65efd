"""dist/edgelet, where `make binary` has built it: needs no Python, unpacks nothing, works on a read-only root."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from edgelet import __version__

TOP = Path(__file__).parents[1]
BINARY = Path(os.environ.get("EDGELET_BINARY", TOP / "dist" / "edgelet"))
ARCHIVE = BINARY.with_suffix(".pyz")
MANIFEST = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: 'x:1'}]}\n"

pytestmark = pytest.mark.skipif(not BINARY.exists(), reason="make binary has not been run")


def needed() -> list[str]:
    """Paths of the shared libraries it loads."""
    said = subprocess.run(["ldd", BINARY], check=True, capture_output=True, text=True).stdout
    return re.findall(r"(/\S+)", said)


def test_of_the_host_it_needs_the_c_library_alone() -> None:
    names = {Path(path).name for path in needed()}
    assert all(re.match(r"(libc|libm|libdl|libpthread|libutil)\.so|ld-linux", name) for name in names)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root (chroot)")
def test_it_runs_on_a_read_only_root_that_holds_nothing_but_the_c_library(tmp_path: Path) -> None:
    for library in needed():
        place = tmp_path / library.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, place)
    (tmp_path / "proc").mkdir()
    shutil.copy(BINARY, tmp_path / "edgelet")
    (tmp_path / "web.yaml").write_text(MANIFEST)
    script = f"""
        mount --bind {tmp_path} {tmp_path} && mount --rbind /proc {tmp_path}/proc &&
        mount -o remount,bind,ro {tmp_path} &&
        chroot {tmp_path} /edgelet --version && chroot {tmp_path} /edgelet validate /web.yaml
    """
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"edgelet {__version__}", "1 file, 1 pod: 0 errors, 0 warnings"]


def test_it_has_the_c_parser_of_yaml_and_looks_at_no_environment() -> None:
    code = "import sys, yaml; print(yaml.__with_libyaml__, sys.flags.isolated, sys.path)"
    environ = {**os.environ, "PYTHONPATH": "/nowhere", "PYTHONHOME": "/nowhere", "PYTHONSTARTUP": "/nowhere"}
    done = subprocess.run([BINARY, "-m", "code"], input=code, capture_output=True, text=True, check=True, env=environ)
    assert f"True 1 ['{BINARY.resolve()}']" in done.stdout


def test_it_starts_within_its_budget_of_cpu() -> None:
    spent = []
    for _ in range(5):
        before = os.times()
        subprocess.run([BINARY, "--version"], check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        spent.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert min(spent) <= 0.15


def test_a_start_leaves_nothing_behind(tmp_path: Path) -> None:
    environ = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    began = time.time()
    subprocess.run([BINARY, "--version"], check=True, stdout=subprocess.DEVNULL, env=environ, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert BINARY.stat().st_mtime < began


def test_the_archive_runs_with_this_python() -> None:
    done = subprocess.run([sys.executable, "-I", ARCHIVE, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"edgelet {__version__}\n"
    with zipfile.ZipFile(ARCHIVE) as archive:
        assert not [name for name in archive.namelist() if name.endswith((".pyc", ".so"))]
