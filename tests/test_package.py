"""The Debian package: what is in it, with which modes, and that two builds are the same bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
BUILD = TOP / "systemd" / "debian" / "build"


def build(into: Path) -> Path:
    """A package with a version of its own, moved out of dist/ (that belongs to `make deb`)."""
    version = f"0.0.{os.getpid()}"
    environ = {**os.environ, "PYTHON": sys.executable, "DEB_VERSION": version, "SOURCE_DATE_EPOCH": "1700000000"}
    done = subprocess.run([BUILD], check=True, capture_output=True, text=True, env=environ)
    return Path(shutil.move(done.stdout.strip(), into))


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of this tree."""
    if not shutil.which("dpkg-deb"):
        pytest.skip("dpkg-deb is not installed")
    return build(tmp_path_factory.mktemp("deb"))


def listing(package: Path) -> dict[str, tuple[str, str]]:
    """(mode, owner) of each path in the package."""
    done = subprocess.run(["dpkg-deb", "-c", package], check=True, capture_output=True, text=True)
    rows = (line.split(None, 5) for line in done.stdout.splitlines())
    return {row[5].removeprefix("."): (row[0], row[1]) for row in rows}


def test_two_builds_are_the_same_bytes(package: Path, tmp_path: Path) -> None:
    assert build(tmp_path).read_bytes() == package.read_bytes()


def test_it_holds_the_program_its_unit_its_settings_and_its_documentation(package: Path) -> None:
    found = listing(package)
    for path in (
        "/usr/bin/edgelet",
        "/usr/lib/edgelet/edgelet/cli/main.py",
        "/usr/lib/edgelet/edgelet/model/fields.txt",
        "/usr/lib/edgelet/podman/api/client.py",
        "/usr/lib/systemd/system/edgelet.service",
        "/etc/edgelet/config.yaml",
        "/usr/share/man/man8/edgelet.8.gz",
        "/usr/share/bash-completion/completions/edgelet",
    ):
        assert path in found
    assert not [p for p in found if p.endswith(".pyc") or "/tests/" in p]


def test_everything_is_roots_and_manifests_which_may_hold_secrets_are_for_root_alone(package: Path) -> None:
    found = listing(package)
    assert {owner for _, owner in found.values()} == {"root/root"}
    assert found["/etc/kubernetes/manifests/"][0] == "drwx------"
    writable = [p for p, (mode, _) in found.items() if mode[5] == "w" or mode[8] == "w"]
    assert writable == []


def test_the_installed_program_starts_from_its_own_directory(package: Path, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "-x", package, tmp_path], check=True)
    script = (tmp_path / "usr/bin/edgelet").read_text().replace("/usr/lib/edgelet", str(tmp_path / "usr/lib/edgelet"))
    words = [sys.executable, "-I", "-", "--version"]
    done = subprocess.run(words, check=False, input=script, capture_output=True, text=True)
    assert done.stdout.startswith("edgelet ")


def test_settings_survive_an_upgrade(package: Path) -> None:
    done = subprocess.run(["dpkg-deb", "-f", package, "Version"], check=True, capture_output=True, text=True)
    assert done.stdout.strip()
    files = subprocess.run(["dpkg-deb", "--ctrl-tarfile", package], check=True, capture_output=True).stdout
    listed = subprocess.run(["tar", "-xOf", "-", "./conffiles"], input=files, check=True, capture_output=True).stdout
    assert listed.decode().split() == ["/etc/edgelet/config.yaml", "/etc/default/edgelet"]


def test_the_licence_is_named_everywhere_and_whole_in_the_tree(package: Path, tmp_path: Path) -> None:
    text = (TOP / "LICENSE").read_text()
    assert "Apache License" in text and "END OF TERMS AND CONDITIONS" in text
    subprocess.run(["dpkg-deb", "-x", package, tmp_path], check=True)
    assert "License: Apache-2.0" in (tmp_path / "usr/share/doc/edgelet/copyright").read_text()
    assert "license = Apache-2.0" in (TOP / "setup.cfg").read_text()


@pytest.mark.skipif(not shutil.which("lintian"), reason="lintian is not installed")
def test_lintian_finds_no_error_and_no_warning(package: Path) -> None:
    done = subprocess.run(
        ["lintian", "--fail-on", "error,warning", package], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("script", ["postinst", "prerm", "postrm", "remove-pods", "rtupdate", "build", "edgelet"])
def test_scripts_parse(script: str) -> None:
    path = BUILD.parent / script
    first = path.read_text().splitlines()[0]
    if "python" in first:
        compile(path.read_text(), script, "exec")
    else:
        subprocess.run([first.removeprefix("#!"), "-n", path], check=True)


def test_the_default_configuration_is_understood_and_gives_pods_a_network_with_names() -> None:
    from edgelet import config, config_file

    path = BUILD.parent / "config.yaml"
    parsed = config_file.parse(path.read_bytes(), str(path), frozenset(o.key for o in config.OPTIONS))
    assert (list(parsed.mistakes), list(parsed.warnings)) == ([], [])
    assert [(entry.key, entry.value) for entry in parsed.entries] == [("podNetwork", "edgelet")]
    commented = path.read_text().replace("\n#", "\n")
    lines = [line for line in commented.splitlines() if line.split(":")[0] in {o.key for o in config.OPTIONS}]
    assert len(lines) >= 5
    shown = config_file.parse("\n".join(lines).encode(), "shown", frozenset(o.key for o in config.OPTIONS))
    assert list(shown.mistakes) == []
