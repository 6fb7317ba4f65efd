"""The 97 files that people really have (issue 4, must show 1): verdicts and values.

`corpus.json` pins what each file comes to: its pods and objects, and the fields for which it is refused.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgelet.model import decode, yaml_reader
from edgelet.model.problems import Problem
from edgelet.model.tree import Node

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "manifests"
FILES = sorted(FOLDER.glob("*.yaml"))
OUTCOMES = Path(__file__).with_name("corpus.json")

pytestmark = pytest.mark.skipif(not FILES, reason=f"the collected manifests are not at {FOLDER}")

DIFFERENCES = {
    "031-cli-deeply-nested-list.yaml": "lists in lists are opened; its pods have no names and are refused for that",
    "088-solo-jenkins-kube.yaml": "unquoted labels and annotations are taken as text, with a warning",
    "113-mosquitto-statefulset.yaml": "an unquoted annotation is taken as text, with a warning",
    "115-zigbee2mqtt-statefulset.yaml": "an unquoted annotation is taken as text, with a warning",
}
"""Files that kubectl cannot read and edgelet can."""


def decoded(path: Path) -> decode.Decoded:
    return decode.decode(path.read_bytes(), decode.Origin(path.name, "file", "node"))


def is_syntax(problem: Problem) -> bool:
    """Whether the text itself could not be read (everything else names a field)."""
    return not problem.warning and not problem.path


def table() -> dict[str, str]:
    """File name -> kubectl's verdict ("ok" or "error"), from the collection's own README."""
    rows = re.findall(
        r"^\| \d+ \| (\S+\.yaml) \|.*\| (ok|error) \| (?:ok|error) \|$", (FOLDER / "README.md").read_text(), re.M
    )
    return dict(rows)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_reading_verdict_is_kubectls(path: Path) -> None:
    theirs = table()[path.name]
    syntax = [p for p in decoded(path).problems if is_syntax(p)]
    if path.name in DIFFERENCES:
        assert theirs == "error"
        assert not syntax
    else:
        assert bool(syntax) == (theirs == "error"), syntax


def outcome(result: decode.Decoded) -> list[str]:
    """What the file comes to: its pods and objects, or the fields that are wrong."""
    names = [str(p.key) for p in result.pods] + [f"{o.kind} {o.namespace}/{o.name}" for o in result.objects]
    return names + sorted({f"refused for {p.path or 'its text'}" for p in result.problems if not p.warning})


def test_outcome_of_every_file_is_the_pinned_one() -> None:
    """Regenerate with `python -m tests.model.test_corpus` and read the difference."""
    found = {p.name: outcome(decoded(p)) for p in FILES}
    assert found == json.loads(OUTCOMES.read_text())


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_both_parsers_give_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = decoded(path)
    monkeypatch.setattr(yaml_reader, "C_PARSER", None)
    second = decoded(path)
    assert (first.pods, first.objects, first.failed) == (second.pods, second.objects, second.failed)
    if not any(is_syntax(p) for p in first.problems):
        assert first.problems == second.problems


def flat(node: Node | None) -> Iterator[Any]:
    """The objects of a document as kubectl prints them: lists opened, nulls kept out."""
    if node is None:
        return
    value = node.plain()
    if str(value.get("kind", "")).endswith("List"):
        items = node.value.get("items")
        for item in items.value if items is not None and items.kind == "list" else []:
            yield from flat(item)
    else:
        yield value


def kubectl(path: Path) -> list[Any]:
    """The objects of a file as kubectl reads them."""
    command = ["kubectl", "annotate", "--local", "-f", str(path), "edgelet.test/x=y", "-o", "json"]
    run = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    text, at, out = run.stdout.decode(), 0, []
    while at < len(text):
        value, at = json.JSONDecoder().raw_decode(text, at)
        at += len(text[at:]) - len(text[at:].lstrip())
        out.append(value)
    return out


def without(value: Any) -> Any:
    """Nulls and our annotation taken out; empty maps and managedFields too, which kubectl does not keep."""
    if isinstance(value, dict):
        kept = {
            k: without(v) for k, v in value.items() if v is not None and k not in ("edgelet.test/x", "managedFields")
        }
        return {k: v for k, v in kept.items() if v != {}}
    return [without(v) for v in value] if isinstance(value, list) else value


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl, the second opinion, is not installed")
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_values_are_kubectls(path: Path) -> None:
    if table()[path.name] == "error":
        pytest.skip("kubectl cannot read this file")
    documents, errors = decode.read_documents(path.read_bytes())
    assert not errors
    ours = [without(v) for d in documents for v in flat(d)]
    theirs = [without(v) for v in kubectl(path)]
    if path.name == "019-hack-multi-resource-json.yaml":
        # The comment in front makes kubectl stop after the first object, without a word.
        assert len(ours) == 2
        ours = ours[:1]
    assert ours == theirs


if __name__ == "__main__":
    OUTCOMES.write_text(json.dumps({p.name: outcome(decoded(p)) for p in FILES}, indent=1) + "\n")
