"""`edgelet validate`: output that editors read, exit codes, and what it does not load."""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from edgelet.cli import main

GOOD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers: [{name: main, image: "nginx:1"}]
"""
WARNED = GOOD + "  nodeSelector: {a: b}\n"
BAD = GOOD.replace("image", "imag")


def validate(*arguments: str) -> int:
    """Run it in this process; the exit code."""
    return main.main(["validate", "--node-name", "node", *arguments])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory of manifests, with things beside them that are none."""
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yml").write_text(WARNED.replace("web", "two"))
    (tmp_path / ".hidden.yaml").write_text(BAD)
    (tmp_path / "a.yaml.bak").write_text(BAD)
    (tmp_path / "sub.yaml").mkdir()
    return tmp_path


def test_valid(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(str(folder / "a.yaml")) == 0
    assert capsys.readouterr().out == "1 file, 1 pod: 0 errors, 0 warnings\n"


def test_warnings_are_valid_unless_strict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "b.yml"
    said = f"{path}:6:3: %s: spec.nodeSelector: is not honoured: there is one node, nothing is scheduled\n"
    assert validate(str(path)) == 0
    assert capsys.readouterr().out == said % "warning" + "1 file, 1 pod: 0 errors, 1 warning\n"
    assert validate(str(path), "--strict") == 1
    assert capsys.readouterr().out == said % "error" + "1 file, 0 pods: 1 error, 0 warnings\n"


def test_invalid_names_file_line_and_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.json"
    path.write_text(BAD)
    assert validate(str(path)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{path}:5:16: error: spec.containers[0].image: is required")
    assert lines[-1] == "1 file, 0 pods: 1 error, 1 warning"


def test_pain_97_pain_98_pain_100_directory_takes_manifests_only(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert validate(str(folder)) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 files, 2 pods: 0 errors, 1 warning"


def test_one_name_in_two_files_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "c.yaml").write_text(GOOD)
    assert validate(str(folder)) == 0
    assert (
        f"{folder / 'c.yaml'}: warning: pod default/web-node is in {folder / 'a.yaml'} already, which wins; "
        "one of them must get another name" in capsys.readouterr().out.splitlines()
    )
    assert validate(str(folder), "--strict") == 1


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Input:
        buffer = io.BytesIO(BAD.encode())

    monkeypatch.setattr(sys, "stdin", Input)
    assert validate("-") == 1
    assert capsys.readouterr().out.startswith("<stdin>:5:16: error: ")


def test_could_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(str(tmp_path / "none.yaml")) == 2
    assert "none.yaml: No such file or directory" in capsys.readouterr().out
    assert validate(str(tmp_path)) == 2
    assert "there is no .yaml, .yml, .json file in it" in capsys.readouterr().out


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(str(folder / "b.yml"), str(folder / "none"), "-o", "json") == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["valid"], found["errors"], found["warnings"]) == (False, 1, 1)
    first, second = found["files"]
    assert first == {
        "file": str(folder / "b.yml"),
        "valid": True,
        "pods": ["default/two-node"],
        "problems": [
            {
                "level": "warning",
                "document": 1,
                "line": 6,
                "column": 3,
                "path": "spec.nodeSelector",
                "message": "is not honoured: there is one node, nothing is scheduled",
            }
        ],
    }
    assert second["valid"] is False
    assert "No such file" in second["error"]


def test_it_loads_little_and_is_quick(folder: Path) -> None:
    """Under 0.3 s of CPU for one file (the wall clock of a busy machine says nothing), and nothing of Podman."""
    code = (
        "import sys; from edgelet.cli import main; code = main.main(['validate', sys.argv[1]]);"
        "heavy = {'podman', 'requests', 'tornado', 'watchdog', 'prometheus_client', 'asyncio', 'ssl'};"
        "print(sorted(heavy & set(sys.modules))); sys.exit(code)"
    )
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-c", code, str(folder / "a.yaml")]
        run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert run.stdout.splitlines()[-1] == "[]"
    assert min(spent) < 0.3


def test_what_is_no_regular_file_is_told_and_never_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "f.yaml")
    assert validate(str(tmp_path)) != 0
    said = capsys.readouterr()
    assert "it is not a regular file" in said.out + said.err
