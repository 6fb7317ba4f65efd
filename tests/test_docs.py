"""What the documents say is there: links, make targets, settings, example pods."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from edgelet import config

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
IDS = [str(d.relative_to(ROOT)) for d in DOCUMENTS]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CELLS = re.compile(r"^\| `(\w+)` \| ([^|]+) \| `(\w+)` \|", re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """The anchors that a renderer makes of a document's headings."""
    titles = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=IDS)
def test_every_link_inside_the_tree_leads_somewhere(document: Path) -> None:
    for link in LINK.findall(document.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


@pytest.mark.parametrize("document", DOCUMENTS, ids=IDS)
def test_every_make_target_that_is_named_exists(document: Path) -> None:
    text = document.read_text()
    named = set(re.findall(r"(?:^    |`|run )make ([a-z][a-z0-9-]*)", text, re.MULTILINE))
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert named <= targets


def test_bare_make_says_in_one_line_what_each_target_does() -> None:
    shown = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony and [line.split()[1] for line in shown] == phony[1].split()
    assert all(len(line) <= 120 and len(line.split()) > 3 for line in shown)


def test_the_table_of_settings_is_the_codes() -> None:
    rows = CELLS.findall((ROOT / "docs" / "configuration.md").read_text())
    assert [(key, re.findall(r"`([^`]+)`", flags), variable) for key, flags, variable in rows] == [
        (option.key, list(option.flags), option.variable) for option in config.OPTIONS
    ]


def test_the_version_has_an_entry_in_the_change_log() -> None:
    version = re.search(r'__version__ = "([^"]+)"', (ROOT / "edgelet" / "__init__.py").read_text())
    assert version and version[1] in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("script", ["run", "setup"])
def test_the_ci_scripts_are_valid_and_executable(script: str) -> None:
    path = ROOT / ".ci" / script
    assert path.stat().st_mode & 0o111
    assert subprocess.run(["bash", "-n", path], capture_output=True, text=True, check=False).stderr == ""


def test_the_ci_runs_the_commands_that_the_readme_promises() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert re.search(r"^make setup$", script, re.MULTILINE)
    assert re.search(r"^(if ! )?make test ", script, re.MULTILINE)
    assert "    make test " in (ROOT / "README.md").read_text()


def test_the_tests_that_are_run_with_another_podman_exist() -> None:
    named = re.findall(r"e2e/(\w+\.py)::(\w+)", (ROOT / "tests/roots/podman.sh").read_text())
    assert len(named) >= 10
    for file, test in named:
        assert f"def {test}(" in (ROOT / "tests/e2e" / file).read_text()
